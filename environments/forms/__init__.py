"""Forms of assets, the same for pages, the wizard and the REST API."""

from console.typed_forms import TypedValues
from environments.forms.asset import (
    AssetForm,
    build_defaults,
    build_typed_asset,
    choose_first_scope,
)
from environments.forms.compute import (
    COMPUTE_RENAMED_FIELDS,
    ComputeFields,
    ComputeResourceForm,
    build_typed_compute,
)
from environments.forms.environment import EnvironmentForm
from environments.forms.fields import (
    HUNDRED,
    VariableRow,
    lines_field,
    percent_field,
    text_field,
    whole_number_input,
)

__all__ = [
    "COMPUTE_RENAMED_FIELDS",
    "FORMS",
    "HUNDRED",
    "AssetForm",
    "ComputeFields",
    "ComputeResourceForm",
    "EnvironmentForm",
    "VariableRow",
    "build_defaults",
    "build_kind_defaults",
    "build_typed_asset",
    "build_typed_compute",
    "choose_first_scope",
    "lines_field",
    "percent_field",
    "text_field",
    "whole_number_input",
]

FORMS: dict[str, type[AssetForm]] = {
    form.kind: form for form in (EnvironmentForm, ComputeResourceForm)
}
"""The forms of assets that a workload's wizard creates in place."""


def build_kind_defaults(kind: str, scope: str) -> TypedValues:
    """Return the typed values of a new asset of this kind before anything is typed."""
    return build_defaults(FORMS[kind], scope)
