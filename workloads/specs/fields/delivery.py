"""The data workers, which load what the ranks train on."""

from typing import Any

from workloads.specs.fields.field import FactSection, Field, Place, PolicyData, PolicySection
from workloads.specs.fields.types import Cores, FieldType, Number, Quantity, Text

MAX_DATA_WORKERS = 8
MAX_UNITS = 1_000_000_000
OPTION = "data_delivery"
"""The option of the frameworks that have these fields."""
_RANGED = frozenset(("min", "max"))


def _build(name: str, label: str, type_: FieldType, rest: str, form: str, **more: Any) -> Field:
    return Field(
        path=f"data_delivery.{name}",
        label=label,
        type=type_,
        place=Place.DELIVERY,
        rest=f"dataDelivery.{rest}",
        form=(form,),
        option=OPTION,
        lock="data_delivery",
        fact_section=FactSection.DELIVERY,
        **more,
    )


DELIVERY_FIELDS = (
    _build(
        "workers",
        "Number of data workers",
        Number(1, MAX_DATA_WORKERS),
        "workers",
        "data_workers",
        title="Data workers",
        help=f"1 to {MAX_DATA_WORKERS}. Empty: there are none.",
        rest_help=(
            "An extension of Muster: pods without GPUs that run what the workers run, up to where "
            "the loader is registered, and load what these train on."
        ),
        subject="The number of data workers",
        fact="Data workers",
        policy=PolicyData(
            section=PolicySection.COUNT,
            name="data_delivery.workers",
            attributes=_RANGED,
            is_preset=False,
        ),
    ),
    _build(
        "units",
        "Units to prepare first",
        Number(0, MAX_UNITS, default=0),
        "units",
        "data_units",
        help=(
            "So many elements of the dataset are prepared before GPUs are taken. Empty or 0: the "
            "training starts at once."
        ),
        rest_help="Elements of the dataset that are prepared before GPUs are taken; 0 for none.",
        subject="The number of units",
        fact="Units prepared before GPUs are taken",
        policy=PolicyData(
            section=PolicySection.COUNT,
            name="data_delivery.units",
            label="Units of data workers to prepare first",
            attributes=_RANGED,
            is_preset=False,
            largest=MAX_UNITS,
        ),
    ),
    _build(
        "compute.cpu_request",
        "CPU request of each data worker",
        Cores(),
        "compute.cpuCoreRequest",
        "data_cpu_request",
        help="Cores such as 2, or thousandths of one such as 500m. Empty: whatever is free.",
        fact="CPU of each",
        phrase="{} cores requested",
    ),
    _build(
        "compute.cpu_limit",
        "CPU limit of each data worker",
        Cores(),
        "compute.cpuCoreLimit",
        "data_cpu_limit",
        help="Empty: no limit.",
        fact="CPU of each",
        phrase="at most {} cores",
    ),
    _build(
        "compute.memory_request",
        "Memory request of each data worker",
        Quantity(),
        "compute.cpuMemoryRequest",
        "data_memory_request",
        help="A number with a unit, such as 4Gi. Prepared units are kept in it, and then on disk.",
        fact="Memory of each",
        phrase="{} requested",
    ),
    _build(
        "compute.memory_limit",
        "Memory limit of each data worker",
        Quantity(),
        "compute.cpuMemoryLimit",
        "data_memory_limit",
        help="Empty: no limit. A container that goes over its limit is killed.",
        fact="Memory of each",
        phrase="at most {}",
    ),
    _build(
        "image",
        "Image of the data workers",
        Text(),
        "image",
        "data_image",
        help="Empty: that of the workers.",
        rest_help="Where it is not that of the workers.",
        fact="Their image",
    ),
)
