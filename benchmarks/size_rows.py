"""Creates the rows and logs of a large installation: workloads of 2,000 pods, a project of 50,000
ended workloads, 500 projects, 2,000 users, 50 clusters. Needs Django set up.
"""

import dataclasses
import json
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import django

django.setup()

from django.utils import timezone  # noqa: E402 - settings come first

from benchmarks.console_tasks import create_session  # noqa: E402
from benchmarks.seeding import (  # noqa: E402
    analyze_tables,
    build_cluster,
    build_project,
    build_rule,
    build_spec,
    build_workload,
    bulk_create,
    create_service_accounts,
    pick_name,
)
from clusters.capabilities import Capabilities  # noqa: E402
from clusters.capability_probe import USED_RESOURCES  # noqa: E402
from clusters.models import Cluster, Node  # noqa: E402
from clusters.permission_review import PermissionReview  # noqa: E402
from clusters.permissions import NEEDED  # noqa: E402
from environments import builtin_assets  # noqa: E402
from environments.models import ComputeResource, Environment  # noqa: E402
from projects.models import AccessRule, Department, Project, User  # noqa: E402
from projects.permissions import L1, VIEWER  # noqa: E402
from projects.scopes import project_scope  # noqa: E402
from projects.tokens import issue_token  # noqa: E402
from tests.workloads import objects  # noqa: E402
from workloads.forms.setup_form import build_setup_defaults  # noqa: E402
from workloads.forms.steps import Step  # noqa: E402
from workloads.logbook import log_paths, stamps  # noqa: E402
from workloads.logbook.log_writer import LogWriter  # noqa: E402
from workloads.models import Attempt, Draft, Event, Log, Pod, Position, Workload  # noqa: E402
from workloads.rest.writing import build_rest_body  # noqa: E402
from workloads.slimming import slim_object  # noqa: E402
from workloads.specs import (  # noqa: E402
    Architecture,
    Configuration,
    Framework,
    encode_spec,
)

SILENT = 5
"""One cluster of so many does not answer."""
LINES = 40
"""Lines of each pod's log, a second apart."""
FAILED_LINES = (b"Traceback (most recent call last):", b'  File "/train.py"', b"ValueError: no")
STATUSES = ("Completed", "Completed", "Failed", "Stopped")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much there is of everything."""

    pods: int = 2_000
    events: int = 50_000
    ended: int = 50_000
    projects: int = 500
    users: int = 2_000
    clusters: int = 50

    @classmethod
    def divide(cls, by: int) -> "Sizes":
        """Return sizes that are so many times smaller."""
        sizes = dataclasses.asdict(cls())
        return cls(**{name: max(2, size // by) for name, size in sizes.items()})


def create_rows(sizes: Sizes) -> dict[str, Any]:
    """Create the rows; return the sessions of an administrator and of a member, and the ids that
    addresses are made of.
    """
    admin = User.objects.create(username="admin", is_superuser=True)
    member = User.objects.create(username="member")
    clusters = bulk_create(Cluster, sizes.clusters, _build_cluster)
    departments = bulk_create(
        Department, max(1, sizes.projects // 10), lambda n: Department(name=f"department-{n}")
    )
    projects = bulk_create(
        Project,
        sizes.projects,
        lambda n: build_project(
            n, clusters[n % len(clusters)], departments[n // 10 % len(departments)]
        ),
    )
    _create_people(sizes, projects, member, admin)
    node = Node.objects.create(
        cluster=projects[0].cluster, name="node-0", is_ready=True, gpus=sizes.pods, pods=sizes.pods
    )
    wide = {
        kind: _create_wide(kind, sizes, projects[0], member)
        for kind in ("running", "failed", "pending")
    }
    _create_ended(sizes.ended, projects[1], member)
    Position.objects.update_or_create(pk=1, defaults={"value": sizes.ended + 10})
    analyze_tables()
    return {
        "sessions": {user.username: create_session(user) for user in (admin, member)},
        "tokens": {user.username: issue_token(user)[0] for user in (admin, member)},
        "drafts": {
            user.username: str(_create_draft(projects[0], user).pk) for user in (admin, member)
        },
        "submission": _build_submission(projects[2]),
        "wide": {kind: str(workload.pk) for kind, workload in wide.items()},
        "pod_log": Log.objects.filter(pod__workload=wide["running"]).order_by("pk").last().pk,  # type: ignore[union-attr]
        "project": projects[0].pk,
        "crowded": projects[1].pk,
        "cluster": str(projects[0].cluster_id),
        "node": node.name,
    }


def _build_cluster(number: int) -> Cluster:
    """Build a cluster that serves everything; every so many does not answer."""
    capabilities = Capabilities(
        served=frozenset(each.key for each in USED_RESOURCES), gpu_sharing=True, has_scheduler=True
    )
    needs = [(need.kind, need.verb) for need in NEEDED]
    answers = {kind: {verb: True for each, verb in needs if each == kind} for kind, _ in needs}
    return build_cluster(
        f"cluster-{number}",
        unreachable_since=None if number % SILENT else timezone.now(),
        probed_at=timezone.now(),
        capabilities=capabilities.to_json(),
        permissions=PermissionReview(answers).to_json(),
    )


def _create_people(sizes: Sizes, projects: Sequence[Project], member: User, admin: User) -> None:
    """Create the users, each with a role in the first project and in another one."""
    users = bulk_create(User, sizes.users, lambda n: User(username=pick_name(n, ".")))

    bulk_create(
        AccessRule, len(users), lambda n: build_rule(users[n], VIEWER, project_scope(projects[0]))
    )
    bulk_create(
        AccessRule,
        len(users),
        lambda n: build_rule(users[n], L1, project_scope(projects[n % len(projects)])),
    )
    bulk_create(
        AccessRule, len(projects), lambda n: build_rule(member, L1, project_scope(projects[n]))
    )
    create_service_accounts(sizes.projects, lambda _: projects[0], admin)


def _create_wide(kind: str, sizes: Sizes, project: Project, owner: User) -> Workload:
    """Create a workload of so many pods, with a log of each pod that has run, and its history."""
    now = timezone.now()
    status = kind.capitalize()
    is_over = kind == "failed"
    spec = dataclasses.replace(build_spec(project, f"wide-{kind}"), workers=sizes.pods - 1)
    workload = Workload.objects.create(
        project=project,
        cluster_id=project.cluster_id,
        name=f"wide-{kind}",
        architecture="Distributed",
        framework="PyTorch",
        spec=encode_spec(spec),
        submitted_by=owner,
        status=status,
        status_at=now,
        running_pods=sizes.pods if kind == "running" else 0,
        requested_pods=sizes.pods,
        gpus_requested=Decimal(sizes.pods),
        started_at=None if kind == "pending" else now,
        ended_at=now if is_over else None,
        ended=f"{sizes.pods} failed" if is_over else "",
        job=slim_object(objects.pytorch_job(workers=sizes.pods - 1)),
        job_uid=objects.JOB_UID,
        changed=1,
    )
    Attempt.objects.create(workload=workload, number=1, status=status)
    pods = bulk_create(Pod, sizes.pods, lambda n: _build_pod(workload, kind, n))
    if kind != "pending":
        _create_logs(workload, pods, is_over=is_over)
    bulk_create(Event, sizes.events, lambda n: _build_event(workload, pods[n % len(pods)], n))
    return workload


def _build_pod(workload: Workload, kind: str, rank: int) -> Pod:
    role, index = ("master", 0) if rank == 0 else ("worker", rank - 1)
    name = f"{workload.name}-{role}-{index}"
    if kind == "running":
        data = objects.pod(role, index, name=name, node="node-0")
    elif kind == "failed":
        at = f"2026-11-21T00:{rank // 60 % 60:02}:{rank % 60:02}Z"
        data = objects.ended_pod(role, index, 1, at=at, name=name)
    else:
        data = objects.queued_pod(role, index, "0/2000 nodes are available", name=name)
    ended_at = timezone.now() if kind == "failed" else None
    return Pod(
        workload=workload,
        attempt=1,
        uid=str(uuid.UUID(int=workload.pk.int ^ (rank + 1))),
        name=name,
        role=role,
        index=index,
        rank=rank,
        phase=data["status"]["phase"],
        status={"running": "Running", "failed": "Error"}.get(kind, "Pending"),
        reason="exit code 1" if kind == "failed" else "",
        node=data["spec"].get("nodeName", ""),
        gpus=Decimal(1),
        image="registry.example.com/research/train:2.6",
        created_at=workload.created_at,
        started_at=workload.created_at,
        ended_at=ended_at,
        data=slim_object(data),
        logs_kept=kind == "failed",
    )


def _create_logs(workload: Workload, pods: Sequence[Pod], *, is_over: bool) -> None:
    paths = [log_paths.build_log_path(workload.pk, pod.uid, "pytorch", 0) for pod in pods]
    sizes = []
    for rank, path in enumerate(paths):
        start = 1_800_000_000 * stamps.SECOND + rank * 1000
        lines = [b"step %d of rank %d: loss 0.1234" % (n, rank) for n in range(LINES)]
        lines += FAILED_LINES if is_over else ()
        with LogWriter(log_paths.local_path(path)) as writer:
            writer.append(
                [
                    stamps.format_time(start + n * stamps.SECOND).encode() + b" " + line
                    for n, line in enumerate(lines)
                ]
            )
            sizes.append(writer.size)
    state = Log.State.COMPLETE if is_over else Log.State.CAPTURING
    bulk_create(
        Log,
        len(pods),
        lambda n: Log(pod=pods[n], container="pytorch", path=paths[n], size=sizes[n], state=state),
    )


def _build_event(workload: Workload, pod: Pod, number: int) -> Event:
    return Event(
        workload=workload,
        attempt=1,
        at=workload.created_at + timedelta(milliseconds=number),
        kind="cluster",
        is_warning=number % 3 == 0,
        reason="FailedScheduling" if number % 3 == 0 else "Pulled",
        text="Successfully pulled image in 1.2 s (1.2 s including waiting)",
        source="kubelet",
        subject_kind="Pod",
        subject=pod.name,
        uid=f"event-{number}",
    )


def _create_ended(count: int, project: Project, owner: User) -> None:
    now = timezone.now()

    def build(number: int) -> Workload:
        status, began = (
            STATUSES[number % len(STATUSES)],
            now - timedelta(seconds=30 * (count - number)),
        )
        return build_workload(project, pick_name(number), status, began, owner, changed=number + 2)

    workloads = bulk_create(Workload, count, build)
    bulk_create(
        Attempt,
        count,
        lambda n: Attempt(workload=workloads[n], number=1, status=workloads[n].status),
    )


def _create_draft(project: Project, user: User) -> Draft:
    """Create a draft of the wizard with all that its last step needs."""
    builtin_assets.ensure_builtin_assets()
    start = {
        "cluster": str(project.cluster_id),
        "project": str(project.pk),
        "architecture": Architecture.DISTRIBUTED.value,
        "framework": Framework.PYTORCH.value,
        "configuration": Configuration.WORKERS_AND_MASTER.value,
        "name": f"draft-of-{user.username}",
    }
    setup = {
        "environment_choice": str(Environment.objects.get(name="allreduce").pk),
        "compute_choice": str(ComputeResource.objects.get(name="small-fraction").pk),
        "workers": "2",
    }
    return Draft.objects.create(
        user=user,
        data={
            Step.START: {name: [value] for name, value in start.items()},
            Step.SETUP: build_setup_defaults() | {name: [each] for name, each in setup.items()},
            Step.MASTER: {},
        },
    )


def _build_submission(project: Project) -> str:
    body = build_rest_body(
        build_spec(project, "NAME"),
        project_id=str(project.pk),
        cluster_id=str(project.cluster_id),
    )
    return json.dumps(body)


if __name__ == "__main__":
    print(json.dumps(create_rows(Sizes.divide(int(sys.argv[1])))))
