"""The fields for the resources of each pod, and the form of a compute resource."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django import forms

from console.typed_forms import TypedForm, TypedValues
from environments.forms.asset import AssetForm
from environments.forms.fields import HUNDRED, percent_field, text_field, whole_number_input
from environments.models import Asset, ComputeResource
from environments.rest_mapping import (
    CORES,
    FLAG,
    PORTION,
    TEXT,
    WHOLE,
    BodyPart,
    RestMapping,
    build_choice_shape,
)


class ComputeFields(TypedForm):
    """The fields for the resources of each pod."""

    gpu_devices = forms.IntegerField(
        label="GPU devices per pod",
        required=False,
        initial=0,
        widget=whole_number_input(),
        help_text="0 means that no GPU is used.",
    )
    gpu_share = forms.ChoiceField(
        label="Of each device",
        choices=[
            ("whole", "The whole device"),
            ("portion", "A part of it, in %"),
            ("memory", "Some of its memory"),
        ],
        required=False,
        initial="whole",
    )
    gpu_percent = percent_field(2)
    gpu_memory = text_field(
        "GPU memory of each device", "A number with a unit, such as 500M or 8Gi."
    )
    cpu_request = text_field(
        "CPU request", "Cores such as 0.1 or 2, or thousandths of one such as 500m.", initial="0.1"
    )
    cpu_limit = text_field("CPU limit", "Empty: no limit.")
    memory_request = text_field(
        "CPU memory request", "A number with a unit, such as 100M or 1Gi.", initial="100M"
    )
    memory_limit = text_field(
        "CPU memory limit", "Empty: no limit. A container that goes over its limit is killed."
    )
    large_shm = forms.BooleanField(
        label="Increase shared memory",
        required=False,
        help_text=(
            "More than the usual 64 MB at /dev/shm: data loaders with several processes need it."
        ),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        missing = {"portion": "gpu_percent", "memory": "gpu_memory"}.get(
            cleaned.get("gpu_share") or ""
        )
        if missing and missing not in self.all_errors and not cleaned.get(missing):
            self.add_error(missing, "Say how much of each device, or choose the whole device.")
        return cleaned

    @property
    def compute_values(self) -> dict[str, Any]:
        """The values by the names of the fields of a ComputeResource."""
        share = self.read("gpu_share")
        percent = self.read("gpu_percent")
        texts = ("cpu_request", "cpu_limit", "memory_request", "memory_limit")
        return {
            "gpu_devices": self.read("gpu_devices", 0),
            "gpu_portion": percent / HUNDRED
            if share == "portion" and percent is not None
            else None,
            "gpu_memory": self.read("gpu_memory", "") if share == "memory" else "",
            "large_shm": self.read("large_shm", False),
        } | {name: self.read(name, "") for name in texts}


COMPUTE_RENAMED_FIELDS = {"gpu_portion": "gpu_percent"}
"""Fields of a ComputeResource that have another name in the form."""


def build_typed_compute(values: Mapping[str, Any]) -> TypedValues:
    """Return the values of a ComputeResource as if they had been typed."""
    portion = values["gpu_portion"]
    share = "whole" if portion is None else "portion"
    if values["gpu_memory"]:
        share = "memory"
    percent = "" if portion is None else f"{Decimal(portion) * HUNDRED:f}"
    texts = {
        name: str(values[name])
        for name in ("cpu_request", "cpu_limit", "memory_request", "memory_limit")
    }
    texts |= {
        "gpu_devices": str(values["gpu_devices"]),
        "gpu_share": share,
        "gpu_memory": values["gpu_memory"],
    }
    texts["gpu_percent"] = percent.rstrip("0").rstrip(".") if "." in percent else percent
    return {name: [text] for name, text in texts.items()} | (
        {"large_shm": ["on"]} if values["large_shm"] else {}
    )


class ComputeResourceForm(AssetForm, ComputeFields):
    kind = "compute"
    model = ComputeResource
    renamed_fields = COMPUTE_RENAMED_FIELDS
    rest = RestMapping(
        "compute",
        (
            BodyPart("spec.gpuDevicesRequest", "gpu_devices", WHOLE),
            BodyPart(
                "spec.gpuRequestType",
                "gpu_share",
                build_choice_shape(whole="whole", portion="portion", memory="memory"),
            ),
            BodyPart("spec.gpuPortionRequest", "gpu_percent", PORTION),
            BodyPart("spec.gpuMemoryRequest", "gpu_memory", TEXT),
            BodyPart("spec.cpuCoreRequest", "cpu_request", CORES),
            BodyPart("spec.cpuCoreLimit", "cpu_limit", CORES),
            BodyPart("spec.cpuMemoryRequest", "memory_request", TEXT),
            BodyPart("spec.cpuMemoryLimit", "memory_limit", TEXT),
            BodyPart("spec.largeShmRequest", "large_shm", FLAG),
        ),
    )

    # A tenth of a percent is what the row can hold.
    gpu_percent = percent_field(1)

    @property
    def values(self) -> dict[str, Any]:
        return super().values | self.compute_values

    @classmethod
    def build_typed(cls, asset: Asset) -> TypedValues:
        return build_typed_compute(vars(asset))
