"""Connections to SQLite that outlive a request."""

import sqlite3
import threading
from pathlib import Path

import pytest
from django.conf import settings
from django.db import DatabaseError, connections

from console.sqlite import base
from console.sqlite.base import DatabaseWrapper

pytestmark = pytest.mark.django_db


@pytest.fixture
def wrapper(tmp_path: Path) -> DatabaseWrapper:
    """On a file of its own, with one table."""
    made = another(tmp_path)
    with made.cursor() as cursor:
        cursor.execute("CREATE TABLE t (n INTEGER)")
    return made


def another(place: Path) -> DatabaseWrapper:
    """As a request's thread has one: of its own."""
    told = connections.configure_settings({"default": {**settings.SQLITE, "NAME": str(place / "kept.sqlite3")}})["default"]
    return DatabaseWrapper(told, alias="kept")


def opened(wrapper: DatabaseWrapper) -> sqlite3.Connection:
    wrapper.connect()
    assert wrapper.connection is not None
    return wrapper.connection


def test_the_next_one_gets_it_in_whichever_thread(wrapper: DatabaseWrapper, tmp_path: Path) -> None:
    first = wrapper.connection
    wrapper.close()
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(opened(another(tmp_path))))
    thread.start()
    thread.join()
    assert found == [first]


def test_two_at_once_have_one_each(wrapper: DatabaseWrapper, tmp_path: Path) -> None:
    assert opened(another(tmp_path)) is not wrapper.connection


def test_what_was_not_committed_is_undone(wrapper: DatabaseWrapper, tmp_path: Path) -> None:
    first = wrapper.connection
    with wrapper.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO t VALUES (1)")
    wrapper.close()
    after = another(tmp_path)
    assert opened(after) is first
    with after.cursor() as cursor:
        assert cursor.execute("SELECT count(*) FROM t").fetchone() == (0,)
        # And it keeps nobody from writing.
        cursor.execute("INSERT INTO t VALUES (2)")


def test_one_that_had_an_error_is_opened_anew(wrapper: DatabaseWrapper, tmp_path: Path) -> None:
    first = wrapper.connection
    with pytest.raises(DatabaseError), wrapper.cursor() as cursor:
        cursor.execute("SELECT * FROM nothing_of_that_name")
    wrapper.close_if_unusable_or_obsolete()
    assert wrapper.connection is None
    assert opened(another(tmp_path)) is not first


def test_no_more_are_kept_than_are_of_use(tmp_path: Path) -> None:
    wrappers = [another(tmp_path) for _ in range(base.MOST + 3)]
    for each in wrappers:
        opened(each)
    for each in wrappers:
        each.close()
    assert sum(len(shelf) for (_, name), shelf in base._kept.items() if name.startswith(str(tmp_path))) == base.MOST
