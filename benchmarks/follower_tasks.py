"""What the benchmark of following does with the database: `python -m benchmarks.follower_tasks
TASK`, in the environment of that database.

The first line of its input is a JSON document; so is what it prints.
"""

import json
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import django

django.setup()

from django.db import connection, transaction  # noqa: E402 - settings come first

from benchmarks.seeding import PODS, build_spec  # noqa: E402
from clusters.models import Cluster  # noqa: E402
from projects.models import Department, Project, User  # noqa: E402
from workloads.models import Attempt, Event, Pod, Position, Workload  # noqa: E402
from workloads.specs import encode_spec  # noqa: E402

LOOK = 0.02
"""Seconds between two queries of how far the database is."""
CLUSTER = "scale"
REST = 300_000_000
"""Nanoseconds without a change after which all rows are compared."""
WITHIN = 300.0


def create_rows(given: Any) -> Any:
    """Create a cluster, and the row of a submitted workload for each that is given."""
    cluster, _ = Cluster.objects.update_or_create(
        name=CLUSTER, defaults={"server": given["server"], "kubeconfig": given["kubeconfig"]}
    )
    department, _ = Department.objects.get_or_create(name="scale")
    owner, _ = User.objects.get_or_create(username="scale")
    projects: dict[str, Project] = {}
    made = []
    for each in given["workloads"]:
        project = projects.get(each["namespace"])
        if project is None:
            name = each["namespace"]
            fields = {
                "department": department,
                "cluster": cluster,
                "namespace": name,
                "queue": name,
            }
            project = projects[name] = Project.objects.create(name=name, **fields)
        made.append(_build_workload(each, project, owner))
    with transaction.atomic():
        position, _ = Position.objects.select_for_update().get_or_create(pk=1)
        for workload in made:
            position.value += 1
            workload.changed = position.value
        Workload.objects.bulk_create(made, batch_size=500)
        Attempt.objects.bulk_create(
            [Attempt(workload=each, number=1, status=each.status) for each in made], batch_size=500
        )
        Event.objects.bulk_create(
            [Event(workload=each, attempt=1, kind="action", new=each.status) for each in made],
            batch_size=500,
        )
        position.save()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return len(made)


def _build_workload(given: Mapping[str, str], project: Project, owner: User) -> Workload:
    spec = build_spec(project, given["name"])
    return Workload(
        pk=uuid.UUID(given["id"]),
        project=project,
        cluster_id=project.cluster_id,
        name=spec.name,
        architecture="Distributed",
        framework="PyTorch",
        job_kind="kubeflow.org/v1/PyTorchJob",
        spec=encode_spec(spec),
        submitted_by=owner,
        requested_pods=PODS,
    )


def lead_cluster(given: Any) -> Any:
    """Replace the cluster's kubeconfig."""
    return Cluster.objects.filter(name=CLUSTER).update(
        kubeconfig=given["kubeconfig"], followed_by="", followed_until=None
    )


def wait_right(given: Any) -> Any:
    """Return when (ns since 1970) the database had exactly the given pods, by uid, in their newest
    versions.

    It queries one small row again and again, and all others once that one has come to rest:
    measuring must not slow the follower down.
    """
    print("ready", flush=True)
    wanted: dict[str, str] = given["versions"]
    began = time.monotonic()
    position, at, rested = -1, 0, False
    while True:
        newest = Position.objects.get().value
        if newest != position:
            position, at, rested = newest, time.time_ns(), False
        elif not rested and time.time_ns() - at > REST:
            rested = True
            if not _count_wrong_rows(wanted):
                break
        if time.monotonic() - began > WITHIN:
            raise SystemExit(f"{_count_wrong_rows(wanted)} of {len(wanted)} rows are not right")
        time.sleep(LOOK)
    ready = Pod.objects.filter(is_ready=True).count()
    assert sum(Workload.objects.values_list("running_pods", flat=True)) == ready, (
        "the workloads are not as their pods are"
    )
    assert not Workload.objects.exclude(status__in=("Running", "Degraded")).exists(), (
        "not all workloads run"
    )
    return at


def _count_wrong_rows(wanted: Mapping[str, str]) -> int:
    """Return how many rows are wrong, and how many there should not be."""
    known = dict(Pod.objects.filter(vanished_at=None).order_by().values_list("uid", "version"))
    return sum(known.get(uid) != version for uid, version in wanted.items()) + len(
        known.keys() - wanted.keys()
    )


def watch_arrivals(given: Any) -> Any:
    """Return when each version of a pod was first seen in the database, until the input ends: [uid,
    version, ns since 1970].
    """
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    position = Position.objects.get().value
    print("ready", flush=True)
    samples: list[tuple[str, str, int]] = []
    known: dict[str, str] = {}
    last = False
    while not last:
        last = over.wait(LOOK)
        newest = Position.objects.get().value
        if newest == position:
            continue
        with connection.cursor() as cursor:
            cursor.execute(
                (
                    "SELECT p.uid, p.version FROM workloads_workload w JOIN workloads_pod p ON "
                    "p.workload_id = w.id WHERE w.changed > %s"
                ),
                [position],
            )
            found = cursor.fetchall()
        at, position = time.time_ns(), newest
        for uid, version in found:
            if known.get(uid) != version:
                known[uid] = version
                samples.append((uid, version, at))
    return samples


TASKS: dict[str, Callable[[Any], Any]] = {
    each.__name__: each for each in (create_rows, lead_cluster, wait_right, watch_arrivals)
}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](json.loads(sys.stdin.readline() or "null"))))
