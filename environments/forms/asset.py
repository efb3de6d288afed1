"""What the forms of all assets have: fields, their words and their places.

`seams.ASSET_RULES` decides what is right.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms

from console.form_widgets import SuggestingInput
from console.typed_forms import FormRows, TypedForm, TypedValues
from environments import seams
from environments.forms.fields import text_field
from environments.models import Asset
from environments.rest_mapping import RestMapping
from projects.models import User
from projects.scope_choices import MAX_OPTIONS, ScopeChoice, ScopeChoices, name_scope
from projects.scopes import Scope


class TypedScopeField(forms.CharField):
    """Type the words of one of very many scopes; cleans to its key, which is taken as well."""

    def __init__(self, scopes: ScopeChoices) -> None:
        self._find = scopes.find
        self._words = {str(scope): words for scope, words in scopes}
        super().__init__(
            label="Scope",
            widget=SuggestingInput(list(self._words.values())[:MAX_OPTIONS]),
            help_text=(
                "Who can see and use it. There are too many to list: type Project, Department or "
                "Cluster and the name."
            ),
            error_messages={"required": "Type who can use it."},
        )

    def prepare_value(self, value: Any) -> Any:
        if value in self._words or not value:
            return self._words.get(value, value)
        scope = self._find(str(value))
        return value if scope is None else name_scope(scope)

    def clean(self, value: Any) -> str:
        text = " ".join(str(super().clean(value)).split())
        own = next((key for key, words in self._words.items() if text in (key, words)), None)
        scope = None if own else self._find(text)
        if own is None and scope is None:
            raise forms.ValidationError(
                "There is no such scope where you may do this. Type Project, Department or Cluster "
                'and its name, as in "Project research", or Everybody.'
            )
        return own or str(scope)


class AssetForm(TypedForm):
    """The form of an asset.

    `scopes` are those that it may be given; `by` is the user who fills it in. `asset` is the one
    that it starts from: it `changes` that one, or copies it.
    """

    kind: ClassVar[str]
    """Its name in `seams.ASSET_RULES` and UsedAsset."""
    model: ClassVar[type[Asset]]
    subtype: ClassVar[str] = ""
    """The model's kind that it is for, where the model has several."""
    label: ClassVar[str] = ""
    """The name of the subtype."""
    renamed_fields: ClassVar[dict[str, str]] = {}
    """Fields of the rules that have another name in the form."""
    rest: ClassVar[RestMapping | None] = None
    last_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that stand below the others."""
    requires_scope_choice: ClassVar[bool] = False
    """Whether none of several scopes is preselected, where too wide a one gives something away."""
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
            "invalid_choice": (
                "Choose who can use it: this scope is not there, or you may not do this in it."
            ),
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
        if isinstance(scopes, ScopeChoices) and scopes.is_cut:
            self.fields["scope"] = TypedScopeField(scopes)
            return
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
        """The chosen scope; only once nothing is wrong."""
        return Scope.parse(self.read("scope", ""))

    @property
    def rows(self) -> FormRows[Any] | None:
        """Its repeating rows, or None."""
        return None

    @property
    def own_fields(self) -> Sequence[forms.BoundField]:
        """The fields that only this kind has, in their order; `last_fields` at the end."""
        own_fields = [each for each in self if each.name not in AssetForm.base_fields]
        return sorted(own_fields, key=lambda each: each.name in self.last_fields)

    @property
    def values(self) -> dict[str, Any]:
        """The values by the names of the model's fields, without the scope."""
        return {"name": self.read("name", ""), "description": self.read("description", "")}

    @property
    def advice(self) -> Sequence[str]:
        """Sentences about the asset as it is stored, beside its values."""
        return ()

    @classmethod
    def build_typed(cls, asset: Asset) -> TypedValues:
        """Return the fields that only this kind has as they would be typed to make this asset.

        Without its secret.
        """
        return {}

    def validate(self) -> bool:
        """Return whether nothing is wrong; errors are shown beside their fields from now on."""
        self.quiet = False
        if not self.has_errors:
            for field, text in self.find_problems():
                self.add_asset_error(self.renamed_fields.get(field, field), text)
        return not self.has_errors

    def find_problems(self) -> seams.Problems:
        """Return what is wrong with the values, by the names of the model's fields."""
        return seams.ASSET_RULES.get().find_problems(self.kind, self.values)

    def add_asset_error(self, field: str, text: str) -> None:
        """Put a problem beside its field, also of a row ("variables.1.name").

        Those of no field stand above all.
        """
        name, _, rest = field.partition(".")
        if self.rows is None or name != self.rows.name:
            self.add_error_once(field, text)
            return
        if rest:
            number, _, part = rest.partition(".")
            self.rows.quiet = False
            self.rows.filled_rows[int(number)].add_error_once(part, text)
        self.add_error_once(None, text)


def choose_first_scope(form: type[AssetForm], scopes: Sequence[ScopeChoice]) -> str:
    """Return the preselected scope of a new asset's form; "" where one has to be chosen."""
    return "" if form.requires_scope_choice and len(scopes) > 1 else str(scopes[0][0])


def build_defaults(form: type[AssetForm], scope: str) -> TypedValues:
    """Return the typed values of a new asset before anything is typed."""
    fields = {
        name: [str(field.initial)]
        for name, field in form.base_fields.items()
        if field.initial is not None
    }
    return fields | {"scope": [scope]}


def build_typed_asset(form: type[AssetForm], asset: Asset) -> TypedValues:
    """Return an asset as if it had been typed into its form."""
    return {
        "name": [asset.name],
        "description": [asset.description],
        "scope": [str(asset.scope)],
        **form.build_typed(asset),
    }
