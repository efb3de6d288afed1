"""What a forecast may know at a moment: lengths of runs that had ended by then, and limits."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.forecasting.replay import Moment, build_gang, build_pods
from benchmarks.forecasting.worlds import HOUR, Submission
from simulation import LengthSource, Past, RunLengths
from simulation.run_lengths import FEWEST_RUNS

Group = tuple[str, ...]
DEFAULT_LIMIT = 24 * HOUR
"""What Slurm's way takes for a run without a limit, as a partition's `DefaultTime` does."""


@dataclass(slots=True)
class History:
    """Lengths of the runs of each project, and of each template by the same person."""

    ended: dict[Group, list[float]] = field(default_factory=lambda: defaultdict(list))
    going_on: dict[Group, list[float]] = field(default_factory=lambda: defaultdict(list))
    _made: dict[tuple[Group, float | None], RunLengths] = field(default_factory=dict)

    def find_lengths(self, plan: Submission) -> RunLengths:
        """Return the lengths of its copies if there are enough, else of its project."""
        copies, project = list_groups(plan)
        has_copies = len(self.ended[copies]) >= FEWEST_RUNS
        group = copies if has_copies else project
        source = LengthSource.COPIES if has_copies else LengthSource.PROJECT
        key = group, plan.limit
        if key not in self._made:
            self._made[key] = RunLengths(
                self.ended[group], self.going_on[group], plan.limit, source
            )
        return self._made[key]


def list_groups(plan: Submission) -> tuple[Group, Group]:
    """Return the runs it is like: copies of its template by the same person, and its project's."""
    return (plan.project, plan.person, plan.template), (plan.project,)


def learn_history(moment: Moment) -> History:
    """Learn from what had ended, and from how long others have run so far."""
    history = History()
    for run in moment.ended:
        for group in list_groups(run.submission):
            history.ended[group].append(run.length)
    for key, seconds in moment.ran.items():
        for group in list_groups(moment.submissions[key]):
            history.going_on[group].append(seconds)
    return history


def find_lengths(moment: Moment, history: History) -> Mapping[str, RunLengths]:
    """Return what is known of the length of each gang that came, by key.

    What has ended, and may come again, runs for as long as it ran.
    """
    lengths = {plan.key: history.find_lengths(plan) for plan in moment.came}
    ended = {run.submission.key: RunLengths([run.length] * FEWEST_RUNS) for run in moment.ended}
    return lengths | ended


def find_past(moment: Moment) -> Past:
    """Return all that came by then."""
    return Past([build_gang(plan, build_pods(plan)) for plan in moment.came])


def find_limits(moment: Moment) -> Mapping[str, RunLengths]:
    """Return lengths by which each gang runs to its limit, as Slurm's backfill plans."""
    limits: dict[float, RunLengths] = {}
    return {
        key: limits.setdefault(limit, RunLengths([limit] * FEWEST_RUNS, limit=limit))
        for key, plan in moment.submissions.items()
        for limit in [plan.limit or DEFAULT_LIMIT]
    }


def list_lengths(history: History, project: str) -> Sequence[float]:
    """Return the lengths of the runs of a project."""
    return history.ended[(project,)]
