"""Personal access keys: somebody's own client ids and secrets, with which a program does what they may. Nobody else handles them."""

import secrets
from collections.abc import Sequence
from datetime import datetime

from django.db import IntegrityError, transaction

from console.errors import Clash, NotAllowed, UserError
from projects import audit
from projects.actions import a_secret, digest, require_in_time, require_name
from projects.audit import Event
from projects.models import PersonalKey, User

MOST = 20
"""Keys of one person."""


def create(name: str, *, of: User, expires_at: datetime | None = None) -> tuple[PersonalKey, str]:
    """A new key, and its secret, which is told here only. Raises Clash for a name that is taken, UserError where there are too many."""
    _require_person(of)
    require_name(name)
    secret = a_secret()
    try:
        with transaction.atomic():
            # Counted under the lock of the person's row: two at once are counted one after the other.
            User.objects.select_for_update().get(pk=of.pk)
            if len(of.personal_keys.values_list("pk")[:MOST]) >= MOST:
                raise UserError(f"You have {MOST} access keys, and there can be no more. Delete one that is not used.")
            key = PersonalKey.objects.create(
                user=of,
                name=name,
                client_id=f"{PersonalKey.PREFIX}{secrets.token_hex(8)}",
                secret_hash=digest(secret),
                expires_at=expires_at,
            )
            after = {"client id": key.client_id, "expires": expires_at.isoformat(timespec="seconds") if expires_at else "never"}
            audit.record(Event.CREATE, "access-key", by=of, id=key.pk, name=name, after=after)
    except IntegrityError:
        raise Clash(f"You have an access key {name} already. Choose another name.", field="name") from None
    return key, secret


def rotate(key: PersonalKey) -> str:
    """A new secret, told here only. The old one and the tokens got with it end now; when the key expires stays as it is."""
    require_in_time(key)
    secret = a_secret()
    key.secret_hash = digest(secret)
    with transaction.atomic():
        key.save(update_fields=["secret_hash"])
        audit.record(Event.SECRET, "access-key", by=key.user, id=key.pk, name=key.name, after={"secret": "changed"})
    return secret


def revoke(key: PersonalKey) -> None:
    """Its secret and the tokens got with it end now."""
    with transaction.atomic():
        audit.record(Event.DELETE, "access-key", by=key.user, id=key.pk, name=key.name, before={"client id": key.client_id})
        key.delete()


def of(user: User) -> Sequence[PersonalKey]:
    """Somebody's keys, by name."""
    return list(PersonalKey.objects.filter(user=user).order_by("name")[:MOST])


def _require_person(user: User) -> None:
    if user.is_service:
        raise NotAllowed("A service account has a secret of its own and no personal access keys.")
