"""Explanations why a user may, or may not, do something, from the access rules."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import Http404

from console.texts import join_words
from projects import access, scope_choices
from projects.models import AccessRule, User
from projects.permissions import TENANT_ONLY, Entity, Permission, Verb
from projects.scopes import TENANT, Level, Scope

MAX_RULES = 100
"""Rules of one person that a page shows."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether the user may, why in a sentence (`text`), and the `rules` that permit it."""

    may: bool
    text: str
    rules: Sequence[AccessRule] = ()


@dataclass(frozen=True, slots=True)
class DisabledButton:
    """A button that does nothing, with the reason and a page that explains it."""

    words: str
    icon: str
    text: str
    url: str


def explain_permission(user: User, permission: Permission, scope: Scope) -> Explanation:
    """Explain whether the user has the permission in the scope.

    Raises Http404 for a scope of which the user sees nothing.
    """
    may = user.rights.may(permission, scope)
    if not (
        may or scope == TENANT or access.can_see(user, permission.entity, scope)
    ) or not scope_choices.scope_exists(scope):
        raise Http404("There is nothing here that you may see.")
    refusal = access.Refusal(user, scope)
    if not may:
        return Explanation(False, refusal.describe(permission))
    if user.is_superuser:
        return Explanation(
            True,
            (
                f"You may {permission.words} in {refusal.scope_name}: you are the administrator "
                "that this installation began with."
            ),
        )
    rules = [
        rule
        for rule in _list_rules(user)
        if permission in rule.permissions and rule.scope in refusal.enclosing_scopes
    ]
    roles = join_words(sorted({rule.role_label for rule in rules}))
    return Explanation(
        True,
        f"You may {permission.words} in {refusal.scope_name}, because you are {roles} there.",
        rules,
    )


def find_disabled_button(
    user: User,
    verb: Verb,
    entity: Entity,
    at: access.Refusal | Scope = TENANT,
    *,
    words: str,
    icon: str,
    anywhere: bool = False,
) -> DisabledButton | None:
    """Return the disabled button for what the user may not do; None where they may.

    With `anywhere`, any scope will do. Pass the same Refusal for several buttons of one scope: it
    asks the database once.
    """
    refusal = at if isinstance(at, access.Refusal) else access.Refusal(user, at)
    permission = Permission(entity, verb)
    allowed = (
        user.rights.may_anywhere(permission)
        if anywhere
        else user.rights.may(permission, refusal.scope)
    )
    return (
        None
        if allowed
        else DisabledButton(
            words,
            icon,
            refusal.describe(permission),
            access.explanation_url(permission, refusal.scope),
        )
    )


@dataclass(frozen=True, slots=True)
class GrantedRule:
    """An access rule of a user, with the verbs that it permits for each entity, in words."""

    rule: AccessRule
    permits: Sequence[tuple[str, str]]


def list_granted_rules(user: User) -> Sequence[GrantedRule]:
    """Return the access rules of a user and their groups, the widest scope first."""
    granted = [GrantedRule(rule, _describe_permissions(rule)) for rule in _list_rules(user)]
    levels = list(Level)
    return sorted(
        granted, key=lambda each: (levels.index(each.rule.scope.level), each.rule.scope_words)
    )


def _describe_permissions(rule: AccessRule) -> Sequence[tuple[str, str]]:
    useful = {
        each for each in rule.permissions if rule.scope == TENANT or each.entity not in TENANT_ONLY
    }
    rows = [
        (entity, [verb.value for verb in Verb if Permission(entity, verb) in useful])
        for entity in Entity
    ]
    return [(entity.label, ", ".join(verbs)) for entity, verbs in rows if verbs]


def _list_rules(user: User) -> Sequence[AccessRule]:
    return list(AccessRule.objects.of(user).with_subject()[:MAX_RULES])
