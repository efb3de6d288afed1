"""What the benchmark of following does with the database: `python -m benchmarks.follower_tasks
TASK`, in the environment of that database.

The first line of its input is a JSON document; so is what it prints.
"""

import dataclasses
import json
import queue
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import django

django.setup()

from django.db import connection, transaction  # noqa: E402 - settings come first

from benchmarks.seeding import build_spec  # noqa: E402
from clusters.models import Cluster  # noqa: E402
from projects.models import Department, Project, User  # noqa: E402
from workloads.models import Attempt, Event, Pod, Position, Workload  # noqa: E402
from workloads.specs import encode_spec  # noqa: E402

LOOK = 0.02
"""Seconds between two queries of how far the database is."""
SHARE = 4
"""A query is followed by a rest of at least so many times its own length: measuring must not slow
the follower down.
"""
AT_ONCE = 500
CLUSTER = "scale"
OTHER_CLUSTERS = "other-"
"""With what the names of clusters without workloads begin."""
SERVER = "https://127.0.0.1:1"
"""The address that a row shows; requests go where its kubeconfig leads."""
REST = 300_000_000
"""Nanoseconds without a change after which all rows are compared."""
WITHIN = 300.0


def create_rows(parameters: Any) -> Any:
    """Create a cluster, and the row of a submitted workload for each that is given."""
    cluster, _ = Cluster.objects.update_or_create(
        name=CLUSTER,
        defaults={"server": parameters["server"], "kubeconfig": parameters["kubeconfig"]},
    )
    department, _ = Department.objects.get_or_create(name="scale")
    owner, _ = User.objects.get_or_create(username="scale")
    projects: dict[str, Project] = {}
    workloads = []
    for each in parameters["workloads"]:
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
        workloads.append(_build_workload(each, project, owner))
    with transaction.atomic():
        position, _ = Position.objects.select_for_update().get_or_create(pk=1)
        for workload in workloads:
            position.value += 1
            workload.changed = position.value
        Workload.objects.bulk_create(workloads, batch_size=500)
        Attempt.objects.bulk_create(
            [Attempt(workload=each, number=1, status=each.status) for each in workloads],
            batch_size=500,
        )
        Event.objects.bulk_create(
            [Event(workload=each, attempt=1, kind="action", new=each.status) for each in workloads],
            batch_size=500,
        )
        position.save()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return len(workloads)


def _build_workload(entry: Mapping[str, Any], project: Project, owner: User) -> Workload:
    spec = dataclasses.replace(build_spec(project, entry["name"]), workers=entry["size"] - 1)
    return Workload(
        pk=uuid.UUID(entry["id"]),
        project=project,
        cluster_id=project.cluster_id,
        name=spec.name,
        architecture="Distributed",
        framework="PyTorch",
        job_kind="kubeflow.org/v1/PyTorchJob",
        spec=encode_spec(spec),
        submitted_by=owner,
        requested_pods=entry["size"],
    )


def lead_cluster(parameters: Any) -> Any:
    """Replace the cluster's kubeconfig."""
    return Cluster.objects.filter(name=CLUSTER).update(
        kubeconfig=parameters["kubeconfig"], followed_by="", followed_until=None
    )


def add_clusters(parameters: Any) -> Any:
    """Create a cluster for each kubeconfig."""
    Cluster.objects.bulk_create(
        Cluster(name=f"{OTHER_CLUSTERS}{number}", server=SERVER, kubeconfig=each)
        for number, each in enumerate(parameters["kubeconfigs"])
    )


def remove_clusters(parameters: Any) -> Any:
    """Delete the clusters that `add_clusters` has created."""
    Cluster.objects.filter(name__startswith=OTHER_CLUSTERS).delete()


def count_silent_clusters(parameters: Any) -> Any:
    """Return how many clusters are known not to answer, after the given seconds at most."""
    until = time.monotonic() + parameters["within"]
    while True:
        count = Cluster.objects.exclude(unreachable_since=None).count()
        if count >= parameters["wanted"] or time.monotonic() > until:
            return count
        time.sleep(0.2)


def wait_right(parameters: Any) -> Any:
    """Return when (ns since 1970) the database had exactly the given pods, by uid, in their newest
    versions.

    It queries one small row again and again, and all others once that one has come to rest:
    measuring must not slow the follower down.
    """
    print("ready", flush=True)
    wanted: dict[str, str] = parameters["versions"]
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
    stored_versions = dict(
        Pod.objects.filter(vanished_at=None).order_by().values_list("uid", "version")
    )
    return sum(stored_versions.get(uid) != version for uid, version in wanted.items()) + len(
        stored_versions.keys() - wanted.keys()
    )


def mark_logs_kept(parameters: Any) -> Any:
    """Mark the logs of all pods as kept, but for those of so many pods; return how many are left.

    Pods that are only objects have none, and asking for them would be part of every figure.
    """
    pods = Pod.objects.filter(vanished_at=None)
    read = list(pods.order_by("id").values_list("id", flat=True)[: parameters["but"]])
    with transaction.atomic():
        Pod.objects.update(logs_kept=True)
        Pod.objects.filter(pk__in=read).update(logs_kept=False)
    return len(read)


def watch_arrivals(parameters: Any) -> Any:
    """Return when each change was seen in the database: [uid, version, ns since 1970].

    A line of the input for each change has its uid and its version. When the input has ended, what
    has not come is waited for, for so many seconds as are given.
    """
    keys = dict(Pod.objects.order_by().values_list("uid", "id"))
    changes: queue.SimpleQueue[tuple[str, str] | None] = queue.SimpleQueue()

    def read_changes() -> None:
        for line in sys.stdin:
            uid, _, version = line.strip().partition(" ")
            changes.put((uid, version))
        changes.put(None)

    threading.Thread(target=read_changes, daemon=True).start()
    print("ready", flush=True)
    pending: dict[int, list[tuple[str, str]]] = {}
    samples: list[tuple[str, str, int]] = []
    until: float | None = None
    while until is None or (pending and time.monotonic() < until):
        while not changes.empty():
            change = changes.get()
            if change is None:
                until = time.monotonic() + parameters["patience"]
            else:
                pending.setdefault(keys[change[0]], []).append(change)
        began = time.monotonic()
        for pk, version in _load_versions(list(pending)):
            at = time.time_ns()
            samples += [(*each, at) for each in pending[pk] if int(each[1]) <= version]
            pending[pk] = [each for each in pending[pk] if int(each[1]) > version]
            if not pending[pk]:
                del pending[pk]
        time.sleep(max(LOOK, SHARE * (time.monotonic() - began)))
    return samples


def _load_versions(pods: Sequence[int]) -> list[tuple[int, int]]:
    versions: list[tuple[int, int]] = []
    with connection.cursor() as cursor:
        for first in range(0, len(pods), AT_ONCE):
            part = pods[first : first + AT_ONCE]
            marks = ", ".join(["%s"] * len(part))
            cursor.execute(
                f"SELECT id, version FROM workloads_pod WHERE id IN ({marks})",
                part,
            )
            versions += [(pk, int(version)) for pk, version in cursor.fetchall()]
    return versions


def watch_events(parameters: Any) -> Any:
    """Return when each event of a workload with this reason was seen: by its text, ns since
    1970.
    """
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    print("ready", flush=True)
    arrivals: dict[str, int] = {}
    wanted = Event.objects.filter(workload=parameters["workload"], reason=parameters["reason"])
    while True:
        is_last = over.is_set()
        began = time.monotonic()
        texts = set(wanted.order_by().values_list("text", flat=True))
        at = time.time_ns()
        arrivals |= dict.fromkeys(texts - arrivals.keys(), at)
        if is_last:
            return arrivals
        over.wait(max(LOOK, SHARE * (time.monotonic() - began)))


TASKS: dict[str, Callable[[Any], Any]] = {
    each.__name__: each
    for each in (
        create_rows,
        lead_cluster,
        add_clusters,
        remove_clusters,
        count_silent_clusters,
        mark_logs_kept,
        wait_right,
        watch_arrivals,
        watch_events,
    )
}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](json.loads(sys.stdin.readline() or "null"))))
