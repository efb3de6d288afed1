"""Forms of assets. A form is what a kind of asset is asked for by, on pages, in the wizard and over
REST alike.
"""

from console.typed import Typed
from environments.forms.asset import AssetForm, defaults_of, first_scope, typed_asset
from environments.forms.compute import (
    COMPUTE_PLACES,
    ComputeFields,
    ComputeResourceForm,
    typed_compute,
)
from environments.forms.environment import EnvironmentForm
from environments.forms.fields import HUNDRED, VariableRow, lines, percent, whole, words

__all__ = [
    "COMPUTE_PLACES",
    "FORMS",
    "HUNDRED",
    "AssetForm",
    "ComputeFields",
    "ComputeResourceForm",
    "EnvironmentForm",
    "VariableRow",
    "defaults",
    "defaults_of",
    "first_scope",
    "lines",
    "percent",
    "typed_asset",
    "typed_compute",
    "whole",
    "words",
]

FORMS: dict[str, type[AssetForm]] = {
    form.kind: form for form in (EnvironmentForm, ComputeResourceForm)
}
"""Those that a workload's wizard makes in place."""


def defaults(kind: str, scope: str) -> Typed:
    """One of these before anything is typed."""
    return defaults_of(FORMS[kind], scope)
