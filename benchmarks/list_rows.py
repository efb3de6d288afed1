"""Creates so many rows of everything that a table shows, and two users who look at them. Needs
Django set up.
"""

import json
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import django

django.setup()

from django.db import connection, models  # noqa: E402 - settings come first
from django.utils import timezone  # noqa: E402

from benchmarks.console_tasks import NOWHERE, create_session  # noqa: E402
from benchmarks.seeding import seed_workloads  # noqa: E402
from clusters.models import Cluster, NodePool  # noqa: E402
from environments.models import (  # noqa: E402
    ComputeResource,
    Credential,
    DataSource,
    Environment,
    Policy,
    Template,
)
from projects.models import (  # noqa: E402
    AccessRule,
    AuditEntry,
    CustomRole,
    Department,
    Project,
    ServiceAccount,
    User,
)
from projects.permissions import L1, VIEWER  # noqa: E402
from projects.scopes import TENANT, Scope, department_scope, project_scope  # noqa: E402
from workloads.models import UsedAsset, Workload  # noqa: E402

AT_ONCE = 500
MEMBER_OF = 20
"""Projects of the member, beside those of the seeded workloads."""
WORDS = ("resnet", "bert", "llama", "vit", "unet", "whisper", "clip", "gpt", "t5", "dlrm")

Make = Callable[[int], models.Model]


def create_rows(count: int) -> dict[str, str]:
    """Create the rows; return the sessions of an administrator and of a member, by name."""
    admin = User.objects.create(username="admin", is_superuser=True)
    member = User.objects.create(username="member")
    cluster = Cluster.objects.create(
        name="here",
        server="https://127.0.0.1:1",
        kubeconfig=NOWHERE,
        unreachable_since=timezone.now(),
        last_seen_at=timezone.now(),
    )
    research = Department.objects.create(name="research")
    seed_workloads(count, cluster=cluster, department=research, owner=member)
    departments = _bulk_create(
        Department,
        count,
        lambda n: Department(name=f"{_pick_word(n)}-{n}", gpu_quota=Decimal(n % 64)),
    )
    projects = _bulk_create(
        Project, count, lambda n: _build_project(n, cluster, departments[n // 10])
    )
    _bulk_create(
        NodePool,
        count,
        lambda n: NodePool(
            cluster=cluster, name=f"{_pick_word(n)}-{n}", label_key="pool", label_value=f"v-{n}"
        ),
    )
    users = _bulk_create(
        User,
        count,
        lambda n: User(
            username=f"{_pick_word(n)}.{n}", email=f"{n}@example.com", last_login=_moment_ago(n)
        ),
    )
    robots = _bulk_create(User, count, lambda n: User(username=f"sa-{n}", is_service=True))
    _bulk_create(
        ServiceAccount,
        count,
        lambda n: ServiceAccount(
            name=f"{_pick_word(n)}-{n}",
            user=robots[n],
            client_id=f"sa-{n}",
            secret_hash="x",
            created_by=admin,
            project=projects[n],
        ),
    )
    _bulk_create(
        CustomRole,
        count,
        lambda n: CustomRole(
            name=f"{_pick_word(n)} {n}", permissions=["workloads:view"], created_by=admin
        ),
    )
    _create_rules(users, projects, member)
    _create_assets(count, projects, departments, admin)
    _bulk_create(AuditEntry, count, lambda n: _build_entry(n, users[n]))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return {user.username: create_session(user) for user in (admin, member)}


def _create_assets(
    count: int, projects: Sequence[Project], departments: Sequence[Department], by: User
) -> None:
    def scope(number: int) -> dict[str, Any]:
        chosen = (
            TENANT,
            project_scope(projects[number % MEMBER_OF]),
            project_scope(projects[number]),
            department_scope(departments[number]),
        )
        return chosen[number % 4].columns

    def of(model: type[models.Model], **more: Any) -> None:
        _bulk_create(
            model,
            count,
            lambda n: model(
                name=f"{_pick_word(n)}-{n}",
                created_by=by,
                created_at=_moment_ago(n),
                **scope(n),
                **more,
            ),
        )

    of(Environment, image="registry.example.com/research/train:2.6", framework="PyTorch")
    of(ComputeResource, gpu_devices=4)
    of(
        DataSource,
        kind="git",
        origin={"repository": "https://git.example.com/team/code.git"},
        path="/code",
    )
    of(Credential, kind="password", public={"username": "robot"}, secret="{}")
    of(
        Template,
        framework="PyTorch",
        form={"start": {"configuration": ["workers-only"]}},
        locked=["image", "workers"],
    )
    of(Policy, rules={"workers": {"max": 8}, "image": {"options": ["registry.example.com/*"]}})
    _create_uses(list(Environment.objects.order_by("name")), "environment")
    _create_uses(list(ComputeResource.objects.order_by("name")), "compute")


def _create_uses(assets: Sequence[Environment | ComputeResource], kind: str) -> None:
    """Record one asset as used by each workload, so that the tables count the uses of many."""
    workloads = list(Workload.objects.values_list("pk", flat=True))

    def use(number: int) -> UsedAsset:
        asset = assets[number % len(assets)]
        return UsedAsset(workload_id=workloads[number], kind=kind, asset=asset.pk, name=asset.name)

    _bulk_create(UsedAsset, len(workloads), use)


def _create_rules(users: Sequence[User], projects: Sequence[Project], member: User) -> None:
    def rule(user: User, role: str, scope: Scope) -> AccessRule:
        return AccessRule(
            user=user, role=role, key=f"user:{user.pk} {role} {scope}", **scope.columns
        )

    _bulk_create(
        AccessRule, len(users), lambda n: rule(users[n], VIEWER, project_scope(projects[n]))
    )
    _bulk_create(AccessRule, MEMBER_OF, lambda n: rule(member, L1, project_scope(projects[n])))


def _build_project(number: int, cluster: Cluster, department: Department) -> Project:
    name = f"{_pick_word(number)}-{number}"
    allocated = {"gpu": str(number % 9), "cpu": "12", "memory": str(1 << 36)}
    return Project(
        name=name,
        cluster=cluster,
        department=department,
        namespace=f"muster-{name}",
        queue=name,
        gpu_quota=Decimal(number % 16),
        synced_at=timezone.now(),
        allocated=allocated,
        created_at=_moment_ago(number),
    )


def _build_entry(number: int, user: User) -> AuditEntry:
    return AuditEntry(
        at=_moment_ago(number),
        event=("create", "update", "sign-in")[number % 3],
        entity=("project", "environment", "user")[number % 3],
        entity_id=str(number),
        entity_name=f"{_pick_word(number)}-{number}",
        user=user,
        subject=user.username,
        subject_kind="user",
        address="192.0.2.7",
        request_id=str(uuid.UUID(int=number)),
        before={"gpu_quota": "1"},
        after={"gpu_quota": "2"},
    )


def _bulk_create(model: type[models.Model], count: int, make: Make) -> list[Any]:
    made: list[Any] = []
    for numbers in _split_ranges(count):
        made += model._default_manager.bulk_create([make(number) for number in numbers])
    return made


def _split_ranges(count: int) -> Iterator[range]:
    return (range(first, min(first + AT_ONCE, count)) for first in range(0, count, AT_ONCE))


def _pick_word(number: int) -> str:
    return WORDS[number % len(WORDS)]


def _moment_ago(number: int) -> Any:
    return timezone.now() - timedelta(seconds=37 * number)


if __name__ == "__main__":
    print(json.dumps(create_rows(int(sys.argv[1]))))
