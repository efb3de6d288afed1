"""What can be done to service accounts: programs' ways in. Their secrets are shown once, and kept as digests only."""

import hashlib
import re
import secrets

from django.db import IntegrityError, transaction
from django.utils.crypto import constant_time_compare

from console.errors import Clash, UserError
from projects import access
from projects.access import Action
from projects.models import Membership, Project, Role, ServiceAccount, User

_NAME = re.compile(r"[A-Za-z0-9]([-._ A-Za-z0-9]{0,38}[A-Za-z0-9])?")


def create_service_account(project: Project, name: str, *, by: User, role: str = Role.MEMBER) -> tuple[ServiceAccount, str]:
    """A new service account of a project, and its secret, which is told here only.

    Raises NotAllowed or Http404 for somebody who may not, Clash for a name that is taken, UserError for one that cannot be.
    """
    access.require(by, Action.MANAGE, project.pk)
    if not _NAME.fullmatch(name):
        raise UserError(
            "The name must be at most 40 letters, digits, spaces, dots, dashes and underscores, and start and end with a letter or digit.",
            field="name",
        )
    if role not in Role.values:
        raise UserError(f"The role must be one of {', '.join(Role.values)}.", field="role")
    secret, client_id = secrets.token_urlsafe(32), f"sa-{secrets.token_hex(8)}"
    try:
        with transaction.atomic():
            # No person can have a name with a slash, so nobody can pass for a service account.
            user = User.objects.create_user(f"{project.name}/{name}", is_service=True)
            Membership.objects.create(user=user, project=project, role=role)
            account = ServiceAccount.objects.create(
                name=name, project=project, user=user, client_id=client_id, secret_hash=digest(secret), created_by=by
            )
    except IntegrityError:
        raise Clash(f"Project {project.name} has a service account {name} already. Choose another name.", field="name") from None
    return account, secret


def rotate_secret(account: ServiceAccount, by: User) -> str:
    """A new secret, told here only. The old one and the tokens got with it end now."""
    access.require(by, Action.MANAGE, account.project_id)
    secret = secrets.token_urlsafe(32)
    account.secret_hash = digest(secret)
    account.save(update_fields=["secret_hash"])
    return secret


def delete_service_account(account: ServiceAccount, by: User) -> None:
    """Its secret and tokens end now. Its name stays in the history of what it did, and can be given again."""
    access.require(by, Action.MANAGE, account.project_id)
    with transaction.atomic():
        user = account.user
        account.delete()
        user.memberships.all().delete()
        user.is_active = False
        user.username = f"{user.username} (deleted {account.client_id})"
        user.save(update_fields=["is_active", "username"])


def digest(secret: str) -> str:
    """How a secret is kept. It is 256 random bits, which nobody can guess, so a fast digest is enough."""
    return f"sha256${hashlib.sha256(secret.encode(errors='replace')).hexdigest()}"


def is_secret_of(account: ServiceAccount, secret: str) -> bool:
    """Whether this is the account's secret."""
    return constant_time_compare(account.secret_hash, digest(secret))
