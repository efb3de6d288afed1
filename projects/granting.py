"""Granting and revoking of access rules. Nobody gives more than they have."""

from collections.abc import Iterable, Sequence

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.http import Http404

from console.errors import Clash, NotAllowed, UserError
from console.texts import parse_number
from projects import access, audit, scope_choices, system_administrators
from projects.audit import Event
from projects.models import AccessRule, CustomRole, User
from projects.permissions import (
    EVERYTHING,
    ROLES,
    SYSTEM,
    Entity,
    Permission,
    Role,
    Verb,
    parse_permissions,
)
from projects.scopes import TENANT, Scope


def get_role(key: str) -> Role:
    """Return the predefined role with this key, or the custom role of "custom:<id>".

    Raises UserError where there is none.
    """
    if key in ROLES:
        return ROLES[key]
    pk = _parse_custom_id(key)
    custom = CustomRole.objects.filter(pk=pk).first() if pk else None
    if custom is None:
        raise UserError("There is no such role. Choose one of the list.", field="role")
    return Role(key, custom.name, custom.description, parse_permissions(custom.permissions))


def _parse_custom_id(key: str) -> int:
    """Return the id of "custom:<id>"; 0 for any other key."""
    name, _, number = key.partition(":")
    return (parse_number(number) or 0) if name == "custom" else 0


def grant_role_to_all(
    key: str, *, to: Sequence[User | Group], scope: Scope, by: User
) -> Sequence[AccessRule]:
    """Grant the role to all subjects or to none. Raises as `grant_role`."""
    with transaction.atomic():
        return [grant_role(key, to=_ensure_saved(each), scope=scope, by=by) for each in to]


def _ensure_saved(subject: User | Group) -> User | Group:
    """Return the subject, saved: a group without members gets its row with its first rule."""
    if isinstance(subject, Group) and subject.pk is None:
        return Group.objects.get_or_create(name=subject.name)[0]
    return subject


def change_rule(rule: AccessRule, key: str, scope: Scope, by: User) -> AccessRule:
    """Give the rule's subject another role, or the same elsewhere; the rule keeps its id.

    A rule is never changed, so it is revoked and granted, both or neither. Raises as these do.
    """
    if (key, scope) == (rule.role_key, rule.scope):
        return rule
    pk = rule.pk
    with transaction.atomic():
        # Before any rule, as where a scope is deleted.
        scope_choices.require_scope(scope)
        revoke_rule(rule, by)
        return grant_role(key, to=rule.subject, scope=scope, by=by, pk=pk)


def grant_role(
    key: str, *, to: User | Group, scope: Scope, by: User, pk: int | None = None
) -> AccessRule:
    """Create an access rule: `to` has the role in the scope and everything below it.

    `pk` is the id of a rule that it takes the place of.

    Raises NotAllowed or Http404 where `by` may not give rules there, or not one that permits what
    they may not do there themselves; UserError for a role that cannot be given there; Clash where
    the rule exists.
    """
    access.require(by, Verb.CREATE, Entity.ACCESS_RULES, scope)
    if not scope_choices.scope_exists(scope):
        raise Http404("There is no such scope among those that you may see.")
    if isinstance(to, User) and to.is_service and not to.is_active:
        raise UserError(
            f"The service account {to} is deleted. Choose another one.", field="subjects"
        )
    subject = {"user": to} if isinstance(to, User) else {"group": to}
    chosen = {"custom_role_id": _parse_custom_id(key)} if _parse_custom_id(key) else {"role": key}
    with transaction.atomic():
        scope_choices.require_scope(scope)
        # Locked until this is committed: a custom role is not deleted and gets no other permissions
        # between the check of its permissions and the creation of the rule.
        list(
            CustomRole.objects.select_for_update()
            .filter(pk=_parse_custom_id(key))
            .values_list("pk")
        )
        role = get_role(key)
        require_permissions_within(role.permissions, scope, by, role.label)
        if role.tenant_only and scope != TENANT:
            raise UserError(
                (
                    f"{role.label} is a role in the whole of Muster: give it there, or choose "
                    "another role."
                ),
                field="role",
            )
        try:
            # A savepoint: PostgreSQL would otherwise refuse the rest of the transaction after an
            # IntegrityError.
            with transaction.atomic():
                rule = AccessRule.objects.create(
                    **subject, **chosen, **scope.columns, created_by=by, pk=pk
                )
        except IntegrityError:
            raise Clash(f"{to} is {role.label} there already.", field="role") from None
        audit.record(
            Event.GRANT,
            "access-rule",
            by=by,
            id=rule.pk,
            name=str(to),
            scope=scope,
            after={"role": role.label},
        )
    return rule


def revoke_rule(rule: AccessRule, by: User) -> None:
    """Delete an access rule.

    Raises NotAllowed or Http404 where `by` may not, and where a rule of a system administrator is
    revoked by somebody who is none; Clash where the rule is another by now; UserError where no
    system administrator would remain.
    """
    access.require(by, Verb.DELETE, Entity.ACCESS_RULES, rule.scope)
    if rule.role == SYSTEM and not is_system_administrator(by):
        raise NotAllowed(
            f"{rule.subject} is {rule.role_label}, and only another one can take that away. Ask "
            "a system administrator."
        )
    with transaction.atomic():
        # Before the rule itself is locked: everybody locks the administrators' rows in the same
        # order, so two who revoke one another's role cannot deadlock.
        others_remain = rule.role != SYSTEM or system_administrators.has_others(rule)
        # Its key, too: a changed rule has the same id, and may be one that `by` may not take away.
        is_same = AccessRule.objects.select_for_update().filter(pk=rule.pk, key=rule.key).exists()
        if not is_same and AccessRule.objects.filter(pk=rule.pk).exists():
            raise Clash(
                "Somebody changed this access rule a moment ago, so it was left as it is now. Look "
                "at it again, and repeat this if it is still right."
            )
        if not is_same:
            raise Http404("This access rule is not there any more.")
        if not others_remain:
            raise UserError(
                "This is the only system administrator who can sign in. Make somebody else one "
                "first."
            )
        end_rules([rule], by)


def end_rules(rules: Iterable[AccessRule], by: User) -> None:
    """Delete access rules without a permission check, and record each.

    For rules that go with their scope or their service account. They are locked, so that none is
    changed into another meanwhile.
    """
    with transaction.atomic():
        for rule in rules:
            before = {"role": rule.role_label}
            audit.record(
                Event.REVOKE,
                "access-rule",
                by=by,
                id=rule.pk,
                name=str(rule.subject),
                scope=rule.scope,
                before=before,
            )
            rule.delete()


def require_permissions_within(
    permissions: frozenset[Permission], scope: Scope, by: User, label: str
) -> None:
    """Check that `by` has all these permissions in the scope. Raises NotAllowed."""
    missing = sorted(permissions - by.rights.permissions_in(scope))
    if missing:
        raise NotAllowed(
            f"{label} may {missing[0].words}, which you may not do there yourself, so you cannot "
            "give it. Ask a system administrator."
        )


def require_not_above(user: User, by: User) -> None:
    """Check that `user` may do nothing that `by` may not. Raises NotAllowed.

    Whoever can get into the user's account would have the user's permissions.
    """
    for grant in user.rights.grants:
        missing = sorted(grant.permissions - by.rights.permissions_in(grant.scope))
        if missing:
            raise NotAllowed(
                f"{user} may {missing[0].words} where you may not, so you cannot get in as "
                f"{user}. Ask a system administrator to do it."
            )


def is_system_administrator(user: User) -> bool:
    """Tell whether the user has every permission, by a rule or as the first administrator."""
    return user.rights.permissions_in(TENANT) >= EVERYTHING
