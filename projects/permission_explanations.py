"""Explanations why a user may, or may not, do something, from the access rules."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Case, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce
from django.http import Http404

from console.texts import join_words
from projects import access, scope_choices
from projects.models import AccessRule, User
from projects.permissions import TENANT_ONLY, Entity, Permission, Verb
from projects.scopes import TENANT, Level, Scope

MAX_RULES = 100
"""Rules of one person in a scope and those above it: one for each role and group."""


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
    enclosing = Q()
    for each in refusal.enclosing_scopes:
        enclosing |= Q(**each.columns)
    around = AccessRule.objects.of(user).filter(enclosing).with_subject()
    rules = [rule for rule in around[:MAX_RULES] if permission in rule.permissions]
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


def list_rules(user: User) -> "QuerySet[AccessRule]":
    """Return the access rules of a user and their groups with `width` and `place`, to order by.

    `width` is 0 for the scope Everybody and grows as scopes get narrower; `place` is their name.
    """
    rules: QuerySet[AccessRule] = AccessRule.objects.of(user).with_subject()
    return rules.annotate(
        width=Case(
            *(
                When(**{f"{level.value}__isnull": False}, then=Value(width))
                for width, level in enumerate(Level)
                if level is not Level.TENANT
            ),
            default=Value(0),
        ),
        place=Coalesce("project__name", "department__name", "cluster__name", Value("")),
    )


def describe_rules(rules: Iterable[AccessRule]) -> Sequence[GrantedRule]:
    """Return the rules with what they permit."""
    return [GrantedRule(rule, _describe_permissions(rule)) for rule in rules]


def _describe_permissions(rule: AccessRule) -> Sequence[tuple[str, str]]:
    useful = {
        each for each in rule.permissions if rule.scope == TENANT or each.entity not in TENANT_ONLY
    }
    rows = [
        (entity, [verb.value for verb in Verb if Permission(entity, verb) in useful])
        for entity in Entity
    ]
    return [(entity.label, ", ".join(verbs)) for entity, verbs in rows if verbs]
