"""Custom roles, which administrators put together from permissions.

Nobody makes a role that permits more than they may do themselves.
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
"""Access rules that a refusal names."""
_BAD_NAME = (
    "Give the role a name of visible characters: people read it where it says who may do what."
)


def create(name: str, description: str, permissions: Iterable[str], *, by: User) -> CustomRole:
    """Create a custom role.

    Raises NotAllowed where `by` may not, or where the role permits what they may not; Clash for a
    name that is taken, and UserError for one that cannot be read.
    """
    access.require(by, Verb.CREATE, Entity.ROLES, TENANT)
    name = _clean_name(name)
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
    """Change a custom role, for everybody who has it.

    `version` is the one that the user edited; None skips the check. Raises as `create`, and
    ChangedMeanwhile where the role has another version by now.
    """
    access.require(by, Verb.EDIT, Entity.ROLES, TENANT)
    name = _clean_name(name)
    try:
        with transaction.atomic():
            role = get_object_or_404(CustomRole.objects.select_for_update(), pk=pk)
            check_version(role.version, version, role.name)
            before = editable_values(role)
            # The old permissions are checked too: nobody edits a role that permits more than they
            # may do themselves.
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
    """Delete a custom role. Raises Clash, naming some access rules, while any have it."""
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
    """Describe the access rules that prevent deletion of the role; "" for none."""
    rules = list(AccessRule.objects.filter(custom_role=role).with_subject()[: MAX_NAMED + 1])
    if not rules:
        return ""
    named = "; ".join(f"{rule.subject} in {rule.scope_words}" for rule in rules[:MAX_NAMED])
    more = " and others" if len(rules) > MAX_NAMED else ""
    return f"{role.name} is the role of {named}{more}. Delete those access rules first."


def editable_values(role: CustomRole) -> Mapping[str, Any]:
    """Return the values of a role that can be changed."""
    return {
        "name": role.name,
        "description": role.description,
        "permissions": list(role.permissions),
    }


def normalize_permissions(permissions: Iterable[str]) -> Sequence[str]:
    """Return the permissions as a row stores them: with the implied ones, sorted.

    Raises UserError for an unknown permission, and for none at all.
    """
    try:
        parsed_permissions = {Permission.parse(text) for text in permissions}
    except ValueError:
        raise UserError(
            "There is no such permission. Choose those of the table.", field="permissions"
        ) from None
    normalized = parse_permissions(str(each) for each in parsed_permissions)
    if not normalized:
        raise UserError(
            "Choose at least one permission: a role without any would be of no use.",
            field="permissions",
        )
    return [str(each) for each in sorted(normalized)]


def _clean_name(name: str) -> str:
    """Return a role's name with single spaces. Raises UserError for one that cannot be read.

    With what is not seen in it, it could pass for another role.
    """
    cleaned = " ".join(name.split())
    if not cleaned or not cleaned.isprintable():
        raise UserError(_BAD_NAME, field="name")
    return cleaned


def _check_role(role: CustomRole, by: User) -> None:
    if role.name.casefold() in {each.label.casefold() for each in ROLES.values()}:
        raise _make_name_clash(role.name)
    granting.require_permissions_within(parse_permissions(role.permissions), TENANT, by, role.name)


def _make_name_clash(name: str) -> Clash:
    return Clash(f"There is a role {name} already. Choose another name.", field="name")
