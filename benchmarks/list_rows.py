"""Creates so many rows of everything that a table shows, and two users who look at them. Needs
Django set up.
"""

import json
import sys
import uuid
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import django

django.setup()

from django.db import models  # noqa: E402 - settings come first
from django.utils import timezone  # noqa: E402

from benchmarks.console_tasks import create_session  # noqa: E402
from benchmarks.seeding import (  # noqa: E402
    analyze_tables,
    build_cluster,
    build_project,
    build_rule,
    bulk_create,
    create_service_accounts,
    pick_name,
    seed_workloads,
)
from clusters.models import NodePool  # noqa: E402
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
    User,
)
from projects.permissions import L1, VIEWER  # noqa: E402
from projects.scopes import TENANT, department_scope, project_scope  # noqa: E402
from workloads.models import UsedAsset, Workload  # noqa: E402

MEMBER_OF = 20
"""Projects of the member, beside those of the seeded workloads."""


def create_rows(count: int) -> dict[str, str]:
    """Create the rows; return the sessions of an administrator and of a member, by name."""
    admin = User.objects.create(username="admin", is_superuser=True)
    member = User.objects.create(username="member")
    cluster = build_cluster("here", unreachable_since=timezone.now())
    cluster.save()
    research = Department.objects.create(name="research")
    seed_workloads(count, cluster=cluster, department=research, owner=member)
    departments = bulk_create(
        Department,
        count,
        lambda n: Department(name=pick_name(n), gpu_quota=Decimal(n % 64)),
    )
    projects = bulk_create(
        Project,
        count,
        lambda n: build_project(
            n,
            cluster,
            departments[n // 10],
            allocated={"gpu": str(n % 9), "cpu": "12", "memory": str(1 << 36)},
            created_at=_moment_ago(n),
        ),
    )
    bulk_create(
        NodePool,
        count,
        lambda n: NodePool(
            cluster=cluster, name=pick_name(n), label_key="pool", label_value=f"v-{n}"
        ),
    )
    users = bulk_create(
        User,
        count,
        lambda n: User(
            username=pick_name(n, "."), email=f"{n}@example.com", last_login=_moment_ago(n)
        ),
    )
    create_service_accounts(count, lambda n: projects[n], admin)
    bulk_create(
        CustomRole,
        count,
        lambda n: CustomRole(
            name=pick_name(n, " "), permissions=["workloads:view"], created_by=admin
        ),
    )
    _create_rules(users, projects, member)
    _create_assets(count, projects, departments, admin)
    bulk_create(AuditEntry, count, lambda n: _build_entry(n, users[n]))
    analyze_tables()
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

    def create_named(model: type[models.Model], **more: Any) -> None:
        bulk_create(
            model,
            count,
            lambda n: model(
                name=pick_name(n),
                created_by=by,
                created_at=_moment_ago(n),
                **scope(n),
                **more,
            ),
        )

    create_named(Environment, image="registry.example.com/research/train:2.6", framework="PyTorch")
    create_named(ComputeResource, gpu_devices=4)
    create_named(
        DataSource,
        kind="git",
        origin={"repository": "https://git.example.com/team/code.git"},
        path="/code",
    )
    create_named(Credential, kind="password", public={"username": "robot"}, secret="{}")
    create_named(
        Template,
        framework="PyTorch",
        form={"start": {"configuration": ["workers-only"]}},
        locked=["image", "workers"],
    )
    create_named(
        Policy, rules={"workers": {"max": 8}, "image": {"options": ["registry.example.com/*"]}}
    )
    _create_uses(list(Environment.objects.order_by("name")), "environment")
    _create_uses(list(ComputeResource.objects.order_by("name")), "compute")


def _create_uses(assets: Sequence[Environment | ComputeResource], kind: str) -> None:
    """Record one asset as used by each workload, so that the tables count the uses of many."""
    workloads = list(Workload.objects.values_list("pk", flat=True))

    def build_use(number: int) -> UsedAsset:
        asset = assets[number % len(assets)]
        return UsedAsset(workload_id=workloads[number], kind=kind, asset=asset.pk, name=asset.name)

    bulk_create(UsedAsset, len(workloads), build_use)


def _create_rules(users: Sequence[User], projects: Sequence[Project], member: User) -> None:
    bulk_create(
        AccessRule, len(users), lambda n: build_rule(users[n], VIEWER, project_scope(projects[n]))
    )
    bulk_create(AccessRule, MEMBER_OF, lambda n: build_rule(member, L1, project_scope(projects[n])))


def _build_entry(number: int, user: User) -> AuditEntry:
    return AuditEntry(
        at=_moment_ago(number),
        event=("create", "update", "sign-in")[number % 3],
        entity=("project", "environment", "user")[number % 3],
        entity_id=str(number),
        entity_name=pick_name(number),
        user=user,
        subject=user.username,
        subject_kind="user",
        address="192.0.2.7",
        request_id=str(uuid.UUID(int=number)),
        before={"gpu_quota": "1"},
        after={"gpu_quota": "2"},
    )


def _moment_ago(number: int) -> Any:
    return timezone.now() - timedelta(seconds=37 * number)


if __name__ == "__main__":
    print(json.dumps(create_rows(int(sys.argv[1]))))
