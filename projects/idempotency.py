"""Keys that make a repeated request do its work once: begun, finished, forgotten.

Per user, for KEEP_FOR: the newest MAX_KEYS, and the answers of the newest MAX_ANSWERS. Only what
was carried out is kept: a refusal has made nothing, and frees its key.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.crypto import salted_hmac

from console.errors import Clash, UserError
from projects.models import IdempotentRequest, User

State = IdempotentRequest.State

KEEP_FOR = timedelta(hours=24)
MAX_KEYS = 10_000
"""Kept requests of one user, and those that run; the oldest that have ended go first."""
MAX_ANSWERS = 1000
"""Kept answers of one user: they take the room, so they go before their keys do."""
RUNS_AT_MOST = timedelta(minutes=5)
"""How long after its begin a request without an answer counts as running.

After that its process was killed. No request that creates something takes as long.
"""
MAX_BODY_CHARS = 64 << 10
"""Characters of an answer that is kept."""
BATCH = 1000
TRIMMED_AT_ONCE = 100
"""Answers that a new request drops at most; it adds one."""
MAX_BATCHES = 100
"""Rows that one statement deletes, and statements of one run."""
RETRY_SECONDS = 2
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


class StillRunning(Clash):
    """The first request with this key has no answer yet. `wait` is in seconds."""

    wait = RETRY_SECONDS


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The answer of an earlier request: its status, and its body as JSON."""

    status: int
    body: str


def begin_request(user: User, key: str, request: str) -> IdempotentRequest | KeptAnswer:
    """Claim a key for a request, or return the answer that the request had before.

    `request` is the whole request as text. Raises UserError for what is no key, and Clash where the
    key was used for another request, where that is still running, and where its end is unknown.
    """
    if not _KEY.fullmatch(key):
        raise UserError(
            "Idempotency-Key must be 1 to 255 ASCII characters without spaces, as a UUID is.",
            field="Idempotency-Key",
        )
    digest, fingerprint = _hash("key", key), _hash("request", request)
    now = timezone.now()
    with transaction.atomic():
        rows = IdempotentRequest.objects.filter(user=user)
        rows.filter(key=digest, created_at__lt=now - KEEP_FOR).delete()
        row, is_new = IdempotentRequest.objects.get_or_create(
            user=user, key=digest, defaults={"fingerprint": fingerprint}
        )
        if is_new:
            _trim_requests(user, now)
            return row
    return _get_answer(row, fingerprint)


def finish_request(row: IdempotentRequest, status: int, body: str) -> None:
    """Keep the answer of a request that was carried out."""
    IdempotentRequest.objects.filter(pk=row.pk).update(
        state=State.DONE, status=status, body=body if len(body) <= MAX_BODY_CHARS else ""
    )


def free_key(row: IdempotentRequest) -> None:
    """Forget a request that was refused, so that its key can be used again."""
    IdempotentRequest.objects.filter(pk=row.pk).delete()


def mark_unknown(row: IdempotentRequest) -> None:
    """Note that nobody knows whether a request was carried out."""
    IdempotentRequest.objects.filter(pk=row.pk).update(state=State.UNKNOWN)


def delete_old_requests() -> None:
    """Delete requests that were kept for KEEP_FOR."""
    old = IdempotentRequest.objects.filter(created_at__lt=timezone.now() - KEEP_FOR)
    for _ in range(MAX_BATCHES):
        ids = list(old.order_by("created_at").values_list("pk", flat=True)[:BATCH])
        if not ids:
            return
        IdempotentRequest.objects.filter(pk__in=ids).delete()


def _get_answer(row: IdempotentRequest, fingerprint: str) -> KeptAnswer:
    """Return the kept answer of a request. Raises Clash where there is none for this one."""
    if row.fingerprint != fingerprint:
        raise Clash(
            "This Idempotency-Key was used for another request within the last 24 hours. Give "
            "each request a key of its own, and the same one only where it is repeated as it was.",
            field="Idempotency-Key",
        )
    if row.state == State.DONE and row.body:
        return KeptAnswer(row.status or 200, row.body)
    if row.state == State.DONE:
        raise Clash(
            "The request with this Idempotency-Key was carried out. Its answer is not kept any "
            "more, or was too long to be: GET what it made.",
            field="Idempotency-Key",
        )
    if row.state == State.RUNNING and timezone.now() - row.created_at < RUNS_AT_MOST:
        raise StillRunning(
            "The first request with this Idempotency-Key has no answer yet. Repeat this one in a "
            "moment: it gets the same answer.",
            field="Idempotency-Key",
        )
    raise Clash(
        "The first request with this Idempotency-Key was cut off, and it is not known whether it "
        "was carried out. Look whether what it makes is there; if not, send it with another key.",
        field="Idempotency-Key",
    )


def _trim_requests(user: User, now: datetime) -> None:
    """Drop the oldest answers of a user that are too many, and then the oldest keys.

    A request that runs keeps its key: without it the same one would be carried out twice.
    """
    rows = IdempotentRequest.objects.filter(user=user)
    keys = rows.order_by("-created_at", "-id").values_list("pk", flat=True)
    late = list(keys[MAX_ANSWERS : MAX_ANSWERS + TRIMMED_AT_ONCE])
    if late:
        rows.filter(pk__in=late).exclude(body="").update(body="")
    surplus = list(keys[MAX_KEYS : 2 * MAX_KEYS])
    if surplus:
        running = Q(state=State.RUNNING, created_at__gt=now - RUNS_AT_MOST)
        rows.filter(pk__in=surplus).exclude(running).delete()


def _hash(purpose: str, text: str) -> str:
    """Return a digest with the installation's key: a body may hold a secret that can be guessed."""
    salt = f"muster.idempotency.{purpose}"
    return salted_hmac(salt, text, algorithm="sha256").hexdigest()
