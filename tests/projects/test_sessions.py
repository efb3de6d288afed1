"""Sessions: listed, ended, ended by an administrator, and ended by not being used."""

import time
from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from rest_framework.exceptions import AuthenticationFailed

from projects import sessions, tokens, user_actions
from projects.models import AuditEntry, User
from tests.cast import PASSWORD, Cast

CHROME = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0 "
    "Safari/537.36"
)
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:133.0) Gecko/20100101 Firefox/133.0"


def sign_in_client(name: str = "bob", agent: str = CHROME, address: str = "10.1.2.3") -> Client:
    client = Client(HTTP_USER_AGENT=agent, REMOTE_ADDR=address)
    assert client.post("/sign-in", {"username": name, "password": PASSWORD}).status_code == 302
    return client


def is_in(client: Client) -> bool:
    return client.get("/projects").status_code == 200


def test_the_account_page_lists_ones_sessions(cast: Cast) -> None:
    here, _ = sign_in_client(), sign_in_client(agent=FIREFOX, address="10.9.9.9")
    sign_in_client("vera", address="10.7.7.7")
    page = here.get("/account").content.decode()
    for words in ("Chrome on Linux", "10.1.2.3", "This one", "Firefox on Windows", "10.9.9.9"):
        assert words in page
    assert "10.7.7.7" not in page


def test_one_is_ended_and_the_others_go_on(cast: Cast) -> None:
    here, there, third = sign_in_client(), sign_in_client(), sign_in_client()
    row = UserSession.objects.get(session_key=there.session.session_key)
    assert here.post(f"/account/sessions/{row.pk}/end").status_code == 302
    assert [is_in(each) for each in (here, there, third)] == [True, False, True]


def test_all_others_are_ended_at_once(cast: Cast) -> None:
    here, there, others = sign_in_client(), sign_in_client(), sign_in_client("vera")
    here.post("/account/sessions/end")
    assert [is_in(each) for each in (here, there, others)] == [True, False, True]


def test_the_tokens_of_ones_programs_end_with_all_others_also_where_there_is_no_other_session(
    cast: Cast,
) -> None:
    here, theirs = sign_in_client(), tokens.issue_token(cast.vera)[0]
    token = tokens.issue_token(cast.bob)[0]
    assert 'action="/account/sessions/end"' in here.get("/account").content.decode()
    here.post("/account/sessions/end")
    with pytest.raises(AuthenticationFailed):
        tokens.authenticate_token(token)
    assert tokens.authenticate_token(theirs) == cast.vera
    assert is_in(here)


def test_a_session_of_somebody_else_is_not_there(cast: Cast) -> None:
    here, theirs = sign_in_client(), sign_in_client("vera")
    row = UserSession.objects.get(user=cast.vera)
    assert here.post(f"/account/sessions/{row.pk}/end").status_code == 404
    assert is_in(theirs)


def test_an_administrator_ends_all_of_somebodys(cast: Cast) -> None:
    alice, bob, vera = sign_in_client("alice"), sign_in_client(), sign_in_client("vera")
    assert vera.post(f"/users/{cast.bob.pk}/sessions/end").status_code == 403
    assert is_in(bob)
    assert alice.post(f"/users/{cast.bob.pk}/sessions/end").status_code == 302
    assert [is_in(each) for each in (alice, bob, vera)] == [True, False, True]
    assert AuditEntry.objects.filter(event="sign-out", subject="alice", entity_name="bob").exists()


def test_signing_out_ends_the_session_itself(cast: Cast) -> None:
    here = sign_in_client()
    cookie = here.cookies["muster_session"].value
    here.post("/sign-out")
    again = Client()
    again.cookies["muster_session"] = cookie
    assert not is_in(again)
    assert not UserSession.objects.filter(user=cast.bob).exists()
    assert AuditEntry.objects.filter(event="sign-out", subject="bob").exists()


def test_a_new_password_ends_the_others_and_keeps_this_one_in_the_list(cast: Cast) -> None:
    here, there = sign_in_client(), sign_in_client()
    change = {"present": PASSWORD, "new": "a whole new battery", "again": "a whole new battery"}
    assert here.post("/account", change).status_code == 302
    assert [is_in(each) for each in (here, there)] == [True, False]
    assert [
        each.is_current
        for each in sessions.list_sessions(
            User.objects.get(pk=cast.bob.pk), here.session.session_key
        )
    ] == [True]


def test_who_is_deactivated_comes_back_with_no_old_session(cast: Cast) -> None:
    bob = sign_in_client()
    for active in (False, True):
        user_actions.set_active(User.objects.get(pk=cast.bob.pk), active, cast.alice)
    assert not is_in(bob)


def test_a_session_from_before_signing_in_is_worth_nothing(cast: Cast) -> None:
    """Fixation: a cookie that somebody else put into the browser beforehand."""
    planted = Client()
    planted.get("/sign-in")
    session = planted.session
    session["x"] = 1
    session.save()
    assert session.session_key is not None
    planted.cookies["muster_session"] = session.session_key
    victim = Client()
    victim.cookies["muster_session"] = session.session_key
    victim.post("/sign-in", {"username": "bob", "password": PASSWORD})
    assert victim.cookies["muster_session"].value != session.session_key
    assert is_in(victim)
    assert not is_in(planted)


def test_a_session_that_is_used_goes_on_and_its_cookie_with_it(
    cast: Cast, settings: LazySettings
) -> None:
    here = sign_in_client()
    key = here.session.session_key
    Session.objects.filter(pk=key).update(expire_date=timezone.now() + timedelta(minutes=1))
    assert "muster_session" not in here.get("/projects").cookies
    session = here.session
    session["seen"] = time.time() - 2 * sessions.NOTE_SECONDS
    session.save()
    assert here.get("/projects").cookies["muster_session"]["max-age"] == settings.SESSION_COOKIE_AGE
    assert Session.objects.get(pk=key).expire_date > timezone.now() + timedelta(hours=23)


def test_a_session_that_is_not_used_ends(cast: Cast) -> None:
    here = sign_in_client()
    Session.objects.filter(pk=here.session.session_key).update(expire_date=timezone.now())
    assert not is_in(here)
    assert sessions.list_sessions(cast.bob, None) == []


def test_what_an_open_page_asks_by_itself_is_no_use(cast: Cast) -> None:
    here = sign_in_client()
    long_ago = time.time() - 2 * sessions.NOTE_SECONDS
    session = here.session
    session["seen"] = long_ago
    session.save()
    assert here.get("/workloads/changes?after=0").status_code in (200, 204)
    assert here.session["seen"] == long_ago
    here.get("/projects")
    assert here.session["seen"] > long_ago


def test_the_longest_unused_end_when_there_are_too_many(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 2)
    clients = [sign_in_client() for _ in range(4)]
    assert [is_in(each) for each in clients] == [False, False, True, True]


def test_an_address_that_is_not_known_and_a_strange_browser_break_nothing(cast: Cast) -> None:
    here = sign_in_client(agent="<script>alert(1)</script>" * 99, address="")
    page = here.get("/account").content.decode()
    assert "Unknown browser" in page
    assert "alert(1)" not in page
    assert "0.0.0.0" not in page


def test_the_list_asks_the_database_twice_however_many_there_are(
    cast: Cast, django_assert_num_queries: object
) -> None:
    for _ in range(8):
        sign_in_client()
    with django_assert_num_queries(2):  # type: ignore[operator]
        assert len(sessions.list_sessions(cast.bob, None)) == 8
