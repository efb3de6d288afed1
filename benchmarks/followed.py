"""The rows of an estate, as a follower finds and keeps them: `python -m benchmarks.followed WHAT`,
in the environment of its database.

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

from benchmarks.seeding import PODS, spec_of  # noqa: E402
from clusters.models import Cluster  # noqa: E402
from projects.models import Department, Project, User  # noqa: E402
from workloads.models import Attempt, Event, Pod, Position, Workload  # noqa: E402
from workloads.specs import encode_spec  # noqa: E402

LOOK = 0.02
"""Seconds between two looks at how far the database is."""
CLUSTER = "scale"
REST = 300_000_000
"""Nanoseconds without a change after which the rows may be as they should."""
WITHIN = 300.0


def rows(given: Any) -> Any:
    """A cluster, and a workload that was asked for, and nothing more, for each that is given."""
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
        made.append(_workload(each, project, owner))
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


def _workload(given: Mapping[str, str], project: Project, owner: User) -> Workload:
    spec = spec_of(project, given["name"])
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


def led(given: Any) -> Any:
    """The cluster's kubeconfig is this one now."""
    return Cluster.objects.filter(name=CLUSTER).update(
        kubeconfig=given["kubeconfig"], followed_by="", followed_until=None
    )


def right(given: Any) -> Any:
    """When (ns since 1970) the database had every pod that is given, by uid, in its newest version,
    and no other.

    It looks at one small row again and again, and at all others once that one has come to rest: who
    measures must not be in the way.
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
            if not _behind(wanted):
                break
        if time.monotonic() - began > WITHIN:
            raise SystemExit(f"{_behind(wanted)} of {len(wanted)} rows are not right")
        time.sleep(LOOK)
    ready = Pod.objects.filter(is_ready=True).count()
    assert sum(Workload.objects.values_list("running_pods", flat=True)) == ready, (
        "the workloads are not as their pods are"
    )
    assert not Workload.objects.exclude(status__in=("Running", "Degraded")).exists(), (
        "not all workloads run"
    )
    return at


def _behind(wanted: Mapping[str, str]) -> int:
    """How many rows are not right, and how many there should not be."""
    known = dict(Pod.objects.filter(vanished_at=None).order_by().values_list("uid", "version"))
    return sum(known.get(uid) != version for uid, version in wanted.items()) + len(
        known.keys() - wanted.keys()
    )


def arrivals(given: Any) -> Any:
    """Until the input ends: when each version of a pod was first seen in the database, as [uid,
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


WHAT: dict[str, Callable[[Any], Any]] = {
    each.__name__: each for each in (rows, led, right, arrivals)
}

if __name__ == "__main__":
    print(json.dumps(WHAT[sys.argv[1]](json.loads(sys.stdin.readline() or "null"))))
