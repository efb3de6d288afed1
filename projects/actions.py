"""What can be done to service accounts: programs' ways in. Their secrets are shown once, and kept
as digests only.
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
"""After how many days a secret may end, in words."""


def create_service_account(
    place: Project | Scope,
    name: str,
    *,
    by: User,
    role: str = L2,
    expires_at: datetime | None = None,
) -> tuple[ServiceAccount, str]:
    """A new service account of a scope with its first access rule there, and its secret, which is
    told here only. "" is no role as yet.

    Raises NotAllowed or Http404 for somebody who may not, Clash for a name that is taken, UserError
    for one that cannot be.
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
        raise Clash(_describe_taken_name(scope, name), field="name") from None
    return account, secret


def rotate_secret(account: ServiceAccount, by: User) -> str:
    """A new secret, told here only. The old one and the tokens got with it end now; when it expires
    stays as it is.

    Raises NotAllowed also for who may not do all that the account may: with its secret they would.
    """
    access.require(by, Verb.EDIT, Entity.SERVICE_ACCOUNTS, account.scope)
    granting.require_not_above(account.user, by)
    require_not_expired(account)
    secret = generate_secret()
    account.secret_hash, account.rotated_at = hash_secret(secret), timezone.now()
    with transaction.atomic():
        account.save(update_fields=["secret_hash", "rotated_at"])
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


def delete_service_account(account: ServiceAccount, by: User) -> None:
    """Its secret and tokens end now. Its name stays in the history of what it did, and can be given
    again.
    """
    access.require(by, Verb.DELETE, Entity.SERVICE_ACCOUNTS, account.scope)
    end_service_account(account, by)


def end_service_account(account: ServiceAccount, by: User) -> None:
    """The same where it goes with what it belongs to."""
    with transaction.atomic():
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
        account.delete()
        granting.end_rules(
            AccessRule.objects.filter(user=user).select_related("user", "custom_role"), by
        )
        user.is_active = False
        user.username = f"{user.username[:100]} (deleted {account.client_id})"
        user.save(update_fields=["is_active", "username"])


def require_name(name: str) -> None:
    """Raises UserError for what cannot be the name of a service account or a key."""
    if not _NAME.fullmatch(name):
        raise UserError(
            (
                "The name must be at most 40 letters, digits, spaces, dots, dashes and "
                "underscores, and start and end with a letter or digit."
            ),
            field="name",
        )


def require_not_expired(key: ServiceAccount | PersonalKey) -> None:
    """Raises UserError for one whose time is over: a new secret would open nothing."""
    if key.is_expired:
        raise UserError(
            f"{key.name} has expired: a new secret would open nothing. Delete it, and make a new "
            "one."
        )


def parse_expiry(days: str) -> datetime | None:
    """When something ends that lives so many days from now, one of LIVES."""
    return timezone.now() + timedelta(days=int(days)) if days else None


def generate_secret() -> str:
    return secrets.token_urlsafe(32)


def hash_secret(secret: str) -> str:
    """How a secret is kept. It is 256 random bits, which nobody can guess, so a fast digest is
    enough.
    """
    return f"sha256${hashlib.sha256(secret.encode(errors='replace')).hexdigest()}"


def is_secret_of(account: ServiceAccount | PersonalKey, secret: str) -> bool:
    """Whether this is the account's, or the key's, secret."""
    return constant_time_compare(account.secret_hash, hash_secret(secret))


def _make_user_name(scope: Scope, name: str, client_id: str) -> str:
    """No person can have a name with a slash, so nobody can pass for a service account; and no
    project one with a colon.
    """
    wanted = f"{_get_scope_name(scope)}/{name}"
    # A department may have got the name that another one had when its service account was made.
    return f"{wanted} ({client_id})" if User.objects.filter(username=wanted).exists() else wanted


def _get_scope_name(scope: Scope) -> str:
    if scope == TENANT:
        return "all:all"
    # A floor above: a foreign key knows it by name only, and so does this.
    model = apps.get_model(
        "clusters" if scope.level is Level.CLUSTER else "projects", scope.level.value
    )
    found = model.objects.values_list("name", flat=True).get(pk=scope.id)
    return str(found) if scope.level is Level.PROJECT else f"{scope.level}:{found}"


def _describe_taken_name(scope: Scope, name: str) -> str:
    where = f"Project {_get_scope_name(scope)}" if scope.level is Level.PROJECT else "This scope"
    return f"{where} has a service account {name} already. Choose another name."


def _format_moment(moment: datetime | None) -> str:
    return "never" if moment is None else moment.isoformat(timespec="seconds")
