"""The devices of this machine: the real GPUs that nvidia-smi names, or virtual ones, so that
everything can be tried anywhere.
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
    """One device; `index` is what CUDA_VISIBLE_DEVICES and the scheduler call it. A virtual one has
    memory but computes nothing.
    """

    index: int
    uuid: str
    product: str
    memory_mib: int
    virtual: bool = False


def detect_gpus(wanted: int | None) -> Sequence[Gpu]:
    """The devices to offer: the first `wanted` real ones (None: all); without real ones `wanted`
    virtual ones of 16 GiB (None: 4).
    """
    found = list_real_gpus()
    if found:
        return found[:wanted]
    count = VIRTUAL_COUNT if wanted is None else wanted
    return [
        Gpu(index, f"virtual-{index}", VIRTUAL_PRODUCT, VIRTUAL_MEMORY_MIB, virtual=True)
        for index in range(count)
    ]


def list_real_gpus() -> Sequence[Gpu]:
    """What nvidia-smi lists, in its order; nothing where it is absent, fails or takes longer than
    two seconds.
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
    """One line of the answer; None for a device that does not say how much memory it has (`[N/A]`,
    `[Insufficient Permissions]`).
    """
    fields = [field.strip() for field in line.split(",")]
    if len(fields) != 4 or not fields[0].isdigit() or not fields[3].isdigit():
        return None
    return Gpu(int(fields[0]), fields[1], fields[2].replace(" ", "-"), int(fields[3]))
