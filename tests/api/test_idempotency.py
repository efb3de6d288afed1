"""The header Idempotency-Key: what is sent twice is made once, and answered the same."""

import json
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import IntegrityError, OperationalError, connection, transaction
from django.test import RequestFactory
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Clash
from projects import idempotency
from projects.api.base import ApiView
from projects.api.idempotency import idempotent
from projects.models import AccessRule, AuditEntry, IdempotentRequest, ServiceAccount, User
from projects.tasks import forget
from tests.api.calling import Caller, a_body
from tests.api.described import list_operations
from tests.at_once import at_once
from tests.cast import PASSWORD, Cast
from workloads.models import Workload

WORKLOADS = "/workloads/distributed"
OTHERS = {
    "/api/v1/token",
    "/api/v1/token/device",
    "/api/v1/token/device/claim",
    "/api/v1/workloads/distributed/preview",
    "/api/v1/workloads/distributed/preflight",
    "/api/v1/workloads/distributed/alternatives",
    "/api/v1/workloads/trainings/alternatives",
    "/api/v1/workloads/trainings/preflight",
    "/api/v1/workloads/trainings/preview",
    "/api/v1/authorization/permitted-scopes",
    "/api/v1/clusters/test",
    "/api/v1/workloads/batch",
}
"""What creates nothing, or nothing that is worth keeping."""
State = IdempotentRequest.State


def send_request(caller: Caller, body: Any, key: str = "k1", path: str = WORKLOADS) -> Any:
    """Return status, body, and whether the answer is that of an earlier request."""
    answer = caller.raw("POST", path, body, idempotency_key=key)
    return answer.status_code, json.loads(answer.content), "Idempotent-Replayed" in answer


def test_what_is_sent_twice_is_made_once_and_answered_the_same(cast: Cast) -> None:
    bob = Caller(cast.bob)
    # With the prefix each request would make another one.
    body = a_body(cast) | {"useGivenNameAsPrefix": True}
    status, first, replayed = send_request(bob, body)
    assert (status, replayed) == (202, False)
    assert send_request(bob, dict(reversed(body.items()))) == (202, first, True)
    assert Workload.objects.count() == 1
    assert send_request(bob, body, "k2")[2] is False
    assert Workload.objects.count() == 2


def test_a_key_is_for_one_request(cast: Cast) -> None:
    bob = Caller(cast.bob)
    send_request(bob, a_body(cast))
    status, refused, _ = send_request(bob, a_body(cast, "other"))
    assert (status, "another request" in refused["message"]) == (409, True)
    status, _, _ = send_request(bob, a_body(cast), path="/workloads/trainings")
    assert status == 409
    assert Workload.objects.count() == 1


def test_everybody_has_keys_of_their_own(cast: Cast) -> None:
    send_request(Caller(cast.bob), a_body(cast))
    status, answer, replayed = send_request(Caller(cast.alice), a_body(cast, "other"))
    assert (status, answer["name"], replayed) == (202, "other", False)


def test_a_refusal_frees_its_key(cast: Cast) -> None:
    bob = Caller(cast.bob)
    assert send_request(bob, a_body(cast, image=None))[0] == 400
    assert send_request(Caller(cast.vera), a_body(cast))[0] == 403
    assert not IdempotentRequest.objects.exists()
    assert send_request(bob, a_body(cast))[0] == 202


def test_a_failure_leaves_it_open_whether_anything_was_made(cast: Cast) -> None:
    def fail(view: ApiView, request: Request) -> Response:
        raise IntegrityError("the disk is gone")

    sent = RequestFactory().post("/", {}, "application/json", headers={"Idempotency-Key": "k1"})
    view = ApiView()
    request = view.request = view.initialize_request(sent)
    request.user = cast.bob
    with pytest.raises(IntegrityError):
        idempotent(fail)(view, request)
    assert IdempotentRequest.objects.get().state == State.UNKNOWN


@pytest.mark.parametrize("state", [State.RUNNING, State.UNKNOWN])
def test_a_request_without_a_known_end_is_never_carried_out_again(cast: Cast, state: str) -> None:
    bob, body = Caller(cast.bob), a_body(cast)
    with time_machine.travel(1_800_000_000, tick=False) as clock:
        bob = Caller(cast.bob)
        send_request(bob, body)
        IdempotentRequest.objects.update(state=state, body="", status=None)
        answer = bob.raw("POST", WORKLOADS, body, idempotency_key="k1")
        assert answer.status_code == 409
        assert (b"no answer yet" in answer.content) == (state == State.RUNNING)
        assert answer.get("Retry-After") == ("2" if state == State.RUNNING else None)
        clock.shift(idempotency.RUNS_AT_MOST.total_seconds() + 1)
        status, refused, _ = send_request(bob, body)
        assert (status, "cut off" in refused["message"]) == (409, True)
    assert Workload.objects.count() == 1


def test_secrets_are_told_once_and_kept_nowhere(cast: Cast) -> None:
    alice = Caller(cast.alice)
    rule = {"scopeType": "tenant", "name": "ci"}
    for path, body, name in (
        ("/service-accounts", rule, "clientSecret"),
        ("/apps", rule | {"name": "old"}, "clientSecret"),
        ("/access-keys", {"name": "laptop"}, "clientSecret"),
        ("/users", {"username": "carl"}, "temporaryPassword"),
    ):
        status, answer, _ = send_request(alice, body, path, path)
        secret = answer.pop(name)
        answer.pop("tempPassword", None)
        assert send_request(alice, body, path, path) == (status, answer, True)
        assert secret not in str(list(IdempotentRequest.objects.values()))
    assert ServiceAccount.objects.count() == 2


def test_a_secret_of_a_body_is_kept_nowhere(cast: Cast) -> None:
    body = {
        "meta": {"name": "mine", "scope": "tenant"},
        "spec": {"user": "me", "password": "hunter-2-hunter"},
    }
    path = "/asset/credentials/password"
    assert send_request(Caller(cast.alice), body, path=path)[0] == 202
    kept = str(list(IdempotentRequest.objects.values()))
    assert "hunter" not in kept
    assert "k1" not in kept


def test_it_is_kept_for_a_day(cast: Cast) -> None:
    with time_machine.travel(1_800_000_000, tick=False) as clock:
        body = a_body(cast)
        send_request(Caller(cast.bob), body)
        clock.shift(idempotency.KEEP_FOR - timedelta(minutes=1))
        assert send_request(Caller(cast.bob), body)[2] is True
        clock.shift(timedelta(minutes=2))
        # It is a new request, and refused like one.
        status, refused, _ = send_request(Caller(cast.bob), body)
        assert (status, "is free" in refused["message"]) == (409, True)
        send_request(Caller(cast.bob), a_body(cast, "other"))
        clock.shift(idempotency.KEEP_FOR + timedelta(minutes=1))
        forget()
        assert not IdempotentRequest.objects.exists()


def test_the_oldest_go_where_somebody_keeps_too_many(cast: Cast) -> None:
    def keep(user: User, number: int) -> None:
        IdempotentRequest.objects.bulk_create(
            IdempotentRequest(user=user, key=f"{each}", fingerprint="x", state=State.DONE)
            for each in range(number)
        )

    keep(cast.bob, idempotency.MAX_KEYS)
    keep(cast.alice, 3)
    send_request(Caller(cast.bob), a_body(cast))
    assert IdempotentRequest.objects.filter(user=cast.bob).count() == idempotency.MAX_KEYS
    assert IdempotentRequest.objects.filter(user=cast.alice).count() == 3


def test_answers_go_before_their_keys(cast: Cast) -> None:
    send_request(Caller(cast.bob), a_body(cast))
    IdempotentRequest.objects.bulk_create(
        IdempotentRequest(
            user=cast.bob, key=f"{each}", fingerprint="x", state=State.DONE, body="{}", status=202
        )
        for each in range(idempotency.MAX_ANSWERS)
    )
    idempotency.begin_request(cast.bob, "another", "x")
    assert IdempotentRequest.objects.filter(body="{}").count() == idempotency.MAX_ANSWERS - 1
    status, refused, _ = send_request(Caller(cast.bob), a_body(cast))
    assert (status, "carried out" in refused["message"]) == (409, True)
    assert Workload.objects.count() == 1


def test_a_request_that_runs_keeps_its_key(cast: Cast) -> None:
    with time_machine.travel(1_800_000_000, tick=False) as clock:
        first = idempotency.begin_request(cast.bob, "first", "x")
        assert isinstance(first, IdempotentRequest)
        IdempotentRequest.objects.bulk_create(
            IdempotentRequest(user=cast.bob, key=f"{each}", fingerprint="x", state=State.DONE)
            for each in range(idempotency.MAX_KEYS)
        )
        idempotency.begin_request(cast.bob, "another", "x")
        with pytest.raises(idempotency.StillRunning):
            idempotency.begin_request(cast.bob, "first", "x")
        assert IdempotentRequest.objects.count() == idempotency.MAX_KEYS + 1
        # One whose process was killed is not kept for ever.
        clock.shift(idempotency.RUNS_AT_MOST)
        idempotency.begin_request(cast.bob, "further", "x")
        assert not IdempotentRequest.objects.filter(pk=first.pk).exists()
        assert IdempotentRequest.objects.count() == idempotency.MAX_KEYS


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_stored", [False, True])
def test_after_a_failure_of_the_database_the_key_is_free_where_nothing_was_stored(
    cast: Cast, is_stored: bool
) -> None:
    has_failed = False

    def fail_once(execute: Any, sql: str, *rest: Any) -> Any:
        nonlocal has_failed
        is_place = "auditentry" in sql and sql.startswith("INSERT")
        if has_failed or not is_place:
            return execute(sql, *rest)
        has_failed = True
        if is_stored:
            transaction.on_commit(break_down)
            return execute(sql, *rest)
        raise OperationalError("database is locked")

    def break_down() -> None:
        raise OperationalError("the connection is lost")

    alice, body = Caller(cast.alice), {"scopeType": "tenant", "name": "ci"}
    alice("GET", "/clusters")
    with connection.execute_wrapper(fail_once):
        status, refused, _ = send_request(alice, body, path="/service-accounts")
    assert (status, "again in a moment" in refused["message"]) == (503, True)
    assert ServiceAccount.objects.count() == int(is_stored)
    status, answer, _ = send_request(alice, body, path="/service-accounts")
    assert (status, "not known" in str(answer)) == ((409, True) if is_stored else (201, False))
    assert ServiceAccount.objects.count() == 1


def test_a_long_answer_is_not_kept(cast: Cast) -> None:
    row = idempotency.begin_request(cast.bob, "k1", "a")
    assert isinstance(row, IdempotentRequest)
    idempotency.finish_request(row, 202, "x" * (idempotency.MAX_BODY_CHARS + 1))
    with pytest.raises(Clash, match="carried out"):
        idempotency.begin_request(cast.bob, "k1", "a")
    assert IdempotentRequest.objects.get().body == ""


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "é", "\t"])
def test_what_is_no_key_is_refused(cast: Cast, key: str) -> None:
    status, refused, _ = send_request(Caller(cast.bob), a_body(cast), key)
    assert (status, refused["details"][0]["field"]) == (400, "Idempotency-Key")
    assert not Workload.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_requests_at_the_same_time_one_is_carried_out(cast: Cast) -> None:
    body = a_body(cast) | {"useGivenNameAsPrefix": True}
    token, answers = Caller(cast.bob).token, []

    def ask() -> None:
        answers.append(send_request(Caller(token=token), body))

    at_once(*[ask] * 6)
    assert Workload.objects.count() == 1
    made = {status: answer for status, answer, _ in answers}
    assert set(made) <= {202, 409}
    assert sum(status == 202 and not replayed for status, _, replayed in answers) == 1
    assert all("no answer yet" in each["message"] for status, each, _ in answers if status == 409)


def test_whoever_lost_their_rights_gets_the_answer_that_they_had(cast: Cast) -> None:
    body = a_body(cast)
    first = send_request(Caller(cast.bob), body)[1]
    AccessRule.objects.filter(user=cast.bob).delete()
    assert send_request(Caller(cast.bob), body) == (202, first, True)
    assert send_request(Caller(cast.bob), a_body(cast, "other"), "k2")[0] == 400
    User.objects.filter(pk=cast.bob.pk).update(is_active=False)
    assert Caller(cast.bob).raw("POST", WORKLOADS, body, idempotency_key="k1").status_code == 401


def test_everything_that_creates_takes_it() -> None:
    for method, path, operation in list_operations():
        names = [each["name"] for each in operation.get("parameters", ())]
        creates = method == "POST" and "{" not in path and path not in OTHERS
        assert ("Idempotency-Key" in names) == creates, f"{method} {path}"


def test_a_password_is_enough_for_nothing_here(cast: Cast) -> None:
    body = {"grantType": "password", "username": "bob", "password": PASSWORD}
    before = AuditEntry.objects.count()
    answers = [send_request(Caller(), body, path="/token") for _ in range(2)]
    assert [replayed for _, _, replayed in answers] == [False, False]
    assert not IdempotentRequest.objects.exists()
    assert AuditEntry.objects.count() - before <= 1
