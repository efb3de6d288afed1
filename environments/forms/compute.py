"""What each pod gets: the fields, as they are asked for everywhere, and the form of a compute
resource.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django import forms

from console.typed import Typed, TypedForm
from environments.forms.asset import AssetForm
from environments.forms.fields import HUNDRED, percent, whole, words
from environments.models import Asset, ComputeResource
from environments.rest import FLAG, TEXT, WHOLE, Part, Rest, choice, cores, portion


class ComputeFields(TypedForm):
    """What each pod gets, as it is asked for everywhere."""

    gpu_devices = forms.IntegerField(
        label="GPU devices per pod",
        required=False,
        initial=0,
        widget=whole(),
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
    gpu_percent = percent(2)
    gpu_memory = words("GPU memory of each device", "A number with a unit, such as 500M or 8Gi.")
    cpu_request = words(
        "CPU request", "Cores such as 0.1 or 2, or thousandths of one such as 500m.", initial="0.1"
    )
    cpu_limit = words("CPU limit", "Empty: no limit.")
    memory_request = words(
        "CPU memory request", "A number with a unit, such as 100M or 1Gi.", initial="100M"
    )
    memory_limit = words(
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
        if missing and missing not in self.wrong and not cleaned.get(missing):
            self.add_error(missing, "Say how much of each device, or choose the whole device.")
        return cleaned

    @property
    def compute_values(self) -> dict[str, Any]:
        """By the names of the fields of a ComputeResource."""
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


COMPUTE_PLACES = {"gpu_portion": "gpu_percent"}
"""Where the form shows a field of a ComputeResource under another name."""


def typed_compute(values: Mapping[str, Any]) -> Typed:
    """The values of a ComputeResource as if they had been typed."""
    portion = values["gpu_portion"]
    share = "memory" if values["gpu_memory"] else "whole" if portion is None else "portion"
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
    places = COMPUTE_PLACES
    rest = Rest(
        "compute",
        (
            Part("spec.gpuDevicesRequest", "gpu_devices", WHOLE),
            Part(
                "spec.gpuRequestType",
                "gpu_share",
                choice(whole="whole", portion="portion", memory="memory"),
            ),
            Part("spec.gpuPortionRequest", "gpu_percent", portion),
            Part("spec.gpuMemoryRequest", "gpu_memory", TEXT),
            Part("spec.cpuCoreRequest", "cpu_request", cores),
            Part("spec.cpuCoreLimit", "cpu_limit", cores),
            Part("spec.cpuMemoryRequest", "memory_request", TEXT),
            Part("spec.cpuMemoryLimit", "memory_limit", TEXT),
            Part("spec.largeShmRequest", "large_shm", FLAG),
        ),
    )

    # A tenth of a percent is what the row can hold.
    gpu_percent = percent(1)

    @property
    def values(self) -> dict[str, Any]:
        return super().values | self.compute_values

    @classmethod
    def typed_of(cls, asset: Asset) -> Typed:
        return typed_compute(vars(asset))
