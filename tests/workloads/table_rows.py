"""Rows of workloads for tests of pages, as the journal would leave them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from projects.models import Project, User
from tests.cast import a_spec
from workloads.models import Attempt, Event, Pod, Position, Workload
from workloads.specs import encode_spec

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def a_workload(
    project: Project,
    name: str = "train1",
    *,
    by: User | None = None,
    minutes: int = 0,
    **fields: Any,
) -> Workload:
    """Create a workload at the journal's next position, `minutes` after NOON."""
    created = NOON + timedelta(minutes=minutes)
    given = {
        "architecture": "Distributed",
        "framework": "PyTorch",
        "spec": encode_spec(a_spec(project, name)),
        "status": "Running",
        "status_at": created,
        "created_at": created,
        "requested_pods": 3,
    }
    made = Workload.objects.create(
        project=project,
        cluster_id=project.cluster_id,
        name=name,
        submitted_by=by,
        **(given | fields),
    )
    Attempt.objects.create(
        workload=made, number=made.attempt, status=made.status, requested_at=created
    )
    return touch_workload(made)


def touch_workload(workload: Workload, **fields: Any) -> Workload:
    """Change the workload at the next position."""
    at, _ = Position.objects.get_or_create(pk=1)
    at.value += 1
    at.save()
    Workload.objects.filter(pk=workload.pk).update(changed=at.value, **fields)
    workload.refresh_from_db()
    return workload


def a_pod(workload: Workload, role: str = "worker", index: int = 0, **fields: Any) -> Pod:
    """Create a pod's row; `data` may hold the object."""
    number = Pod.objects.count()
    given = {
        "attempt": workload.attempt,
        "uid": f"pod-{number}",
        "name": f"{workload.name}-{role}-{index}",
        "role": role,
        "index": index,
        "rank": 0 if role == "master" else index + 1,
        "phase": "Running",
        "status": "Running",
    }
    return Pod.objects.create(workload=workload, **(given | fields))


def an_event(workload: Workload, text: str = "", *, minutes: int = 0, **fields: Any) -> Event:
    """Create an event of the history, `minutes` after NOON."""
    given = {
        "attempt": workload.attempt,
        "at": NOON + timedelta(minutes=minutes),
        "kind": "status",
        "new": "Running",
        "text": text,
    }
    return Event.objects.create(workload=workload, **(given | fields))
