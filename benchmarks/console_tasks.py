"""What a benchmark does with the console's own code: `python -m benchmarks.console_tasks TASK
[ARGUMENT...]`, in an installation's environment.

It reads one JSON document from its input where it needs one, and prints one.
"""

import contextlib
import json
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import django

django.setup()

# Settings come first.
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402
from django.utils import timezone  # noqa: E402

from benchmarks.seeding import NOWHERE, seed_workloads  # noqa: E402
from clusters.models import Cluster  # noqa: E402
from console import pagination  # noqa: E402
from console.table_filters import Rows, Selection  # noqa: E402
from projects.models import AccessRule, Project, User  # noqa: E402
from projects.permissions import L1  # noqa: E402
from projects.querysets import list_visible_project_ids  # noqa: E402
from workloads import journal, queries  # noqa: E402
from workloads.journal import Observation  # noqa: E402
from workloads.models import Pod, Workload  # noqa: E402
from workloads.slimming import SLIMMING_DECODER  # noqa: E402
from workloads.workload_table import TABLE  # noqa: E402

NEWEST = pagination.SortOrder("-created", ("-created_at", "-id"))
ELSEWHERE = "elsewhere"
"""The cluster of the seeded rows. Nobody follows or asks it, so that it does not disturb the
measurement.
"""
PEOPLE = 10
MEMBER = "member-of-all"
OUR_PROJECT = "team-a"
GATHERED = 200
"""Objects that the follower takes in together when many arrive."""
LOOK = 0.02
"""Seconds between two queries of how far the database is."""


def seed_rows(count: str) -> Any:
    """Add workloads of four pods; return how many seconds that took."""
    admin = User.objects.get(username="admin")
    team = Project.objects.get(name=OUR_PROJECT)
    cluster, _ = Cluster.objects.get_or_create(
        name=ELSEWHERE,
        defaults={
            "server": "https://127.0.0.1:1",
            "kubeconfig": NOWHERE,
            "unreachable_since": timezone.now(),
            "followed_by": "benchmark",
            "followed_until": timezone.now() + timedelta(days=1),
            "captured_by": "benchmark",
            "captured_until": timezone.now() + timedelta(days=1),
        },
    )
    started = time.monotonic()
    seed_workloads(int(count), cluster=cluster, department=team.department, owner=admin)
    took = time.monotonic() - started
    Project.objects.filter(cluster=cluster).update(synced_at=timezone.now())
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return took


def create_sessions() -> Any:
    """Create sessions, by user name: the administrator, a member of all seeded projects, and users
    with different ones beside team-a.
    """
    ours = Project.objects.get(name=OUR_PROJECT)
    others = list(Project.objects.filter(cluster__name=ELSEWHERE).order_by("pk"))
    member = _create_person(MEMBER, others)
    people = [
        _create_person(f"person-{number}", [ours, *others[: number + 1]])
        for number in range(PEOPLE)
    ]
    admin = User.objects.get(username="admin")
    return {user.username: create_session(user) for user in (admin, member, *people)}


def _create_person(name: str, projects: list[Project]) -> User:
    user, _ = User.objects.get_or_create(username=name)
    for project in projects:
        AccessRule.objects.get_or_create(user=user, project=project, defaults={"role": L1})
    return user


def create_session(user: User) -> str:
    """Return the key of a new session of this user."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return str(session.session_key)


def count_rows(username: str) -> Any:
    """Return how many workloads this user's table has."""
    return _list_rows(username).count()


def list_cursors(username: str, *pages: str) -> Any:
    """Return the cursors of these pages of the user's table, counted from 1; "" where it
    has fewer.
    """
    rows = _list_rows(username).only("id", "created_at")
    return [
        pagination.load_page(rows, NEWEST, "", pagination.PAGE_SIZE * (int(page) - 1)).next
        for page in pages
    ]


def _list_rows(username: str) -> Rows:
    visible = list_visible_project_ids(User.objects.get(username=username))
    return TABLE.select_rows(queries.list_in_projects(visible), Selection())


def count_queries(username: str, *addresses: str) -> Any:
    """Return how many queries each of these pages takes."""
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(User.objects.get(username=username))
    counted = []
    for address in addresses:
        client.get(address)
        with CaptureQueriesContext(connection) as captured:
            answer = client.get(address)
        assert answer.status_code == 200, f"{address}: {answer.status_code}"
        counted.append(len(captured))
    return counted


def measure_folding(count: str) -> Any:
    """Measure how many changes of pods are taken in a second.

    The pod of the input is sent as the cluster would send it for many workloads of four.
    """
    template = json.load(sys.stdin)
    cluster = Cluster.objects.get(name=ELSEWHERE)
    wanted = Workload.objects.filter(
        cluster=cluster, status="Pending", released_at=None
    ).select_related("project")
    workloads = list(wanted.order_by("?")[: max(1, int(count) // 16)])
    frames = list(_build_frames(template, workloads))[: int(count)]
    times = []
    started, busy = time.monotonic(), time.process_time()
    for first in range(0, len(frames), GATHERED):
        began = time.monotonic()
        journal.record_observations(
            cluster.pk,
            [
                Observation("pod", SLIMMING_DECODER.decode(frame))
                for frame in frames[first : first + GATHERED]
            ],
        )
        times.append(time.monotonic() - began)
    took, busy = time.monotonic() - started, time.process_time() - busy
    completed_pods = Pod.objects.filter(
        workload__in=[each.pk for each in workloads], status="Completed", uid__startswith="bench"
    ).count()
    assert completed_pods, "nothing was taken in"
    return {
        "a_second": len(frames) / took,
        "a_busy_second": len(frames) / busy,
        "batch_ms": statistics.median(times) * 1000,
    }


def _build_frames(template: dict[str, Any], workloads: list[Workload]) -> Any:
    """Yield each pod's life; the events of different workloads are mixed as in a cluster."""
    lives = [("Pending", False), ("Running", False), ("Running", True), ("Succeeded", False)]
    order = [(workload, index) for workload in workloads for index in range(4)]
    version = 1
    for phase, ready in lives:
        random.Random(phase).shuffle(order)
        for workload, index in order:
            version += 1
            yield json.dumps(_build_pod(template, workload, index, phase, ready, version)).encode()


def _build_pod(
    template: dict[str, Any], workload: Workload, index: int, phase: str, ready: bool, version: int
) -> dict[str, Any]:
    role = "master" if index == 0 else "worker"
    labels = {
        **template["metadata"]["labels"],
        "muster.dev/workload": str(workload.pk),
        "muster.dev/attempt": "1",
        "training.kubeflow.org/replica-type": role,
        "training.kubeflow.org/replica-index": str(max(0, index - 1)),
    }
    metadata = {
        **template["metadata"],
        "name": f"{workload.name}-{role}-{max(0, index - 1)}",
        "namespace": workload.project.namespace,
        "uid": f"bench-{index}-{workload.pk}",
        "labels": labels,
        "resourceVersion": str(version),
    }
    condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "lastTransitionTime": "2026-11-21T00:00:00Z",
    }
    status = {
        **template.get("status", {}),
        "phase": phase,
        "conditions": [condition],
        "startTime": "2026-11-21T00:00:00Z",
    }
    return {
        **template,
        "metadata": metadata,
        "spec": {**template["spec"], "nodeName": "node-0"},
        "status": status,
    }


def watch_versions(*workload_ids: str) -> Any:
    """Return how far the database is with the pods of these workloads, until the input ends:
    [nanoseconds since 1970, resource version].
    """
    over = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    print("ready", flush=True)
    samples: list[tuple[int, int]] = []
    while not over.wait(LOOK):
        versions = (
            Pod.objects.filter(workload_id__in=workload_ids)
            .order_by()
            .values_list("version", flat=True)
        )
        newest = max((int(each) for each in versions if each), default=0)
        if not samples or newest > samples[-1][1]:
            samples.append((time.time_ns(), newest))
    return samples


TASKS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        seed_rows,
        create_sessions,
        count_rows,
        list_cursors,
        count_queries,
        measure_folding,
        watch_versions,
    )
}

if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(TASKS[sys.argv[1]](*sys.argv[2:]), default=asdict))
