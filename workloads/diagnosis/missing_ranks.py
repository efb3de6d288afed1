"""Finds which ranks did not come to a collective, as the library of the others says. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from workloads.kube_objects import Object, clean_text, parse_gpu_request
from workloads.training_progress import Lagging, may_name_lagging

LONGEST_LINE = 500


@dataclass(frozen=True, slots=True)
class MissingRanks:
    """The ranks of pods that did not come, and the line that says so, with its place."""

    ranks: Sequence[int]
    line: str
    index: int


def find_missing_ranks(lines: Sequence[str], pod: Object) -> MissingRanks | None:
    """Return the ranks that the first such line of a pod's log names; None without one.

    With several GPUs each one has a process: the library counts those.
    """
    for index, line in enumerate(lines):
        raw = line.encode("utf-8", "replace")
        if not may_name_lagging(raw):
            continue
        lagging = Lagging()
        lagging.read_line(raw, 0.0)
        if lagging.ranks:
            processes = max(1, int(parse_gpu_request(pod)[0] or 0))
            ranks = sorted({each // processes for each in lagging.ranks})
            return MissingRanks(ranks, clean_text(line, LONGEST_LINE), index)
    return None
