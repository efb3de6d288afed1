"""Secrets are in clear nowhere: in no column of any table, no log line, no page, no answer of the
API, and not in the audit log.
"""

import base64
import binascii
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from allauth.mfa.totp.internal import auth as totp
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client

from clusters.models import Cluster
from environments.models import Credential
from projects import personal_keys, second_factor, user_actions
from projects.actions import create_service_account, rotate_secret
from projects.models import AuditEntry, User
from tests.api.calling import Caller
from tests.cast import NOWHERE, Cast
from tests.console.addresses import ASYNC, EVERY, STREAMS

MARK = "k9MarkedSecretOfMuster"
"""Part of every secret that is typed; the others are made here, and known from what told them."""
TYPED: dict[str, dict[str, str]] = {
    "registry": {
        "server": "registry.example.com",
        "username": "robot",
        "password": f"{MARK}-registry",
    },
    "access-key": {"access_key_id": "AKIA1", "secret_key": f"{MARK}-access-key"},
    "password": {"username": "robot", "password": f"{MARK}-password"},
    "ssh-key": {
        "private_key": (
            f"-----BEGIN OPENSSH PRIVATE KEY-----\n{MARK}\n-----END OPENSSH PRIVATE KEY-----"
        ),
        "known_hosts": "",
    },
    "generic": {"keys-0-key": "API", "keys-0-value": f"{MARK}-generic"},
}


@dataclass
class SecretLog:
    """Secrets that Muster made, and what was answered while they were."""

    made: list[str] = field(default_factory=lambda: [MARK])
    answers: list[tuple[str, str]] = field(default_factory=list)

    def of(self, path: str, answer: Any) -> None:
        self.answers.append((path, answer.content.decode(errors="replace")))

    def found_in(self, text: str) -> list[str]:
        """Which of them are in it, as they are or as base64 would have them."""
        return [
            secret
            for secret in self.made
            if secret in text or any(part in text for part in _list_encodings(secret))
        ]


def _list_encodings(secret: str) -> Iterator[str]:
    """The letters of its base64 at each of three offsets, and its hexadecimal digits.

    A letter is 6 bits. Those that hold bits of a neighbour, too, are left out, and no others: a few
    letters of a short secret stand in long texts by chance.
    """
    content = secret.encode()
    for offset in range(3):
        first, end = -(-8 * offset // 6), 8 * (offset + len(content)) // 6
        yield base64.b64encode(b"\x00" * offset + content).decode()[first:end]
    yield binascii.hexlify(secret.encode()).decode()


@pytest.fixture
def secret_log(cast: Cast, caplog: pytest.LogCaptureFixture) -> SecretLog:
    """An installation in which every kind of secret was made, typed, mistyped and changed."""
    caplog.set_level(logging.DEBUG)
    log, alice = SecretLog(), Client(raise_request_exception=False)
    alice.force_login(cast.alice)
    for kind, values in TYPED.items():
        for name in (f"cred-{kind}", ""):
            # Without a name it is refused, and the form comes back.
            log.of(
                kind,
                alice.post(f"/credentials/new/{kind}", {"name": name, "scope": "tenant", **values}),
            )
    assert set(Credential.objects.values_list("kind", flat=True)) == set(TYPED)
    kubeconfig = NOWHERE.replace("token: none", f"token: {MARK}-cluster")
    alice.post("/clusters/new", {"name": "marked", "way": "kubeconfig", "kubeconfig": kubeconfig})
    log.of(
        "API",
        Caller(cast.alice).raw(
            "POST", "/clusters", {"name": "broken", "kubeconfig": f"{kubeconfig}\n  : [ {MARK}"}
        ),
    )
    _people(cast, log)
    client = Client()
    log.of("sign-in", client.post("/sign-in", {"username": "bob", "password": f"{MARK}-wrong"}))
    for body in ({"username": "bob", "password": MARK}, {"clientID": "sa-1", "clientSecret": MARK}):
        grant = "password" if "username" in body else "client_credentials"
        log.of("token", Caller().raw("POST", "/token", {"grantType": grant, **body}))
    Caller(token=f"{MARK}.{MARK}.{MARK}").raw("GET", "/clusters")
    return log


def _people(cast: Cast, log: SecretLog) -> None:
    fresh = User(username="fresh")
    log.made += [
        user_actions.create_user(fresh, cast.alice),
        user_actions.reset_password(fresh, cast.alice),
    ]
    user_actions.change_password(fresh, f"{MARK}-own-password")
    account, secret = create_service_account(cast.team_a, "robot", by=cast.alice)
    log.made += [secret, rotate_secret(account, cast.alice)]
    key, secret = personal_keys.create_key("ci", owner=cast.bob)
    log.made += [secret, personal_keys.rotate_secret(key)]
    factor = second_factor.generate_totp_secret()
    log.made += [factor]
    # The code of now: that of before, which is good as well, may be over in a moment.
    _, counter, _ = totp.yield_hotp_counters_from_time()
    code = totp.format_hotp_value(totp.hotp_value(factor, counter))
    log.made += list(second_factor.set_up_factor(cast.vera, factor, code))


def test_no_column_of_any_table_has_one(secret_log: SecretLog) -> None:
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            for row in cursor.fetchall():
                text = " ".join(
                    bytes(each).decode(errors="replace")
                    if isinstance(each, bytes | memoryview)
                    else str(each)
                    for each in row
                )
                assert not secret_log.found_in(text), f"{table}: {text[:300]}"


def test_no_session_has_one(secret_log: SecretLog) -> None:
    assert not secret_log.found_in(
        str([session.get_decoded() for session in Session.objects.all()])
    )


def test_no_log_line_has_one(secret_log: SecretLog, caplog: pytest.LogCaptureFixture) -> None:
    records = caplog.get_records("setup")
    assert len(records) > 5
    lines = [f"{caplog.handler.format(record)} {record.args}" for record in records]
    assert not secret_log.found_in("\n".join(lines))


def test_no_answer_to_who_typed_one_repeats_it(secret_log: SecretLog) -> None:
    for path, text in secret_log.answers:
        assert not secret_log.found_in(text), path


def test_no_page_and_no_answer_of_the_api_has_one(secret_log: SecretLog, cast: Cast) -> None:
    client, caller = Client(raise_request_exception=False), Caller(cast.alice)
    client.force_login(cast.alice)
    paths = [route for name, route in _plain_routes()]
    for key in Credential.objects.values_list("pk", flat=True):
        paths += [
            f"credentials/{key}",
            f"credentials/{key}/edit",
            f"credentials/{key}/copy",
            f"credentials/{key}/delete",
        ]
    paths += [f"clusters/{key}{end}" for key in _clusters() for end in ("", "/edit", "/remove")]
    paths += [f"audit/{key}" for key in AuditEntry.objects.values_list("pk", flat=True)]
    page_count = 0
    for path in paths:
        headers = {"authorization": f"Bearer {caller.token}"} if path.startswith("api/") else {}
        answer = client.get(f"/{path}", headers=headers)
        text = b"".join(answer).decode(errors="replace")
        page_count += answer.status_code == 200
        assert not secret_log.found_in(text), path
    assert page_count > len(paths) / 2


def test_what_is_recorded_says_that_they_changed_and_not_to_what(secret_log: SecretLog) -> None:
    entries = list(AuditEntry.objects.values())
    assert not secret_log.found_in(json.dumps(entries, default=str))
    assert {"credential", "cluster", "user", "service-account", "access-key"} <= {
        entry["entity"] for entry in entries
    }


def test_what_is_encrypted_can_be_read_with_the_key_only(secret_log: SecretLog) -> None:
    assert MARK in Credential.objects.filter(kind="password")[0].secret
    with connection.cursor() as cursor:
        cursor.execute("SELECT secret FROM environments_credential")
        stored = [row[0] for row in cursor.fetchall()]
    assert all(str(each).startswith("gAAAA") for each in stored), "Fernet tokens begin so"
    assert all(key not in str(stored) for key in settings.ENCRYPTION_KEYS)


def _plain_routes() -> Iterator[tuple[str, str]]:
    for name, address in EVERY.items():
        if (
            not address.arguments
            and name not in ASYNC | STREAMS | {"api-not-there"}
            and "(" not in address.route
        ):
            yield name, address.route


def _clusters() -> list[Any]:
    return list(Cluster.objects.values_list("pk", flat=True))
