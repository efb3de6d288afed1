"""Finds which process of several a launcher names as the first that failed. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_ROOT_CAUSE = "Root Cause (first observed failure)"
"""How torchrun begins its report of the process that failed first; others may stand above it."""
_MOST_LINES_OF_REPORT = 8
_TORCHRUN = re.compile(r"\brank {0,12}: (?P<rank>\d{1,6}) \(local_rank: \d{1,6}\)")
_OTHERS = re.compile(
    r"process rank (?P<rank>\d{1,6}) with PID \d{1,10} on node (?P<host>[\w.-]{1,253}) exited"
    r"|^ *Process name: \[\[\d{1,10},\d{1,6}\],(?P<name>\d{1,6})\]"
    r"|\bContainer rank (?P<container>\d{1,6}) status failed"
    r"|\bProcess (?P<process>\d{1,6}) exit with status code [1-9]"
)
"""How mpirun, Paddle's launcher and horovodrun name it."""
_WRITER = re.compile(r"\[(?:rank|\d{1,6},)(\d{1,6})\]")


@dataclass(frozen=True, slots=True)
class FailedProcess:
    """The rank of a process among all of a workload, and its host; "" where that is not said."""

    rank: int
    host: str = ""


def find_failed_process(lines: Sequence[str]) -> FailedProcess | None:
    """Return the process that a launcher names as the first that failed; None without one."""
    end_of_report = -1
    for index, line in enumerate(lines):
        if _ROOT_CAUSE in line:
            end_of_report = index + _MOST_LINES_OF_REPORT
        elif index <= end_of_report and (match := _TORCHRUN.search(line)):
            return FailedProcess(int(match["rank"]))
        elif ("rocess" in line or "ontainer" in line) and (match := _OTHERS.search(line)):
            groups = match.groupdict()
            ranks = (groups[name] for name in ("rank", "name", "container", "process"))
            return FailedProcess(int(next(filter(None, ranks))), groups["host"] or "")
    return None


def parse_rank_of_writer(writer: str) -> int | None:
    """Return the rank in the prefix of a process; None of one that names none among all ranks."""
    match = _WRITER.match(writer)
    return int(match[1]) if match else None
