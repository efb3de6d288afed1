"""The interface between the API server and the machine that runs the pods: logs and measured usage.

The kubelet implements it; the API knows no more of the kubelet.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from localkube.metadata import Object


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The query of pods/log, parsed and bounded.

    `since` is a moment, whether sinceTime or sinceSeconds was given.
    """

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class GpuUsage:
    """What some real GPUs do now, as one; None for what they do not tell.

    `use`, `memory_use` (both percent) and `sm_clock` (MHz) are means over the devices, `memory`
    (bytes) and `power` (watts) sums, `temperature` (degrees Celsius) is that of the hottest.
    `measured` counts the devices whose use is known, `unused` those of them at 0 %.
    """

    use: float | None = None
    measured: int | None = None
    unused: int | None = None
    memory: int | None = None
    memory_use: float | None = None
    power: float | None = None
    temperature: float | None = None
    sm_clock: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What a container or node used: processor time, memory, disks and GPUs.

    `nanocores` is the average over `window` seconds that end at `measured_at`, `memory` the
    resident bytes then. `disk_read` and `disk_written` are bytes per second over the window, None
    where they are not known. `gpus` is None where there are no real devices.
    """

    nanocores: int
    memory: int
    measured_at: datetime
    window: float
    disk_read: int | None = None
    disk_written: int | None = None
    gpus: GpuUsage | None = None


class Machine(Protocol):
    def read_log(self, pod: Object, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """Yield a container's log in chunks.

        It ends at the container's end, or at once without follow. Raises ApiError 400 while the
        container waits to start, or when there is no previous run.
        """
        ...

    def pod_usage(self) -> Mapping[str, Mapping[str, Usage]]:
        """Return the measured usage of running pods, by pod uid, then container name."""
        ...

    def node_usage(self) -> Mapping[str, Usage]:
        """Return what each node uses now, by its name; nothing before the first measurement."""
        ...
