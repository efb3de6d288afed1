"""Compute resources: the resources of each pod."""

from typing import Any

from console.tables import Column
from environments.forms import ComputeResourceForm
from environments.kinds.asset_kind import AssetKind
from environments.kinds.columns import build_field_column
from environments.models import ComputeResource


def describe_device_share(row: Any) -> str:
    """Say which part of each GPU device is requested."""
    if row.gpu_memory:
        return str(row.gpu_memory)
    if row.gpu_portion is not None:
        return f"{float(row.gpu_portion * 100):g} %"
    return "100 %" if row.gpu_devices else ""


COMPUTE = AssetKind(
    key="compute",
    model=ComputeResource,
    forms={"": ComputeResourceForm},
    path="compute-resources",
    name="compute-resources",
    url="compute-resource",
    noun="compute resource",
    icon="cpu",
    about=(
        "GPU devices or parts of them, CPU and memory of each pod. A workload copies them when it "
        "is submitted."
    ),
    fields=(
        *(
            "gpu_devices",
            "gpu_portion",
            "gpu_memory",
            "cpu_request",
            "cpu_limit",
            "memory_request",
            "memory_limit",
        ),
        "large_shm",
    ),
    columns=(
        build_field_column("gpu_devices", "GPU devices per pod", is_sortable=True, is_number=True),
        Column("gpu_memory", "GPU memory per device", describe_device_share),
        build_field_column("memory_request", "CPU memory request"),
        build_field_column("memory_limit", "CPU memory limit", is_extra=True),
        build_field_column("cpu_request", "CPU compute request"),
        build_field_column("cpu_limit", "CPU compute limit", is_extra=True),
    ),
    blocked_by=("template",),
    fields_template="environments/_compute_fields.html",
)
