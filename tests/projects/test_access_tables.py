"""The tables about access: the same queries however much there is, and every row in a file."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from projects.models import AccessRule, CustomRole, ServiceAccount, User
from projects.permissions import L1
from tests.api.calling import Caller
from tests.cast import Cast

Make = Callable[[Cast, int], None]


def _people(prefix: str, number: int, **fields: Any) -> list[User]:
    return User.objects.bulk_create(
        [User(username=f"{prefix}-{each:04}", **fields) for each in range(number)]
    )


def rules(cast: Cast, number: int) -> None:
    found = [
        AccessRule(user=user, project=cast.team_a, role=L1, key=f"a {user.pk}")
        for user in _people(f"r{number}", number)
    ]
    AccessRule.objects.bulk_create(found)


def users(cast: Cast, number: int) -> None:
    group = Group.objects.create(name=f"group-{number}")
    AccessRule.objects.create(group=group, department=cast.research, role=L1)
    rules(cast, number)
    membership = User.groups.through
    membership.objects.bulk_create(
        membership(user_id=pk, group=group) for pk in User.objects.values_list("pk", flat=True)
    )


def accounts(cast: Cast, number: int) -> None:
    made = [
        ServiceAccount(
            name=user.username, user=user, project=cast.team_a, client_id=f"sa-{user.pk}"
        )
        for user in _people(f"s{number}", number, is_service=True)
    ]
    ServiceAccount.objects.bulk_create(made)
    AccessRule.objects.bulk_create(
        AccessRule(user=each.user, project=cast.team_a, role=L1, key=f"s {each.user_id}")
        for each in made
    )


def roles(cast: Cast, number: int) -> None:
    CustomRole.objects.bulk_create(
        CustomRole(name=f"role-{number}-{each:04}", permissions=["projects:view"])
        for each in range(number)
    )


TABLES: dict[str, tuple[Make, str, int]] = {
    "/access-rules": (rules, "?sort=-role&q=-00&type=user", 8),
    "/users": (users, "?sort=-created&q=-00&type=local", 10),
    "/service-accounts": (accounts, "?sort=-created&q=-00&state=valid", 10),
    "/roles": (roles, "?sort=-created&q=role", 8),
}


@pytest.mark.parametrize("path", sorted(TABLES))
def test_a_long_table_takes_the_same_queries(client: Client, cast: Cast, path: str) -> None:
    make, query, most = TABLES[path]
    client.force_login(cast.alice)

    def count_queries(address: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(address).status_code == 200
        return len(queries)

    make(cast, 60)
    before = [count_queries(path), count_queries(path + query)]
    make(cast, 1000)
    assert [count_queries(path), count_queries(path + query)] == before
    assert max(before) <= most
    assert b"".join(client.get(f"{path}?format=csv")).count(b"\n") >= 1061


@pytest.mark.parametrize(
    "path", ["/authorization/access-rules", "/users", "/service-accounts", "/authorization/roles"]
)
def test_a_long_answer_takes_the_same_queries(cast: Cast, path: str) -> None:
    make = TABLES[f"/{path.rpartition('/')[2]}"][0]
    alice = Caller(cast.alice)

    def count_queries() -> int:
        with CaptureQueriesContext(connection) as queries:
            alice("GET", path)
        return len(queries)

    make(cast, 60)
    count_queries()
    before = count_queries()
    make(cast, 1000)
    assert count_queries() == before <= 6


def test_pages_follow_one_another_in_any_order(client: Client, cast: Cast) -> None:
    users(cast, 120)
    client.force_login(cast.alice)
    for sort in ("user", "-created"):
        names: list[str] = []
        cursor = ""
        while True:
            listing = client.get("/users", {"sort": sort, "cursor": cursor}).context["listing"]
            names += [row.username for row in listing.rows]
            if not (cursor := listing.next):
                break
        assert len(names) == len(set(names)) == User.objects.count()
