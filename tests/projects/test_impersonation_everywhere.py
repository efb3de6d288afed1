"""Who looks as another writes nothing, at any address that there is: they come from the URL table,
so a new one is asked as well.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import Client

from projects import impersonation, sessions
from projects.models import User
from tests.cast import make_cast
from tests.console.address_world import World
from tests.console.addresses import ASYNC, EVERY
from tests.console.fast_browser import BROWSER

pytestmark = pytest.mark.timeout(900)

PAGES = sorted(name for name, address in EVERY.items() if not address.route.startswith("api/"))
"""The REST API knows nothing of looking: a token is its owner's."""
OWN_SESSION = {"django_session", "usersessions_usersession"}
"""Where it is noted that a browser is still there: the looker's own, not that of whom they look as.
"""


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    """Committed, as streams read it with other connections. Ada may do whatever Alice may."""
    with django_db_blocker.unblock():
        world = World(make_cast())
        User.objects.create(username="ada", is_superuser=True)
        yield world
        call_command("flush", verbosity=0, interactive=False, inhibit_post_migrate=False)


def look_as(world: World, impersonated: User) -> None:
    """Let Alice impersonate the user in all further requests."""
    client = Client()
    client.force_login(world.cast.alice)
    session = client.session
    # Noted long from now: a stream has a connection of its own, which is not to write that the
    # session is used.
    session.update(
        {
            impersonation.SESSION_USER_KEY: impersonated.pk,
            sessions.LAST_USED_KEY: time.time() + 24 * 3600,
        }
    )
    session.save()
    world.cookies[world.cast.alice.pk] = client.cookies[settings.SESSION_COOKIE_NAME].value


def rows() -> dict[str, list[str]]:
    """Return all stored rows by the names of the tables."""
    found = {}
    with connection.cursor() as cursor:
        for table in set(connection.introspection.table_names(cursor)) - OWN_SESSION:
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            found[table] = sorted(map(repr, cursor.fetchall()))
    return found


def find_changed_tables(before: dict[str, list[str]]) -> list[str]:
    now = rows()
    return sorted(table for table in now if now[table] != before[table])


@pytest.mark.parametrize("whom", ["bob", "ada"])
def test_no_address_writes_anything_while_one_looks_as_another(
    world: World, db: None, whom: str
) -> None:
    user = User.objects.get(username=whom)
    # The draft in the addresses is theirs: it would be shown, were it not for looking.
    type(world.draft).objects.filter(pk=world.draft.pk).update(user=user)
    look_as(world, user)
    before, wrong, success_count = rows(), {}, 0
    for name in PAGES:
        if name in ASYNC:
            status, _ = world.ask(world.cast.alice, "get", name)
        else:
            status = BROWSER.ask(world, world.cast.alice, "get", world.url(name))
        assert status < 500, f"{name} answered {status}"
        success_count += status == 200
        if tables := find_changed_tables(before):
            wrong[name], before = tables, rows()
    assert not wrong, (
        f"Mark the views with projects.impersonation.writes, or let them write nothing: {wrong}"
    )
    assert success_count > 50


def test_what_is_written_would_be_seen(world: World, db: None) -> None:
    """The same as the test above, but for looking: it does not pass because nothing is ever
    written.
    """
    before = rows()
    assert world.ask(world.cast.bob, "get", "workload-new")[0] == 302
    assert find_changed_tables(before) == ["workloads_draft"]
