"""The setup step: environment, compute, number of pods, data, and lifecycle."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django import forms

from console.typed_forms import TypedValues
from environments.forms import ComputeFields, build_typed_compute, whole_number_input
from environments.models import ComputeResource, DataSource
from environments.models import Environment as EnvironmentAsset
from projects.models import Project
from workloads import asset_rules
from workloads.forms.credential_choices import CredentialChoice
from workloads.forms.pod_counts import CountFields
from workloads.forms.pod_form import PART_FIELDS, SECURITY_FIELDS, PodForm
from workloads.forms.setup_descriptions import describe_compute
from workloads.forms.source_fields import SourceFields
from workloads.specs import (
    CleanPodPolicy,
    Compute,
    Configuration,
    Environment,
    Framework,
    Lifecycle,
    Preemptibility,
    Priority,
    RestartPolicy,
    Setup,
)

CUSTOM = "custom"
MAX_GRACE_SECONDS = 300
NOT_CHOSEN = "not-chosen"
"""An image for a spec in which no environment is chosen yet.

With it only the choice is missing, and not the image too.
"""


def _build_optional_choices(enum: Any, empty_label: str) -> list[tuple[str, str]]:
    return [("", empty_label), *((each.value, getattr(each, "label", each.value)) for each in enum)]


class SetupForm(PodForm, CountFields, SourceFields):
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
    priority = forms.ChoiceField(
        label="Priority",
        choices=_build_optional_choices(Priority, "The cluster's default (low)"),
        required=False,
        help_text="Higher goes first.",
    )
    preemptibility = forms.ChoiceField(
        label="Preemptibility",
        choices=[
            (Preemptibility.PREEMPTIBLE.value, "Preemptible"),
            (Preemptibility.NON_PREEMPTIBLE.value, "Non-preemptible"),
        ],
        help_text=(
            "Preemptible work may use GPUs beyond the project's quota, and gives them back when "
            "others need theirs."
        ),
    )
    grace_seconds = forms.IntegerField(
        label="Grace period on preemption, in seconds",
        required=False,
        max_value=MAX_GRACE_SECONDS,
        widget=whole_number_input(),
        help_text="0 to 300. Empty: the cluster's default, 30.",
        error_messages={
            "max_value": "The grace period must be at most 300 seconds, which is 5 minutes."
        },
    )
    backoff_limit = forms.IntegerField(
        label="Backoff limit",
        error_messages={"required": "Say how often to try again."},
        help_text="How often to try again after failures; 0 to 100.",
    )
    auto_delete_seconds = forms.IntegerField(
        label="Auto-deletion after the end, in seconds",
        required=False,
        help_text=(
            "Of completed and failed workloads; 0 deletes at once. Empty: it stays until somebody "
            "deletes it."
        ),
    )
    restart_policy = forms.ChoiceField(
        label="Restart policy",
        choices=_build_optional_choices(RestartPolicy, "The framework's default"),
        required=False,
        help_text=(
            "ExitCode tries again what a signal ended; codes up to 127 are final. Standard and MPI "
            "take OnFailure and Never only."
        ),
    )
    clean_pod_policy = forms.ChoiceField(
        label="Pods to delete at the end",
        choices=_build_optional_choices(CleanPodPolicy, "The framework's default"),
        required=False,
        help_text="None keeps pods that still run, and their GPUs.",
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
        credentials: Sequence[CredentialChoice] = (),
        storage_classes: Sequence[str] = (),
        quiet: bool = True,
    ) -> None:
        super().__init__(
            data, storage_classes=storage_classes, credentials=credentials, quiet=quiet
        )
        self.offer_sources(sources)
        self.environments = {str(each.pk): each for each in environments}
        self.resources = {str(each.pk): each for each in resources}
        custom_choice = (CUSTOM, "Own values")
        self.fields["environment_choice"].choices = [  # type: ignore[attr-defined]
            *((key, asset.name) for key, asset in self.environments.items()),
            custom_choice,
        ]
        self.fields["compute_choice"].choices = [  # type: ignore[attr-defined]
            *((key, asset.name) for key, asset in self.resources.items()),
            custom_choice,
        ]
        self.drop_other_kinds(framework, configuration)
        if framework is Framework.MPI:
            launcher_note = (
                "It is the launcher's: the workers wait to be told, unless the launcher gets its "
                "own in the next step."
            )
            self.fields["command"].help_text = f"{launcher_note} {self.fields['command'].help_text}"
        for name in ("command", "args", "working_dir", "image", "pull_policy"):
            self.fields[
                name
            ].help_text = f"{self.fields[name].help_text} Empty: as the environment has it.".strip()

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if cleaned.get("compute_choice") != CUSTOM:
            # What was typed for own values does not matter while a card is chosen.
            for name in ComputeFields.base_fields:
                self.all_errors.pop(name, None)
        return cleaned

    def add_error_at_path(self, path: str, text: str) -> None:
        """Add a problem at a path of a Setup as an error of its field.

        What a chosen compute resource or data source gives is an error of that choice.
        """
        part, _, rest = path.partition(".")
        field = PART_FIELDS["compute"].get(rest, rest)
        is_custom = self.read("compute_choice") in (CUSTOM, None)
        if (
            part == "compute"
            and field in ComputeFields.base_fields
            and field != "large_shm"
            and not is_custom
        ):
            self.add_error_once("compute_choice", text)
        elif (
            part == "volumes"
            and (number := rest.partition(".")[0]).isdecimal()
            and int(number) >= len(self.rows["volumes"].filled_rows)
        ):
            self.add_source_error(
                int(number) - len(self.rows["volumes"].filled_rows), rest.partition(".")[2], text
            )
        else:
            super().add_error_at_path(path, text)

    @property
    def environment(self) -> Environment:
        typed = super().environment
        asset = self.environments.get(self.read("environment_choice", ""))
        if asset is None:
            return (
                typed
                if self.read("environment_choice") == CUSTOM
                else replace(typed, image=typed.image or NOT_CHOSEN)
            )
        return override_environment(asset_rules.build_environment(vars(asset)), typed)

    @property
    def compute(self) -> Compute:
        asset = self.resources.get(self.read("compute_choice", ""))
        if asset is not None:
            chosen = asset_rules.build_compute(vars(asset))
        else:
            chosen = super().compute if self.read("compute_choice") == CUSTOM else Compute()
        return replace(
            chosen,
            large_shm=chosen.large_shm or bool(self.read("large_shm")),
            extended=self.build_row_parts("extended"),
        )

    @property
    def resource_cards(self) -> list[tuple[str, ComputeResource, str]]:
        """Return each compute resource with its key and a description of what it gives."""
        return [
            (key, asset, describe_compute(asset_rules.build_compute(vars(asset))))
            for key, asset in self.resources.items()
        ]

    @property
    def open_sections(self) -> dict[str, bool]:
        """Return which of the folded sections are open.

        A section is open while it holds something to see: an error, or something typed.
        """
        custom = self.read("environment_choice") == CUSTOM
        is_open = {
            name: self._has_content(names, rows) for name, (names, rows) in _FOLDED_SECTIONS.items()
        }
        return is_open | {"environment": is_open["environment"] or custom}

    def _has_content(self, names: Sequence[str], rows: Sequence[str]) -> bool:
        fields = [self[name] for name in names if name in self.fields]
        typed = any(
            bound.errors or (bound.value() or "") != (_DEFAULT_VALUES.get(bound.name, ""))
            for bound in fields
        )
        return typed or any(self.rows[name].all or self.rows[name].errors for name in rows)

    @property
    def setup(self) -> Setup:
        return Setup(
            environment=self.environment,
            compute=self.compute,
            volumes=(*self.build_row_parts("volumes"), *self.source_volumes),
            tolerations=self.build_row_parts("tolerations"),
            node_type=self.read("node_type", ""),
            node_pools=self.read("node_pools", ()),
            topology=self.topology,
            annotations=self.build_row_parts("annotations"),
            labels=self.build_row_parts("labels"),
            security=self.security,
        )

    @property
    def lifecycle(self) -> Lifecycle:
        def chosen(name: str, enum: Any) -> Any:
            return enum(value) if (value := self.read(name)) else None

        return Lifecycle(
            priority=chosen("priority", Priority),
            preemptibility=chosen("preemptibility", Preemptibility),
            backoff_limit=self.read("backoff_limit", Lifecycle().backoff_limit),
            restart_policy=chosen("restart_policy", RestartPolicy),
            clean_pod_policy=chosen("clean_pod_policy", CleanPodPolicy),
            grace_seconds=self.read("grace_seconds"),
            auto_delete_seconds=self.read("auto_delete_seconds"),
        )


OVERRIDABLE_FIELDS = ("image", "pull_policy", "command", "args", "working_dir")
"""The fields of an environment that can be typed for one workload.

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
    overrides = {name: value for name in OVERRIDABLE_FIELDS if (value := getattr(own, name))}
    return replace(chosen, pull_secrets=own.pull_secrets, variables=variables, **overrides)


_DEFAULT_VALUES = {"backoff_limit": "6", "preemptibility": Preemptibility.PREEMPTIBLE.value}
_FOLDED_SECTIONS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "environment": (
        ("image", "pull_policy", "command", "args", "working_dir", "pull_secrets"),
        ("variables",),
    ),
    "security": (SECURITY_FIELDS, ()),
    "compute": (
        ("node_type", "node_pools", "topology_key", "topology_required", "large_shm"),
        ("extended", "tolerations"),
    ),
    "general": (
        (
            "priority",
            "preemptibility",
            "grace_seconds",
            "backoff_limit",
            "auto_delete_seconds",
            "restart_policy",
            "clean_pod_policy",
        ),
        ("annotations", "labels"),
    ),
}
"""The folded sections of the page: their fields, and their rows."""


def build_setup_defaults() -> TypedValues:
    """Return the values of the step before anything is typed."""
    blank = dict.fromkeys(
        ("environment_choice", "compute_choice", "min_workers", "max_workers"), ""
    )
    numbers = {"workers": "1", "runs": "1", "parallelism": "1", "backoff_limit": "6"}
    general = {"preemptibility": Preemptibility.PREEMPTIBLE.value, "priority": "", "slots": "1"}
    own_compute = build_typed_compute(vars(ComputeResource(gpu_devices=0)))
    return own_compute | {name: [value] for name, value in (blank | numbers | general).items()}


def build_project_defaults(project: Project | None) -> TypedValues:
    """Return the values that a project presets where nobody chose."""
    if project is None or project.default_preemptible:
        return {}
    return {"preemptibility": [Preemptibility.NON_PREEMPTIBLE.value]}
