"""Measured usage of real GPUs: what nvidia-smi reads, and the devices of a pod or node as one."""

import contextlib
import logging
import math
import subprocess
from collections.abc import Container, Mapping, Sequence

from localkube.kubelet.environment import build_device_variables
from localkube.kubelet.gpus import QUERY_SECONDS, Gpu
from localkube.machine import GpuUsage
from localkube.metadata import Object

_USE, _MEMORY, _TOTAL = "utilization.gpu", "memory.used", "memory.total"
_POWER, _TEMPERATURE, _CLOCK = "power.draw", "temperature.gpu", "clocks.sm"
_FIELDS = (_USE, _MEMORY, _TOTAL, _POWER, _TEMPERATURE, _CLOCK)
_COMMAND = (
    "nvidia-smi",
    f"--query-gpu=index,{','.join(_FIELDS)}",
    "--format=csv,noheader,nounits",
)
_KILL_SECONDS = 0.2

Reading = Mapping[str, float]
"""What a device tells, by nvidia-smi's names; a field that is not known is missing."""

log = logging.getLogger(__name__)


class GpuMeter:
    """Asks nvidia-smi; a failure is logged once, until it answers again."""

    def __init__(self) -> None:
        self._stuck: subprocess.Popen[str] | None = None
        self._is_failing = False

    def measure(self) -> Mapping[int, Reading]:
        """Return what each device tells, by its index; nothing where nvidia-smi fails.

        Takes QUERY_SECONDS at most, off the event loop.
        """
        try:
            answer = self._ask()
        except (OSError, subprocess.SubprocessError) as error:
            if not self._is_failing:
                log.warning("the GPUs are not measured until nvidia-smi answers: %s", error)
            self._is_failing = True
            return {}
        self._is_failing = False
        return dict(filter(None, map(_parse_reading, answer.splitlines())))

    def _ask(self) -> str:
        # A driver that hangs leaves a process that no signal ends: ask no second one.
        if self._stuck is not None and self._stuck.poll() is None:
            raise subprocess.TimeoutExpired(_COMMAND, QUERY_SECONDS)
        self._stuck = None
        process = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
        )
        try:
            answer, _ = process.communicate(timeout=QUERY_SECONDS)
        except subprocess.TimeoutExpired:
            self._abandon(process)
            raise
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, _COMMAND)
        return answer

    def _abandon(self, process: subprocess.Popen[str]) -> None:
        """Kill a process, and wait for its end no longer than one that can be killed takes."""
        process.kill()
        if process.stdout is not None:
            process.stdout.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_SECONDS)
        self._stuck = process


def combine_readings(readings: Mapping[int, Reading], devices: Sequence[int]) -> GpuUsage | None:
    """Return what these devices do as one; None where none of them was measured."""
    measured = [readings[index] for index in devices if index in readings]
    if not measured:
        return None
    uses, memory, power, temperatures, clocks = (
        [reading[field] for reading in measured if field in reading]
        for field in (_USE, _MEMORY, _POWER, _TEMPERATURE, _CLOCK)
    )
    shares = [
        100 * reading[_MEMORY] / reading[_TOTAL]
        for reading in measured
        if _MEMORY in reading and reading.get(_TOTAL)
    ]
    return GpuUsage(
        use=_compute_mean(uses),
        measured=len(uses) if uses else None,
        unused=uses.count(0.0) if uses else None,
        memory=round(sum(memory) * (1 << 20)) if memory else None,
        memory_use=_compute_mean(shares),
        power=sum(power) if power else None,
        temperature=max(temperatures, default=None),
        sm_clock=_compute_mean(clocks),
    )


def list_real_devices(devices: Sequence[Gpu]) -> Sequence[int]:
    """Return the machine's indexes of the devices that are not virtual."""
    return [gpu.index for gpu in devices if not gpu.virtual]


def find_holder(
    pod: Object, running: Container[str], devices: Sequence[Gpu]
) -> tuple[str, Sequence[int]] | None:
    """Return the first running container that has devices, and all devices of the pod.

    `devices` are those of the node; the pod's are named as the machine knows them. An init
    container comes last. None where no running container has a device.
    """
    spec = pod["spec"]
    by_container = {
        container["name"]: _list_devices(pod, container, devices)
        for container in (*spec["containers"], *(spec.get("initContainers") or ()))
    }
    holder = next((name for name, own in by_container.items() if own and name in running), None)
    if holder is None:
        return None
    return holder, list(dict.fromkeys(index for own in by_container.values() for index in own))


def _list_devices(pod: Object, container: Object, devices: Sequence[Gpu]) -> Sequence[int]:
    variables = build_device_variables(pod, container, devices=devices)
    return [int(index) for index in variables["CUDA_VISIBLE_DEVICES"].split(",") if index]


def _parse_reading(line: str) -> tuple[int, Reading] | None:
    """Parse one line of the answer; None for one of another form."""
    index, *cells = (cell.strip() for cell in line.split(","))
    if not index.isdecimal() or len(cells) != len(_FIELDS):
        return None
    amounts = zip(_FIELDS, map(_parse_amount, cells), strict=True)
    return int(index), {field: amount for field, amount in amounts if amount is not None}


def _parse_amount(cell: str) -> float | None:
    """Parse a cell; None for `[N/A]`, and for what no device can have."""
    try:
        amount = float(cell)
    except ValueError:
        return None
    return amount if math.isfinite(amount) and amount >= 0 else None


def _compute_mean(amounts: Sequence[float]) -> float | None:
    return sum(amounts) / len(amounts) if amounts else None
