"""How often each index of an Indexed Job with backoffLimitPerIndex has failed.

Each pod carries in annotations how often its index had failed before, so the counts outlast a
restart: they are read from the pods that are there.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from localkube.controllers.job_rules import (
    completion_index,
    find_retry_delay,
    match_failure_policy,
    parse_index,
)
from localkube.controllers.pod_state import finish_time, phase_of, was_shut_down
from localkube.metadata import Object, annotations_of

FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURE_COUNT = "batch.kubernetes.io/job-index-ignored-failure-count"


@dataclass(frozen=True, slots=True)
class _Failures:
    """The failures of one index; those that a failure policy ignores are counted apart."""

    counted: int
    ignored: int
    last_end: datetime | None = None

    @property
    def total(self) -> int:
        return self.counted + self.ignored


class IndexFailures:
    """The failures of a Job's indexes, by pods that may come in any order and more than once."""

    def __init__(self) -> None:
        self._by_index: dict[int, _Failures] = {}
        self._delayed: set[int] = set()
        """The indexes that failed and whose delay was not over when they were listed last."""

    @classmethod
    def from_pods(cls, pods: Iterable[Object], rules: Sequence[Object]) -> "IndexFailures":
        """Read the failures from pods; `rules` are those of the Job's failure policy."""
        failures = cls()
        for pod in pods:
            if phase_of(pod) != "Failed" or was_shut_down(pod):
                failures._note(completion_index(pod), _read_failures(pod))
                continue
            action, _ = match_failure_policy(pod, rules)
            failures.add_failure(pod, is_ignored=action == "Ignore")
        return failures

    def add_failure(self, pod: Object, *, is_ignored: bool) -> int:
        """Count a failed pod; return how many failures of its index were counted before it."""
        before = _read_failures(pod)
        failures = _Failures(
            before.counted + (not is_ignored), before.ignored + is_ignored, finish_time(pod)
        )
        self._note(completion_index(pod), failures)
        return before.counted

    def _note(self, index: int, failures: _Failures) -> None:
        old = self._by_index.get(index)
        if old is None or old.total < failures.total:
            self._by_index[index] = failures
            self._delayed.add(index)

    def build_annotations(self, index: int) -> Mapping[str, str]:
        """Build the annotations of the next pod of an index."""
        failures = self._by_index.get(index, _Failures(0, 0))
        annotations = {FAILURE_COUNT: str(failures.counted)}
        if failures.ignored:
            annotations[IGNORED_FAILURE_COUNT] = str(failures.ignored)
        return annotations

    def seconds_until_retry(self, index: int, now: datetime) -> float:
        """Return the seconds until the next pod of an index may be started."""
        failures = self._by_index.get(index)
        # After an end in the future the clock was set back: nothing waits for that.
        if failures is None or failures.last_end is None or failures.last_end > now:
            return 0
        due = failures.last_end + find_retry_delay(failures.total)
        return max(0.0, (due - now).total_seconds())

    def list_delayed(self, now: datetime) -> Collection[int]:
        """Return the indexes whose next pods may not be started yet."""
        self._delayed = {i for i in self._delayed if self.seconds_until_retry(i, now) > 0}
        return self._delayed


def _read_failures(pod: Object) -> _Failures:
    """Return the failures before a pod; its annotations may say anything."""
    annotations = annotations_of(pod)
    counted, ignored = (
        max(0, parse_index(annotations.get(name, "")))
        for name in (FAILURE_COUNT, IGNORED_FAILURE_COUNT)
    )
    return _Failures(counted, ignored)
