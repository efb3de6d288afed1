"""Forms of assets. A form is what a kind of asset is asked for by, on pages, in the wizard and over
REST alike.
"""

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
"""Those that a workload's wizard makes in place."""


def build_kind_defaults(kind: str, scope: str) -> TypedValues:
    """One of these before anything is typed."""
    return build_defaults(FORMS[kind], scope)
