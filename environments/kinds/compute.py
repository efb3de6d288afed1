"""Compute resources: what each pod gets."""

from typing import Any

from console.tables import Column
from environments.forms import ComputeResourceForm
from environments.kinds.columns import field
from environments.kinds.recipe import Kind
from environments.models import ComputeResource


def of_each_device(row: Any) -> str:
    """What is asked for of each GPU device, in words."""
    if row.gpu_memory:
        return str(row.gpu_memory)
    if row.gpu_portion is not None:
        return f"{float(row.gpu_portion * 100):g} %"
    return "100 %" if row.gpu_devices else ""


COMPUTE = Kind(
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
        field("gpu_devices", "GPU devices per pod", sorts=True, is_number=True),
        Column("gpu_memory", "GPU memory per device", of_each_device),
        field("memory_request", "CPU memory request"),
        field("memory_limit", "CPU memory limit", is_extra=True),
        field("cpu_request", "CPU compute request"),
        field("cpu_limit", "CPU compute limit", is_extra=True),
    ),
    held_by=("template",),
    fields_template="environments/_compute_fields.html",
)
