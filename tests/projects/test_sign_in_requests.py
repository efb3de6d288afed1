"""Signing in a program by a code that a signed-in person confirms."""

import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client, RequestFactory
from django.utils import timezone

from console.errors import UserError
from projects import sessions, sign_in_requests, user_actions
from projects.models import AuditEntry, SignInRequest, User
from tests.api.calling import Caller
from tests.cast import Cast

PAGE = "/sign-in/program"


def create_code(name: str = "laptop") -> dict[str, Any]:
    made: dict[str, Any] = Caller()("POST", "/token/device", {"clientName": name}, status=201)
    return made


def claim(code: dict[str, Any], status: int) -> Any:
    return Caller()(
        "POST", "/token/device/claim", {"deviceCode": code["deviceCode"]}, status=status
    )


def open_browser(user: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


def decide(client: Client, code: str, decision: str) -> Any:
    return client.post(PAGE, {"code": code, "decision": decision})


def test_a_confirmed_code_is_a_token_once(cast: Cast) -> None:
    code = create_code()
    claim(code, 202)
    browser = open_browser(cast.bob)
    page = browser.get(PAGE, {"code": code["userCode"]}).content.decode()
    assert "laptop" in page
    assert "127.0.0.1" in page
    assert code["deviceCode"] not in page
    assert decide(browser, code["userCode"], "confirm").status_code == 302
    token = claim(code, 200)
    assert Caller(token=token["accessToken"])("GET", "/me")["username"] == "bob"
    assert token["username"] == "bob"
    claim(code, 400)
    entry = AuditEntry.objects.filter(event="token", text__contains="laptop").get()
    assert entry.user_id == cast.bob.pk


def test_a_denied_code_is_no_token(cast: Cast) -> None:
    code = create_code()
    decide(open_browser(cast.bob), code["userCode"], "deny")
    claim(code, 403)
    claim(code, 400)


def test_a_code_is_of_eight_letters_typed_in_any_way(cast: Cast) -> None:
    code = create_code()
    assert re.fullmatch("[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}", code["userCode"])
    assert len({create_code()["userCode"] for _ in range(10)}) == 10
    browser = open_browser(cast.bob)
    typed = code["userCode"].lower().replace("-", " ")
    assert "laptop" in browser.get(PAGE, {"code": typed}).content.decode()
    assert "program shows" in browser.get(PAGE).content.decode()


def test_only_somebody_who_is_signed_in_confirms_and_only_from_the_page(cast: Cast) -> None:
    code = create_code()
    assert Client().get(PAGE, {"code": code["userCode"]}).status_code == 302
    assert decide(Client(), code["userCode"], "confirm").status_code == 302
    foreign = open_browser(cast.bob, enforce_csrf_checks=True)
    assert decide(foreign, code["userCode"], "confirm").status_code == 403
    # An address that is opened confirms nothing.
    open_browser(cast.bob).get(PAGE, {"code": code["userCode"], "decision": "confirm"})
    claim(code, 202)


def test_a_code_is_decided_once(cast: Cast) -> None:
    code = create_code()
    row = SignInRequest.objects.get()
    sign_in_requests.decide(row, cast.bob, is_confirmed=True)
    with pytest.raises(UserError):
        sign_in_requests.decide(row, cast.mallory, is_confirmed=True)
    assert decide(open_browser(cast.mallory), code["userCode"], "confirm").status_code == 422
    assert claim(code, 200)["username"] == "bob"


def test_a_code_ends_after_ten_minutes(cast: Cast) -> None:
    code = create_code()
    late = timezone.now() + timedelta(minutes=11)
    with time_machine.travel(late):
        assert decide(open_browser(cast.bob), code["userCode"], "confirm").status_code == 422
        claim(code, 400)
        create_code()
        assert SignInRequest.objects.count() == 1


def test_who_was_locked_out_meanwhile_gets_no_token(cast: Cast) -> None:
    code = create_code()
    decide(open_browser(cast.bob), code["userCode"], "confirm")
    User.objects.filter(pk=cast.bob.pk).update(is_active=False)
    claim(code, 403)


@pytest.mark.parametrize("way", ["reset", "sessions"])
def test_a_confirmed_code_ends_with_the_sessions(cast: Cast, way: str) -> None:
    code = create_code()
    decide(open_browser(cast.bob), code["userCode"], "confirm")
    bob = User.objects.get(pk=cast.bob.pk)
    if way == "reset":
        user_actions.reset_password(bob, cast.alice)
    else:
        sessions.end_all_sessions(bob)
    claim(code, 400)


def test_who_has_to_choose_a_password_gets_no_token(cast: Cast) -> None:
    code = create_code()
    decide(open_browser(cast.bob), code["userCode"], "confirm")
    User.objects.filter(pk=cast.bob.pk).update(must_change_password=True)
    assert "choose a new password" in claim(code, 403)["message"]


def test_codes_are_bounded_and_wrong_ones_are_counted(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = create_code()
    decide(open_browser(cast.bob), decided["userCode"], "confirm")
    for _ in range(sign_in_requests.MOST_OF_NETWORK):
        create_code()
    Caller()("POST", "/token/device", {}, status=429)
    browser = open_browser(cast.bob)
    statuses = [decide(browser, "XXXX-XXXX", "confirm").status_code for _ in range(14)]
    assert statuses[0] == 422
    assert statuses[-1] == 429


def test_who_asks_from_many_networks_pushes_out_nobody_else(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in_requests, "MOST_REQUESTS", 6)

    def ask(address: str) -> SignInRequest:
        asking = RequestFactory().post("/", REMOTE_ADDR=address)
        return sign_in_requests.create_request("laptop", asking)[0]

    # One of each network of a site, beside two who share an address.
    awaited = {ask("203.0.113.7").pk, ask("203.0.113.7").pk}
    flood = [ask(f"2001:db8:1:{network}::1").pk for network in range(10)]
    kept = set(SignInRequest.objects.values_list("pk", flat=True))
    assert kept == {*awaited, *flood[-4:]}
    # Where nobody has two, nobody gives way.
    SignInRequest.objects.all().delete()
    for site in range(6):
        ask(f"2001:db8:{site}::1")
    with pytest.raises(UserError, match="Too many codes wait"):
        ask("2001:db8:9::1")


def test_what_a_program_says_of_itself_is_bounded_and_escaped(cast: Cast) -> None:
    code = create_code("<b>x</b>\n\u202e" + "y" * 200)
    row = SignInRequest.objects.get()
    assert row.client.startswith("<b>x</b>y")
    assert len(row.client) <= 60
    page = open_browser(cast.bob).get(PAGE, {"code": code["userCode"]}).content.decode()
    assert "<b>x</b>" not in page
    assert sign_in_requests.create_request("", RequestFactory().post("/"))[0].client == "A program"
