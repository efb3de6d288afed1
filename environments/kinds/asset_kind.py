"""The recipe of all kinds of assets. A kind is one `Kind`, in a file of its own here; pages, REST,
CSV, audit and access follow from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console.tables import Column, Filter
from console.typed_forms import TypedValues
from environments import forms
from environments.forms import AssetForm
from environments.models import Asset


@dataclass(frozen=True, slots=True)
class AssetKind:
    """One kind of asset, as addresses, forms, tables and the API call it."""

    key: str
    """As `judging`, the audit log and UsedAsset call it."""
    model: type[Asset]
    forms: Mapping[str, type[AssetForm]]
    """By subtype; a kind without subtypes has one, under ""."""
    path: str
    """Of its table; what belongs to one asset is below."""
    name: str
    """Of the address of its table."""
    url: str
    """Of the address of one, and how the names of its other addresses begin."""
    noun: str
    icon: str
    about: str
    """What it is for, in a sentence: at the top of its table."""
    fields: tuple[str, ...]
    """The model's fields that make it what it is: what a workload copies, and the audit log
    compares.
    """
    columns: tuple[Column, ...] = ()
    """Those that only this kind has; they stand after the description."""
    filters: tuple[Filter, ...] = ()
    search: tuple[str, ...] = ()
    """Lookups beside name and description."""
    blocked_by: tuple[str, ...] = ()
    """What it cannot be deleted under: "template", "data-source", "workload"."""
    is_counted: bool = True
    """Whether workloads and templates are made of it, so that its table has their numbers."""
    fields_template: str = "environments/_fields.html"
    """Shows the fields of `form`, except name, description and scope where it leaves them to
    environments/_form.html.
    """
    new_url: str = ""
    """The name of another address where new ones are made; "" is the form of the recipe."""
    deferred: tuple[str, ...] = ()
    """Fields that are not read for tables and pages."""

    @property
    def title(self) -> str:
        plural = f"{self.noun[:-1]}ies" if self.noun.endswith("y") else f"{self.noun}s"
        return f"{plural[0].upper()}{plural[1:]}"

    @property
    def has_subtypes(self) -> bool:
        return "" not in self.forms

    def get_form(self, asset: Asset) -> type[AssetForm]:
        """The form that this asset is changed by."""
        return self.forms[self.get_subtype(asset)]

    def get_subtype(self, asset: Asset) -> str:
        return str(getattr(asset, "kind", "")) if self.has_subtypes else ""

    def build_typed(self, asset: Asset) -> TypedValues:
        """An asset as if it had been typed, without secrets."""
        return forms.build_typed_asset(self.get_form(asset), asset)

    def get_copied_values(self, asset: Asset) -> dict[str, Any]:
        """What a workload copies of an asset: the values that its judge judges. A credential is the
        row itself.
        """
        return {name: getattr(asset, name) for name in self.fields}
