"""Answers of a provider that are not to be believed, and ways back that were tampered with."""

import base64
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from allauth.socialaccount.models import SocialAccount
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from projects import throttle
from projects.models import AuditEntry
from tests.cast import PASSWORD, Cast
from tests.oidc_provider import CLIENT, SECRET, WELL_KNOWN, Claims, Provider
from tests.projects.signing_on import (
    begin,
    follow_provider,
    provider,
    running,
    sign_on,
    signed_in_as,
)

__all__ = ["provider", "running"]


TOO_DEEP = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
TOO_LONG = b'{"a":' + b"9" * 5000 + b"}"
"""JSON that Python does not read."""


def make_unsigned_token(claims: Claims) -> str:
    header, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()
        for part in ({"alg": "none", "typ": "JWT"}, claims)
    )
    return f"{header}.{body}."


def change_claims(**claims: object) -> Callable[[Provider], None]:
    def twist(provider: Provider) -> None:
        provider.change_claims = lambda payload: payload.update(claims)

    return twist


def omit_claim(name: str) -> Callable[[Provider], None]:
    def twist(provider: Provider) -> None:
        provider.change_claims = lambda claims: claims.pop(name, None) and None

    return twist


def sign_with(how: Callable[[Provider, Claims], Any]) -> Callable[[Provider], None]:
    def twist(provider: Provider) -> None:
        provider.signed = lambda claims: how(provider, claims)

    return twist


def answer_as_it_is(path: str, body: bytes) -> Callable[[Provider], None]:
    def twist(provider: Provider) -> None:
        provider.answers[path] = body

    return twist


UNBELIEVABLE: dict[str, Callable[[Provider], None]] = {
    "another nonce": change_claims(nonce="another"),
    "no nonce": omit_claim("nonce"),
    "another audience": change_claims(aud="another-client"),
    "issued to another client": change_claims(aud=[CLIENT, "another"], azp="another"),
    "another issuer": change_claims(iss="https://elsewhere.example"),
    "expired": change_claims(exp=1_000_000_000),
    "not yet": change_claims(nbf=4_000_000_000),
    "no end": omit_claim("exp"),
    "nobody": change_claims(sub=""),
    "nobody who can be written": change_claims(sub="a\x00b"),
    "unsigned": sign_with(lambda _, claims: make_unsigned_token(claims)),
    "signed with the client's secret": sign_with(
        lambda p, claims: jwt.encode(claims, SECRET * 2, "HS256", headers={"kid": p.kid})
    ),
    "signed with a key of nobody": Provider.new_key,
    "of an unknown key": sign_with(
        lambda p, claims: jwt.encode(claims, p.key, "RS256", headers={"kid": "other"})
    ),
    "of another algorithm than the key": sign_with(
        lambda p, claims: jwt.encode(claims, p.key, "RS512", headers={"kid": p.kid})
    ),
    "no token": sign_with(lambda *_: None),
    "a number": sign_with(lambda *_: 7),
    "no JSON in it": sign_with(lambda *_: "a.b.c"),
    "userinfo of somebody else": lambda provider: setattr(
        provider, "change_user_info", lambda claims: claims.update(sub="somebody-else")
    ),
    "userinfo that fails": lambda provider: provider.broken.add("/userinfo"),
    "no keys": lambda provider: provider.broken.add("/keys"),
    "no tokens": lambda provider: provider.broken.add("/token"),
} | {
    f"{what} at {path}": answer_as_it_is(path, body)
    for path in ("/token", "/keys", "/userinfo")
    for what, body in {"JSON too deep": TOO_DEEP, "a number too long": TOO_LONG}.items()
}


@pytest.mark.parametrize("twist", UNBELIEVABLE.values(), ids=UNBELIEVABLE)
def test_an_answer_that_is_not_to_be_believed_signs_nobody_in(
    client: Client,
    cast: Cast,
    provider: Provider,
    twist: Callable[[Provider], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    twist(provider)
    answer = sign_on(client)
    assert answer.status_code == 403
    assert "cannot believe or understand" in answer.content.decode()
    assert signed_in_as(client) == ""
    assert not SocialAccount.objects.exists()
    assert AuditEntry.objects.filter(event="sign-in", succeeded=False).count() == 1
    assert SECRET not in caplog.text + answer.content.decode() + "".join(
        AuditEntry.objects.values_list("text", flat=True)
    )


@pytest.mark.parametrize(
    "change",
    [
        {"state": "made-up"},
        {"state": ""},
        {"code": "made-up"},
        {"error": "server_error", "code": ""},
    ],
)
def test_a_way_back_that_was_tampered_with_is_refused(
    client: Client, cast: Cast, provider: Provider, change: dict[str, str]
) -> None:
    back = urlsplit(follow_provider(begin(client)))
    query = {name: values[0] for name, values in parse_qs(back.query).items()} | change
    answer = client.get(back.path, {name: value for name, value in query.items() if value})
    assert answer.status_code == 403
    assert signed_in_as(client) == ""


def test_a_way_back_opens_nothing_twice_and_nothing_in_another_browser(
    client: Client, cast: Cast, provider: Provider
) -> None:
    back = follow_provider(begin(client))
    assert Client().get(back).status_code == 403
    assert client.get(back).status_code == 302
    again = Client()
    assert again.get(back).status_code == 403
    assert signed_in_as(again) == ""


def test_who_does_not_agree_there_is_told_so(
    client: Client, cast: Cast, provider: Provider
) -> None:
    provider.who = "nobody"
    answer = sign_on(client)
    assert answer.status_code == 403
    assert "You did not sign in at Example SSO" in answer.content.decode()


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        (
            {"error": "access_denied", "error_description": "carol is not assigned to <b>Muster"},
            "You did not sign in at Example SSO, which says: access_denied: carol is not assigned "
            "to &lt;b&gt;Muster.",
        ),
        (
            {"error": "invalid_scope", "error_description": "unknown scope:\x07 groups"},
            "Example SSO did not sign you in; it says: invalid_scope: unknown scope: groups.",
        ),
        ({"error": "temporarily_unavailable"}, "it says: temporarily_unavailable."),
        ({"error": "x" * 5000}, f"it says: {'x' * 200}."),
        ({}, "cannot believe or understand"),
    ],
)
def test_what_the_provider_says_of_a_refusal_is_repeated(
    client: Client, cast: Cast, provider: Provider, refusal: dict[str, str], text: str
) -> None:
    provider.who, provider.refusal = "nobody", refusal
    answer = sign_on(client)
    assert answer.status_code == 403
    assert text in answer.content.decode()
    recorded = AuditEntry.objects.get(event="sign-in", succeeded=False).text
    assert (refusal or {"error": "neither a code nor an error"})["error"][:200] in recorded


@pytest.mark.parametrize("seconds", [-400, 400])
def test_clocks_that_differ_are_named_in_the_log(
    client: Client, cast: Cast, provider: Provider, seconds: int, caplog: pytest.LogCaptureFixture
) -> None:
    provider.change_claims = lambda claims: claims.update(
        iat=claims["iat"] + seconds, exp=claims["exp"] + seconds
    )
    assert sign_on(client).status_code == 403
    assert "Compare its clock with that of this machine" in caplog.text


def test_userinfo_that_is_a_token_is_named_in_the_log(
    client: Client, cast: Cast, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    """Some providers can be set to sign it, for each client."""
    provider.content_type = "application/jwt; charset=utf-8"
    provider.answers["/userinfo"] = b"a.b.c"
    assert sign_on(client).status_code == 403
    assert "answered with a signed or encrypted token" in caplog.text


def test_clocks_may_differ_a_little(client: Client, cast: Cast, provider: Provider) -> None:
    provider.change_claims = lambda claims: claims.update(iat=claims["iat"] + 50)
    assert sign_on(client).status_code == 302


def test_what_somebody_else_lets_the_provider_say_is_not_repeated(
    client: Client, cast: Cast, provider: Provider
) -> None:
    query = {"state": "x", "error": "call", "error_description": "this number"}
    answer = client.get("/sign-on/callback", query).content.decode()
    assert "is not known here" in answer
    assert "this number" not in answer


def test_a_provider_that_goes_away_before_the_way_back_is_named(
    client: Client, cast: Cast, provider: Provider
) -> None:
    back = follow_provider(begin(client))
    provider.broken = {WELL_KNOWN}
    answer = client.get(back)
    assert answer.status_code == 403
    assert "Example SSO did not answer" in answer.content.decode()
    recorded = AuditEntry.objects.get(event="sign-in", succeeded=False).text
    assert "answered with the status 500" in recorded


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
@pytest.mark.parametrize("is_offered_alone", [True, False])
def test_a_secret_is_sent_in_the_way_that_the_client_is_registered_for(
    client: Client,
    cast: Cast,
    provider: Provider,
    settings: LazySettings,
    method: str,
    is_offered_alone: bool,
) -> None:
    provider.secret, provider.auth_methods = "a+b/c%2Fd: é=", {method}
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"oidc_client_secret": provider.secret})
    if is_offered_alone:
        provider.change_document = lambda document: document.update(
            token_endpoint_auth_methods_supported=[method]
        )
    assert sign_on(client).status_code == 302
    assert signed_in_as(client) == "carol"


def test_a_client_without_a_secret_signs_in(
    client: Client, cast: Cast, provider: Provider, settings: LazySettings
) -> None:
    provider.auth_methods = {"none"}
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"oidc_client_secret": ""})
    assert sign_on(client).status_code == 302


def test_a_wrong_secret_is_named_to_administrators_only(
    client: Client, cast: Cast, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    provider.secret = "another"
    assert "MUSTER_OIDC" not in sign_on(client).content.decode()
    recorded = AuditEntry.objects.get(event="sign-in", succeeded=False).text
    assert "MUSTER_OIDC_CLIENT_SECRET is not what it knows" in recorded
    assert "'invalid_client' (the client is not known by this)" in caplog.text
    assert provider.asked_paths.count("/token") == 2


def test_many_failures_have_to_wait(
    client: Client, cast: Cast, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    monkeypatch.setattr(throttle, "FREE_FOR_PROGRAM", 3)
    provider.broken = {"/token"}
    for _ in range(3):
        assert sign_on(client).status_code == 403
    for _ in range(2):
        assert client.post("/sign-on", {"next": "/projects"}).status_code == 429
    # What came too early was not looked at, so there is nothing to record.
    assert AuditEntry.objects.filter(event="sign-in", succeeded=False).count() == 3


def test_who_has_waited_for_their_turn_comes_in_at_once(
    client: Client, cast: Cast, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever others at the same address do meanwhile."""
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    monkeypatch.setattr(throttle, "FREE_FOR_PROGRAM", 3)
    for _ in range(3):
        Client().post("/sign-on", {"next": "/projects"})
    later = now + timedelta(seconds=throttle.LONGEST_WAIT)
    monkeypatch.setattr(timezone, "now", lambda: later)
    assert sign_on(client).status_code == 302


def test_a_provider_that_was_away_keeps_nobody_waiting_afterwards(
    client: Client, cast: Cast, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "FREE_FOR_PROGRAM", 3)
    provider.broken = {"/.well-known/openid-configuration"}
    for _ in range(5):
        assert client.post("/sign-on", {"next": "/projects"}).status_code == 503
    provider.broken = set()
    assert sign_on(client).status_code == 302


def test_who_begins_again_and_again_makes_no_further_sessions(
    cast: Cast, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    monkeypatch.setattr(throttle, "FREE_FOR_PROGRAM", 3)
    answers = [Client().post("/sign-on", {"next": "/projects"}) for _ in range(5)]
    assert [each.status_code for each in answers] == [200, 200, 200, 429, 429]
    assert "There were too many failed attempts to sign in" in answers[-1].content.decode()
    assert Session.objects.count() == 3


def test_who_comes_in_has_begun_nothing_in_vain(
    cast: Cast, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "FREE_FOR_PROGRAM", 3)
    assert [sign_on(Client()).status_code for _ in range(5)] == [302] * 5


def test_ways_back_that_nobody_began_keep_nobody_out_and_are_recorded_nowhere(
    client: Client, cast: Cast, provider: Provider
) -> None:
    """Any page can have a browser ask for them, as for a picture."""
    before = AuditEntry.objects.count()
    for _ in range(throttle.FREE_FOR_ADDRESS + 1):
        assert client.get("/sign-on/callback?state=x&code=y").status_code == 403
    assert AuditEntry.objects.count() == before
    assert sign_on(client).status_code == 302
    person = {"username": "bob", "password": PASSWORD}
    assert Client().post("/sign-in", person).status_code == 302


def test_a_provider_that_fails_keeps_no_password_out(
    client: Client, cast: Cast, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "FREE_FOR_ADDRESS", throttle.COUNTED_FOR_ADDRESS + 1)
    provider.broken = {"/token"}
    for _ in range(throttle.FREE_FOR_ADDRESS + 1):
        assert sign_on(client).status_code == 403
    person = {"username": "bob", "password": PASSWORD}
    assert client.post("/sign-in", person).status_code == 302
