"""The setup step: environment, compute, number of pods, data, and lifecycle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from django import forms
from django.forms import BoundField

from console.typed_forms import FormRows, TypedValues
from environments.forms import ComputeFields, build_typed_compute
from environments.models import Asset, ComputeResource, DataSource
from environments.models import Environment as EnvironmentAsset
from projects.models import Project
from workloads import asset_rules
from workloads.forms.pod_form import POD_FIELDS
from workloads.forms.setup_descriptions import describe_compute
from workloads.forms.source_fields import SourceFields
from workloads.forms.typed_fields import (
    build_blocks,
    build_default_values,
    find_field,
    list_form_names,
)
from workloads.forms.workload_form import SETUP_FIELDS, WorkloadForm
from workloads.specs import (
    Compute,
    Configuration,
    Environment,
    Framework,
    Preemptibility,
    Setup,
)
from workloads.specs.fields import Field, Place
from workloads.specs.fields.types import Rows

CUSTOM = "custom"
NOT_CHOSEN = "not-chosen"
"""An image for a spec in which no environment is chosen yet.

With it only the choice is missing, and not the image too.
"""


@dataclass(frozen=True)
class FormPlace:
    """What stands in one place of the page: fields in blocks, then rows, each with its field.

    A folded place `is_open` while it holds something to see: an error, or something typed.
    """

    blocks: Sequence[tuple[str, Sequence[BoundField]]]
    rows: Sequence[tuple[Field, FormRows[Any]]]
    is_open: bool


class SetupForm(WorkloadForm, SourceFields):
    """The workers' setup. A chosen asset gives the values.

    What is typed in its fields takes their place for this workload.
    """

    environment_choice = forms.ChoiceField(
        label="Environment",
        error_messages={
            "required": "Choose an environment, or make a new one.",
            "invalid_choice": (
                "That environment is not there any more, or does not serve this architecture. "
                "Choose another."
            ),
        },
    )
    compute_choice = forms.ChoiceField(
        label="Compute resource",
        error_messages={
            "required": "Choose a compute resource, or make a new one.",
            "invalid_choice": "That compute resource is not there any more. Choose another.",
        },
    )

    def __init__(
        self,
        data: TypedValues,
        *,
        environments: Sequence[EnvironmentAsset],
        resources: Sequence[ComputeResource],
        framework: Framework | None,
        configuration: Configuration = Configuration.WORKERS_AND_MASTER,
        sources: Sequence[DataSource] = (),
        **more: Any,
    ) -> None:
        super().__init__(data, framework=framework, configuration=configuration, **more)
        self.offer_sources(sources)
        self.environments = {str(each.pk): each for each in environments}
        self.resources = {str(each.pk): each for each in resources}
        offered: Mapping[str, Mapping[str, Asset]] = {
            "environment_choice": self.environments,
            "compute_choice": self.resources,
        }
        for name, assets in offered.items():
            self.fields[name].choices = [  # type: ignore[attr-defined]
                *((key, asset.name) for key, asset in assets.items()),
                (CUSTOM, "Own values"),
            ]
        if framework and not framework.adapter.is_leader_ranked:
            leader = framework.master_name
            launcher_note = (
                f"It is the {leader}'s: the workers wait to be told, unless the {leader} gets its "
                "own in the next step."
            )
            self.fields["command"].help_text = f"{launcher_note} {self.fields['command'].help_text}"
        for name in OVERRIDABLE_FIELDS:
            field = self.fields[name]
            field.help_text = f"{field.help_text} Empty: as the environment has it.".strip()

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if cleaned.get("compute_choice") != CUSTOM:
            # What was typed for own values does not matter while a card is chosen.
            for name in ComputeFields.base_fields:
                self.all_errors.pop(name, None)
        return cleaned

    def add_error_at_path(self, path: str, text: str) -> None:
        """Add a problem at a path of a Spec as an error of its field.

        What a chosen compute resource or data source gives is an error of that choice.
        """
        field, rest = find_field(path)
        is_custom = self.read("compute_choice") in (CUSTOM, None)
        if field is not None and field.place is Place.COMPUTE and not is_custom:
            self.add_error_once("compute_choice", text)
            return
        number, _, source_field = rest.partition(".")
        if field is not None and field.name == "volumes" and number:
            source = int(number) - len(self.rows["volumes"].filled_rows)
            if source >= 0:
                self.add_source_error(source, source_field, text)
                return
        super().add_error_at_path(path, text)

    @property
    def setup(self) -> Setup:
        """Return the workers' setup: what the chosen assets give, and what was typed beside."""
        typed = super().setup
        return replace(
            typed,
            environment=self._complete_environment(typed.environment),
            compute=self._complete_compute(typed.compute),
            volumes=(*typed.volumes, *self.source_volumes),
        )

    def _complete_environment(self, typed: Environment) -> Environment:
        asset = self.environments.get(self.read("environment_choice", ""))
        if asset is not None:
            return override_environment(asset_rules.build_environment(vars(asset)), typed)
        if self.read("environment_choice") == CUSTOM:
            return typed
        return replace(typed, image=typed.image or NOT_CHOSEN)

    def _complete_compute(self, typed: Compute) -> Compute:
        if self.read("compute_choice") == CUSTOM:
            return typed
        asset = self.resources.get(self.read("compute_choice", ""))
        chosen = asset_rules.build_compute(vars(asset)) if asset else Compute()
        return override_compute(chosen, typed)

    @property
    def resource_cards(self) -> list[tuple[str, ComputeResource, str]]:
        """Return each compute resource with its key and a description of what it gives."""
        return [
            (key, asset, describe_compute(asset_rules.build_compute(vars(asset))))
            for key, asset in self.resources.items()
        ]

    @property
    def places(self) -> Mapping[str, FormPlace]:
        """Return what stands in each place of the page."""
        return {place.value: self._build_place(place) for place in Place}

    def _build_place(self, place: Place) -> FormPlace:
        placed = [each for each in SETUP_FIELDS if each.place is place]
        bound = [self[name] for name in list_form_names(placed).fields if name in self.fields]
        rows = [(each, self.rows[each.name]) for each in placed if each.name in self.rows]
        is_custom = self.read("environment_choice") == CUSTOM
        is_open = (
            (place is Place.ENVIRONMENT and is_custom)
            or any(each.errors or _is_changed(each) for each in bound)
            or any(each.all or each.errors for _, each in rows)
        )
        return FormPlace(build_blocks(bound), rows, is_open)


def _is_changed(bound: BoundField) -> bool:
    """Tell whether a field has another value than where nothing was typed."""
    return bool((bound.value() or "") != _DEFAULT_VALUES.get(bound.name, [""])[0])


ENVIRONMENT_FIELDS = tuple(each for each in POD_FIELDS if each.place is Place.ENVIRONMENT)
OVERRIDABLE_FIELDS = tuple(
    each.name
    for each in ENVIRONMENT_FIELDS
    if not isinstance(each.type, Rows) and hasattr(EnvironmentAsset, each.name)
)
"""The fields of an environment asset that can be typed for one workload.

Empty ones stay as they are.
"""


def override_environment(chosen: Environment, own: Environment) -> Environment:
    """Return a chosen environment with what was typed for this workload.

    Its variables follow the typed ones, except those of the same names.
    """
    named = {variable.name for variable in own.variables}
    # The rows come first, so that problems of the n-th variable are those of the n-th row.
    variables = (
        *own.variables,
        *(variable for variable in chosen.variables if variable.name not in named),
    )
    overrides = {each.name: value for each in fields(own) if (value := getattr(own, each.name))}
    return replace(chosen, **(overrides | {"variables": variables}))


_COMPUTE_OVERRIDES = tuple(
    each.name
    for each in POD_FIELDS
    if each.path.startswith("setup.compute.") and each.place is not Place.COMPUTE
)
"""What of compute is typed beside a chosen compute resource, such as shared memory."""


def override_compute(chosen: Compute, own: Compute) -> Compute:
    """Return a chosen compute resource's values with what was typed beside it."""
    overrides = {name: value for name in _COMPUTE_OVERRIDES if (value := getattr(own, name))}
    return replace(chosen, **overrides)


_DEFAULT_VALUES = build_default_values(
    each for each in SETUP_FIELDS if each.place is not Place.COMPUTE
)


def build_setup_defaults() -> TypedValues:
    """Return the values of the step before anything is typed."""
    own_compute = build_typed_compute(vars(ComputeResource(gpu_devices=0)))
    return own_compute | _DEFAULT_VALUES | {"environment_choice": [""], "compute_choice": [""]}


def build_project_defaults(project: Project | None) -> TypedValues:
    """Return the values that a project presets where nobody chose."""
    if project is None or project.default_preemptible:
        return {}
    return {"preemptibility": [Preemptibility.NON_PREEMPTIBLE.value]}
