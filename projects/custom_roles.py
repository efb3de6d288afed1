"""Roles that administrators put together from the permissions of the table. Nobody makes one that
permits more than they may.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.shortcuts import get_object_or_404

from console.edit_conflicts import check_version
from console.errors import Clash, UserError
from projects import access, audit, granting
from projects.audit import Event
from projects.models import AccessRule, CustomRole, User
from projects.permissions import ROLES, Entity, Permission, Verb, parse_permissions
from projects.scopes import TENANT

MAX_NAMED = 5


def create(name: str, description: str, permissions: Iterable[str], *, by: User) -> CustomRole:
    """A new role. Raises NotAllowed for who may not, or would permit what they may not; Clash for a
    name that is taken.
    """
    access.require(by, Verb.CREATE, Entity.ROLES, TENANT)
    role = CustomRole(
        name=name,
        description=description,
        permissions=normalize_permissions(permissions),
        created_by=by,
    )
    _check_role(role, by)
    try:
        with transaction.atomic():
            role.save()
            audit.record(
                Event.CREATE, "role", by=by, id=role.pk, name=name, after=editable_values(role)
            )
    except IntegrityError:
        raise _make_name_clash(name) from None
    return role


def edit(
    pk: int,
    name: str,
    description: str,
    permissions: Iterable[str],
    *,
    by: User,
    version: int | None = None,
) -> CustomRole:
    """Change a role: whoever has it has what it permits from now on. `version` is the one that was
    edited, None whichever there is.

    Raises as `create`, and ChangedMeanwhile where the role is of another version by now.
    """
    access.require(by, Verb.EDIT, Entity.ROLES, TENANT)
    try:
        with transaction.atomic():
            role = get_object_or_404(CustomRole.objects.select_for_update(), pk=pk)
            check_version(role.version, version, role.name)
            before = editable_values(role)
            _check_role(role, by)
            role.name, role.description, role.permissions, role.version = (
                name,
                description,
                normalize_permissions(permissions),
                role.version + 1,
            )
            _check_role(role, by)
            role.save(update_fields=["name", "description", "permissions", "version", "updated_at"])
            old, new = audit.select_changes(before, editable_values(role))
            audit.record(Event.UPDATE, "role", by=by, id=role.pk, name=name, before=old, after=new)
    except IntegrityError:
        raise _make_name_clash(name) from None
    return role


def delete(role: CustomRole, by: User) -> None:
    """Raises Clash while an access rule has it, naming some of them."""
    access.require(by, Verb.DELETE, Entity.ROLES, TENANT)
    with transaction.atomic():
        row = get_object_or_404(CustomRole.objects.select_for_update(), pk=role.pk)
        if used := describe_uses(row):
            raise Clash(used)
        audit.record(
            Event.DELETE, "role", by=by, id=row.pk, name=row.name, before=editable_values(row)
        )
        row.delete()


def describe_uses(role: CustomRole) -> str:
    """Why it cannot be deleted: the rules that have it; "" where it can."""
    rules = list(AccessRule.objects.filter(custom_role=role).with_subject()[: MAX_NAMED + 1])
    if not rules:
        return ""
    named = "; ".join(f"{rule.subject} in {rule.scope_words}" for rule in rules[:MAX_NAMED])
    more = " and others" if len(rules) > MAX_NAMED else ""
    return f"{role.name} is the role of {named}{more}. Delete those access rules first."


def editable_values(role: CustomRole) -> Mapping[str, Any]:
    """What of it can be changed."""
    return {
        "name": role.name,
        "description": role.description,
        "permissions": list(role.permissions),
    }


def normalize_permissions(permissions: Iterable[str]) -> Sequence[str]:
    """As a row keeps them: with what they are of no use without, in the order of the table. Raises
    UserError for what is none.
    """
    try:
        found = {Permission.parse(text) for text in permissions}
    except ValueError:
        raise UserError(
            "There is no such permission. Choose those of the table.", field="permissions"
        ) from None
    kept = parse_permissions(str(each) for each in found)
    if not kept:
        raise UserError(
            "Choose at least one permission: a role without any would be of no use.",
            field="permissions",
        )
    return [str(each) for each in sorted(kept)]


def _check_role(role: CustomRole, by: User) -> None:
    if role.name.casefold() in {each.label.casefold() for each in ROLES.values()}:
        raise _make_name_clash(role.name)
    granting.require_permissions_within(parse_permissions(role.permissions), TENANT, by, role.name)


def _make_name_clash(name: str) -> Clash:
    return Clash(f"There is a role {name} already. Choose another name.", field="name")
