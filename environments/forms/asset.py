"""What the forms of all assets have. What is right is decided by `judging`; here are the fields,
their words and their place.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms

from console.typed_forms import FormRows, TypedForm, TypedValues
from environments import asset_validators
from environments.forms.fields import text_field
from environments.models import Asset
from environments.rest_mapping import RestMapping
from projects.models import User
from projects.scope_choices import ScopeChoice
from projects.scopes import Scope


class AssetForm(TypedForm):
    """What all assets have. `scopes` are those that it may be given; `by` fills it in.

    `asset` is the one that it starts from: it `changes` that one, or copies it.
    """

    kind: ClassVar[str]
    """As `judging` and UsedAsset call it."""
    model: ClassVar[type[Asset]]
    subtype: ClassVar[str] = ""
    """Which of the model's kinds it is for, where the model has several."""
    label: ClassVar[str] = ""
    """What the subtype is called."""
    renamed_fields: ClassVar[dict[str, str]] = {}
    """Where the form shows a field of the rules under another name."""
    rest: ClassVar[RestMapping | None] = None
    last_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that stand below the others."""
    requires_scope_choice: ClassVar[bool] = False
    """Whether none of several scopes is chosen beforehand, where too wide a one gives something
    away.
    """
    secret_fields: ClassVar[tuple[str, ...]] = ()
    """Fields whose values are never shown again."""

    name = forms.CharField(
        label="Name",
        max_length=63,
        error_messages={"required": "Give it a name."},
        help_text="Shown on its card in the wizard.",
    )
    description = text_field("Description", max_length=250)
    scope = forms.ChoiceField(
        label="Scope",
        help_text="Who can see and use it.",
        error_messages={
            "required": "Choose who can use it.",
            "invalid_choice": "Choose who can use it.",
        },
    )

    def __init__(
        self,
        data: TypedValues,
        *,
        scopes: Sequence[ScopeChoice],
        by: User | None = None,
        asset: Asset | None = None,
        changes: bool = False,
        quiet: bool = True,
        **more: Any,
    ) -> None:
        super().__init__(data, quiet=quiet, **more)
        self.by, self.asset, self.changes = by, asset, changes
        unchosen = (
            [("", "Choose a scope")]
            if self.requires_scope_choice and not changes and len(scopes) > 1
            else []
        )
        self.fields["scope"].choices = [  # type: ignore[attr-defined]
            *unchosen,
            *((str(scope), words) for scope, words in scopes),
        ]

    @property
    def asset_scope(self) -> Scope:
        """Where it is to be; asked for once nothing is wrong."""
        return Scope.parse(self.read("scope", ""))

    @property
    def rows(self) -> FormRows[Any] | None:
        """Its rows that repeat, where it has some."""
        return None

    @property
    def own_fields(self) -> Sequence[forms.BoundField]:
        """The fields that only this kind has, in their order; the `last` at the end."""
        found = [each for each in self if each.name not in AssetForm.base_fields]
        return sorted(found, key=lambda each: each.name in self.last_fields)

    @property
    def values(self) -> dict[str, Any]:
        """By the names of the model's fields, without the scope."""
        return {"name": self.read("name", ""), "description": self.read("description", "")}

    @property
    def advice(self) -> Sequence[str]:
        """What to know of the asset as it is stored, beside its values: sentences."""
        return ()

    @classmethod
    def build_typed(cls, asset: Asset) -> TypedValues:
        """The fields that only this kind has, as they would be typed to make this asset; nothing of
        a secret.
        """
        return {}

    def validate(self) -> bool:
        """Whether nothing is wrong; what is, stands beside its field from now on."""
        self.quiet = False
        if not self.has_errors:
            for field, text in asset_validators.find_problems(self.kind, self.values):
                self.add_asset_error(self.renamed_fields.get(field, field), text)
        return not self.has_errors

    def add_asset_error(self, field: str, text: str) -> None:
        """Put a problem beside its field, also one of a row ("variables.1.name"); those of no field
        stand above all.
        """
        listed, _, rest = field.partition(".")
        if self.rows is None or listed != self.rows.name:
            self.add_error_once(field, text)
            return
        if rest:
            number, _, part = rest.partition(".")
            self.rows.quiet = False
            self.rows.filled_rows[int(number)].blame(part, text)
        self.add_error_once(None, text)


def choose_first_scope(form: type[AssetForm], scopes: Sequence[ScopeChoice]) -> str:
    """The scope that stands in a new asset's form before one is chosen; "" where it has to be."""
    return "" if form.requires_scope_choice and len(scopes) > 1 else str(scopes[0][0])


def build_defaults(form: type[AssetForm], scope: str) -> TypedValues:
    """A new asset's form before anything is typed."""
    fields = {
        name: [str(field.initial)]
        for name, field in form.base_fields.items()
        if field.initial is not None
    }
    return fields | {"scope": [scope]}


def build_typed_asset(form: type[AssetForm], asset: Asset) -> TypedValues:
    """An asset as if it had been typed into its form."""
    return {
        "name": [asset.name],
        "description": [asset.description],
        "scope": [str(asset.scope)],
        **form.build_typed(asset),
    }
