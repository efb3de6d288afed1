"""What somebody tries who knows the code: to sign in as another, to become more than they are, to
take the console down.
"""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import time_machine
from django.conf import LazySettings
from django.contrib.auth.hashers import check_password, make_password
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone

from projects import hashing, throttle
from projects.models import AccessRule, User
from projects.permissions import L1, VIEWER
from tests.cast import PASSWORD, Cast


def sign_in(client: Client, name: str, password: str, **more: str) -> HttpResponse:
    answer = client.post("/sign-in", {"username": name, "password": password} | more)
    assert isinstance(answer, HttpResponse)
    return answer


@pytest.mark.parametrize(
    "wanted",
    [
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "https:evil",
        "javascript:alert(1)",
        "nothing",
        "",
        ".",
    ],
)
def test_only_a_path_of_ours_is_gone_to_after_signing_in(
    client: Client, cast: Cast, wanted: str
) -> None:
    for answer in (
        sign_in(client, "bob", PASSWORD, next=wanted),
        client.get("/sign-in", {"next": wanted}),
    ):
        assert (answer.status_code, answer["Location"]) == (302, "/workloads")


def test_nobodys_headers_can_be_written_by_an_address(client: Client, cast: Cast) -> None:
    answer = sign_in(client, "bob", PASSWORD, next="/x\r\nSet-Cookie: evil=1")
    assert "\n" not in answer["Location"]
    assert "evil" not in answer.cookies


def guess_until_limit(name: str) -> None:
    """Guess wrong as often as is free from this address."""
    for _ in range(throttle.FREE_FOR_PERSON):
        throttle.record_attempt(name, "127.0.0.1")


def test_a_claim_about_ones_own_address_does_not_get_around_the_throttle(
    client: Client, cast: Cast
) -> None:
    with time_machine.travel(timezone.now(), tick=False):
        guess_until_limit("bob")
        body = {"grantType": "password", "username": "bob", "password": PASSWORD}
        for path, data in (("/sign-in", body), ("/api/v1/token", json.dumps(body))):
            kind: dict[str, Any] = (
                {"content_type": "application/json"} if path.startswith("/api/") else {}
            )
            assert (
                client.post(path, data, headers={"x-forwarded-for": "10.0.1.1"}, **kind).status_code
                == 429
            )


@pytest.mark.parametrize(
    ("remote_address", "address"),
    [
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("garbage", "unknown"),
    ],
)
def test_an_address_is_told_from_others_on_every_kind_of_socket(
    remote_address: str, address: str
) -> None:
    assert throttle.client_address(RequestFactory().get("/", REMOTE_ADDR=remote_address)) == address


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        ("10.0.0.1, 192.0.2.7", "192.0.2.7"),
        ("10.0.0.1, 192.0.2.7:51234", "192.0.2.7"),
        ("[2001:db8::1]:51234", "2001:db8::/64"),
        ("[2001:db8::1]", "2001:db8::/64"),
        ("2001:db8::1", "2001:db8::/64"),
        ("192.0.2.7:http", "unknown"),
        ("[", "unknown"),
    ],
)
def test_a_proxy_that_adds_the_port_does_not_make_all_addresses_one(
    forwarded: str, address: str, settings: LazySettings
) -> None:
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"behind_proxy": True})
    request = RequestFactory().get("/", headers={"X-Forwarded-For": forwarded})
    assert throttle.client_address(request) == address


def test_who_finds_an_open_session_cannot_try_out_its_password(client: Client, cast: Cast) -> None:
    client.force_login(cast.bob)
    guess = {"present": "wrong", "new": PASSWORD, "again": PASSWORD}
    assert "present password. Choose" not in client.post("/account", guess).content.decode()
    client.post("/account", {})
    with time_machine.travel(timezone.now(), tick=False):
        for _ in range(throttle.FREE_FOR_PERSON - 2):
            throttle.record_attempt("bob", "127.0.0.1")
        assert client.post("/account", guess).status_code == 429


def test_passwords_are_hashed_a_few_at_a_time(cast: Cast) -> None:
    hashed = make_password(PASSWORD)
    with ThreadPoolExecutor(1) as thread:
        for _ in range(hashing.MAX_CONCURRENT):
            hashing.hash_slots.acquire()
        checked = thread.submit(check_password, PASSWORD, hashed)
        try:
            with pytest.raises(TimeoutError):
                checked.result(timeout=1)
        finally:
            for _ in range(hashing.MAX_CONCURRENT):
                hashing.hash_slots.release()
        assert checked.result(timeout=180)


@pytest.mark.parametrize("name", ["nobody", "gone", "robot"])
def test_a_name_that_cannot_sign_in_costs_a_hash_like_one_that_can(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Otherwise the time of the answer would tell which names there are."""
    User.objects.create(username="gone", password=cast.bob.password, is_active=False)
    User.objects.create_user("robot", is_service=True)
    made: list[str] = []

    def count_calls(method: str) -> Callable[..., Any]:
        before = getattr(hashing.Argon2, method)

        def call(*given: Any) -> Any:
            made.append(method)
            return before(*given)

        return call

    for method in ("encode", "verify"):
        monkeypatch.setattr(hashing.Argon2, method, count_calls(method))
    message_counts = {
        sign_in(client, who, "wrong").content.count(b"is not right") for who in ("bob", name)
    }
    assert message_counts == {1}
    assert len(made) >= 2


RIGHTS = {
    "is_superuser": "on",
    "is_staff": "on",
    "is_active": "on",
    "is_service": "",
    "must_change_password": "",
}


def test_nobody_makes_themselves_more_than_they_are(client: Client, cast: Cast) -> None:
    client.force_login(cast.mallory)
    paths = [
        f"/users/{cast.mallory.pk}/reset",
        f"/users/{cast.alice.pk}/reset",
        f"/users/{cast.alice.pk}/active",
        "/users/new",
    ]
    assert [
        client.post(path, RIGHTS | {"username": "second", "active": "0"}).status_code
        for path in paths
    ] == [403] * 4
    client.post(
        "/account",
        RIGHTS
        | {"present": PASSWORD, "new": "a whole new battery", "again": "a whole new battery"},
    )
    client.post(
        f"/projects/{cast.team_b.pk}/people", RIGHTS | {"username": "bob", "role": "superuser"}
    )
    client.post(
        f"/projects/{cast.team_b.pk}/people",
        RIGHTS | {"username": "bob", "role": "viewer", "project": cast.team_a.pk, "user": 1},
    )
    rights = dict(User.objects.values_list("username", "is_superuser"))
    assert rights == {"alice": True, "bob": False, "vera": False, "mallory": False}
    assert list(
        AccessRule.objects.filter(user=cast.bob).values_list("project", "role").order_by("project")
    ) == [
        (cast.team_a.pk, L1),
        (cast.team_b.pk, VIEWER),
    ]


def test_the_last_administrator_stays(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    assert client.post(f"/users/{cast.alice.pk}/active", {"active": "0"}).status_code == 422
    assert User.objects.get(pk=cast.alice.pk).is_active


def test_a_deactivated_persons_session_opens_nothing_and_a_reset_ends_it(
    client: Client, cast: Cast
) -> None:
    alice = Client()
    alice.force_login(cast.alice)
    for path, data in (
        (f"/users/{cast.bob.pk}/active", {"active": "0"}),
        (f"/users/{cast.vera.pk}/reset", {}),
    ):
        user = cast.bob if "active" in path else cast.vera
        client.force_login(user)
        assert client.get("/projects").status_code == 200
        alice.post(path, data)
        assert client.get("/projects").status_code == 302


def test_a_program_has_no_page_and_no_password(client: Client, cast: Cast) -> None:
    alice = Client()
    alice.force_login(cast.alice)
    alice.post(
        f"/projects/{cast.team_a.pk}/service-accounts", {"name": "robot", "role": "l2-researcher"}
    )
    robot = User.objects.get(is_service=True)
    assert alice.post(f"/users/{robot.pk}/reset").status_code == 404
    assert sign_in(client, robot.username, "").status_code == 422
    assert not robot.has_usable_password()
