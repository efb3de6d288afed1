"""Seeds the rows of a busy installation: the parts that all benchmarks make alike, and workloads of
four pods in several projects, of several people and statuses. Needs Django set up.
"""

import json
import random
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection, models, transaction
from django.utils import timezone

from clusters.models import Cluster
from projects.models import AccessRule, Department, Project, ServiceAccount, User
from projects.permissions import L1
from projects.scopes import Scope
from workloads.models import Attempt, Event, Pod, Position, Workload
from workloads.specs import (
    Architecture,
    Compute,
    Environment,
    Framework,
    Gpus,
    Setup,
    Spec,
    encode_spec,
)

AT_ONCE = 500
NOWHERE = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "none"}}],
    }
)
PROJECTS = 20
PODS = 4
STATUSES = ("Completed", "Completed", "Completed", "Failed", "Stopped", "Running", "Pending")
WORDS = ("resnet", "bert", "llama", "vit", "unet", "whisper", "clip", "gpt", "t5", "dlrm")

Make = Callable[[int], models.Model]


def bulk_create(model: type[models.Model], count: int, make: Make) -> list[Any]:
    """Create so many rows of a model, each as `make` builds it of its number."""
    rows: list[Any] = []
    for first in range(0, count, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, count))
        rows += model._default_manager.bulk_create([make(number) for number in numbers])
    return rows


def analyze_tables() -> None:
    """Let the database count what there is, as one that has run for long has done."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def pick_name(number: int, between: str = "-") -> str:
    """Return one of ten words with the number."""
    return f"{WORDS[number % len(WORDS)]}{between}{number}"


def build_cluster(name: str, **more: Any) -> Cluster:
    """Build a cluster at an address where nobody answers."""
    fields = {"kubeconfig": NOWHERE, "last_seen_at": timezone.now()} | more
    return Cluster(name=name, server="https://127.0.0.1:1", **fields)


def build_project(number: int, cluster: Cluster, department: Department, **more: Any) -> Project:
    """Build a project that is ready, with a quota."""
    return Project(
        name=pick_name(number),
        cluster=cluster,
        department=department,
        namespace=f"muster-{number}",
        queue=f"queue-{number}",
        gpu_quota=Decimal(number % 16),
        synced_at=timezone.now(),
        **more,
    )


def build_rule(user: User, role: str, scope: Scope) -> AccessRule:
    return AccessRule(user=user, role=role, key=f"user:{user.pk} {role} {scope}", **scope.columns)


def create_service_accounts(count: int, find_project: Callable[[int], Project], by: User) -> None:
    """Create so many service accounts with their users."""
    robots = bulk_create(User, count, lambda n: User(username=f"sa-{n}", is_service=True))
    bulk_create(
        ServiceAccount,
        count,
        lambda n: ServiceAccount(
            name=pick_name(n),
            user=robots[n],
            client_id=f"sa-{n}",
            secret_hash="x",
            created_by=by,
            project=find_project(n),
        ),
    )


def build_workload(
    project: Project, name: str, status: str, began: datetime, owner: User, **more: Any
) -> Workload:
    """Build a workload of PODS pods with a GPU each; one that has ended ran for five minutes."""
    is_over = status not in ("Running", "Pending")
    running_pods = PODS if status == "Running" else 0
    fields = {
        "running_pods": running_pods,
        "requested_pods": PODS,
        "gpus_requested": Decimal(PODS),
        "gpus_allocated": Decimal(running_pods),
        "ended_at": began + timedelta(minutes=5) if is_over else None,
        "ended": f"{PODS} succeeded" if is_over else "",
    } | more
    return Workload(
        project=project,
        cluster_id=project.cluster_id,
        name=name,
        architecture="Distributed",
        framework="PyTorch",
        spec=encode_spec(build_spec(project, name)),
        submitted_by=owner,
        status=status,
        status_at=began,
        created_at=began,
        started_at=began,
        **fields,
    )


def seed_workloads(
    workloads: int, *, cluster: Cluster, department: Department, owner: User
) -> None:
    """Add so many workloads, each of a master and three workers with its events, in PROJECTS
    projects. The same every time.
    """
    chance = random.Random(7)
    projects = [
        _create_project(f"seed-{number}", cluster, department, owner) for number in range(PROJECTS)
    ]
    unsaved_workloads = _build_workloads(workloads, projects, owner, chance)
    with transaction.atomic():
        position, _ = Position.objects.select_for_update().get_or_create(pk=1)
        while batch := [
            workload for _, workload in zip(range(AT_ONCE), unsaved_workloads, strict=False)
        ]:
            for workload in batch:
                position.value += 1
                workload.changed = position.value
            Workload.objects.bulk_create(batch)
            Attempt.objects.bulk_create(
                [Attempt(workload=each, number=1, status=each.status) for each in batch]
            )
            Pod.objects.bulk_create([pod for each in batch for pod in _build_pods(each)])
            Event.objects.bulk_create(
                [Event(workload=each, attempt=1, kind="status", new=each.status) for each in batch]
            )
        position.save()


def _create_project(name: str, cluster: Cluster, department: Department, owner: User) -> Project:
    project, _ = Project.objects.get_or_create(
        name=name,
        defaults={
            "department": department,
            "cluster": cluster,
            "namespace": f"muster-{name}",
            "queue": name,
        },
    )
    AccessRule.objects.get_or_create(user=owner, project=project, defaults={"role": L1})
    return project


def _build_workloads(
    count: int, projects: list[Project], owner: User, chance: random.Random
) -> Iterator[Workload]:
    now = timezone.now()
    for number in range(count):
        project, status = chance.choice(projects), chance.choice(STATUSES)
        began = now - timedelta(seconds=30 * (count - number))
        yield build_workload(project, f"{chance.choice(WORDS)}-{number}", status, began, owner)


def build_spec(project: Project, name: str) -> Spec:
    """Return the spec of a master and three workers with a GPU each."""
    setup = Setup(
        environment=Environment(image="example.com/train:1"), compute=Compute(gpus=Gpus(devices=1))
    )
    return Spec(
        name=name,
        project=project.name,
        namespace=project.namespace,
        queue=project.queue,
        setup=setup,
        architecture=Architecture.DISTRIBUTED,
        framework=Framework.PYTORCH,
        workers=PODS - 1,
    )


def _build_pods(workload: Workload) -> Iterator[Pod]:
    for rank in range(PODS):
        role = "master" if rank == 0 else "worker"
        yield Pod(
            workload=workload,
            attempt=1,
            uid=str(uuid.UUID(int=workload.pk.int ^ (rank + 1))),
            name=f"{workload.name}-{role}-{max(0, rank - 1)}",
            role=role,
            index=max(0, rank - 1),
            rank=rank,
            phase="Running" if workload.status == "Running" else "Succeeded",
            status="Running" if workload.status == "Running" else "Completed",
            node=f"node-{rank}",
            gpus=Decimal(1),
            image="example.com/train:1",
            created_at=workload.created_at,
            vanished_at=None if workload.status == "Running" else workload.ended_at,
        )
