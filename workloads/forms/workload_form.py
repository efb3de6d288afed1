"""A form of one kind of workload: its pods' setup, how many they are, and its lifecycle."""

from collections.abc import Sequence
from typing import Any

from console.typed_forms import TypedValues
from workloads.forms.pod_form import PodForm
from workloads.forms.typed_fields import list_form_names
from workloads.specs import (
    Architecture,
    Configuration,
    DataDelivery,
    ElasticSettings,
    Framework,
    list_options,
)
from workloads.specs.building import build_part, take_part
from workloads.specs.fields import FIELDS, Field, Place
from workloads.specs.fields.delivery import DELIVERY_FIELDS

SETUP_FIELDS = tuple(each for each in FIELDS.values() if each.place is not Place.START)
"""The fields of the setup step, for every kind of workload."""
KIND_SPECIFIC_NAMES = list_form_names(
    each for each in SETUP_FIELDS if each.architecture or each.option
)
"""The form fields that not every kind of workload has.

Their typed values are kept while another kind of workload is chosen.
"""
_OPTIONS = frozenset(option for framework in Framework for option in framework.options)
BOTH_BOUNDS = (
    "With the GPUs in all an elastic workload needs both the minimum and the maximum of pods: "
    "their number is worked out."
)


def list_setup_fields(framework: Framework | None) -> Sequence[Field]:
    """Return the fields of the setup step; without a framework those of a standard workload."""
    architecture = Architecture.DISTRIBUTED if framework else Architecture.STANDARD
    missing = _OPTIONS.difference(list_options(framework))
    return [
        each
        for each in SETUP_FIELDS
        if each.architecture in (None, architecture) and each.option_key not in missing
    ]


class WorkloadForm(PodForm):
    """The fields that a workload of one framework, or a standard one, has in the setup step."""

    def __init__(
        self,
        data: TypedValues,
        *,
        framework: Framework | None,
        configuration: Configuration,
        **more: Any,
    ) -> None:
        super().__init__(data, fields=list_setup_fields(framework), **more)
        self._has_master = configuration is Configuration.WORKERS_AND_MASTER
        if framework:
            self.fields["workers"].help_text = _describe_workers(framework, configuration)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        bounds = cleaned.get("min_pods"), cleaned.get("max_pods")
        if cleaned.get("total_gpus") is not None:
            # The number of workers is worked out, so what is typed there does not matter.
            self.all_errors.pop("workers", None)
            if bounds.count(None) == 1:
                missing = "min_pods" if bounds[0] is None else "max_pods"
                self.add_error(missing, BOTH_BOUNDS)
        if cleaned.get("max_restarts") is not None and bounds == (None, None):
            self.add_error(
                "max_restarts",
                (
                    "The maximum of restarts is for elastic workloads: give a minimum or maximum "
                    "of pods, too."
                ),
            )
        delivery_fields = [
            each for each in list_form_names(DELIVERY_FIELDS).fields if cleaned.get(each)
        ]
        if delivery_fields and cleaned.get("data_workers") is None:
            self.add_error(
                "data_workers",
                "Say how many data workers there are, or leave everything about them empty.",
            )
        return cleaned

    @property
    def workload_values(self) -> dict[str, Any]:
        """Return what was typed about the whole workload, by paths of a Spec."""
        values = self.read_values(each for each in SETUP_FIELDS if not each.is_of_pods)
        if "total_gpus" in values:
            values.pop("workers", None)
        elastic = take_part(values, "elastic")
        delivery = take_part(values, "data_delivery")
        if "workers" in delivery:
            values["data_delivery"] = build_part(DataDelivery, {"units": 0} | delivery)
        if "min_pods" in elastic or "max_pods" in elastic:
            # Either bound makes it elastic; the other is then the number of pods.
            pods = values.get("workers", 1) + int(self._has_master)
            values["elastic"] = ElasticSettings(**({"min_pods": pods, "max_pods": pods} | elastic))
        return values


def _describe_workers(framework: Framework, configuration: Configuration) -> str:
    if configuration is Configuration.WORKERS_ONLY:
        return "So many pods, all alike; the first of them has rank 0."
    return (
        f"The {framework.master_name} is not one of them: 2 workers and a {framework.master_name} "
        "are 3 pods."
    )
