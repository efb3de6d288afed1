"""What each pod gets."""

from typing import Any

from workloads.specs.fields.field import FactSection, Field, Place, PolicyData, PolicySection
from workloads.specs.fields.types import Cores, FieldType, Flag, Number, Portion, Quantity, Rows
from workloads.specs.pod_setup import ExtendedResource

MAX_GPU_DEVICES = 128

_GPUS = tuple(f"compute.gpus.{part}" for part in ("devices", "portion", "memory"))
_RANGED = frozenset(("default", "min", "max", "options"))


def _build(name: str, label: str, type_: FieldType, rest: str, **more: Any) -> Field:
    values: dict[str, Any] = {
        "place": Place.COMPUTE,
        "lock": "compute_choice",
        "fact_section": FactSection.COMPUTE,
    } | more
    return Field(
        path=f"setup.compute.{name}",
        label=label,
        type=type_,
        rest=f"compute.{rest}",
        **values,
    )


COMPUTE_FIELDS = (
    _build(
        "gpus.devices",
        "GPU devices per pod",
        Number(most=MAX_GPU_DEVICES, default=0),
        "gpuDevicesRequest",
        rest_value="setup.compute.gpus.device_count",
        form=("gpu_devices", "gpu_share"),
        fact="GPUs",
        fact_value="compute.gpus",
        title="GPUs",
        policy=PolicyData(
            section=PolicySection.COMPUTE,
            name="gpus.devices",
            value="compute.gpus.device_count",
            is_implied=True,
            given=_GPUS,
            largest=1000,
        ),
    ),
    _build(
        "gpus.portion",
        "GPU portion",
        Portion(),
        "gpuPortionRequest",
        rest_help="Of each device, above 0 and at most 1.",
        form=("gpu_percent",),
        fact_section=None,
        policy=PolicyData(
            section=PolicySection.COMPUTE,
            name="gpus.portion",
            value="compute.gpus.effective_portion",
            is_implied=True,
            given=_GPUS,
            attributes=_RANGED,
            about="Of GPUs that are asked for whole or in parts; a whole one counts as 1.",
        ),
    ),
    _build(
        "gpus.memory",
        "GPU memory",
        Quantity(),
        "gpuMemoryRequest",
        form=("gpu_memory",),
        fact_section=None,
        policy=PolicyData(
            section=PolicySection.COMPUTE,
            name="gpus.memory",
            is_implied=True,
            given=_GPUS,
            attributes=_RANGED,
            about=(
                "Of GPUs that are asked for by their memory; those asked for otherwise have the "
                "rule of the portion."
            ),
        ),
    ),
    _build(
        "cpu_request",
        "CPU request",
        Cores(),
        "cpuCoreRequest",
        fact="CPU",
        phrase="{} cores requested",
        policy=PolicyData(section=PolicySection.COMPUTE, value="compute.effective_cpu_request"),
    ),
    _build(
        "cpu_limit",
        "CPU limit",
        Cores(),
        "cpuCoreLimit",
        fact="CPU",
        phrase="at most {} cores",
        policy=PolicyData(section=PolicySection.COMPUTE, is_open=True),
    ),
    _build(
        "memory_request",
        "CPU memory request",
        Quantity(),
        "cpuMemoryRequest",
        fact="Memory",
        phrase="{} requested",
        policy=PolicyData(section=PolicySection.COMPUTE, value="compute.effective_memory_request"),
    ),
    _build(
        "memory_limit",
        "CPU memory limit",
        Quantity(),
        "cpuMemoryLimit",
        fact="Memory",
        phrase="at most {}",
        policy=PolicyData(section=PolicySection.COMPUTE, is_open=True),
    ),
    _build(
        "large_shm",
        "Increase shared memory",
        Flag(),
        "largeShmRequest",
        place=Place.NODES,
        lock="",
        fact="Shared memory",
        phrase="as large as the memory",
        policy=PolicyData(section=PolicySection.COMPUTE, is_implied=True),
    ),
    _build(
        "extended",
        "Extended resources",
        Rows(ExtendedResource, "Add resource"),
        "extendedResources",
        help="What nodes offer besides, as rdma/hca.",
        place=Place.NODES,
        lock="",
        fact="Other resources",
    ),
)
