"""What Muster tells a process of a workload by its environment variables."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from muster_delivery.authentication import Key
from muster_delivery.errors import DeliveryError

WORKER, RANK = "worker", "rank"
DEFAULT_PORT = 7077
MAX_WORKERS = 64
"""More entries than Muster ever lists; a longer list is a mistake."""

RANK_VARIABLES = (
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "PADDLE_TRAINER_ID",
    "PROCESS_ID",
    "JOB_COMPLETION_INDEX",
)
LOCAL_VARIABLES = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
"""Those by which torchrun and mpirun number the processes that they start in one pod."""
WORLD_VARIABLES = (
    "WORLD_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "PADDLE_TRAINERS_NUM",
    "NUM_PROCESSES",
    "MUSTER_DELIVERY_WORLD",
)
"""Variables of launchers and frameworks, the surest first."""


@dataclass(frozen=True)
class DeliverySettings:
    """The part of one process in the delivery of a workload."""

    role: str
    workers: tuple[tuple[str, int], ...]
    """Host and port of each data worker, by its number."""
    key: Key
    units: int = 0
    """Elements that all data workers together prepare before ranks start."""
    world: int = 1
    """Ranks; on data workers those of the submission, as none has started yet."""
    number: int = 0
    """This data worker's number, or this process's rank."""
    is_spare: bool = False
    """Whether a launcher started this process in a data worker beside the one that serves."""
    attempt: int = 1
    memory: str = ""
    """Bytes of batches that a data worker keeps in memory, where a person has said so."""
    spill: Path | None = None
    """Where a data worker keeps what its memory has no room for."""


def read_settings(environment: Mapping[str, str] = os.environ) -> DeliverySettings | None:
    """Read the variables; None outside a workload with data workers."""
    role = environment.get("MUSTER_DELIVERY_ROLE", "")
    if not role:
        return None
    if role not in (WORKER, RANK):
        raise DeliveryError(f"MUSTER_DELIVERY_ROLE is {role!r}: neither worker nor rank")
    is_worker = role == WORKER
    if is_worker:
        number = read_number(environment, ("JOB_COMPLETION_INDEX",), 0)
        world = read_number(environment, ("MUSTER_DELIVERY_WORLD",), 1)
    else:
        number, world = read_rank(environment)
    settings = DeliverySettings(
        role=role,
        workers=parse_addresses(environment.get("MUSTER_DELIVERY_WORKERS", "")),
        key=read_key(environment),
        units=read_number(environment, ("MUSTER_DELIVERY_UNITS",), 0),
        world=max(1, world),
        number=number,
        is_spare=is_worker and read_number(environment, LOCAL_VARIABLES, 0) > 0,
        attempt=read_number(environment, ("MUSTER_DELIVERY_ATTEMPT",), 1),
        memory=environment.get("MUSTER_DELIVERY_MEMORY", ""),
        spill=Path(folder) if (folder := environment.get("MUSTER_DELIVERY_SPILL")) else None,
    )
    if is_worker and settings.number >= len(settings.workers):
        raise DeliveryError(
            f"data worker {settings.number} is none of the {len(settings.workers)} in "
            "MUSTER_DELIVERY_WORKERS"
        )
    return settings


def parse_addresses(text: str) -> tuple[tuple[str, int], ...]:
    """Parse `host:port,host:port`; the port may be left out."""
    addresses = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        host, colon, port = entry.rpartition(":")
        if not colon:
            host, port = entry, str(DEFAULT_PORT)
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise DeliveryError(f"MUSTER_DELIVERY_WORKERS: {entry!r} is no host and port")
        addresses.append((host, int(port)))
    if not 0 < len(addresses) <= MAX_WORKERS:
        raise DeliveryError(f"MUSTER_DELIVERY_WORKERS lists {len(addresses)} data workers")
    return tuple(addresses)


def read_key(environment: Mapping[str, str]) -> Key:
    """Return the workload's secret; no message ever shows it."""
    try:
        return Key.parse(environment.get("MUSTER_DELIVERY_KEY", ""))
    except ValueError as error:
        raise DeliveryError(f"MUSTER_DELIVERY_KEY: {error}") from None


def read_rank(environment: Mapping[str, str]) -> tuple[int, int]:
    """Return the number of this rank, and how many there are."""
    place = parse_tensorflow_place(environment.get("TF_CONFIG", ""))
    if place is not None and not environment.get("RANK"):
        return place
    rank = read_number(environment, RANK_VARIABLES, 0)
    world = read_number(environment, WORLD_VARIABLES, 1)
    if rank >= world:
        raise DeliveryError(
            f"this process is rank {rank} of a world of {world}: set RANK and WORLD_SIZE"
        )
    return rank, world


def parse_tensorflow_place(text: str) -> tuple[int, int] | None:
    """Return rank and world of a TF_CONFIG: the chief comes first, then workers; else None."""
    try:
        config = json.loads(text)
        cluster, task = config["cluster"], config["task"]
        kind, index = task["type"], int(task["index"])
        chiefs = len(cluster.get("chief", ())) + len(cluster.get("master", ()))
        world = chiefs + len(cluster.get("worker", ()))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    if kind not in ("chief", "master", "worker"):
        return None
    return (index + chiefs if kind == "worker" else index), max(1, world)


def read_number(environment: Mapping[str, str], names: tuple[str, ...], default: int) -> int:
    """Return the first of these variables that is a whole number."""
    for name in names:
        text = environment.get(name, "").strip()
        if text.isdigit() and len(text) < 16:
            return int(text)
    return default
