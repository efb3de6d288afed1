"""Users with one role in one scope each, and what each address answers to them.

For the tests that compare that with the permission table.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import transaction
from django.test import override_settings

from projects.models import AccessRule, User
from projects.permissions import ROLES, TENANT_ONLY
from projects.scopes import TENANT, Level, Scope, cluster_scope, department_scope, project_scope
from tests.cast import make_cast
from tests.console.address_world import (
    World,
    build_form,
    build_submission,
    create_cookie,
    create_token,
)
from tests.console.addresses import ASYNC, EVERY, STREAMS
from tests.console.fast_browser import BROWSER
from tests.console.permission_table import OPEN, SIGNED_IN, TABLE, Need, Rule

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
REFUSED = frozenset({403, 404})
REFUSALS = ("403.html", "404.html", "errors/refused.html")
"""The templates of pages that refuse."""
ASKED = sorted(set(TABLE) & set(EVERY) - STREAMS)
"""The addresses whose answers end."""
COVERED: Mapping[str, frozenset[str]] = {
    "tenant": frozenset({"tenant", "cluster", "department", "project", "anywhere", "around"}),
    "cluster": frozenset({"cluster", "project", "anywhere", "around"}),
    "department": frozenset({"department", "project", "anywhere", "around"}),
    "team-a": frozenset({"project", "anywhere", "around"}),
    "team-b": frozenset({"anywhere", "around"}),
}
"""The places of the permission table in which a rule of each scope holds.

Both teams are of one department, on one cluster.
"""


@dataclass(frozen=True)
class Subject:
    """A user with exactly one role in exactly one scope."""

    role: str
    scope: str
    user: User

    def may(self, rule: Rule) -> bool:
        if not isinstance(rule, Need):
            return rule in (OPEN, SIGNED_IN)
        return self.has_role_for(rule) and self.is_in_scope_of(rule)

    def has_role_for(self, need: Need) -> bool:
        return ROLES[self.role].permits(need.permission)

    def is_in_scope_of(self, need: Need) -> bool:
        if need.permission.entity in TENANT_ONLY and self.scope != "tenant":
            return False
        return need.at in COVERED[self.scope]


def _subjects(world: World) -> list[Subject]:
    scopes: dict[str, Scope] = {
        "tenant": TENANT,
        "cluster": cluster_scope(world.cast.cluster.pk),
        "department": department_scope(world.cast.research),
        "team-a": project_scope(world.cast.team_a),
        "team-b": project_scope(world.cast.team_b),
    }
    found = []
    for role in ROLES.values():
        for name, scope in scopes.items():
            if role.tenant_only and scope.level is not Level.TENANT:
                continue
            user = User.objects.create(username=f"{role.key}.{name}")
            AccessRule.objects.create(user=user, role=role.key, **scope.columns)
            world.cookies[user.pk] = create_cookie(user)
            world.tokens[user.pk] = create_token(user)
            found.append(Subject(role.key, name, user))
    return found


def _bare_refusals() -> list[dict[str, Any]]:
    """Return Django's TEMPLATES with refusals without the frame of a page.

    A status says all about a refusal, and the frame takes half the time of most.
    """
    [templates] = settings.TEMPLATES
    assert isinstance(templates["OPTIONS"], dict)
    loaders = [
        ("django.template.loaders.locmem.Loader", dict.fromkeys(REFUSALS, "refused")),
        (
            "django.template.loaders.cached.Loader",
            [
                "django.template.loaders.filesystem.Loader",
                "django.template.loaders.app_directories.Loader",
            ],
        ),
    ]
    options = templates["OPTIONS"] | {"loaders": loaders}
    return [templates | {"APP_DIRS": False, "OPTIONS": options}]


@pytest.fixture(scope="module")
def permission_world(
    django_db_setup: None, django_db_blocker: Any
) -> Iterator[tuple[World, list[Subject]]]:
    """Create one world with all subjects for all of these tests.

    Committed, as streams read it with other connections.
    """
    with django_db_blocker.unblock(), override_settings(TEMPLATES=_bare_refusals()):
        world = World(make_cast())
        yield world, _subjects(world)
        call_command("flush", verbosity=0, interactive=False, inhibit_post_migrate=False)


def _status(world: World, subject: Subject, method: str, name: str) -> int:
    """Return the status of a request, and roll back what it changed."""
    if name in ASYNC:
        return world.ask(subject.user, method.lower(), name)[0]
    url = world.url(name)
    more: dict[str, Any] = {}
    if url.startswith("/api/"):
        if method in ("POST", "PUT", "PATCH"):
            more = {
                "data": build_submission(world),
                "content_type": "application/json",
            }
    elif method == "POST":
        more = {"data": build_form(world)}
    with transaction.atomic():
        status = BROWSER.ask(world, subject.user, method.lower(), url, **more)
        transaction.set_rollback(True)
    return status


def _is_right(subject: Subject, rule: Rule | None, status: int) -> bool:
    if rule is None:
        return status in (404, 405)
    if subject.may(rule):
        return status < 500 and status not in REFUSED
    return status in REFUSED or (isinstance(rule, Need) and status == rule.hidden)


def _choose_subjects(
    subjects: list[Subject], rule: Rule | None, *, with_all: bool
) -> list[Subject]:
    if rule is None or rule == OPEN:
        return subjects[:1]
    if with_all:
        return subjects
    chosen = {
        subject.user.pk
        for alike in (
            [each for each in subjects if each.may(rule)],
            [each for each in subjects if _lacks_role_and_scope(each, rule)],
        )
        for subject in _cover_roles_and_scopes(alike)
    }
    return [
        each
        for each in subjects
        if each.user.pk in chosen or not (each.may(rule) or _lacks_role_and_scope(each, rule))
    ]


def _lacks_role_and_scope(subject: Subject, rule: Rule) -> bool:
    """Return whether a subject has to be refused for each of two reasons."""
    return isinstance(rule, Need) and not (
        subject.has_role_for(rule) or subject.is_in_scope_of(rule)
    )


def _cover_roles_and_scopes(subjects: Sequence[Subject]) -> Iterable[Subject]:
    """Return each role in one scope, and each scope with one role."""
    by_role = {subject.role: subject for subject in reversed(subjects)}
    by_scope = {subject.scope: subject for subject in subjects}
    return (*by_role.values(), *by_scope.values())


def wrongly_let_in_or_refused(
    world: World, subjects: list[Subject], name: str, *, with_all: bool = False
) -> list[str]:
    """Return the answers, to anybody and with any method, that differ from the table.

    All are asked for who are refused for one reason alone: their role, or its scope. Of those that
    lack both, and of those that are let in, whose pages take long, it is each role in one scope and
    each scope with one role, unless `with_all`.
    """
    wrong = []
    for method in METHODS:
        rule = TABLE[name].get(method)
        for subject in _choose_subjects(subjects, rule, with_all=with_all):
            status = _status(world, subject, method, name)
            if not _is_right(subject, rule, status):
                wrong.append(
                    f"{method} {name} answered {status} to {subject.role} of {subject.scope}"
                )
    return wrong
