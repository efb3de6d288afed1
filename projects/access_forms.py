"""Forms about access: access rules, custom roles, service accounts and access keys."""

import functools
from collections.abc import Sequence
from typing import Any

from django import forms

from console.form_widgets import SuggestingInput
from projects import scope_choices
from projects.actions import LIFETIMES
from projects.forms import list_role_choices
from projects.models import User
from projects.permissions import ASSETS, L1, L2, VIEW_ONLY, Entity, Permission, Verb
from projects.scopes import TENANT, Scope
from projects.subjects import KINDS, MAX_SUBJECTS, USER

VERBS = tuple(Verb)


MOST_OPTIONS = 100
"""Scopes of each level that a form offers to choose from; of more, one types the name."""


class ScopeField(forms.ChoiceField):
    """Choose one of the scopes in which the user has a permission; cleans to a Scope.

    Where there are too many to choose from, its words are typed: "Project bert".
    """

    def __init__(self, user: User, permission: Permission, *, help_text: str = "") -> None:
        choices = scope_choices.list_scope_choices(user, permission, most=MOST_OPTIONS + 1)
        self._find = functools.partial(scope_choices.find_scope, user, permission)
        self._is_typed = len(choices) > MOST_OPTIONS
        if self._is_typed:
            suggestions = [words for _, words in choices[:MOST_OPTIONS]]
            super().__init__(
                widget=SuggestingInput(suggestions, placeholder="Project, and its name"),
                help_text=(
                    f"{help_text} There are too many to list: type Project, Department or Cluster "
                    "and the name."
                ),
            )
        else:
            offered = [(str(scope), words) for scope, words in choices]
            # The widest scope is the first: nobody gets a role everywhere by not choosing.
            first = [("", "Choose a scope")] if len(offered) > 1 else []
            super().__init__(choices=first + offered, help_text=help_text)

    def valid_value(self, value: object) -> bool:
        return self._is_typed or super().valid_value(value)

    def clean(self, value: Any) -> Scope:
        text = super().clean(value)
        if not self._is_typed:
            return Scope.parse(text)
        scope = self._find(" ".join(str(text).split()))
        if scope is None:
            raise forms.ValidationError(
                "There is no such scope where you may do this. Type Project, Department or Cluster "
                'and its name, as in "Project research", or Everybody.'
            )
        return scope


def _plain_text_input(**more: str) -> forms.TextInput:
    return forms.TextInput(
        {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"} | more
    )


class RuleForm(forms.Form):
    """Create the same access rule for up to ten subjects.

    `subjects.parse_subjects` checks who they are.
    """

    kind = forms.ChoiceField(label="Type", choices=list(KINDS.items()), initial=USER)
    subjects = forms.CharField(
        label="Name",
        max_length=2000,
        widget=_plain_text_input(),
        help_text=(
            f"Several with commas between them, {MAX_SUBJECTS} at most. A group as your single "
            "sign-on calls it."
        ),
    )
    role = forms.ChoiceField(choices=list_role_choices, initial=L1)

    def __init__(self, *args: Any, user: User, **more: Any) -> None:
        super().__init__(*args, **more)
        help_text = "The rule holds there and in everything below."
        self.fields["scope"] = ScopeField(
            user, Permission(Entity.ACCESS_RULES, Verb.CREATE), help_text=help_text
        )


class AccountForm(forms.Form):
    """Create a service account in one of the scopes where the user may make one."""

    name = forms.CharField(
        max_length=40,
        help_text="What it is for, e.g. nightly-training.",
        widget=_plain_text_input(),
    )
    role = forms.ChoiceField(
        choices=list_role_choices,
        initial=L2,
        help_text="Its first access rule; more are given on the page of access rules.",
    )
    expires = forms.ChoiceField(
        choices=list(LIFETIMES.items()),
        required=False,
        help_text="From then on its secret opens nothing.",
    )
    field_order = ("name", "scope", "role", "expires")

    def __init__(self, *args: Any, user: User, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["scope"] = ScopeField(
            user, Permission(Entity.SERVICE_ACCOUNTS, Verb.CREATE), help_text="Where it belongs."
        )
        self.order_fields(self.field_order)


class KeyForm(forms.Form):
    """Create a personal access key."""

    name = forms.CharField(
        max_length=40, help_text="What it is for, e.g. notebook.", widget=_plain_text_input()
    )
    expires = forms.ChoiceField(choices=list(LIFETIMES.items()), required=False, initial="90")


class CustomRoleForm(forms.Form):
    """Edit a custom role. Its permissions are the check boxes of a table; see `rows`."""

    name = forms.CharField(max_length=63, widget=_plain_text_input())
    description = forms.CharField(max_length=250, required=False)
    permissions = forms.MultipleChoiceField(
        choices=[(f"{entity}:{verb}",) * 2 for entity in Entity for verb in Verb],
        error_messages={
            "required": "Choose at least one permission: a role without any would be of no use."
        },
    )

    def rows(self, user: User) -> Sequence[tuple[Entity, Sequence[tuple[Verb, str, bool, bool]]]]:
        """Return each entity with a cell for each verb.

        A cell is the verb, the box's value ("" for no box), whether it is ticked, and whether
        `user` may give the permission.
        """
        ticked = set(self["permissions"].value() or ())
        own_permissions = user.rights.permissions_in(TENANT)
        return [
            (
                entity,
                [
                    (
                        verb,
                        f"{entity}:{verb}" if verb is Verb.VIEW or entity not in VIEW_ONLY else "",
                        f"{entity}:{verb}" in ticked,
                        Permission(entity, verb) in own_permissions,
                    )
                    for verb in VERBS
                ],
            )
            for _, entities in GROUPS
            for entity in entities
        ]


GROUPS: Sequence[tuple[str, Sequence[Entity]]] = (
    ("Work", (Entity.WORKLOADS, *ASSETS, Entity.POLICIES)),
    (
        "Organisation",
        (Entity.OVERVIEW, Entity.PROJECTS, Entity.DEPARTMENTS, Entity.NODE_POOLS, Entity.CLUSTERS),
    ),
    (
        "Access",
        (
            Entity.USERS,
            Entity.SERVICE_ACCOUNTS,
            Entity.ACCESS_RULES,
            Entity.ROLES,
            Entity.AUDIT,
            Entity.SETTINGS,
        ),
    ),
)
"""The entities, grouped as on the page of roles."""
