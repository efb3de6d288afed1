"""The second factor: set up, asked for, used once, lost, reset, required."""

import re
import time

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from django.conf import LazySettings
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from projects import second_factor, throttle
from projects.models import AuditEntry, User
from tests.cast import PASSWORD, Cast


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that codes are for, which only a test moves."""
    now = [time.time()]
    monkeypatch.setattr(totp.time, "time", lambda: now[0])
    return now


def code(secret: str, clock: list[float], steps: int = 0) -> str:
    return str(totp.format_hotp_value(totp.hotp_value(secret, int(clock[0]) // 30 + steps)))


def set_up(client: Client, clock: list[float]) -> tuple[str, list[str]]:
    """Set the factor up on its page; return the secret and the recovery codes."""
    page = client.get("/account/second-factor").content.decode()
    found = re.search(r'id="second-factor-secret">([A-Z2-7 =]+)<', page)
    assert found is not None
    secret = found[1].replace(" ", "")
    answer = client.post(
        "/account/second-factor", {"code": code(secret, clock), "present": PASSWORD}
    )
    assert answer.status_code == 200, answer.content.decode()
    codes = re.search(r'id="recovery-codes">([0-9 ]+)<', answer.content.decode())
    assert codes is not None
    clock[0] += 60
    return secret, codes[1].split()


def first(client: Client, name: str = "bob") -> None:
    """Give the password; the page then asks for the code."""
    answer = client.post("/sign-in", {"username": name, "password": PASSWORD, "next": "/projects"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/sign-in/code")


def is_in(client: Client) -> bool:
    return client.get("/projects").status_code == 200


@pytest.fixture
def secret(client: Client, cast: Cast, clock: list[float]) -> str:
    client.force_login(cast.bob)
    return set_up(client, clock)[0]


def test_the_code_opens_what_one_wanted_and_nothing_is_open_before(
    secret: str, clock: list[float]
) -> None:
    other = Client()
    first(other)
    assert not is_in(other)
    answer = other.post("/sign-in/code", {"code": code(secret, clock)})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/projects")
    assert is_in(other)
    assert AuditEntry.objects.filter(event="sign-in", succeeded=True, subject="bob").count() == 1


def test_a_code_is_good_once_and_an_older_one_not_any_more(secret: str, clock: list[float]) -> None:
    now = code(secret, clock)
    before, after, far = (code(secret, clock, steps) for steps in (-1, 1, 5))
    for given, good in ((now, True), (now, False), (before, False), (after, True), (far, False)):
        other = Client()
        first(other)
        assert other.post("/sign-in/code", {"code": given}).status_code == (302 if good else 422)
        assert is_in(other) is good


def test_the_session_has_another_key_after_the_code(secret: str, clock: list[float]) -> None:
    other = Client()
    first(other)
    before = other.cookies["muster_session"].value
    other.post("/sign-in/code", {"code": code(secret, clock)})
    assert other.cookies["muster_session"].value != before


def test_guessing_codes_is_slowed_down_wherever_it_comes_from(
    secret: str, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    answers = []
    for number in range(12):
        other = Client(REMOTE_ADDR=f"10.0.0.{number}")
        first(other)
        answers.append(other.post("/sign-in/code", {"code": "000000"}).status_code)
    assert answers[:10] == [422] * 10
    assert answers[10:] == [429, 429]
    # What came too early was not compared, so it is not told as a wrong code.
    assert (
        AuditEntry.objects.filter(event="sign-in", succeeded=False, entity_name="bob").count() == 10
    )


def test_a_code_that_is_refused_at_one_address_counts_for_no_other(
    secret: str, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    monkeypatch.setattr(throttle, "FREE_FOR_ADDRESS", 5)
    crowded = Client(REMOTE_ADDR="10.0.0.1")
    first(crowded)
    for number in range(throttle.FREE_FOR_ADDRESS):
        throttle.record_attempt(f"name{number}", "10.0.0.1")
    for _ in range(2 * throttle.FREE_FOR_PERSON):
        assert crowded.post("/sign-in/code", {"code": "000000"}).status_code == 429
    elsewhere = Client(REMOTE_ADDR="10.0.0.2")
    first(elsewhere)
    right = elsewhere.post("/sign-in/code", {"code": code(secret, clock)})
    assert right.status_code == 302


def test_there_is_no_code_to_give_without_a_password_before(client: Client, cast: Cast) -> None:
    for method in ("get", "post"):
        answer = getattr(client, method)("/sign-in/code", {"code": "000000"})
        assert (answer.status_code, answer.headers["Location"]) == (302, "/sign-in")


@pytest.mark.parametrize("change", [{"is_active": False}, {"password": "!"}])
def test_who_may_not_come_in_any_more_meanwhile_does_not(
    secret: str, clock: list[float], change: dict[str, object]
) -> None:
    other = Client()
    first(other)
    User.objects.filter(username="bob").update(**change)
    other.post("/sign-in/code", {"code": code(secret, clock)})
    assert not is_in(other)


def test_a_recovery_code_opens_once(client: Client, cast: Cast, clock: list[float]) -> None:
    client.force_login(cast.bob)
    _, codes = set_up(client, clock)
    assert len(set(codes)) == 10
    for good in (True, False):
        other = Client()
        first(other)
        other.post("/sign-in/code", {"code": codes[3]})
        assert is_in(other) is good
    assert "9 recovery codes left" in client.get("/account").content.decode()


def test_new_recovery_codes_make_the_others_void(
    client: Client, cast: Cast, clock: list[float]
) -> None:
    client.force_login(cast.bob)
    _, codes = set_up(client, clock)
    assert client.post("/account/second-factor/codes", {"present": "wrong"}).status_code == 422
    page = client.post("/account/second-factor/codes", {"present": PASSWORD}).content.decode()
    assert codes[0] not in page
    assert not second_factor.use_code(cast.bob, codes[0])


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"code": "000000"}, "This code is not right"),
        ({"present": "wrong"}, "not your present password"),
    ],
)
def test_it_is_set_up_only_with_a_code_that_fits_and_the_password(
    client: Client, cast: Cast, clock: list[float], given: dict[str, str], problem: str
) -> None:
    client.force_login(cast.bob)
    page = client.get("/account/second-factor").content.decode()
    found = re.search(r'id="second-factor-secret">([A-Z2-7 =]+)<', page)
    assert found is not None
    secret = found[1].replace(" ", "")
    answer = client.post(
        "/account/second-factor", {"code": code(secret, clock), "present": PASSWORD} | given
    )
    assert answer.status_code == 422
    assert problem in answer.content.decode()
    assert not Authenticator.objects.exists()
    # The app has the secret already: it is the same one.
    assert found[1] in answer.content.decode()


def test_removing_it_asks_for_the_password(client: Client, secret: str, cast: Cast) -> None:
    assert client.post("/account/second-factor/remove", {"present": "wrong"}).status_code == 422
    assert Authenticator.objects.exists()
    assert client.post("/account/second-factor/remove", {"present": PASSWORD}).status_code == 302
    assert not Authenticator.objects.exists()
    other = Client()
    other.post("/sign-in", {"username": "bob", "password": PASSWORD})
    assert is_in(other)


def test_its_secrets_are_nowhere_in_clear(
    client: Client, cast: Cast, clock: list[float], tmp_path_factory: pytest.TempPathFactory
) -> None:
    client.force_login(cast.bob)
    client.get("/account/second-factor")
    dumped = tmp_path_factory.mktemp("dump") / "all.json"
    call_command("dumpdata", output=str(dumped), verbosity=0)
    pending = client.session["second_factor_secret"]
    secret, codes = set_up(client, clock)
    call_command("dumpdata", output=str(tmp_path_factory.getbasetemp() / "after.json"), verbosity=0)
    kept = (
        dumped.read_text() + (tmp_path_factory.getbasetemp() / "after.json").read_text() + pending
    )
    assert secret not in kept
    assert not [each for each in codes if f'"{each}"' in kept]


def test_a_password_alone_gets_no_token_where_there_is_a_second_factor(
    client: Client, secret: str, cast: Cast
) -> None:
    body = {"grantType": "password", "username": "bob", "password": PASSWORD}
    answer = client.post("/api/v1/token", body, content_type="application/json")
    assert answer.status_code == 403
    assert "second factor" in answer.json()["message"]


def test_an_administrator_resets_what_somebody_has_lost(
    client: Client, secret: str, cast: Cast
) -> None:
    bobs = Client()
    bobs.force_login(cast.bob)
    assert bobs.post(f"/users/{cast.bob.pk}/second-factor/reset").status_code == 403
    administrator = Client()
    administrator.force_login(cast.alice)
    assert administrator.post(f"/users/{cast.bob.pk}/second-factor/reset").status_code == 302
    assert not Authenticator.objects.exists()
    assert AuditEntry.objects.filter(
        subject="alice", entity_name="bob", text__contains="second factor"
    ).exists()
    other = Client()
    other.post("/sign-in", {"username": "bob", "password": PASSWORD})
    assert is_in(other)


def test_the_only_administrator_is_helped_by_one_who_is_made_on_the_machine(
    client: Client, cast: Cast, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(cast.alice)
    set_up(client, clock)
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)
    call_command("createsuperuser", username="helper", email="", interactive=False)
    helper, again = Client(), Client()
    person = {"username": "helper", "password": PASSWORD, "next": "/projects"}
    assert helper.post("/sign-in", person).headers["Location"] == "/projects"
    assert helper.post(f"/users/{cast.alice.pk}/second-factor/reset").status_code == 302
    person["username"] = "alice"
    assert again.post("/sign-in", person).headers["Location"] == "/projects"
    pk = User.objects.get(username="helper").pk
    assert again.post(f"/users/{pk}/active", {"active": "0"}).status_code == 302
    assert not is_in(helper)


def test_where_it_is_required_nothing_opens_before_it_is_set_up(
    client: Client, cast: Cast, clock: list[float], settings: LazySettings
) -> None:
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"require_second_factor": True})
    client.force_login(cast.bob)
    assert client.get("/projects").headers["Location"] == "/account"
    assert client.post(f"/projects/{cast.team_a.pk}/people").status_code == 403
    assert "Set up a second factor" in client.get("/account").content.decode()
    body = {"grantType": "password", "username": "bob", "password": PASSWORD}
    assert Client().post("/api/v1/token", body, content_type="application/json").status_code == 403
    set_up(client, clock)
    assert is_in(client)


def test_a_secret_whose_key_is_gone_is_told(
    secret: str, settings: LazySettings, clock: list[float]
) -> None:
    other = Client()
    first(other)
    settings.ENCRYPTION_KEYS = ["b3RoZXJfa2V5X290aGVyX2tleV9vdGhlcl9rZXlfMDA="]
    answer = other.post("/sign-in/code", {"code": code(secret, clock)})
    assert answer.status_code == 422
    assert "MUSTER_ENCRYPTION_KEYS" in answer.content.decode()
