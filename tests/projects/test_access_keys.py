"""Personal access keys on the account page."""

import re

import pytest
from django.test import Client

from console.errors import Clash, UserError
from projects import actions, personal
from projects.models import AuditEntry, PersonalKey
from tests.api.calling import Caller
from tests.cast import Cast


def made(client: Client, **fields: str) -> str:
    return client.post("/account/keys/new", {"name": "laptop", "expires": "90"} | fields).content.decode()


@pytest.fixture
def bob(client: Client, cast: Cast) -> Client:
    client.force_login(cast.bob)
    return client


def test_a_key_is_made_its_secret_shown_once_and_it_does_what_the_person_may(bob: Client, cast: Cast) -> None:
    secret = re.search(r'id="secret-secret">([^<]+)<', made(bob))[1]  # type: ignore[index]
    key = PersonalKey.objects.get()
    assert (key.user, key.client_id.startswith("pk-"), key.expires_at is None) == (cast.bob, True, False)
    page = bob.get("/account").content.decode()
    assert key.client_id in page
    assert secret not in page
    told = Caller()("POST", "/token", {"grantType": "app_token", "AppId": key.client_id, "AppSecret": secret})
    assert Caller(token=told["accessToken"])("GET", "/workloads") == {"workloads": []}
    assert PersonalKey.objects.get().last_used_at is not None
    assert secret not in str(list(AuditEntry.objects.values()))


def test_a_new_secret_ends_the_old_one_and_a_deleted_key_is_gone(bob: Client, cast: Cast) -> None:
    key, secret = personal.create("laptop", of=cast.bob)
    answer = bob.post(f"/account/keys/{key.pk}/secret")
    assert "no-store" in answer["Cache-Control"]
    assert not actions.is_secret_of(PersonalKey.objects.get(), secret)
    bob.post(f"/account/keys/{key.pk}/delete")
    assert not PersonalKey.objects.exists()
    noted = AuditEntry.objects.filter(entity="access-key").order_by("pk").values_list("event", "subject")
    assert list(noted) == [("create", "bob"), ("secret", "bob"), ("delete", "bob")]


def test_there_are_at_most_twenty(bob: Client, cast: Cast) -> None:
    for number in range(personal.MOST):
        personal.create(f"key {number}", of=cast.bob)
    with pytest.raises(UserError):
        personal.create("one more", of=cast.bob)
    assert "there can be no more" in made(bob)
    assert "there can be no more" in bob.get("/account").content.decode()
    personal.create("of another", of=cast.vera)


@pytest.mark.parametrize("name", ["", "a/b", " x", "x" * 41])
def test_a_name_that_cannot_be_is_told(bob: Client, cast: Cast, name: str) -> None:
    assert bob.post("/account/keys/new", {"name": name, "expires": ""}).status_code in (422, 200)
    assert PersonalKey.objects.count() == (1 if name == " x" else 0)


def test_a_name_is_given_once_to_a_person(cast: Cast) -> None:
    personal.create("laptop", of=cast.bob)
    personal.create("laptop", of=cast.vera)
    with pytest.raises(Clash):
        personal.create("laptop", of=cast.bob)
