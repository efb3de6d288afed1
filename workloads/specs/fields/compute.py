"""What each pod gets."""

from collections.abc import Iterator
from typing import Any

from workloads.specs.fields.field import FactSection, Field, Place, PolicyData, PolicySection
from workloads.specs.fields.types import Cores, FieldType, Flag, Number, Portion, Quantity, Rows
from workloads.specs.pod_setup import ExtendedResource

MAX_GPU_DEVICES = 128


def list_compute_fields() -> Iterator[Field]:
    def build(name: str, label: str, type_: FieldType, rest: str, **more: Any) -> Field:
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

    gpus = tuple(f"compute.gpus.{part}" for part in ("devices", "portion", "memory"))
    ranged = frozenset(("default", "min", "max", "options"))
    yield build(
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
            given=gpus,
            largest=1000,
        ),
    )
    yield build(
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
            given=gpus,
            attributes=ranged,
            about="Of GPUs that are asked for whole or in parts; a whole one counts as 1.",
        ),
    )
    yield build(
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
            given=gpus,
            attributes=ranged,
            about=(
                "Of GPUs that are asked for by their memory; those asked for otherwise have the "
                "rule of the portion."
            ),
        ),
    )
    for resource, words, rest, type_, unit in (
        ("cpu", "CPU", "cpuCore", Cores(), " cores"),
        ("memory", "CPU memory", "cpuMemory", Quantity(), ""),
    ):
        fact = "CPU" if resource == "cpu" else "Memory"
        yield build(
            f"{resource}_request",
            f"{words} request",
            type_,
            f"{rest}Request",
            fact=fact,
            phrase=f"{{}}{unit} requested",
            policy=PolicyData(
                section=PolicySection.COMPUTE, value=f"compute.effective_{resource}_request"
            ),
        )
        yield build(
            f"{resource}_limit",
            f"{words} limit",
            type_,
            f"{rest}Limit",
            fact=fact,
            phrase=f"at most {{}}{unit}",
            policy=PolicyData(section=PolicySection.COMPUTE, is_open=True),
        )
    yield build(
        "large_shm",
        "Increase shared memory",
        Flag(),
        "largeShmRequest",
        place=Place.NODES,
        lock="",
        fact="Shared memory",
        phrase="as large as the memory",
        policy=PolicyData(section=PolicySection.COMPUTE, is_implied=True),
    )
    yield build(
        "extended",
        "Extended resources",
        Rows(ExtendedResource, "Add resource"),
        "extendedResources",
        help="What nodes offer besides, as rdma/hca.",
        place=Place.NODES,
        lock="",
        fact="Other resources",
    )
