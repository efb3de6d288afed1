"""What can be done to users and their roles. Who may is decided here, as is what would leave nobody in charge."""

import secrets

from django.db import transaction

from console.errors import Clash, UserError
from projects import access
from projects.access import Action
from projects.models import Membership, Project, User

_LETTERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without those that look like others: a temporary password is read out and typed."""


def create_user(user: User, by: User) -> str:
    """Save a new local user with a temporary password, which is told here only and has to be changed at the first sign-in."""
    access.administrator(by)
    return _give_password(user)


def reset_password(user: User, by: User) -> str:
    """A new temporary password, told here only. The user's sessions end, as the old password does."""
    access.administrator(by)
    if user.is_service:
        raise UserError("This is a service account; it has no password. Its project's page makes a new secret for it.")
    return _give_password(user)


def change_password(user: User, password: str) -> None:
    """The user's own choice. Their sessions elsewhere end."""
    user.set_password(password)
    user.must_change_password = False
    user.save(update_fields=["password", "must_change_password"])


def set_active(user: User, active: bool, by: User) -> None:
    """Let a user in, or keep them out, from now on. Raises UserError where nobody would be left in charge."""
    access.administrator(by)
    with transaction.atomic():
        in_charge = list(User.objects.select_for_update().filter(is_superuser=True, is_active=True).values_list("pk", flat=True))
        if not active and user == by:
            raise UserError("You cannot deactivate yourself. Ask another administrator to do it.")
        if not active and in_charge == [user.pk]:
            raise UserError("This is the only administrator. Make somebody else one first.")
        user.is_active = active
        user.save(update_fields=["is_active"])


def give_role(project: Project, user: User, role: str, by: User) -> None:
    """Somebody new in a project. Raises Clash for one who has a role there already."""
    access.require(by, Action.MANAGE, project.pk)
    made = Membership.objects.get_or_create(project=project, user=user, defaults={"role": role})[1]
    if not made:
        raise Clash(f"{user} has a role in this project already. Change it in the list.", field="username")


def change_role(membership: Membership, role: str, by: User) -> None:
    """Another role in the same project."""
    access.require(by, Action.MANAGE, membership.project_id)
    membership.role = role
    membership.save(update_fields=["role"])


def take_role(membership: Membership, by: User) -> None:
    """The project is not there for them any more. Their workloads stay with the project."""
    access.require(by, Action.MANAGE, membership.project_id)
    membership.delete()


def _give_password(user: User) -> str:
    password = "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(4))
    user.set_password(password)
    user.must_change_password = True
    user.save()
    return password
