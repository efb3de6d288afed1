"""Fills what lists show of workloads that were submitted before.

Each chunk of rows is a transaction of its own, so no lock is held for long, and the columns of rows
may be filled again: a migration that was interrupted starts over.
"""

import logging
from collections import defaultdict

from django.db import OperationalError, connection, migrations, transaction

from workloads.kube_objects import sum_container_requests
from workloads.specs import decode_spec
from workloads.specs.spec_summary import summarize_spec

log = logging.getLogger(__name__)

CHUNK_ROWS = 200
SPEC_COLUMNS = ("image", "command", "node_pools", "labels", "cpu_requested", "memory_requested")
"""Columns of 0005. `summarize_spec` may return more one day, for columns of later migrations."""
MAX_CORES = 10**8
MAX_BYTES = 1 << 53


def iterate_chunks(rows):
    """Yield the rows some at a time, by their keys: each has a large object."""
    last = None
    while True:
        following = rows.order_by("pk") if last is None else rows.order_by("pk").filter(pk__gt=last)
        chunk = list(following[:CHUNK_ROWS])
        if not chunk:
            return
        yield chunk
        last = chunk[-1].pk


def save_columns(model, rows, columns):
    """Save columns of rows in one transaction; where a row cannot be saved, the others alone."""
    if not rows:
        return
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            # Not `bulk_update`: it builds and compiles an expression for each value, which takes
            # several times as long as the database needs for the row.
            cursor.executemany(*build_updates(model, rows, columns))
    except OperationalError:
        # The database's fault, not a row's: the migration is to be repeated.
        raise
    except Exception:
        for row in rows:
            save_row(row, columns)


def build_updates(model, rows, columns):
    """Return an UPDATE of these columns by the key, and its parameters for each row."""
    fields = [model._meta.get_field(name) for name in columns]
    key, quote = model._meta.pk, connection.ops.quote_name
    values = ", ".join(f"{quote(field.column)} = %s" for field in fields)
    statement = f"UPDATE {quote(model._meta.db_table)} SET {values} WHERE {quote(key.column)} = %s"
    parameters = [
        [
            field.get_db_prep_save(getattr(row, field.attname), connection)
            for field in (*fields, key)
        ]
        for row in rows
    ]
    return statement, parameters


def save_row(row, columns):
    """Save columns of a row, unless the database or the driver refuses what they contain."""
    try:
        with transaction.atomic():
            row.save(update_fields=columns)
    except OperationalError:
        raise
    except Exception as error:
        # Anything, as in `set_spec_columns`.
        log.warning("%s is not listed whole: %r", row, error)


def set_spec_columns(workload):
    """Set what lists show of its spec; return whether the spec could be read."""
    try:
        summary = summarize_spec(decode_spec(workload.spec))
        values = {name: summary[name] for name in SPEC_COLUMNS}
    except Exception as error:
        # Anything: specs of any age are read by the code of today, and one odd row must not keep an
        # installation from starting. Its columns stay empty.
        log.warning("the spec of workload %s is not listed: %r", workload.pk, error)
        return False
    for name, value in values.items():
        setattr(workload, name, value)
    return True


def set_pod_requests(pod):
    """Set what the pod's containers request; return whether the object could be read."""
    try:
        cores = max(0, min(sum_container_requests(pod.data, "cpu"), MAX_CORES))
        memory = max(0, int(min(sum_container_requests(pod.data, "memory"), MAX_BYTES)))
    except Exception as error:
        # As above: the object came from a cluster, and may be anything.
        log.warning("the requests of pod %s are not listed: %r", pod.pk, error)
        return False
    pod.cpu, pod.memory = cores, memory
    return True


def fill_summaries(apps, schema_editor):
    """Fill the columns of each workload's spec; one that cannot be read stays without."""
    workload_model = apps.get_model("workloads", "Workload")
    for chunk in iterate_chunks(workload_model.objects.only("id", "spec")):
        readable = [workload for workload in chunk if set_spec_columns(workload)]
        save_columns(workload_model, readable, SPEC_COLUMNS)


def fill_allocations(apps, schema_editor):
    """Fill what placed pods request, and add it up for their workloads.

    The kept counts of these workloads lack it, so they are to be counted anew.
    """
    pod_model = apps.get_model("workloads", "Pod")
    workload_model = apps.get_model("workloads", "Workload")
    placed = pod_model.objects.filter(vanished_at=None).exclude(node="")
    placed = placed.exclude(phase__in=["Succeeded", "Failed"])
    for pods in iterate_chunks(placed.only("id", "workload_id", "data")):
        readable = [pod for pod in pods if set_pod_requests(pod)]
        save_columns(pod_model, readable, ("cpu", "memory"))
    with_pods = workload_model.objects.filter(pk__in=placed.values("workload_id")).only("id")
    for workloads in iterate_chunks(with_pods):
        cores, memory = defaultdict(int), defaultdict(int)
        amounts = placed.filter(workload_id__in=[workload.pk for workload in workloads])
        # Added up here: the sum of integers may be beyond SQLite's.
        for key, pod_cores, pod_memory in amounts.values_list("workload_id", "cpu", "memory"):
            cores[key] += pod_cores or 0
            memory[key] += pod_memory or 0
        for workload in workloads:
            workload.cpu_allocated = min(cores[workload.pk], MAX_CORES)
            workload.memory_allocated = min(memory[workload.pk], MAX_BYTES)
            workload.pod_counts = None
        save_columns(workload_model, workloads, ("cpu_allocated", "memory_allocated", "pod_counts"))


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("workloads", "0005_lists_of_workloads")]

    operations = [
        migrations.RunPython(fill_summaries, migrations.RunPython.noop),
        migrations.RunPython(fill_allocations, migrations.RunPython.noop),
    ]
