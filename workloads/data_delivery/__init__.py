"""What data workers and ranks say of the delivery of data, and what follows from it. Pure."""

from workloads.data_delivery.lines import (
    Line,
    PreparingLine,
    RankLine,
    ReadyLine,
    WorkerFailedLine,
    parse_line,
)
from workloads.data_delivery.preparation import (
    FAILED,
    Preparation,
    WorkerProgress,
    decode_workers,
    describe_failure,
    describe_preparation,
    describe_ready,
    describe_stall,
)
from workloads.data_delivery.starvation import (
    MOST_WORKERS,
    describe_starvation,
    suggest_workers,
)

__all__ = [
    "FAILED",
    "MOST_WORKERS",
    "Line",
    "Preparation",
    "PreparingLine",
    "RankLine",
    "ReadyLine",
    "WorkerFailedLine",
    "WorkerProgress",
    "decode_workers",
    "describe_failure",
    "describe_preparation",
    "describe_ready",
    "describe_stall",
    "describe_starvation",
    "parse_line",
    "suggest_workers",
]
