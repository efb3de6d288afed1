"""Every metric of pods and nodes, once: its unit, what Prometheus is asked, how values combine."""

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_POD_LABELS = "namespace, pod, exported_namespace, exported_pod"
"""What names a pod. A scrape configuration may have renamed its labels to exported_*."""
_PLACE_LABELS = "Hostname, UUID, gpu, GPU_I_ID"
"""What names a device, or an instance of it (MIG), and its node."""
_DEVICE_LABELS = f"{_POD_LABELS}, {_PLACE_LABELS}"
"""The same with the pod that has it."""
_RATE_WINDOW = "3m"
"""Long enough for two scrapes, each minute or more often, which a rate needs."""
_IDLE_WINDOW = "60s"
"""A device that was used at all in this time is not unused: exporters are often scraped twice a
minute.
"""
_GROWTH_WINDOW = "5m"
"""As long as a Prometheus that fails is left alone at most: a pause of sweeps hides no growth."""


class Unit(StrEnum):
    """The unit of stored values, as pages and CSV write it."""

    PERCENT = "%"
    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes/s"
    WATTS = "W"
    CELSIUS = "°C"
    MEGAHERTZ = "MHz"
    CORES = "cores"
    COUNT = ""


class Combination(StrEnum):
    """How several values become one."""

    MEAN = "mean"
    SUM = "sum"
    LEAST = "least"
    MOST = "most"
    NUMBER = "number"
    """How many there are."""
    ZEROS = "zeros"
    """How many of them are zero."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. Stored rows name it by `code`, so that a code is never given to another."""

    code: int
    name: str
    title: str
    unit: Unit
    most: float
    """Whatever is larger is a fault of the source, and is left out."""
    query: str
    """What Prometheus is asked: one series for each device, or for each pod; "": nothing.

    Every selector has braces: a cluster's own matchers are added there.
    """
    over_devices: Combination = Combination.SUM
    """How the devices of a pod or of a node become one value."""
    over_pods: Combination = Combination.SUM
    over_time: Combination = Combination.MEAN
    scale: float = 1.0
    """What a value of Prometheus is multiplied by."""
    of_device: bool = False
    """Whether a device measures it: of a share of a device it is that of the whole."""
    of_whole_device: bool = False
    """Whether the instances of a device (MIG) all have the figure of the whole of it."""
    is_fault: bool = False
    """Whether it tells of faults: zero is usual then, and pages show it where it is anything else.

    Of a workload's pods it is not stored while all of them have zero.
    """
    rest_type: str = ""
    """Its name in the REST API; empty: it is not there."""


def _of_devices(expression: str) -> str:
    """Return the query for each device. Two scrapes of one exporter are one device: `max`."""
    return f"max by ({_DEVICE_LABELS}) ({expression})"


def _of_containers(expression: str, by: str) -> str:
    """Return the query that adds up what cAdvisor counts for each pod, each counter once."""
    return f"sum by ({_POD_LABELS}) (max by ({_POD_LABELS}, {by}) ({expression}))"


def _rate(counter: str, where: str) -> str:
    """Return the rate between the last two scrapes.

    `rate` over the window would be far too low while a counter is younger than it.
    """
    return f"irate({counter}{{{where}}}[{_RATE_WINDOW}])"


def _growth(counter: str) -> str:
    """Return by how much each device's counter is above its least value of the last minutes.

    `increase` knows series, not devices: a fault often ends the pod, whose name is in the labels,
    and so the series before the counter is read again. Nor does it give whole numbers. A counter
    that begins anew, by a driver that is loaded again, is its own least value: it has not grown.
    """
    least = f"min by ({_PLACE_LABELS}) (min_over_time({counter}{{}}[{_GROWTH_WINDOW}]))"
    return f"{counter}{{}} - on ({_PLACE_LABELS}) group_left {least}"


def _add_growths(first: str, second: str) -> str:
    """Return the query for the growth of both counters of each device, or of the one it has."""
    # The label keeps the second apart from the first, so that `or` drops neither.
    kept_apart = f'label_replace({_of_devices(_growth(second))}, "counter", "second", "", "")'
    return f"sum by ({_DEVICE_LABELS}) ({_of_devices(_growth(first))} or {kept_apart})"


_CONTAINER = 'container!="",container!="POD"'
_POD = 'pod!=""'
_USED, _FREE = "DCGM_FI_DEV_FB_USED{}", "DCGM_FI_DEV_FB_FREE{}"
_USE, _INSTANCE_USE = "DCGM_FI_DEV_GPU_UTIL{}", 'DCGM_FI_PROF_GR_ENGINE_ACTIVE{GPU_I_ID!=""}'
"""Instances of a device have no GPU_UTIL, but the share of the time in which their engine works."""
_GPU_USE = _of_devices(f"{_USE} or 100 * {_INSTANCE_USE}")
_PIB = float(1 << 50)
"""More bytes than a machine has memory, and than it moves in a second."""
_MOST_XID = 256.0
"""Up to here every whole number is stored as it is: a value has 8 significant bits. NVIDIA's
catalogue ends well below.
"""
_MOST_ERRORS = 1e12

METRICS: Final[tuple[Metric, ...]] = (
    Metric(
        0,
        "gpu_use",
        "GPU use",
        Unit.PERCENT,
        100.0,
        _GPU_USE,
        over_devices=Combination.MEAN,
        over_pods=Combination.MEAN,
        of_device=True,
        rest_type="GPU_UTILIZATION",
    ),
    Metric(
        1,
        "gpus_measured",
        "GPUs with figures",
        Unit.COUNT,
        100.0,
        _GPU_USE,
        over_devices=Combination.NUMBER,
        of_device=True,
    ),
    Metric(
        2,
        "gpus_unused",
        "Unused GPUs",
        Unit.COUNT,
        100.0,
        _of_devices(
            f"max_over_time({_USE}[{_IDLE_WINDOW}])"
            f" or 100 * max_over_time({_INSTANCE_USE}[{_IDLE_WINDOW}])"
        ),
        over_devices=Combination.ZEROS,
        over_time=Combination.LEAST,
        of_device=True,
    ),
    Metric(
        3,
        "gpu_memory",
        "GPU memory",
        Unit.BYTES,
        _PIB,
        _of_devices(_USED),
        scale=float(1 << 20),
        of_device=True,
        rest_type="GPU_MEMORY_USAGE_BYTES",
    ),
    Metric(
        4,
        "gpu_memory_use",
        "GPU memory use",
        Unit.PERCENT,
        100.0,
        _of_devices(f"100 * {_USED} / ({_USED} + {_FREE})"),
        over_devices=Combination.MEAN,
        over_pods=Combination.MEAN,
        of_device=True,
        rest_type="GPU_MEMORY_UTILIZATION",
    ),
    Metric(
        5,
        "gpu_power",
        "GPU power",
        Unit.WATTS,
        1e5,
        _of_devices("DCGM_FI_DEV_POWER_USAGE{}"),
        of_device=True,
        of_whole_device=True,
        rest_type="GPU_POWER_WATTS",
    ),
    Metric(
        6,
        "gpu_temperature",
        "GPU temperature",
        Unit.CELSIUS,
        200.0,
        _of_devices("DCGM_FI_DEV_GPU_TEMP{}"),
        over_devices=Combination.MOST,
        over_pods=Combination.MOST,
        of_device=True,
        of_whole_device=True,
        rest_type="GPU_TEMPERATURE_CELSIUS",
    ),
    Metric(
        7,
        "sm_activity",
        "SM activity",
        Unit.PERCENT,
        100.0,
        _of_devices("DCGM_FI_PROF_SM_ACTIVE{}"),
        over_devices=Combination.MEAN,
        over_pods=Combination.MEAN,
        scale=100.0,
        of_device=True,
        rest_type="GPU_SM_ACTIVITY",
    ),
    Metric(
        8,
        "sm_clock",
        "SM clock",
        Unit.MEGAHERTZ,
        20_000.0,
        _of_devices("DCGM_FI_DEV_SM_CLOCK{}"),
        over_devices=Combination.MEAN,
        over_pods=Combination.MEAN,
        of_device=True,
        of_whole_device=True,
        rest_type="GPU_SM_CLOCK_MHZ",
    ),
    Metric(
        9,
        "nvlink",
        "NVLink traffic",
        Unit.BYTES_PER_SECOND,
        _PIB,
        _of_devices("DCGM_FI_PROF_NVLINK_TX_BYTES{} + DCGM_FI_PROF_NVLINK_RX_BYTES{}"),
        of_device=True,
        of_whole_device=True,
        rest_type="NVLINK_BANDWIDTH_TOTAL",
    ),
    Metric(
        10,
        "pcie",
        "PCIe traffic",
        Unit.BYTES_PER_SECOND,
        _PIB,
        _of_devices("DCGM_FI_PROF_PCIE_TX_BYTES{} + DCGM_FI_PROF_PCIE_RX_BYTES{}"),
        of_device=True,
        of_whole_device=True,
        rest_type="PCIE_BANDWIDTH_TOTAL",
    ),
    Metric(
        11,
        "cpu",
        "CPU",
        Unit.CORES,
        1e5,
        _of_containers(_rate("container_cpu_usage_seconds_total", _CONTAINER), "container"),
        rest_type="CPU_USAGE_CORES",
    ),
    Metric(
        12,
        "memory",
        "Memory",
        Unit.BYTES,
        _PIB,
        _of_containers(f"container_memory_working_set_bytes{{{_CONTAINER}}}", "container"),
        rest_type="CPU_MEMORY_USAGE_BYTES",
    ),
    Metric(
        13,
        "network_received",
        "Network received",
        Unit.BYTES_PER_SECOND,
        _PIB,
        _of_containers(_rate("container_network_receive_bytes_total", _POD), "interface"),
        rest_type="NETWORK_RECEIVED_BYTES_PER_SECOND",
    ),
    Metric(
        14,
        "network_sent",
        "Network sent",
        Unit.BYTES_PER_SECOND,
        _PIB,
        _of_containers(_rate("container_network_transmit_bytes_total", _POD), "interface"),
        rest_type="NETWORK_SENT_BYTES_PER_SECOND",
    ),
    Metric(
        15,
        "disk_read",
        "Disk read",
        Unit.BYTES_PER_SECOND,
        _PIB,
        _of_containers(_rate("container_fs_reads_bytes_total", _CONTAINER), "container, device"),
        rest_type="DISK_READ_BYTES_PER_SECOND",
    ),
    Metric(
        16,
        "disk_written",
        "Disk written",
        Unit.BYTES_PER_SECOND,
        _PIB,
        _of_containers(_rate("container_fs_writes_bytes_total", _CONTAINER), "container, device"),
        rest_type="DISK_WRITTEN_BYTES_PER_SECOND",
    ),
    # What our pods hold on a node, beside what they make of it.
    Metric(17, "gpus_allocated", "Allocated GPUs", Unit.COUNT, 1e5, ""),
    # Of a pod in a coarser frame: the share of it in which the pod was measured.
    Metric(18, "presence", "Presence", Unit.COUNT, 1.0, ""),
    # What a node can have, with each moment at which its use was measured.
    Metric(19, "cpu_capacity", "CPU capacity", Unit.CORES, 1e5, ""),
    Metric(20, "memory_capacity", "Memory capacity", Unit.BYTES, _PIB, ""),
    # The last Xid that the driver reported, for as long as the exporter runs; 0: none.
    Metric(
        21,
        "xid",
        "Last Xid",
        Unit.COUNT,
        _MOST_XID,
        _of_devices("DCGM_FI_DEV_XID_ERRORS{}"),
        over_devices=Combination.MOST,
        over_pods=Combination.MOST,
        over_time=Combination.MOST,
        of_device=True,
        of_whole_device=True,
        is_fault=True,
    ),
    # Over time the most: the mean of few errors would soon be less than one.
    Metric(
        22,
        "ecc_errors",
        "Uncorrectable ECC errors",
        Unit.COUNT,
        _MOST_ERRORS,
        _of_devices(_growth("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL")),
        over_time=Combination.MOST,
        of_device=True,
        of_whole_device=True,
        is_fault=True,
    ),
    Metric(
        23,
        "nvlink_errors",
        "NVLink errors",
        Unit.COUNT,
        _MOST_ERRORS,
        _add_growths(
            "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
            "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
        ),
        over_time=Combination.MOST,
        of_device=True,
        of_whole_device=True,
        is_fault=True,
    ),
)
"""In the order of their codes, which is that of stored values."""
METRICS_BY_NAME: Final[Mapping[str, Metric]] = {metric.name: metric for metric in METRICS}

_COMBINE: Mapping[Combination, Callable[[Sequence[float]], float]] = {
    Combination.MEAN: lambda values: sum(values) / len(values),
    Combination.SUM: sum,
    Combination.LEAST: min,
    Combination.MOST: max,
    Combination.NUMBER: len,
    Combination.ZEROS: lambda values: sum(value == 0 for value in values),
}
_GPUS_MEASURED = METRICS_BY_NAME["gpus_measured"].code


def combine_values(values: Sequence[float], combination: Combination) -> float:
    """Return one value of several; there must be one at least."""
    return float(_COMBINE[combination](values))


def combine_figures(all_figures: Collection[Mapping[int, float]]) -> dict[int, float]:
    """Return the figures of several pods or nodes as one.

    A mean of devices is that of the devices: a pod of eight counts eight times as much as a pod of
    one.
    """
    combined: dict[int, float] = {}
    for metric in METRICS:
        figure_sets = [figures for figures in all_figures if metric.code in figures]
        values = [figures[metric.code] for figures in figure_sets]
        if not values:
            continue
        if metric.over_pods is Combination.MEAN and metric.of_device:
            weights = [figures.get(_GPUS_MEASURED) or 1.0 for figures in figure_sets]
            weighted = sum(map(operator.mul, values, weights))
            combined[metric.code] = weighted / sum(weights)
        else:
            combined[metric.code] = combine_values(values, metric.over_pods)
    return combined
