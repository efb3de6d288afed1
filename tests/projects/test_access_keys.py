"""Personal access keys: on the account page, and to administrators."""

import contextlib
import re

import pytest
from django.http import Http404
from django.test import Client
from django.utils import timezone

from console.errors import Clash, NotAllowed, UserError
from projects import actions, personal_keys, second_factor, tokens, user_actions
from projects.models import AccessRule, AuditEntry, CustomRole, PersonalKey, User
from tests.api.calling import Caller
from tests.at_once import at_once
from tests.cast import Cast, make_cast

ROUNDS = 20


def create_key(client: Client, **fields: str) -> str:
    return client.post(
        "/account/keys/new", {"name": "laptop", "expires": "90"} | fields
    ).content.decode()


@pytest.fixture
def bob(client: Client, cast: Cast) -> Client:
    client.force_login(cast.bob)
    return client


def test_a_key_is_made_its_secret_shown_once_and_it_does_what_the_person_may(
    bob: Client, cast: Cast
) -> None:
    secret = re.search(r'id="secret-secret">([^<]+)<', create_key(bob))[1]  # type: ignore[index]
    key = PersonalKey.objects.get()
    assert (key.user, key.client_id.startswith("pk-"), key.expires_at is None) == (
        cast.bob,
        True,
        False,
    )
    page = bob.get("/account").content.decode()
    assert key.client_id in page
    assert secret not in page
    answer = Caller()(
        "POST", "/token", {"grantType": "app_token", "AppId": key.client_id, "AppSecret": secret}
    )
    assert Caller(token=answer["accessToken"])("GET", "/workloads") == {"workloads": []}
    assert PersonalKey.objects.get().last_used_at is not None
    assert secret not in str(list(AuditEntry.objects.values()))


def test_a_new_secret_ends_the_old_one_and_a_deleted_key_is_gone(bob: Client, cast: Cast) -> None:
    key, secret = personal_keys.create_key("laptop", owner=cast.bob)
    answer = bob.post(f"/account/keys/{key.pk}/secret")
    assert "no-store" in answer["Cache-Control"]
    assert not actions.is_secret_of(PersonalKey.objects.get(), secret)
    bob.post(f"/account/keys/{key.pk}/delete")
    assert not PersonalKey.objects.exists()
    noted = (
        AuditEntry.objects.filter(entity="access-key")
        .order_by("pk")
        .values_list("event", "subject")
    )
    assert list(noted) == [("create", "bob"), ("secret", "bob"), ("delete", "bob")]


def test_a_key_that_somebody_else_ended_meanwhile_is_not_there(cast: Cast) -> None:
    key, _ = personal_keys.create_key("laptop", owner=cast.bob)
    mine = PersonalKey.objects.get(pk=key.pk)
    personal_keys.revoke_key(key, cast.alice)
    for change in (
        lambda: personal_keys.rotate_secret(mine),
        lambda: personal_keys.revoke_key(mine, cast.bob),
    ):
        with pytest.raises(Http404):
            change()
    assert AuditEntry.objects.filter(entity="access-key").count() == 2


def test_there_are_at_most_twenty(bob: Client, cast: Cast) -> None:
    for number in range(personal_keys.MAX_KEYS):
        personal_keys.create_key(f"key {number}", owner=cast.bob)
    with pytest.raises(UserError):
        personal_keys.create_key("one more", owner=cast.bob)
    assert "there can be no more" in create_key(bob)
    assert "there can be no more" in bob.get("/account").content.decode()
    personal_keys.create_key("of another", owner=cast.vera)


@pytest.mark.parametrize("name", ["", "a/b", " x", "x" * 41])
def test_a_name_that_cannot_be_is_told(bob: Client, cast: Cast, name: str) -> None:
    assert bob.post("/account/keys/new", {"name": name, "expires": ""}).status_code in (422, 200)
    assert PersonalKey.objects.count() == (1 if name == " x" else 0)


def test_a_name_is_given_once_to_a_person(cast: Cast) -> None:
    personal_keys.create_key("laptop", owner=cast.bob)
    personal_keys.create_key("laptop", owner=cast.vera)
    with pytest.raises(Clash):
        personal_keys.create_key("laptop", owner=cast.bob)


@pytest.fixture
def alice(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.alice)
    return client


def test_an_administrator_sees_somebodys_keys_and_no_secret(alice: Client, cast: Cast) -> None:
    key, secret = personal_keys.create_key("laptop", owner=cast.bob, expires_at=timezone.now())
    PersonalKey.objects.filter(pk=key.pk).update(last_used_at=timezone.now().replace(year=2024))
    personal_keys.create_key("of another", owner=cast.vera)
    page = alice.get(f"/users/{cast.bob.pk}/keys").content.decode()
    for text in ("Access keys of bob", "laptop", key.client_id, "Expired", "2024"):
        assert text in page
    for hidden in (secret, key.secret_hash, "of another"):
        assert hidden not in page
    assert "No access keys" in alice.get(f"/users/{cast.mallory.pk}/keys").content.decode()
    account, _ = actions.create_service_account(cast.team_a, "robot", by=cast.alice)
    assert alice.get(f"/users/{account.user_id}/keys").status_code == 404


@pytest.mark.parametrize("way", ["page", "rest"])
def test_an_administrator_ends_one_key_and_its_tokens(alice: Client, cast: Cast, way: str) -> None:
    (key, _), (other, _) = (
        personal_keys.create_key("laptop", owner=cast.bob),
        personal_keys.create_key("cluster", owner=cast.bob),
    )
    ended, going_on = (Caller(token=tokens.issue_token(cast.bob, each)[0]) for each in (key, other))
    if way == "page":
        assert (
            alice.post(f"/users/{cast.bob.pk}/keys/{key.pk}/end").headers["Location"]
            == f"/users/{cast.bob.pk}/keys"
        )
    else:
        Caller(cast.alice)("DELETE", f"/administration/access-keys/{key.pk}")
    ended("GET", "/clusters", status=401)
    going_on("GET", "/clusters")
    noted = AuditEntry.objects.get(event="delete", entity="access-key")
    assert (noted.subject, noted.entity_name, noted.before) == (
        "alice",
        "laptop",
        {"client id": key.client_id, "user": "bob"},
    )


@pytest.mark.parametrize("way", ["page", "rest"])
def test_an_administrator_ends_all_of_somebodys_keys_and_no_others(
    alice: Client, cast: Cast, way: str
) -> None:
    for name in ("laptop", "cluster"):
        personal_keys.create_key(name, owner=cast.bob)
    personal_keys.create_key("of another", owner=cast.vera)
    if way == "page":
        assert (
            "The access keys of bob have ended (2)."
            in alice.post(f"/users/{cast.bob.pk}/keys/end", follow=True).content.decode()
        )
    else:
        assert "(2)" in Caller(cast.alice)("DELETE", f"/users/{cast.bob.pk}/access-keys")["message"]
    assert [key.name for key in PersonalKey.objects.all()] == ["of another"]
    assert (
        AuditEntry.objects.filter(event="delete", entity="access-key", subject="alice").count() == 2
    )
    personal_keys.create_key("laptop", owner=cast.bob)


def test_nobody_else_ends_them_and_nobody_those_of_who_may_more(bob: Client, cast: Cast) -> None:
    role = CustomRole.objects.create(name="Porter", permissions=["users:view", "users:edit"])
    AccessRule.objects.create(user=cast.vera, custom_role=role)
    key, _ = personal_keys.create_key("laptop", owner=cast.alice)
    vera = Client()
    vera.force_login(cast.vera)
    for client in (bob, vera):
        assert client.post(f"/users/{cast.alice.pk}/keys/end").status_code == 403
        assert client.post(f"/users/{cast.alice.pk}/keys/{key.pk}/end").status_code == 403
    assert vera.post(f"/users/{cast.bob.pk}/keys/{key.pk}/end").status_code == 404
    for path in (f"/users/{cast.alice.pk}/access-keys", f"/administration/access-keys/{key.pk}"):
        Caller(cast.vera)("DELETE", path, status=403)
    Caller(cast.bob)("GET", "/administration/access-keys", status=403)
    with pytest.raises(NotAllowed):
        personal_keys.revoke_key(key, cast.bob)
    assert PersonalKey.objects.get() == key


def test_everybodys_are_listed_over_rest_without_secrets(cast: Cast) -> None:
    (key, secret), _ = (
        personal_keys.create_key("laptop", owner=cast.bob),
        personal_keys.create_key("notebook", owner=cast.alice),
    )
    alice, at = Caller(cast.alice), "/administration/access-keys"
    assert [(each["createdBy"], each["name"]) for each in alice("GET", at)["accessKeys"]] == [
        ("alice", "notebook"),
        ("bob", "laptop"),
    ]
    for narrowed in ("?createdBy=bob&limit=1", f"?clientId={key.client_id}", "?limit=1&offset=1"):
        [access_key] = alice("GET", f"{at}{narrowed}")["accessKeys"]
        assert (
            access_key["id"],
            access_key["clientId"],
            access_key["lastLogin"],
            access_key["expiresAt"],
        ) == (
            str(key.pk),
            key.client_id,
            None,
            None,
        )
    assert alice("GET", f"{at}?limit=1")["next"] == 1
    assert alice("GET", f"{at}?createdBy=nobody") == {"accessKeys": []}
    assert secret not in str(access_key)
    assert key.secret_hash not in str(access_key)


@pytest.mark.parametrize("way", ["page", "rest"])
def test_a_password_that_an_administrator_resets_ends_the_keys_too(
    alice: Client, cast: Cast, way: str
) -> None:
    key, _ = personal_keys.create_key("laptop", owner=cast.bob)
    personal_keys.create_key("of another", owner=cast.vera)
    program = Caller(token=tokens.issue_token(cast.bob, key)[0])
    program("GET", "/clusters")
    if way == "page":
        alice.post(f"/users/{cast.bob.pk}/reset")
    else:
        Caller(cast.alice)("POST", f"/users/{cast.bob.pk}/password")
    program("GET", "/clusters", status=401)
    assert [each.user for each in PersonalKey.objects.all()] == [cast.vera]
    assert AuditEntry.objects.filter(
        event="delete", entity="access-key", entity_name="laptop", subject="alice"
    ).exists()


def test_who_came_in_with_a_password_that_was_reset_makes_no_key(cast: Cast) -> None:
    asking = User.objects.get(pk=cast.bob.pk)
    user_actions.reset_password(cast.bob, cast.alice)
    with pytest.raises(NotAllowed):
        personal_keys.create_key("laptop", owner=asking)
    assert not PersonalKey.objects.exists()


def test_who_came_in_with_a_password_that_was_reset_neither_changes_it_nor_adds_a_factor(
    cast: Cast,
) -> None:
    asking = User.objects.get(pk=cast.bob.pk)
    temporary = user_actions.reset_password(User.objects.get(pk=cast.bob.pk), cast.alice)
    with pytest.raises(NotAllowed, match="Sign in again"):
        user_actions.change_password(asking, "one of somebody else")
    with pytest.raises(NotAllowed, match="Sign in again"):
        second_factor.set_up_factor(asking, second_factor.generate_totp_secret(), "000000")
    bob = User.objects.get(pk=cast.bob.pk)
    assert bob.check_password(temporary)
    assert bob.must_change_password


@pytest.mark.django_db(transaction=True)
def test_a_key_that_is_made_while_the_password_is_reset_does_not_outlive_it() -> None:
    cast = make_cast()
    for number in range(ROUNDS):
        asking = User.objects.get(pk=cast.bob.pk)

        def make(asking: User = asking, name: str = f"key {number}") -> None:
            with contextlib.suppress(NotAllowed):
                personal_keys.create_key(name, owner=asking)

        at_once(
            make, lambda: user_actions.reset_password(User.objects.get(pk=cast.bob.pk), cast.alice)
        )
        assert not PersonalKey.objects.exists()
