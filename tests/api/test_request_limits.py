"""The bound of requests over REST: per user, over all web processes."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import time_machine
from django.conf import LazySettings
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from projects import actions, personal_keys, request_limits, tokens
from projects.models import RequestCount, User
from projects.request_limits import RequestCounter, TooManyRequests
from projects.tasks import forget
from tests.api.calling import Caller
from tests.at_once import at_once
from tests.cast import PASSWORD, Cast

START = 1_800_000_000


@pytest.fixture
def clock() -> Iterator[Any]:
    """A minute that begins, and ends when a test says so."""
    with time_machine.travel(START - START % 60, tick=False) as traveller:
        yield traveller


@pytest.fixture(autouse=True)
def counter() -> RequestCounter:
    """The counter of this process, as it is after its start."""
    request_limits.COUNTER.forget()
    return request_limits.COUNTER


def set_limit(settings: LazySettings, limit: int) -> None:
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"requests_per_minute": limit})


def ask_clusters(caller: Caller) -> Any:
    return caller.raw("GET", "/clusters")


def test_one_too_many_has_to_wait_for_the_next_minute(
    cast: Cast, clock: Any, settings: LazySettings
) -> None:
    set_limit(settings, 3)
    bob = Caller(cast.bob)
    assert [ask_clusters(bob).status_code for _ in range(3)] == [200] * 3
    clock.shift(20)
    refused = ask_clusters(bob)
    assert (refused.status_code, refused["Retry-After"]) == (429, "40")
    assert "more than 3 requests" in json.loads(refused.content)["message"]
    # Others go on, and so does who may not come in at all.
    assert ask_clusters(Caller(cast.vera)).status_code == 200
    assert ask_clusters(Caller(token="x")).status_code == 401
    clock.shift(40)
    assert ask_clusters(bob).status_code == 200


def test_a_further_token_or_key_gives_no_more(
    cast: Cast, clock: Any, settings: LazySettings
) -> None:
    set_limit(settings, 2)
    key, _ = personal_keys.create_key("laptop", owner=cast.bob, expires_at=None)
    for token in (tokens.issue_token(cast.bob)[0], tokens.issue_token(cast.bob, key)[0]):
        assert ask_clusters(Caller(token=token)).status_code == 200
    assert ask_clusters(Caller(cast.bob)).status_code == 429
    account, _ = actions.create_service_account(cast.team_a, "ci", by=cast.alice)
    assert ask_clusters(Caller(account.user)).status_code == 200
    # Who asks too often can still sign in.
    body = {"grantType": "password", "username": "bob", "password": PASSWORD}
    Caller()("POST", "/token", body)


@pytest.mark.parametrize("limit", [1, 50, 1000])
def test_processes_together_let_pass_little_more(cast: Cast, clock: Any, limit: int) -> None:
    processes, passed = [RequestCounter() for _ in range(4)], Counter[bool]()
    for each in range(2 * limit + 8):
        try:
            processes[each % 4].count_request(cast.bob, limit)
            passed[True] += 1
        except TooManyRequests:
            passed[False] += 1
    part = max(1, limit // request_limits.PARTS)
    assert limit <= passed[True] <= limit + 4 * part
    # What is refused is not counted.
    assert RequestCount.objects.get().requests <= limit + 4 * part


def test_few_requests_write_nothing(cast: Cast, clock: Any) -> None:
    counter = RequestCounter()
    with CaptureQueriesContext(connection) as queries:
        for _ in range(59):
            counter.count_request(cast.bob, 6000)
    assert not queries.captured_queries
    counter.count_request(cast.bob, 6000)
    assert RequestCount.objects.get().requests == 60


def test_where_counts_cannot_be_written_requests_pass(
    cast: Cast, clock: Any, settings: LazySettings, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse_counts(execute: Any, sql: str, *rest: Any) -> Any:
        if "requestcount" in sql:
            raise OperationalError("database or disk is full")
        return execute(sql, *rest)

    set_limit(settings, 2)
    bob = Caller(cast.bob)
    with connection.execute_wrapper(refuse_counts):
        assert [ask_clusters(bob).status_code for _ in range(3)] == [200, 200, 429]
    assert "not counted" in caplog.text


def test_a_thread_that_waits_counts_in_the_minute_in_which_it_goes_on(
    cast: Cast, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = RequestCounter()

    class Waiting:
        """A lock for which one waits until the next minute."""

        def __enter__(self) -> None:
            clock.shift(60)

        def __exit__(self, *_: object) -> None: ...

    counter.count_request(cast.bob, 200)
    monkeypatch.setattr(counter, "_lock", Waiting())
    counter.count_request(cast.bob, 1)
    assert RequestCount.objects.get().minute == START // 60 + 1


def test_without_a_limit_nothing_is_counted(cast: Cast, settings: LazySettings) -> None:
    set_limit(settings, 0)
    for _ in range(3):
        assert ask_clusters(Caller(cast.bob)).status_code == 200
    assert not RequestCount.objects.exists()


def test_counts_of_minutes_that_are_over_go(cast: Cast, clock: Any) -> None:
    RequestCounter().count_request(cast.bob, 1)
    forget()
    assert RequestCount.objects.exists()
    clock.shift(60 * (request_limits.KEEP_WINDOWS + 1))
    forget()
    assert not RequestCount.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_threads_that_count_at_the_same_time_lose_none(cast: Cast, clock: Any) -> None:
    counter, passed, lock = RequestCounter(), Counter[bool](), threading.Lock()

    def count() -> None:
        for _ in range(20):
            try:
                counter.count_request(User(pk=cast.bob.pk), 50)
                ok = True
            except TooManyRequests:
                ok = False
            with lock:
                passed[ok] += 1

    at_once(*[count] * 4)
    assert passed == {True: 50, False: 30}
    assert RequestCount.objects.get().requests == 50
