"""Actions on service accounts, which programs sign in with.

A secret is shown once and stored as a digest only.
"""

import hashlib
import re
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.apps import apps
from django.db import IntegrityError, transaction
from django.http import Http404
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from console.errors import Clash, UserError
from projects import access, audit, granting, scope_choices
from projects.audit import Event
from projects.models import AccessRule, PersonalKey, Project, ServiceAccount, User
from projects.permissions import L2, Entity, Verb
from projects.scopes import TENANT, Level, Scope, project_scope

_NAME = re.compile(r"[A-Za-z0-9]([-._ A-Za-z0-9]{0,38}[A-Za-z0-9])?")
LIFETIMES: Mapping[str, str] = {
    "": "Never",
    "30": "In 30 days",
    "90": "In 90 days",
    "365": "In a year",
}
"""Days after which a secret may expire, with the words of the choice; "" is never."""


def create_service_account(
    place: Project | Scope,
    name: str,
    *,
    by: User,
    role: str = L2,
    expires_at: datetime | None = None,
) -> tuple[ServiceAccount, str]:
    """Create a service account with its first access rule, and return its secret.

    The secret is not stored and cannot be read again. With an empty `role` the account gets no
    access rule.

    Raises NotAllowed or Http404 where `by` may not do this, Clash for a name that is taken, and
    UserError for an invalid name.
    """
    scope = place if isinstance(place, Scope) else project_scope(place)
    access.require(by, Verb.CREATE, Entity.SERVICE_ACCOUNTS, scope)
    if not scope_choices.scope_exists(scope):
        raise Http404("There is no such scope among those that you may see.")
    require_name(name)
    secret, client_id = generate_secret(), f"sa-{secrets.token_hex(8)}"
    if ServiceAccount.objects.at(scope).filter(name=name).exists():
        raise Clash(_describe_taken_name(scope, name), field="name")
    try:
        with transaction.atomic():
            scope_choices.require_scope(scope)
            user = User.objects.create_user(
                _make_user_name(scope, name, client_id), is_service=True
            )
            if role:
                granting.grant_role(role, to=user, scope=scope, by=by)
            account = ServiceAccount.objects.create(
                **scope.columns,
                name=name,
                user=user,
                client_id=client_id,
                secret_hash=hash_secret(secret),
                expires_at=expires_at,
                created_by=by,
            )
            after = {"client id": client_id, "role": role, "expires": _format_moment(expires_at)}
            audit.record(
                Event.CREATE,
                "service-account",
                by=by,
                id=account.pk,
                name=name,
                scope=scope,
                after=after,
            )
    except IntegrityError:
        # Two at once pass the check above; the constraint of the database refuses the second.
        raise Clash(_describe_taken_name(scope, name), field="name") from None
    return account, secret


def rotate_secret(account: ServiceAccount, by: User) -> str:
    """Replace the account's secret and return the new one, which is not stored.

    The old secret and its tokens end now; the expiry date stays. Raises NotAllowed also where the
    account may do more than `by` may: the secret would give it to them.
    """
    access.require(by, Verb.EDIT, Entity.SERVICE_ACCOUNTS, account.scope)
    granting.require_not_above(account.user, by)
    require_not_expired(account)
    secret = generate_secret()
    account.secret_hash, account.rotated_at = hash_secret(secret), timezone.now()
    with transaction.atomic():
        # An update and no save: the account may have been deleted meanwhile.
        if not ServiceAccount.objects.filter(pk=account.pk).update(
            secret_hash=account.secret_hash, rotated_at=account.rotated_at
        ):
            raise Http404("This service account is not there any more.")
        audit.record(
            Event.SECRET,
            "service-account",
            by=by,
            id=account.pk,
            name=account.name,
            scope=account.scope,
            after={"secret": "changed"},
        )
    return secret


def set_enabled(account: ServiceAccount, enabled: bool, by: User) -> None:
    """Enable or disable a service account; a disabled one gets no token, and its tokens stop.

    Its secret, its rules and the workloads that it launched stay. Raises NotAllowed also where an
    account is enabled that may do more than `by` may, and Http404 for one that was deleted.
    """
    access.require(by, Verb.EDIT, Entity.SERVICE_ACCOUNTS, account.scope)
    if enabled:
        granting.require_not_above(account.user, by)
    with transaction.atomic():
        # Only where it changes something: what is so already is no entry of the audit log.
        changed = ServiceAccount.objects.filter(pk=account.pk, is_enabled=not enabled).update(
            is_enabled=enabled
        )
        if changed:
            audit.record(
                Event.UPDATE,
                "service-account",
                by=by,
                id=account.pk,
                name=account.name,
                scope=account.scope,
                before={"enabled": not enabled},
                after={"enabled": enabled},
            )
        elif not ServiceAccount.objects.filter(pk=account.pk).exists():
            raise Http404("This service account is not there any more.")
    account.is_enabled = enabled


def delete_service_account(account: ServiceAccount, by: User) -> None:
    """Delete a service account; its secret and tokens end now.

    Its name stays in the history of what it did, and is free for another account.
    """
    access.require(by, Verb.DELETE, Entity.SERVICE_ACCOUNTS, account.scope)
    end_service_account(account, by)


def end_service_account(account: ServiceAccount, by: User) -> None:
    """Delete a service account without a permission check, for one that goes with its scope."""
    with transaction.atomic():
        # Of two who delete it at once, only the one who deletes the row records it.
        if not ServiceAccount.objects.filter(pk=account.pk).delete()[0]:
            return
        user = account.user
        before = {"client id": account.client_id}
        audit.record(
            Event.DELETE,
            "service-account",
            by=by,
            id=account.pk,
            name=account.name,
            scope=account.scope,
            before=before,
        )
        granting.end_rules(
            AccessRule.objects.filter(user=user)
            .select_related("user", "custom_role")
            .select_for_update(of=("self",)),
            by,
        )
        user.is_active = False
        user.username = f"{user.username[:100]} (deleted {account.client_id})"
        user.save(update_fields=["is_active", "username"])


def require_name(name: str) -> None:
    """Check the name of a service account or a key. Raises UserError."""
    if not _NAME.fullmatch(name):
        raise UserError(
            (
                "The name must be at most 40 letters, digits, spaces, dots, dashes and "
                "underscores, and start and end with a letter or digit."
            ),
            field="name",
        )


def require_not_expired(key: ServiceAccount | PersonalKey) -> None:
    """Check that a key or account has not expired. Raises UserError.

    A new secret of an expired one would open nothing.
    """
    if key.is_expired:
        raise UserError(
            f"{key.name} has expired: a new secret would open nothing. Delete it, and make a new "
            "one."
        )


def parse_expiry(days: str) -> datetime | None:
    """Return the moment so many days from now; None for "". `days` is a key of LIFETIMES."""
    return timezone.now() + timedelta(days=int(days)) if days else None


def generate_secret() -> str:
    return secrets.token_urlsafe(32)


def hash_secret(secret: str) -> str:
    """Return the digest that is stored of a secret.

    A secret is 256 random bits, which nobody can guess, so a fast digest is enough.
    """
    return f"sha256${hashlib.sha256(secret.encode(errors='replace')).hexdigest()}"


def is_secret_of(account: ServiceAccount | PersonalKey, secret: str) -> bool:
    """Tell whether this is the secret of the account or key."""
    return constant_time_compare(account.secret_hash, hash_secret(secret))


def _make_user_name(scope: Scope, name: str, client_id: str) -> str:
    """Return the name of the user that stands for a service account.

    No person's name can have a slash, and no project's name a colon, so nobody can pass for a
    service account.
    """
    preferred = f"{_get_scope_name(scope)}/{name}"
    # A department may have got the name that another one had when its service account was made.
    return (
        f"{preferred} ({client_id})"
        if User.objects.filter(username=preferred).exists()
        else preferred
    )


def _get_scope_name(scope: Scope) -> str:
    if scope == TENANT:
        return "all:all"
    # `clusters` is above this app and must not be imported here, so its model is found by name.
    model = apps.get_model(
        "clusters" if scope.level is Level.CLUSTER else "projects", scope.level.value
    )
    name = model.objects.values_list("name", flat=True).get(pk=scope.id)
    return str(name) if scope.level is Level.PROJECT else f"{scope.level}:{name}"


def _describe_taken_name(scope: Scope, name: str) -> str:
    where = f"Project {_get_scope_name(scope)}" if scope.level is Level.PROJECT else "This scope"
    return f"{where} has a service account {name} already. Choose another name."


def _format_moment(moment: datetime | None) -> str:
    return "never" if moment is None else moment.isoformat(timespec="seconds")
