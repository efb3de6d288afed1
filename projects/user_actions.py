"""Actions on users and their project roles.

Permissions are checked here, and that a system administrator remains.
"""

import secrets

from django.apps import apps
from django.contrib.auth.hashers import make_password
from django.db import IntegrityError, models, transaction

from console.errors import Clash, UserError
from projects import (
    access,
    audit,
    granting,
    personal_keys,
    present_password,
    sessions,
    system_administrators,
    user_names,
)
from projects.audit import Event
from projects.models import AccessRule, Project, User
from projects.permissions import SYSTEM, Entity, Verb
from projects.scopes import TENANT, project_scope
from projects.sign_on import accounts

_LETTERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Letters and digits of a temporary password, without look-alikes: it is read out and typed."""


def list_people() -> "models.QuerySet[User]":
    """Return all users who are people, annotated with `is_sso`.

    `is_sso` tells whether they have an identity at the single sign-on, where that is installed.
    """
    identity: models.Exists | models.Value = models.Value(False)
    if apps.is_installed("allauth.socialaccount"):
        identity = models.Exists(
            apps.get_model("socialaccount", "SocialAccount").objects.filter(
                user=models.OuterRef("pk")
            )
        )
    return User.objects.filter(is_service=False).annotate(is_sso=identity)


def create_user(user: User, by: User, *, is_administrator: bool = False) -> str:
    """Save a new local user and return the temporary password, which is not stored.

    It must be changed at the first sign-in. Raises NotAllowed where `by` may not, and where they
    make a system administrator without being one; Clash for a name that somebody else took a moment
    ago.
    """
    access.require(by, Verb.CREATE, Entity.USERS, TENANT)
    password = _assign_temporary_password(user)
    with transaction.atomic():
        try:
            # A savepoint: PostgreSQL would otherwise refuse the rest of the transaction after an
            # IntegrityError.
            with transaction.atomic():
                user_names.hold_name(user.username)
                user.save()
        except IntegrityError:
            raise Clash(
                "There is a user of this name already. Choose another name.", field="username"
            ) from None
        audit.record(
            Event.CREATE, "user", by=by, id=user.pk, name=user.username, after={"email": user.email}
        )
        if is_administrator:
            granting.grant_role(SYSTEM, to=user, scope=TENANT, by=by)
    return password


def reset_password(user: User, by: User) -> str:
    """Give the user a temporary password and return it; it is not stored.

    Ends the user's sessions, access keys and connection with single sign-on: whoever knew the old
    password could have made a key, or connected the user with an identity of their own. A user of a
    single sign-on that is not configured any more gets their first password. Raises NotAllowed also
    where the user may do more than `by` may.
    """
    access.require(by, Verb.EDIT, Entity.USERS, TENANT)
    if user.is_service:
        raise UserError(
            "This is a service account; it has no password. The page of service accounts makes a "
            "new secret for it."
        )
    if not user.has_usable_password() and accounts.is_connected(user):
        raise UserError(
            f"{user} comes by single sign-on and has no password here. It is reset there."
        )
    granting.require_not_above(user, by)
    had_password = user.has_usable_password()
    password = _assign_temporary_password(user)
    with transaction.atomic():
        # Nothing else of the row: somebody may have deactivated them a moment ago.
        user.save(update_fields=["password", "must_change_password"])
        sessions.end_all_sessions(user)
        personal_keys.delete_all_keys(user, by)
        if had_password:
            accounts.disconnect_user(user, by)
        audit.record(
            Event.SECRET,
            "user",
            by=by,
            id=user.pk,
            name=user.username,
            after={"password": "changed"},
        )
    return password


def change_password(user: User, password: str) -> None:
    """Set the password that the user chose.

    Raises NotAllowed where an administrator has reset the present one meanwhile.
    """
    # Hashed before the row is locked: that takes a tenth of a second.
    password_hash = make_password(password)
    with transaction.atomic():
        present_password.lock_user(user)
        user.password, user.must_change_password = password_hash, False
        user.save(update_fields=["password", "must_change_password"])
        audit.record(
            Event.SECRET,
            "user",
            by=user,
            id=user.pk,
            name=user.username,
            after={"password": "changed"},
        )


def set_active(user: User, active: bool, by: User) -> None:
    """Activate or deactivate a user; access keys and tokens end with a deactivation.

    Raises UserError where no system administrator would remain, and NotAllowed where the user may
    do more than `by` may.
    """
    access.require(by, Verb.EDIT, Entity.USERS, TENANT)
    granting.require_not_above(user, by)
    with transaction.atomic():
        if not active and user == by:
            raise UserError("You cannot deactivate yourself. Ask another administrator to do it.")
        if (
            not active
            and granting.is_system_administrator(user)
            and not system_administrators.has_others(user)
        ):
            raise UserError(
                "This is the only system administrator who can sign in. Make somebody else one "
                "first."
            )
        before = user.is_active
        user.is_active = active
        user.save(update_fields=["is_active"])
        if not active:
            sessions.end_all_sessions(user)
        audit.record(
            Event.UPDATE,
            "user",
            by=by,
            id=user.pk,
            name=user.username,
            before={"active": before},
            after={"active": active},
        )


def give_project_role(project: Project, user: User, role: str, by: User) -> None:
    """Give a user their first role in a project. Raises Clash where they have one."""
    access.require(by, Verb.CREATE, Entity.ACCESS_RULES, project_scope(project))
    if AccessRule.objects.filter(project=project, user=user).exists():
        raise Clash(
            f"{user} has a role in this project already. Change it in the list.", field="username"
        )
    granting.grant_role(role, to=user, scope=project_scope(project), by=by)


def change_role(rule: AccessRule, role: str, by: User) -> AccessRule:
    """Give a rule another role in the same scope."""
    return granting.change_rule(rule, role, rule.scope, by)


def remove_role(rule: AccessRule, by: User) -> None:
    """Take a user's role in a project away; their workloads stay with the project."""
    granting.revoke_rule(rule, by)


def _assign_temporary_password(user: User) -> str:
    """Set a temporary password on the unsaved user and return it."""
    password = "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(4))
    user.set_password(password)
    user.must_change_password = True
    return password


def set_key_shortcuts(user: User, is_on: bool) -> None:
    """Switch the keys of pages with a table on or off for a user."""
    # An update and no save: nothing else of the row may be written back.
    User.objects.filter(pk=user.pk).update(uses_key_shortcuts=is_on)
