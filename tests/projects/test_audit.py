"""What is recorded, of whom, from where, and never a secret."""

from contextlib import closing
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.cache import cache
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from console import tracing
from projects import audit, token_addresses
from projects.actions import create_service_account, hash_secret
from projects.audit import Event, Origin, record, redact, select_changes
from projects.models import AuditEntry, KnownAddress, PersonalKey, User
from projects.origins import OriginMiddleware
from projects.scopes import project_scope
from tests.api.calling import API, Caller
from tests.cast import PASSWORD, Cast


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    cache.clear()


def entry(**fields: Any) -> AuditEntry:
    return AuditEntry.objects.get(**fields)


def test_an_entry_says_who_did_what_to_what_and_where(cast: Cast) -> None:
    before, after = select_changes({"image": "a", "name": "x"}, {"image": "b", "name": "x"})
    record(
        Event.UPDATE,
        "environment",
        by=cast.bob,
        id=7,
        name="env",
        scope=project_scope(cast.team_a),
        before=before,
        after=after,
    )
    found = entry()
    assert (found.event, found.entity, found.entity_id, found.entity_name) == (
        "update",
        "environment",
        "7",
        "env",
    )
    assert (found.subject, found.subject_kind, found.user_id, found.scope) == (
        "bob",
        "user",
        cast.bob.pk,
        f"project:{cast.team_a.pk}",
    )
    assert (found.before, found.after, found.succeeded, found.address) == (
        {"image": "a"},
        {"image": "b"},
        True,
        None,
    )


def test_what_is_rolled_back_was_not_done(cast: Cast) -> None:
    with transaction.atomic():
        record(Event.CREATE, "thing", by=cast.bob)
        transaction.set_rollback(True)
    assert not AuditEntry.objects.exists()


def test_muster_itself_and_whoever_only_claims_to_be_somebody(cast: Cast) -> None:
    record(Event.DELETE, "thing", by=None)
    record(Event.SIGN_IN, "user", by=None, claimed="root", succeeded=False)
    assert list(AuditEntry.objects.order_by("pk").values_list("subject", "subject_kind")) == [
        ("Muster", "system"),
        ("root", "unknown"),
    ]


def test_a_service_account_and_a_personal_key_are_told_from_a_person(cast: Cast) -> None:
    account, _ = create_service_account(cast.team_a, "robot", by=cast.alice)
    record(Event.STOP, "one", by=account.user)
    cast.bob.personal_key = PersonalKey.objects.create(
        user=cast.bob, name="ci", client_id="pk-1", secret_hash=hash_secret("x")
    )
    record(Event.STOP, "two", by=cast.bob)
    assert entry(entity="one").subject_kind == "service account"
    assert entry(entity="two").subject_kind == "personal key"


def test_who_looks_as_another_is_named_too(cast: Cast) -> None:
    token = audit.origin.set(Origin())
    try:
        audit.record_impersonator(cast.alice)
        record(Event.UPDATE, "thing", by=cast.bob, text="It was so.")
    finally:
        audit.origin.reset(token)
    assert entry().text == "It was so. Done by alice, who looked as bob."


SECRETS = {
    "password": "hunter2",
    "clientSecret": "hunter2",
    "kubeconfig": "hunter2",
    "token": {"a": "hunter2"},
    "private_key": "hunter2",
    "nested": {"api-key": "hunter2", "list": [{"secret": "hunter2"}]},
    "variables": [{"name": "HF_TOKEN", "value": "hunter2"}],
    "typed": {
        "variables-0-name": ["A"],
        "variables-0-value": ["1"],
        "variables-1-name": ["HF_TOKEN"],
        "variables-1-value": ["hunter2"],
    },
    "url": "https://user:hunter2@git.example.com/a.git",
    "totp": "hunter2",
    "AccessKey": "hunter2",
}


def test_secrets_are_never_recorded_under_whatever_name(cast: Cast) -> None:
    record(
        Event.UPDATE,
        "thing",
        by=cast.bob,
        before=SECRETS,
        after=SECRETS,
        text="see https://user:hunter2@example.com",
    )
    found = AuditEntry.objects.values_list("before", "after", "text").get()
    assert "hunter2" not in str(found)
    kept = found[0] or {}
    assert kept["password"] == "changed"
    assert kept["variables"] == [{"name": "HF_TOKEN", "value": "changed"}]
    assert (kept["typed"]["variables-0-value"], kept["typed"]["variables-1-value"]) == (
        ["1"],
        "changed",
    )


def test_what_is_no_secret_stays_readable() -> None:
    plain = {
        "must_change_password": True,
        "client id": "sa-1",
        "credential": "mine",
        "secret": None,
        "token_seconds": 60,
        "gpus": "0.5",
    }
    assert redact(plain) == plain


def test_an_entry_is_bounded_whatever_it_is_given(cast: Cast) -> None:
    deep: Any = "x"
    for _ in range(50):
        deep = {"a": deep, "b": ["y" * 10_000] * 1000}
    record(
        Event.UPDATE,
        "e" * 99,
        by=cast.bob,
        name="n" * 999,
        id="i" * 99,
        after=deep | {"\x00": "\x00\ud800"},
        text="t" * 9999,
    )
    found = entry()
    assert len(str(found.after)) < 2 * audit.MAX_JSON
    assert (len(found.entity), len(found.entity_name), len(found.text)) == (32, 253, 500)


def test_a_request_says_where_it_came_from(cast: Cast) -> None:
    caller = Caller(cast.alice)
    answer = caller.raw("GET", "/audit/log?limit=5", **{"X-Request-ID": "from-the-proxy.1"})
    assert answer["X-Request-ID"] == "from-the-proxy.1"
    found = entry(event="token")
    assert (found.address, found.request_id, found.method, found.path) == (
        "127.0.0.1",
        "from-the-proxy.1",
        "GET",
        f"{API}/audit/log",
    )


@pytest.mark.parametrize("given", ["", "a" * 65, "a b", "a\u00e4", "<script>", "x;y"])
def test_an_id_that_is_not_plain_is_replaced(db: None, given: str) -> None:
    made = Client().get("/sign-in", headers={"X-Request-ID": given})["X-Request-ID"]
    assert made != given
    assert made.isalnum()


def test_every_answer_has_an_id_of_its_own(cast: Cast) -> None:
    client, request_ids = Client(), set()
    for path in ("/sign-in", "/healthz", "/nowhere", "/static/css/tokens.css", "/api/v1/projects"):
        with closing(client.get(path)) as answer:
            request_ids.add(answer["X-Request-ID"])
    assert len(request_ids) == 5


def test_under_an_event_loop_too() -> None:
    async def answer(request: HttpRequest) -> HttpResponse:
        here = audit.origin.get()
        assert here is not None
        return HttpResponse(f"{here.request_id} {here.address} {tracing.request_id.get()}")

    request = RequestFactory().get("/anything", headers={"X-Request-ID": "of-the-loop"})
    given = async_to_sync(OriginMiddleware(answer))(request)
    assert (given["X-Request-ID"], given.content) == (
        "of-the-loop",
        b"of-the-loop 127.0.0.1 of-the-loop",
    )
    assert audit.origin.get() is None


def test_pages_of_what_went_wrong_show_the_id(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(cast.bob)
    refused = client.get("/audit", headers={"X-Request-ID": "refused-1"})
    assert refused.status_code == 403
    assert b"refused-1" in refused.content
    client.force_login(cast.alice)
    assert (
        b"of-404" not in client.get("/audit/99999999", headers={"X-Request-ID": "of-404"}).content
    )
    monkeypatch.setattr("projects.views.audit.tables.render_table", lambda *_, **__: 1 / 0)
    failed = client.get("/audit", headers={"X-Request-ID": "failed-1"})
    assert failed.status_code == 500
    assert b"failed-1" in failed.content


def test_behind_a_proxy_only_its_own_word_counts(cast: Cast, settings: Any) -> None:
    def load_address() -> str | None:
        caller = Caller(cast.bob)
        caller.raw("GET", "/clusters", **{"X-Forwarded-For": "9.9.9.9, 203.0.113.7"})
        return AuditEntry.objects.filter(event="token").latest("pk").address

    assert load_address() == "127.0.0.1"
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"behind_proxy": True})
    assert load_address() == "203.0.113.7"


def test_a_token_from_a_new_address_is_recorded_once(cast: Cast) -> None:
    caller = Caller()
    body = {"grantType": "password", "username": "bob", "password": PASSWORD}
    for _ in range(3):
        caller.token = caller("POST", "/token", body)["accessToken"]
        caller("GET", "/clusters")
    assert AuditEntry.objects.filter(event="token").count() == 1
    assert KnownAddress.objects.get().user == cast.bob
    cache.clear()
    caller("GET", "/clusters")
    assert AuditEntry.objects.filter(event="token").count() == 1
    caller.client.defaults["REMOTE_ADDR"] = "203.0.113.9"
    caller("GET", "/clusters")
    assert AuditEntry.objects.filter(event="token").latest("pk").address == "203.0.113.9"


def test_known_addresses_cost_no_query(cast: Cast, django_assert_num_queries: Any) -> None:
    token = audit.origin.set(Origin(address="2001:db8::1"))
    try:
        token_addresses.record_token_use(cast.bob)
        audit.origin.set(Origin(address="2001:db8::2"))
        with django_assert_num_queries(0):
            token_addresses.record_token_use(cast.bob)
    finally:
        audit.origin.reset(token)
    assert KnownAddress.objects.get().address == "2001:db8::"


def test_the_addresses_of_one_person_are_bounded(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_addresses, "MAX_ADDRESSES", 3)
    token = audit.origin.set(None)
    try:
        for number in range(6):
            audit.origin.set(Origin(address=f"203.0.113.{number}"))
            token_addresses.record_token_use(cast.bob)
    finally:
        audit.origin.reset(token)
    assert sorted(KnownAddress.objects.values_list("address", flat=True)) == [
        "203.0.113.3",
        "203.0.113.4",
        "203.0.113.5",
    ]


def test_entries_outlive_their_subject(cast: Cast) -> None:
    user = User.objects.create(username="gone")
    record(Event.CREATE, "thing", by=user)
    user.delete()
    assert entry().subject == "gone"
