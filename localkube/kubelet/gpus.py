"""The devices of this machine: real GPUs that nvidia-smi lists, or virtual ones for trying things
out.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

VIRTUAL_COUNT = 4
VIRTUAL_MEMORY_MIB = 16 * 1024
VIRTUAL_PRODUCT = "Virtual-GPU"
QUERY_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device.

    `index` is its name in CUDA_VISIBLE_DEVICES and for the scheduler. A virtual device has memory
    but computes nothing.
    """

    index: int
    uuid: str
    product: str
    memory_mib: int
    virtual: bool = False


def detect_gpus(wanted: int | None) -> Sequence[Gpu]:
    """Return the devices to offer: real ones, or virtual ones when the machine has none.

    The first `wanted` real ones (None: all), or `wanted` virtual ones of 16 GiB (None: 4).
    """
    real_gpus = list_real_gpus()
    if real_gpus:
        return real_gpus[:wanted]
    virtual_count = VIRTUAL_COUNT if wanted is None else wanted
    return [
        Gpu(index, f"virtual-{index}", VIRTUAL_PRODUCT, VIRTUAL_MEMORY_MIB, virtual=True)
        for index in range(virtual_count)
    ]


def list_real_gpus() -> Sequence[Gpu]:
    """Return what nvidia-smi lists, in its order.

    Empty where nvidia-smi is absent, fails or takes longer than two seconds.
    """
    command = [
        "nvidia-smi",
        "--query-gpu=index,uuid,name,memory.total",
        "--format=csv,noheader,nounits",
    ]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=QUERY_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [gpu for line in answer.stdout.splitlines() if (gpu := _parse_gpu(line)) is not None]


def _parse_gpu(line: str) -> Gpu | None:
    """Parse one line of the answer; None for a device whose memory is not known.

    nvidia-smi then prints `[N/A]` or `[Insufficient Permissions]`.
    """
    fields = [field.strip() for field in line.split(",")]
    if len(fields) != 4 or not fields[0].isdigit() or not fields[3].isdigit():
        return None
    return Gpu(int(fields[0]), fields[1], fields[2].replace(" ", "-"), int(fields[3]))
