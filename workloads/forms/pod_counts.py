"""The number of pods, and the fields that only one of the frameworks has."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from console.typed_forms import TypedForm
from environments.forms import text_field, whole_number_input
from workloads.specs import (
    DEFAULT_MPI,
    Configuration,
    ElasticSettings,
    Framework,
    LauncherCreation,
    MpiSettings,
)

STANDARD_FIELDS = ("runs", "parallelism")
DISTRIBUTED_FIELDS = ("workers", "clean_pod_policy")
FRAMEWORK_FIELDS: Mapping[Framework, Sequence[str]] = {
    Framework.PYTORCH: ("min_workers", "max_workers", "max_restarts"),
    Framework.TENSORFLOW: ("parameter_servers",),
    Framework.MPI: ("slots", "launcher", "ssh_path"),
}
KIND_SPECIFIC_FIELDS = frozenset(
    (
        *STANDARD_FIELDS,
        *DISTRIBUTED_FIELDS,
        *(name for names in FRAMEWORK_FIELDS.values() for name in names),
    )
)
"""Fields that not every kind of workload has.

Their typed values are kept while another kind of workload is chosen.
"""


class CountFields(TypedForm):
    """The fields of every kind of workload; `drop_other_kinds` keeps those of the chosen one."""

    workers = forms.IntegerField(
        label="Number of workers", error_messages={"required": "Say how many workers."}
    )
    min_workers = forms.IntegerField(
        label="Minimum of workers",
        required=False,
        help_text="Elastic: it starts and goes on with as few when GPUs are short.",
    )
    max_workers = forms.IntegerField(
        label="Maximum of workers",
        required=False,
        help_text="Elastic: it grows to as many when GPUs are free. At most 10,000.",
    )
    max_restarts = forms.IntegerField(
        label="Maximum of restarts",
        required=False,
        widget=whole_number_input(),
        help_text=(
            "Elastic: each pod that leaves or joins costs one. Empty: as good as without limit."
        ),
    )
    parameter_servers = forms.IntegerField(
        label="Parameter servers",
        required=False,
        widget=whole_number_input(),
        help_text=(
            "Set up as the workers are, without GPUs. Empty or 0: none; the workers keep the model "
            "together themselves."
        ),
    )
    slots = forms.IntegerField(
        label="Slots per worker",
        required=False,
        help_text=(
            "How many processes mpirun starts in each worker, usually one for each GPU. Empty: 1."
        ),
    )
    launcher = forms.ChoiceField(
        label="The launcher is made",
        choices=[(each.value, each.label) for each in LauncherCreation],
        required=False,
        help_text="Made with the workers, it may start before they do, fail, and be tried again.",
    )
    ssh_path = text_field(
        "SSH path",
        (
            "Where the keys go in the containers: the .ssh of the image's user. Empty: "
            f"{DEFAULT_MPI.ssh_path}."
        ),
    )
    runs = forms.IntegerField(
        label="Number of runs",
        error_messages={"required": "Say how many runs."},
        help_text="So many pods must end well.",
    )
    parallelism = forms.IntegerField(
        label="Runs at once",
        error_messages={"required": "Say how many at once."},
        help_text="So many of them run at the same time.",
    )

    def drop_other_kinds(self, framework: Framework | None, configuration: Configuration) -> None:
        """Drop the fields that this kind of workload does not have.

        Without a framework it is a standard one.
        """
        fields_of_kind = (
            (*DISTRIBUTED_FIELDS, *FRAMEWORK_FIELDS.get(framework, ()))
            if framework
            else STANDARD_FIELDS
        )
        for name in KIND_SPECIFIC_FIELDS.difference(fields_of_kind):
            del self.fields[name]
        if framework:
            self.fields["workers"].help_text = _describe_workers(framework, configuration)

    @property
    def framework_fields(self) -> Sequence[forms.BoundField]:
        """Return the fields that only the chosen framework has."""
        return [
            self[name]
            for names in FRAMEWORK_FIELDS.values()
            for name in names
            if name in self.fields
        ]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        bounds = cleaned.get("min_workers"), cleaned.get("max_workers")
        if cleaned.get("max_restarts") is not None and bounds == (None, None):
            self.add_error(
                "max_restarts",
                (
                    "The maximum of restarts is for elastic workloads: give a minimum or maximum "
                    "of workers, too."
                ),
            )
        return cleaned

    @property
    def elastic(self) -> ElasticSettings | None:
        """Return the elastic settings, or None.

        Either bound makes a workload elastic; the other is then the number of workers.
        """
        least, most = self.read("min_workers"), self.read("max_workers")
        if least is None and most is None:
            return None
        workers = self.read("workers", 1)
        return ElasticSettings(
            workers if least is None else least,
            workers if most is None else most,
            self.read("max_restarts"),
        )

    @property
    def mpi(self) -> MpiSettings:
        """Return the MPI settings; empty fields have MPI's defaults."""
        chosen = self.read("launcher", "")
        return MpiSettings(
            self.read("slots", DEFAULT_MPI.slots),
            LauncherCreation(chosen) if chosen else DEFAULT_MPI.launcher,
            self.read("ssh_path", "") or DEFAULT_MPI.ssh_path,
        )


def _describe_workers(framework: Framework, configuration: Configuration) -> str:
    if configuration is Configuration.WORKERS_ONLY:
        return "So many pods, all alike; the first of them has rank 0."
    return (
        f"The {framework.master_name} is not one of them: 2 workers and a {framework.master_name} "
        "are 3 pods."
    )
