"""The grant `refresh_token` of `POST /api/v1/token`."""

from typing import Any

import pytest
import time_machine
from allauth.mfa.totp.internal.auth import TOTP
from django.conf import LazySettings

from projects import actions, second_factor, throttle, tokens, user_actions
from projects.models import AuditEntry, FailedSignIns
from tests.api.calling import Caller
from tests.cast import PASSWORD, Cast

asking = Caller()


def sign_in(name: str = "bob") -> Any:
    return asking(
        "POST", "/token", {"grantType": "password", "username": name, "password": PASSWORD}
    )


def refresh(token: Any, status: int = 200) -> Any:
    return asking("POST", "/token", {"grantType": "refresh_token", "refreshToken": token}, status)


def test_a_refresh_token_gets_access_tokens_without_the_password(cast: Cast) -> None:
    token = sign_in()["refreshToken"]
    for _ in range(2):
        answer = refresh(token)
        assert answer["refreshToken"] == token
        assert Caller(token=answer["accessToken"])("GET", "/workloads") == {"workloads": []}
    assert not FailedSignIns.objects.filter(failures__gt=0).exists()


def test_it_ends_at_a_time_that_no_refresh_moves(cast: Cast, settings: LazySettings) -> None:
    with time_machine.travel(1_800_000_000, tick=False) as clock:
        token = sign_in()["refreshToken"]
        clock.shift(settings.OPTIONS.refresh_token_seconds - 60)
        token = refresh(token)["refreshToken"]
        clock.shift(61)
        assert "not valid" in refresh(token, 403)["message"]


def test_neither_sort_of_token_passes_for_the_other(cast: Cast) -> None:
    answer = sign_in()
    Caller(token=answer["refreshToken"])("GET", "/workloads", status=401)
    refresh(answer["accessToken"], 403)


def test_it_ends_with_the_password_and_with_the_user(cast: Cast) -> None:
    token = sign_in()["refreshToken"]
    cast.bob.is_active = False
    cast.bob.save()
    refresh(token, 403)
    cast.bob.is_active = True
    cast.bob.save()
    refresh(token)
    cast.bob.set_password("another good password")
    cast.bob.save()
    assert "not valid" in refresh(token, 403)["message"]
    entry = AuditEntry.objects.filter(succeeded=False).latest("id")
    assert (entry.subject, entry.entity_id) == ("bob", str(cast.bob.pk))
    assert token not in f"{entry.text}{entry.after}"


def test_it_ends_where_the_password_is_not_enough_any_more(cast: Cast) -> None:
    token = sign_in()["refreshToken"]
    cast.bob.must_change_password = True
    cast.bob.save()
    assert "changed" in refresh(token, 403)["message"]
    cast.bob.must_change_password = False
    cast.bob.save()
    TOTP.activate(cast.bob, second_factor.generate_totp_secret())
    assert "second factor" in refresh(token, 403)["message"]


def test_programs_get_none(cast: Cast) -> None:
    account, secret = actions.create_service_account(cast.team_a, "ci", by=cast.alice)
    answer = asking(
        "POST",
        "/token",
        {"grantType": "app_token", "AppId": account.client_id, "AppSecret": secret},
    )
    assert "refreshToken" not in answer


def test_the_settings_can_give_none(cast: Cast, settings: LazySettings) -> None:
    issued = sign_in()["refreshToken"]
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"refresh_token_seconds": 0})
    assert "refreshToken" not in sign_in()
    assert "not valid" in refresh(issued, 403)["message"]


def test_a_shorter_time_holds_for_those_of_before(cast: Cast, settings: LazySettings) -> None:
    with time_machine.travel(1_800_000_000, tick=False) as clock:
        token = sign_in()["refreshToken"]
        settings.OPTIONS = settings.OPTIONS.model_copy(update={"refresh_token_seconds": 600})
        clock.shift(599)
        refresh(token)
        clock.shift(1)
        refresh(token, 403)


def test_it_ends_where_all_sessions_are_ended_and_its_access_tokens_with_it(cast: Cast) -> None:
    """Whoever signs in by single sign-on has no password that would end them."""
    first = sign_in()
    token, got = first["refreshToken"], refresh(first["refreshToken"])["accessToken"]
    theirs = sign_in("vera")
    Caller(cast.alice)("POST", f"/users/{cast.bob.pk}/logout")
    assert "sessions" in refresh(token, 403)["message"]
    for ended in (first["accessToken"], got):
        Caller(token=ended)("GET", "/workloads", status=401)
    refresh(theirs["refreshToken"])
    Caller(token=theirs["accessToken"])("GET", "/workloads")
    refresh(sign_in()["refreshToken"])


def test_who_is_active_again_has_none_of_before(cast: Cast) -> None:
    answer = sign_in()
    for active in (False, True):
        user_actions.set_active(cast.bob, active, cast.alice)
    refresh(answer["refreshToken"], 403)
    Caller(token=answer["accessToken"])("GET", "/workloads", status=401)
    refresh(sign_in()["refreshToken"])


def test_many_at_the_same_time_do_not_wait(cast: Cast) -> None:
    token = tokens.issue_refresh_token(cast.bob)
    for _ in range(2 * throttle.FREE_FOR_PERSON):
        throttle.record_attempt(
            f"refresh {cast.bob.pk}", "127.0.0.1", free=throttle.FREE_FOR_PROGRAM
        )
    refresh(token)


@pytest.mark.parametrize("token", ["x", "a.b.c", "é", "x" * 5000, "\ud83d\ude00"])
def test_what_was_never_one_is_refused_and_recorded_nowhere(cast: Cast, token: str) -> None:
    before = AuditEntry.objects.count()
    assert "not valid" in refresh(token, 403)["message"]
    assert AuditEntry.objects.count() == before


def test_an_ended_one_that_is_tried_again_and_again_has_to_wait(cast: Cast) -> None:
    token = tokens.issue_refresh_token(cast.bob)
    cast.bob.set_password("another good password")
    cast.bob.save()
    for _ in range(throttle.FREE_FOR_PROGRAM):
        refresh(token, 403)
    assert "Wait" in refresh(token, 429)["message"]
