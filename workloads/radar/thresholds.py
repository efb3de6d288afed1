"""From when on the radar calls something a trouble. Pure."""

from dataclasses import dataclass

SHORTEST_SILENCE = 60.0
"""Seconds without a line that are called a hang at the earliest, where others wait."""
SILENT_GAPS = 4.0
"""How many of its usual reporting intervals a silence lasts at least."""
LONGEST_SHARE = 1.5
"""A silence that is not longer than this times the longest one before is nothing new."""
TOGETHER_SILENCE = 600.0
"""Seconds of silence of all ranks together, none behind: a checkpoint may take as long."""
TOGETHER_GAPS = 10.0
MOST_ALLOWED = 7200.0
"""Seconds that a longer silence before allows at most to one of all ranks together."""
PAUSE_SILENCE = 900.0
"""Seconds for a rank whose last line says that it saves, evaluates, compiles or loads."""
STARTUP_SILENCE = 1800.0
"""Seconds before the first step: images, compilers and data take long."""
IDLE_SECONDS = 900.0
CHECKPOINT_GAPS = 2.0
"""A checkpoint is missed after this many of the longest time between two."""
FEWEST_CHECKPOINTS = 4
REGULAR = 1.5
"""Times of the shortest interval that the longest one has at most of who saves at intervals:
others save what is best, or ever more seldom.
"""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a workload sets of its own; None: what suits most."""

    hang_seconds: float | None = None
    straggler_percent: float | None = None

    @property
    def straggler_factor(self) -> float:
        """How many times the median's time a rank takes that is called slow."""
        return (self.straggler_percent or 150.0) / 100.0

    def get_silence(self, gap: float) -> float:
        """Return after how many seconds of silence a rank hangs for which others wait."""
        shortest = self.hang_seconds or SHORTEST_SILENCE
        return max(shortest, SILENT_GAPS * gap)

    def get_silence_together(self, gap: float, longest_gap: float) -> float:
        """Return after how many seconds the silence of all ranks together is a hang."""
        allowed = min(2 * LONGEST_SHARE * longest_gap, MOST_ALLOWED)
        usual = max(TOGETHER_GAPS * gap, allowed)
        return max(self.hang_seconds or 0.0, TOGETHER_SILENCE, usual)
