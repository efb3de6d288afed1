"""Personal access keys: client ids and secrets with which a program acts as its owner.

Only the owner makes them and gets their secrets; administrators see that they exist, and revoke
them.
"""

import secrets
from collections.abc import Sequence
from datetime import datetime

from django.db import IntegrityError, transaction
from django.http import Http404

from console.errors import Clash, NotAllowed, UserError
from projects import access, audit, granting, present_password
from projects.actions import generate_secret, hash_secret, require_name, require_not_expired
from projects.audit import Event
from projects.models import PersonalKey, User
from projects.permissions import Entity, Verb

MAX_KEYS = 20
"""Keys of one person."""
KEY_IS_GONE = "This access key is not there any more."


def create_key(
    name: str, *, owner: User, expires_at: datetime | None = None
) -> tuple[PersonalKey, str]:
    """Create a key and return it with its secret, which is not stored.

    Raises Clash for a name that is taken, and UserError where there are too many.
    """
    _require_person(owner)
    require_name(name)
    secret = generate_secret()
    try:
        with transaction.atomic():
            # Under the lock of the person's row two at once are counted one after the other, too.
            present_password.lock_user(owner)
            if len(owner.personal_keys.values_list("pk")[:MAX_KEYS]) >= MAX_KEYS:
                raise UserError(
                    f"You have {MAX_KEYS} access keys, and there can be no more. Delete one that "
                    "is not used."
                )
            key = PersonalKey.objects.create(
                user=owner,
                name=name,
                client_id=f"{PersonalKey.PREFIX}{secrets.token_hex(8)}",
                secret_hash=hash_secret(secret),
                expires_at=expires_at,
            )
            after = {
                "client id": key.client_id,
                "expires": expires_at.isoformat(timespec="seconds") if expires_at else "never",
            }
            audit.record(Event.CREATE, "access-key", by=owner, id=key.pk, name=name, after=after)
    except IntegrityError:
        raise Clash(
            f"You have an access key {name} already. Choose another name.", field="name"
        ) from None
    return key, secret


def rotate_secret(key: PersonalKey) -> str:
    """Replace a key's secret and return the new one, which is not stored.

    The old secret and its tokens end now; the key's expiry stays.
    """
    require_not_expired(key)
    secret = generate_secret()
    key.secret_hash = hash_secret(secret)
    with transaction.atomic():
        # An update and no save: the key may have been revoked meanwhile.
        if not PersonalKey.objects.filter(pk=key.pk).update(secret_hash=key.secret_hash):
            raise Http404(KEY_IS_GONE)
        audit.record(
            Event.SECRET,
            "access-key",
            by=key.user,
            id=key.pk,
            name=key.name,
            after={"secret": "changed"},
        )
    return secret


def revoke_key(key: PersonalKey, by: User) -> None:
    """Delete a key; its secret and tokens end now.

    Raises NotAllowed where `by` is neither the owner nor may revoke other people's keys.
    """
    if by != key.user:
        _require_may_revoke(key.user, by)
    if not _delete_key(key, by):
        raise Http404(KEY_IS_GONE)


def revoke_all_keys(user: User, by: User) -> int:
    """Delete all keys of a user for an administrator; return how many there were.

    The user can make others: the password stays.
    """
    _require_may_revoke(user, by)
    return delete_all_keys(user, by)


def delete_all_keys(user: User, by: User) -> int:
    """Delete all keys of a user without a permission check; return how many there were."""
    with transaction.atomic():
        return sum(
            _delete_key(key, by)
            for key in PersonalKey.objects.filter(user=user).select_related("user").order_by("name")
        )


def list_keys(user: User) -> Sequence[PersonalKey]:
    """Return a user's keys, by name."""
    return list(PersonalKey.objects.filter(user=user).order_by("name")[:MAX_KEYS])


def _delete_key(key: PersonalKey, by: User) -> bool:
    """Delete a key and record it; tell whether it was still there."""
    with transaction.atomic():
        # Of two who revoke it at once, only the one who deletes the row records it.
        if not PersonalKey.objects.filter(pk=key.pk).delete()[0]:
            return False
        before = {"client id": key.client_id} | (
            {} if by == key.user else {"user": key.user.username}
        )
        audit.record(Event.DELETE, "access-key", by=by, id=key.pk, name=key.name, before=before)
    return True


def _require_person(user: User) -> None:
    if user.is_service:
        raise NotAllowed("A service account has a secret of its own and no personal access keys.")


def _require_may_revoke(user: User, by: User) -> None:
    access.require(by, Verb.EDIT, Entity.USERS)
    _require_person(user)
    granting.require_not_above(user, by)
