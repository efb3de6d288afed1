"""Every role, in every scope, at every address, with every method: allowed or refused as the tables
say, which know no views.

The API's addresses have a file of their own, so that two workers share them.
"""

import re

import pytest
from django.test import Client

from projects.permissions import ROLES, Entity, Permission, Verb
from tests.console.address_world import World
from tests.console.addresses import EVERY
from tests.console.permission_subjects import (
    ASKED,
    REFUSED,
    Subject,
    permission_world,
    wrongly_let_in_or_refused,
)
from tests.console.permission_table import OWN, TABLE, Need

__all__ = ["permission_world"]

pytestmark = pytest.mark.timeout(1200)

_TOKEN = re.compile(r'(name="csrf[^"]*"|csrf-token")[^>]*>|content="[A-Za-z0-9]{64}"')


def test_the_table_names_every_address() -> None:
    assert set(TABLE) == set(EVERY)


@pytest.mark.sweep
@pytest.mark.parametrize("name", [name for name in ASKED if not name.startswith("api-")])
def test_every_role_in_every_scope_is_let_in_as_the_table_says(
    permission_world: tuple[World, list[Subject]], db: None, name: str
) -> None:
    wrong = wrongly_let_in_or_refused(*permission_world, name)
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in ASKED if not name.startswith("api-")])
def test_everybody_who_may_is_let_in(
    permission_world: tuple[World, list[Subject]], db: None, name: str
) -> None:
    wrong = wrongly_let_in_or_refused(*permission_world, name, with_all=True)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "name", sorted(name for name, rules in TABLE.items() if OWN in rules.values())
)
def test_what_is_somebodys_own_is_theirs(
    permission_world: tuple[World, list[Subject]], db: None, name: str
) -> None:
    world, _ = permission_world
    for method in TABLE[name]:
        assert world.ask(world.cast.bob, method.lower(), name)[0] not in REFUSED


def test_every_permission_of_the_table_is_some_roles() -> None:
    known = {Permission(entity, verb) for entity in Entity for verb in Verb}
    for rules in TABLE.values():
        for rule in rules.values():
            assert not isinstance(rule, Need) or (
                rule.permission in known
                and any(role.permits(rule.permission) for role in ROLES.values())
            )


def test_a_made_up_id_reads_like_one_that_is_not_yours(
    permission_world: tuple[World, list[Subject]], db: None
) -> None:
    """No oracle: the words for what one may not see are those for what does not exist."""
    world, subjects = permission_world
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
        bodies = [
            _TOKEN.sub("", answer.content.decode()).replace(address, "")
            for answer, address in pairs
        ]
        assert bodies[0] == bodies[1], name
