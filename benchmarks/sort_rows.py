"""Creates workloads that differ in what their table is sorted by, in several clusters, departments
and projects. Needs Django set up.
"""

import json
import random
import sys
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

import django

django.setup()

from django.utils import timezone  # noqa: E402 - settings come first

from benchmarks.console_tasks import create_session  # noqa: E402
from benchmarks.seeding import (  # noqa: E402
    STATUSES,
    analyze_tables,
    build_cluster,
    build_project,
    build_rule,
    build_workload,
    bulk_create,
    pick_name,
)
from projects.models import AccessRule, Department, Project, User  # noqa: E402
from projects.permissions import L1  # noqa: E402
from projects.scopes import project_scope  # noqa: E402
from workloads.models import Position, Workload  # noqa: E402

CLUSTERS, DEPARTMENTS, PROJECTS, IMAGES = 5, 10, 20, 50


def create_rows(count: int) -> dict[str, str]:
    """Create the rows; return the sessions of an administrator and of a member of one project."""
    admin = User.objects.create(username="admin", is_superuser=True)
    member = User.objects.create(username="member")
    clusters = []
    for number in range(CLUSTERS):
        clusters.append(build_cluster(f"cluster-{number}", unreachable_since=timezone.now()))
        clusters[-1].save()
    departments = bulk_create(Department, DEPARTMENTS, lambda n: Department(name=f"department-{n}"))
    projects = bulk_create(
        Project,
        PROJECTS,
        lambda n: build_project(n, clusters[n % CLUSTERS], departments[n % DEPARTMENTS]),
    )
    bulk_create(AccessRule, 1, lambda _: build_rule(member, L1, project_scope(projects[7])))
    _create_workloads(count, projects, admin)
    Position.objects.update_or_create(pk=1, defaults={"value": count + 10})
    analyze_tables()
    return {user.username: create_session(user) for user in (admin, member)}


def _create_workloads(count: int, projects: Sequence[Project], owner: User) -> None:
    """Create workloads in random projects. The same every time."""
    chance, now = random.Random(7), timezone.now()

    def build(number: int) -> Workload:
        return build_workload(
            chance.choice(projects),
            pick_name(number),
            chance.choice(STATUSES),
            now - timedelta(seconds=30 * (count - number)),
            owner,
            image=f"registry.example.com/train:{chance.randrange(IMAGES)}",
            cpu_requested=Decimal(chance.choice((0, 4, 8, 16, 32))),
            memory_requested=chance.choice((0, 1 << 32, 1 << 34, 1 << 36)),
            attempt=chance.choice((1, 1, 1, 1, 1, 1, 1, 2, 3)),
            changed=number + 1,
        )

    bulk_create(Workload, count, build)


if __name__ == "__main__":
    print(json.dumps(create_rows(int(sys.argv[1]))))
