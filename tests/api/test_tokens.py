"""`POST /api/v1/token`, and what opens the API."""

import base64
import json
import time
from typing import Any

import jwt
import pytest
import time_machine
from django.conf import settings
from django.db import connection
from django.test import Client

from projects import actions, throttle, tokens
from projects.models import AccessRule, AuditEntry, FailedSignIns, ServiceAccount, User
from projects.permissions import PROJECT, VIEWER
from tests.api.calling import Caller
from tests.cast import PASSWORD, Cast

asking = Caller()


@pytest.fixture
def account(cast: Cast) -> tuple[ServiceAccount, str]:
    return actions.create_service_account(cast.team_a, "ci", by=cast.alice)


def of_bob(**changes: Any) -> dict[str, Any]:
    return {"grantType": "password", "username": "bob", "password": PASSWORD} | changes


@pytest.mark.parametrize(
    ("grant", "names"),
    [
        ("app_token", ("AppId", "AppSecret")),
        ("app_token", ("appID", "appSecret")),
        ("client_credentials", ("clientID", "clientSecret")),
        ("client_credentials", ("clientId", "CLIENTSECRET")),
    ],
)
def test_a_service_account_gets_a_token_however_its_keys_are_spelled(
    account: tuple[ServiceAccount, str], grant: str, names: tuple[str, str]
) -> None:
    found, secret = account
    answer = asking(
        "POST", "/token", {"grantType": grant, names[0]: found.client_id, names[1]: secret}
    )
    assert answer["expiresIn"] == settings.OPTIONS.token_seconds
    assert [
        each["name"]
        for each in Caller(token=answer["accessToken"])("GET", "/org-unit/projects")["projects"]
    ] == ["team-a"]
    found.refresh_from_db()
    assert found.last_used_at is not None


def test_a_person_gets_a_token_with_the_password(cast: Cast) -> None:
    answer = asking(
        "POST", "/token", {"GrantType": "password", "userName": "bob", "PASSWORD": PASSWORD}
    )
    assert Caller(token=answer["accessToken"])("GET", "/workloads") == {"workloads": []}


def test_the_middle_of_a_token_is_standard_base64_with_a_numeric_end(cast: Cast) -> None:
    for moment in range(0, 10_000_000, 99_991):
        with time_machine.travel(1_800_000_000 + moment, tick=False):
            middle = tokens.issue_token(cast.bob)[0].split(".")[1]
            claims = json.loads(base64.b64decode(middle + "==", validate=False))
            assert not set("-_") & set(middle)
            assert claims["exp"] == time.time() + settings.OPTIONS.token_seconds


WRONG: list[dict[str, Any]] = [
    of_bob(password="wrong"),
    of_bob(username="nobody"),
    {"grantType": "app_token", "AppId": "sa-0", "AppSecret": "x"},
]


@pytest.mark.parametrize("body", WRONG, ids=range(len(WRONG)))
def test_wrong_credentials_are_403_so_that_no_client_tries_them_again(
    cast: Cast, body: dict[str, Any]
) -> None:
    assert "not right" in asking("POST", "/token", body, 403)["message"]


BAD: list[tuple[Any, str]] = [
    ({}, "grantType"),
    ([], "object"),
    ({"grantType": "refresh_token"}, "refreshToken"),
    ({"grantType": "exchange_token"}, "not supported"),
    ({"grantType": "password", "username": "bob"}, "password"),
    ({"grantType": "password", "username": 5, "password": "x"}, "username"),
    ({"grantType": "app_token", "AppId": "x"}, "clientSecret"),
    (b"{", "JSON"),
    (b"\xff", "JSON"),
    (b'{"grantType": "password", "username": "a\\u0000", "password": "b"}', "null character"),
    (b"[" * 100_000, "JSON|levels"),
]


@pytest.mark.parametrize(("body", "expected"), BAD, ids=range(len(BAD)))
def test_a_body_that_asks_for_no_token_is_400(db: None, body: Any, expected: str) -> None:
    assert any(
        word in asking("POST", "/token", body, 400)["message"] for word in expected.split("|")
    )


def test_a_new_password_ends_the_tokens_got_with_the_old_one(cast: Cast) -> None:
    bob = Caller(cast.bob)
    bob("GET", "/clusters")
    cast.bob.set_password("another good password")
    cast.bob.save()
    assert "not valid" in bob("GET", "/clusters", status=401)["message"]


def test_a_rotated_secret_ends_the_tokens_and_the_old_secret(
    account: tuple[ServiceAccount, str], cast: Cast
) -> None:
    found, secret = account
    program = Caller(found.user)
    program("GET", "/clusters")
    new = actions.rotate_secret(found, cast.alice)
    program("GET", "/clusters", status=401)
    asking(
        "POST",
        "/token",
        {"grantType": "app_token", "AppId": found.client_id, "AppSecret": secret},
        403,
    )
    asking("POST", "/token", {"grantType": "app_token", "AppId": found.client_id, "AppSecret": new})


def test_a_deactivated_user_is_out(cast: Cast) -> None:
    bob = Caller(cast.bob)
    cast.bob.is_active = False
    cast.bob.save()
    bob("GET", "/clusters", status=401)
    asking("POST", "/token", of_bob(), 403)


def test_a_password_that_must_be_changed_gets_no_token(cast: Cast) -> None:
    cast.bob.must_change_password = True
    cast.bob.save()
    assert "changed" in asking("POST", "/token", of_bob(), 403)["message"]


def test_a_token_ends_with_its_time(cast: Cast) -> None:
    with time_machine.travel(1_800_000_000) as clock:
        bob = Caller(cast.bob)
        bob("GET", "/clusters")
        clock.shift(settings.OPTIONS.token_seconds + 1)
        assert "expired" in bob("GET", "/clusters", status=401)["message"]


def claims_of(cast: Cast) -> dict[str, Any]:
    return jwt.decode(tokens.issue_token(cast.bob)[0], options={"verify_signature": False})


def test_forged_tokens_do_not_open_it(cast: Cast) -> None:
    good = claims_of(cast)
    forged = [
        "x",
        "a.b.c",
        "é",
        "x" * 5000,
        jwt.encode(good, "another key that is long enough for it", "HS256"),
        jwt.encode(good, "", "none"),
        tokens.issue_token(cast.bob)[0][:-3] + "AAA",
    ]
    for token in forged:
        answer = Caller().raw(
            "GET", "/clusters", authorization=f"Bearer {token}".encode().decode("latin-1")
        )
        assert (answer.status_code, answer["WWW-Authenticate"]) == (401, 'Bearer realm="Muster"')


def test_a_signed_in_browser_does_not_open_it(cast: Cast) -> None:
    browser = Client()
    browser.force_login(cast.alice)
    for answer in (
        browser.get("/api/v1/clusters"),
        browser.post("/api/v1/workloads/distributed", {}, "application/json"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (401, 401)


def test_guessing_has_to_wait_and_a_right_password_is_not_locked_out_for_good(cast: Cast) -> None:
    with time_machine.travel(1_800_000_000, tick=False) as clock:
        for _ in range(throttle.FREE_FOR_PERSON):
            asking("POST", "/token", of_bob(password="guess"), 403)
        answer = asking.raw("POST", "/token", of_bob())
        assert (answer.status_code, answer["Retry-After"]) == (429, "2")
        assert "Wait 2 seconds" in answer.content.decode()
        clock.shift(2)
        asking("POST", "/token", of_bob())
        asking("POST", "/token", of_bob(password="guess"), 403)


def test_the_wait_grows_to_its_bound_and_is_per_name_and_address(db: None) -> None:
    waits = []
    with time_machine.travel(1_800_000_000, tick=False) as clock:
        for _ in range(throttle.FREE_FOR_PERSON):
            throttle.record_attempt("bob", "10.0.0.1")
        for _ in range(12):
            with pytest.raises(throttle.TooManyAttempts) as refused:
                throttle.record_attempt("Bob", "10.0.0.1")
            waits.append(refused.value.wait)
            clock.shift(waits[-1])
            throttle.record_attempt("bob", "10.0.0.1")
        throttle.record_attempt("vera", "10.0.0.1")
    assert waits[:4] == [2, 4, 8, 16]
    assert max(waits) == throttle.LONGEST_WAIT


def test_an_address_that_tries_many_names_has_to_wait(cast: Cast) -> None:
    with time_machine.travel(1_800_000_000, tick=False) as clock:
        for number in range(throttle.FREE_FOR_ADDRESS):
            throttle.record_attempt(f"name{number}", "10.0.0.1")
        with pytest.raises(throttle.TooManyAttempts):
            throttle.record_attempt("another", "10.0.0.1")
        throttle.record_attempt("another", "10.0.0.2")
        clock.shift(2 * throttle.FORGET_AFTER.total_seconds())
        throttle.record_attempt("another", "10.0.0.1")
        assert FailedSignIns.objects.count() == 2


def test_one_name_that_fails_on_and_on_keeps_nobody_else_of_its_address_waiting(db: None) -> None:
    with time_machine.travel(1_800_000_000, tick=False):
        for _ in range(2 * throttle.FREE_FOR_ADDRESS):
            throttle.record_attempt("old-program", "10.0.0.1", free=1000)
        for _ in range(2 * throttle.FREE_FOR_ADDRESS):
            throttle.record_success(throttle.record_attempt("bob", "10.0.0.1"))
        # Where one machine has the new secret and another one the old.
        for _ in range(throttle.FREE_FOR_ADDRESS):
            throttle.record_attempt("half-program", "10.0.0.1", free=1000)
            throttle.record_attempt("half-program", "10.0.0.1", free=1000)
            throttle.record_success(throttle.record_attempt("half-program", "10.0.0.1", free=1000))
        # What succeeds takes back what its name counted for, also where it was many at once.
        at_once = [
            throttle.record_attempt("busy-program", "10.0.0.1", free=1000) for _ in range(50)
        ]
        for attempt in at_once:
            throttle.record_success(attempt)
        for number in range(throttle.FREE_FOR_ADDRESS - throttle.COUNTED_FOR_ADDRESS):
            throttle.record_attempt(f"name{number}", "10.0.0.1")
        with pytest.raises(throttle.TooManyAttempts):
            throttle.record_attempt("another", "10.0.0.1")


def test_a_success_of_the_same_name_at_the_same_moment_is_no_error(db: None) -> None:
    def forget_first(execute: Any, sql: str, *more: Any) -> Any:
        # On PostgreSQL another process may delete the row that is there before it is locked.
        if sql.startswith("SELECT") and FailedSignIns._meta.db_table in sql:
            execute(f'DELETE FROM "{FailedSignIns._meta.db_table}"', None, *more[1:])
        return execute(sql, *more)

    with connection.execute_wrapper(forget_first):
        attempt = throttle.record_attempt("program", "10.0.0.1")
    throttle.record_success(attempt)
    assert not FailedSignIns.objects.filter(failures__gt=0).exists()


def test_many_programs_behind_one_address_start_at_once(
    account: tuple[ServiceAccount, str],
) -> None:
    found, secret = account
    for _ in range(150):
        asking(
            "POST",
            "/token",
            {"grantType": "app_token", "AppId": found.client_id, "AppSecret": secret},
        )
    assert not FailedSignIns.objects.filter(failures__gt=0).exists()


def test_a_disabled_service_account_is_out_until_it_is_enabled_again(
    account: tuple[ServiceAccount, str], cast: Cast
) -> None:
    found, secret = account
    credentials = {"grantType": "app_token", "AppId": found.client_id, "AppSecret": secret}
    program, alice = Caller(found.user), Caller(cast.alice)
    at = f"/service-accounts/{found.pk}"
    assert alice("PATCH", at, {"enabled": False})["enabled"] is False
    assert "disabled" in program("GET", "/clusters", status=401)["message"]
    assert "disabled" in asking("POST", "/token", credentials, 403)["message"]
    # Whoever does not know the secret does not learn it.
    wrong = credentials | {"AppSecret": "x"}
    assert "disabled" not in asking("POST", "/token", wrong, 403)["message"]
    assert [each["name"] for each in list_accounts(alice, "enabled==false")] == ["ci"]
    alice("PATCH", at, {"enabled": True})
    program("GET", "/clusters")
    asking("POST", "/token", credentials)
    assert list_accounts(alice, "enabled==false") == []


def list_accounts(caller: Caller, condition: str) -> Any:
    return caller("GET", f"/service-accounts?filterBy={condition}")["serviceAccounts"]


def test_what_is_so_already_is_no_change(account: tuple[ServiceAccount, str], cast: Cast) -> None:
    at = f"/service-accounts/{account[0].pk}"
    before = AuditEntry.objects.filter(event="update").count()
    for enabled in (True, False, False, True):
        Caller(cast.alice)("PATCH", at, {"enabled": enabled})
    assert AuditEntry.objects.filter(event="update").count() == before + 2


def test_who_disables_and_who_enables(account: tuple[ServiceAccount, str], cast: Cast) -> None:
    found, _ = account
    at = f"/service-accounts/{found.pk}"
    AccessRule.objects.create(user=cast.vera, project=cast.team_a, role=PROJECT)
    vera = Caller(User.objects.get(pk=cast.vera.pk))
    Caller(cast.bob)("PATCH", at, {"enabled": False}, 404)
    Caller(cast.mallory)("PATCH", at, {"enabled": False}, 404)
    bodies: tuple[Any, ...] = ({}, {"enabled": "no"}, {"enabled": None}, [])
    for body in bodies:
        vera("PATCH", at, body, 400)
    AccessRule.objects.create(user=found.user, role=VIEWER)
    vera("PATCH", at, {"enabled": False})
    # It may look around everywhere, which she may not give to whoever has the secret.
    assert "cannot get in" in vera("PATCH", at, {"enabled": True}, 403)["message"]
    Caller(cast.alice)("PATCH", at, {"enabled": True})
