"""Every role, in every scope, at every address, with every method: allowed or refused as the tables say, which know no views."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction
from django.test import Client

from projects.models import AccessRule, User
from projects.permissions import ROLES, TENANT_ONLY, Entity, Permission, Verb
from projects.scopes import TENANT, Level, Scope, of_cluster, of_department, of_project
from tests.cast import make_cast
from tests.console import test_every_address
from tests.console.permission_table import OPEN, OWN, SIGNED_IN, TABLE, Need, Rule
from tests.console.test_every_address import ASYNC, EVERY, STREAMS, World

pytestmark = pytest.mark.timeout(600)

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
REFUSED = frozenset({403, 404})
_TOKEN = re.compile(r'(name="csrf[^"]*"|csrf-token")[^>]*>|content="[A-Za-z0-9]{64}"')
COVERED: Mapping[str, frozenset[str]] = {
    "tenant": frozenset({"tenant", "cluster", "department", "project", "anywhere", "around"}),
    "cluster": frozenset({"cluster", "project", "anywhere", "around"}),
    "department": frozenset({"department", "project", "anywhere", "around"}),
    "team-a": frozenset({"project", "anywhere", "around"}),
    "team-b": frozenset({"anywhere", "around"}),
}
"""In which of the places that the table names a rule of each scope holds: both teams are of one department, on one cluster."""


@dataclass(frozen=True)
class Subject:
    """Somebody with exactly one role in exactly one scope."""

    role: str
    scope: str
    user: User

    def may(self, rule: Rule) -> bool:
        if not isinstance(rule, Need):
            return rule in (OPEN, SIGNED_IN)
        permission = rule.permission
        if permission.entity in TENANT_ONLY and self.scope != "tenant":
            return False
        return ROLES[self.role].permits(permission) and rule.at in COVERED[self.scope]


def _subjects(world: World) -> list[Subject]:
    scopes: dict[str, Scope] = {
        "tenant": TENANT,
        "cluster": of_cluster(world.cast.cluster.pk),
        "department": of_department(world.cast.research),
        "team-a": of_project(world.cast.team_a),
        "team-b": of_project(world.cast.team_b),
    }
    found = []
    for role in ROLES.values():
        for name, scope in scopes.items():
            if role.tenant_only and scope.level is not Level.TENANT:
                continue
            user = User.objects.create(username=f"{role.key}.{name}")
            AccessRule.objects.create(user=user, role=role.key, **scope.columns)
            world.cookies[user.pk] = test_every_address._cookie(user)
            world.tokens[user.pk] = test_every_address.a_token(user)
            found.append(Subject(role.key, name, user))
    return found


@pytest.fixture(scope="module")
def built(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[World, list[Subject]]]:
    """One world and everybody in it for all of these tests, committed, as streams read it with other connections."""
    with django_db_blocker.unblock():
        world = World(make_cast())
        yield world, _subjects(world)
        call_command("flush", verbosity=0, interactive=False, inhibit_post_migrate=False)


def _status(world: World, subject: Subject, method: str, name: str) -> int:
    """What came of it; whatever it changed is taken back."""
    if name in ASYNC:
        return world.ask(subject.user, method.lower(), name)[0]
    more: dict[str, Any] = {}
    if world.url(name).startswith("/api/"):
        if method in ("POST", "PUT", "PATCH"):
            more = {"data": test_every_address.a_submission(world), "content_type": "application/json"}
    elif method == "POST":
        more = {"data": test_every_address._everything(world)}
    with transaction.atomic():
        status = world.ask(subject.user, method.lower(), name, **more)[0]
        transaction.set_rollback(True)
    return status


def _is_right(subject: Subject, rule: Rule | None, status: int) -> bool:
    if rule is None:
        return status in (404, 405)
    if subject.may(rule):
        return status < 500 and status not in REFUSED
    return status in REFUSED or (isinstance(rule, Need) and status == rule.hidden)


def test_the_table_names_every_address() -> None:
    assert set(TABLE) == set(EVERY)


@pytest.mark.parametrize("name", sorted(set(TABLE) & set(EVERY) - STREAMS))
def test_every_role_in_every_scope_is_let_in_as_the_table_says(built: tuple[World, list[Subject]], db: None, name: str) -> None:
    world, subjects = built
    wrong = []
    for method in METHODS:
        rule = TABLE[name].get(method)
        for subject in subjects if rule is not None and rule != OPEN else subjects[:1]:
            status = _status(world, subject, method, name)
            if not _is_right(subject, rule, status):
                wrong.append(f"{method} {name} answered {status} to {subject.role} of {subject.scope}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", sorted(name for name, rules in TABLE.items() if OWN in rules.values()))
def test_what_is_somebodys_own_is_theirs(built: tuple[World, list[Subject]], db: None, name: str) -> None:
    world, _ = built
    for method in TABLE[name]:
        assert world.ask(world.cast.bob, method.lower(), name)[0] not in REFUSED


def test_every_permission_of_the_table_is_some_roles() -> None:
    known = {Permission(entity, verb) for entity in Entity for verb in Verb}
    for rules in TABLE.values():
        for rule in rules.values():
            assert not isinstance(rule, Need) or (
                rule.permission in known and any(role.permits(rule.permission) for role in ROLES.values())
            )


def test_a_made_up_id_reads_like_one_that_is_not_yours(built: tuple[World, list[Subject]], db: None) -> None:
    """No oracle: the words for what one may not see are those for what does not exist."""
    world, subjects = built
    [stranger] = [each for each in subjects if (each.role, each.scope) == ("viewer", "team-b")]
    client = Client(raise_request_exception=False)
    client.force_login(stranger.user)
    for name in ("project", "workload", "environment-edit", "compute-resource-edit"):
        url = world.url(name)
        other = (
            url.replace(str(world.cast.team_a.pk), "987654")
            if name == "project"
            else url.replace(url.split("/")[2], "0" * 8 + url.split("/")[2][8:])
        )
        assert other != url
        answers = [client.get(address) for address in (url, other)]
        assert [answer.status_code for answer in answers] == [404, 404], name
        pairs = zip(answers, (url, other), strict=True)
        bodies = [_TOKEN.sub("", answer.content.decode()).replace(address, "") for answer, address in pairs]
        assert bodies[0] == bodies[1], name
