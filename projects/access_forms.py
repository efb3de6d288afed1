"""What people fill in about who may do what: access rules, custom roles, service accounts and
keys.
"""

from collections.abc import Sequence
from typing import Any

from django import forms

from projects import scope_choices
from projects.actions import LIFETIMES
from projects.forms import list_role_choices
from projects.models import User
from projects.permissions import ASSETS, L1, L2, VIEW_ONLY, Entity, Permission, Verb
from projects.scopes import TENANT, Scope
from projects.subjects import KINDS, MAX_SUBJECTS, USER

VERBS = tuple(Verb)


class ScopeField(forms.ChoiceField):
    """A scope out of those in which somebody may do something; what is cleaned is a Scope."""

    def __init__(self, user: User, permission: Permission, **more: Any) -> None:
        found = scope_choices.list_scope_choices(user, permission)
        super().__init__(choices=[(str(scope), words) for scope, words in found], **more)

    def clean(self, value: Any) -> Scope:
        return Scope.parse(super().clean(value))


def _plain_text_input(**more: str) -> forms.TextInput:
    return forms.TextInput(
        {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"} | more
    )


class RuleForm(forms.Form):
    """The same new access rule for up to ten subjects. Who they are is `subjects.read`'s to say."""

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
    """A new service account in one of the scopes where its maker may make one."""

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
    """A new personal access key."""

    name = forms.CharField(
        max_length=40, help_text="What it is for, e.g. notebook.", widget=_plain_text_input()
    )
    expires = forms.ChoiceField(choices=list(LIFETIMES.items()), required=False, initial="90")


class CustomRoleForm(forms.Form):
    """A role of one's own making. The permissions are boxes of a table: see `rows`."""

    name = forms.CharField(max_length=63, widget=_plain_text_input())
    description = forms.CharField(max_length=250, required=False)
    permissions = forms.MultipleChoiceField(
        choices=[(f"{entity}:{verb}",) * 2 for entity in Entity for verb in Verb],
        error_messages={
            "required": "Choose at least one permission: a role without any would be of no use."
        },
    )

    def rows(self, user: User) -> Sequence[tuple[Entity, Sequence[tuple[Verb, str, bool, bool]]]]:
        """Each entity with its verbs: the box's value, whether it is ticked, and whether `user` may
        give it; "" is no box.
        """
        chosen = set(self["permissions"].value() or ())
        mine = user.rights.permissions_in(TENANT)
        return [
            (
                entity,
                [
                    (
                        verb,
                        f"{entity}:{verb}" if verb is Verb.VIEW or entity not in VIEW_ONLY else "",
                        f"{entity}:{verb}" in chosen,
                        Permission(entity, verb) in mine,
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
"""The entities as the page of roles puts them together."""
