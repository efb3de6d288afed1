"""A form of everything about one kind of pod.

The workers' setup and the master's changes both use it.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from console.typed_forms import FormRows, TypedValues
from environments.forms import ComputeFields
from workloads.forms.credential_choices import CredentialChoice
from workloads.forms.row_forms import RENAMED_VOLUME_FIELDS, VariableRow
from workloads.forms.typed_fields import (
    build_form_fields,
    build_typed_values,
    find_field,
    get_row_form,
    read_value,
)
from workloads.specs import Gpus, Setup
from workloads.specs.building import build_part
from workloads.specs.fields import FIELDS, Field, Place
from workloads.specs.fields.types import Rows

POD_FIELDS = tuple(each for each in FIELDS.values() if each.is_of_pods)
GPU_SHARES = {"portion": "setup.compute.gpus.portion", "memory": "setup.compute.gpus.memory"}
"""The fields that count for each choice of `gpu_share`, beside the whole device."""
_SETUP = "setup."


class PodForm(ComputeFields):
    """The fields of a Setup. Empty ones are left to the image, the cluster or the chosen asset.

    `fields` are those of the catalogue that the form has, `storage_classes` those of the cluster,
    for a new claim to choose from; `credentials` are those that variables can use.
    """

    def __init__(
        self,
        data: TypedValues,
        *,
        fields: Sequence[Field] = POD_FIELDS,
        storage_classes: Sequence[str] = (),
        credentials: Sequence[CredentialChoice] = (),
        quiet: bool = True,
        **more: Any,
    ) -> None:
        super().__init__(data, quiet=quiet, **more)
        built = build_form_fields(each for each in fields if each.place is not Place.COMPUTE)
        # The fields of a compute resource, shared memory among them, are as its own form has them.
        self.fields = built | self.fields
        self.storage_classes = storage_classes
        self.rows: Mapping[str, FormRows[Any]] = {
            each.name: FormRows(each.name, _bind_row(each.type, credentials), data, quiet=quiet)
            for each in fields
            if isinstance(each.type, Rows)
        }

    def show_errors(self, quiet: bool = False) -> None:
        """Show errors from now on, those of rows too; with `quiet`, hide them."""
        self.quiet = quiet
        for each in self.rows.values():
            each.quiet = quiet

    @property
    def shows_row_errors(self) -> bool:
        """Tell whether errors of rows show."""
        return not self.quiet and any(each.has_errors for each in self.rows.values())

    @property
    def has_field_or_row_errors(self) -> bool:
        """Tell whether a field or a row is wrong, whether its error shows or not."""
        return self.has_errors or any(each.has_errors for each in self.rows.values())

    def read_values(self, fields: Iterable[Field]) -> dict[str, Any]:
        """Return what the form gives for these fields, by their paths; without what is empty."""
        values = {each.path: read_value(self, self.rows, each) for each in fields}
        return {path: value for path, value in values.items() if value is not None}

    @property
    def setup(self) -> Setup:
        """Return the Setup that was typed."""
        values = {f"{_SETUP}environment.image": ""} | self.read_values(POD_FIELDS)
        for share, path in GPU_SHARES.items():
            if self.read("gpu_share") != share:
                values.pop(path, None)
        return build_part(
            Setup, {path.removeprefix(_SETUP): value for path, value in values.items()}
        )

    def add_error_at_path(self, path: str, text: str) -> None:
        """Add a problem at a path of a Spec as an error of its field.

        Paths are such as "setup.environment.image" or "setup.volumes.1.path", or the name of a
        form field; without a field of its own the error stands above all fields.
        """
        field, rest = find_field(path)
        if field is None:
            self.add_error_once(path, text)
        elif field.name not in self.rows:
            names = (name for name in field.form_names if name.endswith(rest))
            self.add_error_once(next(names, field.form_names[0]), text)
        elif rest:
            number, _, name = rest.partition(".")
            self._add_row_error(field.name, int(number), name, text)
        else:
            self.rows[field.name].add_error_once(text)

    def _add_row_error(self, name: str, number: int, field: str, text: str) -> None:
        filled = self.rows[name].filled_rows
        if not 0 <= number < len(filled):
            self.add_error_once(None, text)
            return
        row = filled[number]
        row.add_error_once(
            field if field in row.fields else RENAMED_VOLUME_FIELDS.get(field, field), text
        )


def _bind_row(type_: Rows, credentials: Sequence[CredentialChoice]) -> Any:
    row_form = get_row_form(type_)
    return partial(row_form, credentials=credentials) if row_form is VariableRow else row_form


def build_setup_values(setup: Setup, fields: Iterable[Field] = POD_FIELDS) -> TypedValues:
    """Return a setup as it would be typed, or these fields of it."""
    return build_typed_values(setup, fields) | _build_gpu_values(setup.compute.gpus)


def _build_gpu_values(gpus: Gpus) -> TypedValues:
    """Return the choice of whole devices or parts of them, and how many there are at least."""
    share = "whole" if gpus.portion is None else "portion"
    return {
        "gpu_share": ["memory" if gpus.memory else share],
        "gpu_devices": [str(gpus.device_count)],
    }
