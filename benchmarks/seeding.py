"""Seeds the rows of a busy installation: workloads of four pods in several projects, of several
people and statuses. Needs Django set up.
"""

import random
import uuid
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

from django.db import transaction
from django.utils import timezone

from clusters.models import Cluster
from projects.models import AccessRule, Department, Project, User
from projects.permissions import L1
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

AT_ONCE = 1000
PROJECTS = 20
PODS = 4
STATUSES = ("Completed", "Completed", "Completed", "Failed", "Stopped", "Running", "Pending")
WORDS = ("resnet", "bert", "llama", "vit", "unet", "whisper", "clip", "gpt", "t5", "dlrm")


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
    made = _build_workloads(workloads, projects, owner, chance)
    with transaction.atomic():
        position, _ = Position.objects.select_for_update().get_or_create(pk=1)
        while batch := [workload for _, workload in zip(range(AT_ONCE), made, strict=False)]:
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
        project = chance.choice(projects)
        status = chance.choice(STATUSES)
        began = now - timedelta(seconds=30 * (count - number))
        name = f"{chance.choice(WORDS)}-{number}"
        live = status == "Running"
        yield Workload(
            project=project,
            cluster_id=project.cluster_id,
            name=name,
            architecture="Distributed",
            framework="PyTorch",
            spec=encode_spec(build_spec(project, name)),
            submitted_by=owner,
            status=status,
            status_at=began,
            running_pods=PODS if live else 0,
            requested_pods=PODS,
            gpus_requested=Decimal(PODS),
            gpus_allocated=Decimal(PODS if live else 0),
            created_at=began,
            started_at=began,
            ended_at=None if status in ("Running", "Pending") else began + timedelta(minutes=5),
            ended="" if status in ("Running", "Pending") else f"{PODS} succeeded",
        )


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
