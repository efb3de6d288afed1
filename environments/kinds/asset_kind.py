"""The definition of a kind of asset.

A kind is one `AssetKind` in a file of its own here; pages, REST, CSV, audit and access follow from
it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console.table_filters import Filter
from console.tables import Column
from console.typed_forms import TypedValues
from environments import forms
from environments.forms import AssetForm
from environments.models import Asset


@dataclass(frozen=True, slots=True)
class AssetKind:
    """One kind of asset, as addresses, forms, tables and the API call it."""

    key: str
    """Its name in `seams.ASSET_RULES`, the audit log and UsedAsset."""
    model: type[Asset]
    forms: Mapping[str, type[AssetForm]]
    """The forms by subtype; a kind without subtypes has one, under ""."""
    path: str
    """The path of its table; the paths of one asset are below it."""
    name: str
    """The URL name of its table."""
    url: str
    """The URL name of one asset's page, and the beginning of the other names."""
    noun: str
    icon: str
    about: str
    """What it is for, in a sentence: at the top of its table."""
    fields: tuple[str, ...]
    """The model fields that a workload copies and the audit log compares."""
    columns: tuple[Column, ...] = ()
    """The columns that only this kind has; they stand after the description."""
    filters: tuple[Filter, ...] = ()
    search: tuple[str, ...] = ()
    """Lookups of the search beside name and description."""
    blocked_by: tuple[str, ...] = ()
    """Uses that forbid its deletion: "template", "data-source", "workload"."""
    is_counted: bool = True
    """Whether workloads and templates are made of it, so that its table has their numbers."""
    fields_template: str = "environments/_fields.html"
    """The template with the fields of `form`.

    Without name, description and scope where it leaves them to environments/_form.html.
    """
    new_url: str = ""
    """The URL name of another page where new ones are made; "" is the usual form."""
    deferred: tuple[str, ...] = ()
    """Fields that are not loaded for tables and pages."""

    @property
    def title(self) -> str:
        plural = f"{self.noun[:-1]}ies" if self.noun.endswith("y") else f"{self.noun}s"
        return f"{plural[0].upper()}{plural[1:]}"

    @property
    def has_subtypes(self) -> bool:
        return "" not in self.forms

    def get_form(self, asset: Asset) -> type[AssetForm]:
        """Return the form with which this asset is changed."""
        return self.forms[self.get_subtype(asset)]

    def get_subtype(self, asset: Asset) -> str:
        return str(getattr(asset, "kind", "")) if self.has_subtypes else ""

    def build_typed(self, asset: Asset) -> TypedValues:
        """Return an asset as if it had been typed, without secrets."""
        return forms.build_typed_asset(self.get_form(asset), asset)

    def get_copied_values(self, asset: Asset) -> dict[str, Any]:
        """Return the values that a workload copies, and that the validator judges.

        A credential is the row itself.
        """
        return {name: getattr(asset, name) for name in self.fields}
