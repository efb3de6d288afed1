"""What a data worker takes of its machine: an address, memory and disk."""

from __future__ import annotations

import ipaddress
import shutil
import socket
from pathlib import Path

MEMORY_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Where the kernel says how much memory a container may use."""
MEMORY_SHARE = 4
"""Prepared batches take a quarter of the container's memory: the loader needs the rest."""
LEAST_MEMORY, MOST_MEMORY = 64 << 20, 4 << 30
"""Bounds of that quarter."""
MOST_DISK = 64 << 30
"""Bytes of batches on disk at most, and never more than half of what is free."""


def choose_listening_address(host: str, port: int) -> tuple[str, int]:
    """Return the loopback address that the host name means, else all interfaces.

    On an embedded cluster all pods share one machine, so each has a loopback address of its own.
    """
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        # In a real cluster the pod's own name may not be known yet; it has one address anyway.
        return "0.0.0.0", port  # noqa: S104  only who has the workload's key is answered
    addresses = [str(entry[4][0]) for entry in entries]
    for address in addresses:
        if ipaddress.ip_address(address.partition("%")[0]).is_loopback:
            return address, port
    is_only_v6 = all(":" in address for address in addresses)
    return ("::" if is_only_v6 else "0.0.0.0"), port  # noqa: S104


def choose_memory_bound(override: str = "") -> int:
    """Return how many bytes of batches a data worker keeps in memory; a person's number wins."""
    if override.isdigit():
        return int(override)
    for path in MEMORY_LIMITS:
        try:
            limit = int(path.read_text())
        except (OSError, ValueError):
            # No such file, or "max": no limit there.
            continue
        return max(LEAST_MEMORY, min(MOST_MEMORY, limit // MEMORY_SHARE))
    return 1 << 30


def choose_disk_bound(folder: Path | None) -> int:
    """Return how many bytes of batches a data worker keeps on disk."""
    if folder is None or not folder.is_dir():
        return 0
    return min(MOST_DISK, shutil.disk_usage(folder).free // 2)
