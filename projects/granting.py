"""Access rules: who may give which, and take it away. Nobody gives more than they have."""

from collections.abc import Sequence

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.http import Http404

from console.errors import Clash, NotAllowed, UserError
from projects import access, audit, choosing
from projects.audit import Event
from projects.models import AccessRule, CustomRole, User
from projects.permissions import EVERYTHING, ROLES, SYSTEM, Entity, Permission, Role, Verb, read
from projects.scopes import TENANT, Scope


def role_of(key: str) -> Role:
    """The role of the table with this key, or the custom one of "custom:<id>". Raises UserError where there is none."""
    name, _, number = key.partition(":")
    if name == "custom" and number.isascii() and number.isdigit() and len(number) < 19:
        custom = CustomRole.objects.filter(pk=int(number)).first()
        if custom is not None:
            return Role(key, custom.name, custom.description, read(custom.permissions))
    elif key in ROLES:
        return ROLES[key]
    raise UserError("There is no such role. Choose one of the list.", field="role")


def give_all(key: str, *, to: Sequence[User | Group], scope: Scope, by: User) -> Sequence[AccessRule]:
    """The same rule for several subjects: for all of them, or for none. Raises as `give`."""
    with transaction.atomic():
        return [give(key, to=_kept(each), scope=scope, by=by) for each in to]


def _kept(subject: User | Group) -> User | Group:
    """A group that nobody was of yet is there from its first rule on."""
    if isinstance(subject, Group) and subject.pk is None:
        return Group.objects.get_or_create(name=subject.name)[0]
    return subject


def give(key: str, *, to: User | Group, scope: Scope, by: User) -> AccessRule:
    """A new access rule: from now on `to` has the role in the scope and everything below it.

    Raises NotAllowed or Http404 where `by` may give none there, or not one that permits what they may not do there themselves;
    UserError for a role that cannot be given there, and Clash where there is this rule already.
    """
    access.require(by, Verb.CREATE, Entity.ACCESS_RULES, scope)
    if not choosing.is_there(scope):
        raise Http404("There is no such scope among those that you may see.")
    role = role_of(key)
    require_within(role.permissions, scope, by, role.label)
    if isinstance(to, User) and to.is_service and not to.is_active:
        raise UserError(f"The service account {to} is deleted. Choose another one.", field="subjects")
    if role.tenant_only and scope != TENANT:
        raise UserError(f"{role.label} is a role in the whole of Muster: give it there, or choose another role.", field="role")
    subject = {"user": to} if isinstance(to, User) else {"group": to}
    chosen = {"custom_role_id": int(key.partition(":")[2])} if key.startswith("custom:") else {"role": key}
    try:
        with transaction.atomic():
            rule = AccessRule.objects.create(**subject, **chosen, **scope.columns, created_by=by)
            audit.record(Event.GRANT, "access-rule", by=by, id=rule.pk, name=str(to), scope=scope, after={"role": role.label})
    except IntegrityError:
        raise Clash(f"{to} is {role.label} there already.", field="role") from None
    return rule


def take(rule: AccessRule, by: User) -> None:
    """Take an access rule away. Raises NotAllowed or Http404, and UserError where nobody would be left in charge."""
    access.require(by, Verb.DELETE, Entity.ACCESS_RULES, rule.scope)
    with transaction.atomic():
        if not AccessRule.objects.select_for_update().filter(pk=rule.pk).exists():
            raise Http404("This access rule is not there any more.")
        if rule.role == SYSTEM and not others_in_charge(rule):
            raise UserError("This is the only system administrator who can sign in. Make somebody else one first.")
        audit.record(
            Event.REVOKE, "access-rule", by=by, id=rule.pk, name=str(rule.subject), scope=rule.scope, before={"role": rule.role_label}
        )
        rule.delete()


def others_in_charge(but: AccessRule | User) -> bool:
    """Whether a system administrator who can sign in is left without this rule, or without this user."""
    people = User.objects.filter(is_active=True, is_service=False)
    rules = AccessRule.objects.filter(role=SYSTEM)
    # Two that take one another's rule away at once come one after the other.
    list(rules.select_for_update().order_by("pk").values_list("pk", flat=True))
    list(people.select_for_update().filter(is_superuser=True).order_by("pk").values_list("pk", flat=True))
    if isinstance(but, User):
        people = people.exclude(pk=but.pk)
    else:
        rules = rules.exclude(pk=but.pk)
    by_rule = people.filter(Q(pk__in=rules.values("user")) | Q(groups__in=rules.values("group")))
    return people.filter(is_superuser=True).exists() or by_rule.exists()


def require_within(permissions: frozenset[Permission], scope: Scope, by: User, label: str) -> None:
    """Raises NotAllowed where these permit something in the scope that `by` may not do there."""
    beyond = sorted(permissions - by.rights.permissions_in(scope))
    if beyond:
        raise NotAllowed(
            f"{label} may {beyond[0].words}, which you may not do there yourself, so you cannot give it. Ask a system administrator."
        )


def require_not_above(user: User, by: User) -> None:
    """Raises NotAllowed where `user` may do something somewhere that `by` may not: who could become them would have it."""
    for grant in user.rights.grants:
        beyond = sorted(grant.permissions - by.rights.permissions_in(grant.scope))
        if beyond:
            raise NotAllowed(
                f"{user} may {beyond[0].words} where you may not, so you cannot get in as {user}. Ask a system administrator to do it."
            )


def is_in_charge(user: User) -> bool:
    """Whether they are a system administrator, by a rule or since the installation began."""
    return user.rights.permissions_in(TENANT) >= EVERYTHING
