"""The status of a training job: its conditions with their order and their effect on each other,
times, and counts by replica type.
"""

from collections.abc import Iterable, Mapping

from localkube import clock
from localkube.controllers.framework import CountsByType, PodCounts
from localkube.metadata import Object, deep_copy, find_condition

_REPLACES: Mapping[str, str] = {"Running": "Restarting", "Restarting": "Running"}


class TrainingStatus:
    """A copy of a status to be worked on. Reasons are the kind and a word: PyTorchJobRunning."""

    def __init__(self, kind: str, stored: Object | None) -> None:
        self._kind = kind
        self._stored = stored or {}
        self.body: Object = deep_copy(self._stored)

    @property
    def conditions(self) -> list[Object]:
        found: list[Object] = self.body.setdefault("conditions", [])
        return found

    def has_condition(self, type: str) -> bool:
        """Whether a condition is there and true."""
        condition = find_condition(self.conditions, type)
        return condition is not None and condition.get("status") == "True"

    @property
    def is_finished(self) -> bool:
        return self.has_condition("Failed") or self.has_condition("Succeeded")

    def set_condition(
        self,
        type: str,
        message: str,
        *,
        status: bool = True,
        reason_word: str = "",
        reason: str = "",
    ) -> bool:
        """Set a condition as the real operator does. True when it is news.

        The reason's word is the type unless `word` is given; `reason` is one that is not of this
        form.

        A changed condition moves to the end. Running and Restarting take each other's place; the
        end of a job turns Running to False and keeps it. After Failed nothing is written any more.
        """
        if self.has_condition("Failed"):
            return False
        old = find_condition(self.conditions, type)
        reason = reason or self._kind + (reason_word or type)
        if old is not None and (old.get("status"), old.get("reason")) == (str(status), reason):
            return False
        now = clock.format_time()
        moved = (
            old["lastTransitionTime"]
            if old is not None and old.get("status") == str(status)
            else now
        )
        new = {
            "type": type,
            "status": str(status),
            "reason": reason,
            "message": message,
            "lastUpdateTime": now,
            "lastTransitionTime": moved,
        }
        kept = [each for each in self.conditions if each["type"] not in (type, _REPLACES.get(type))]
        for each in kept:
            if type in ("Succeeded", "Failed") and each["type"] == "Running":
                each["status"] = "False"
        self.body["conditions"] = [*kept, new]
        return True

    def set_start_time(self) -> None:
        self.body["startTime"] = clock.format_time()

    def set_completion_time(self) -> None:
        self.body.setdefault("completionTime", clock.format_time())

    def set_replica_statuses(self, counts: CountsByType, selectors: Mapping[str, str]) -> None:
        """Put the counts by replica type; zeros are left out, as Go's omitempty does."""
        self.body["replicaStatuses"] = {
            type: _serialize_counts(tally) | {"selector": selectors[type]}
            for type, tally in counts.items()
        }

    def count_active_as_succeeded(self) -> None:
        """Of a job that succeeded, what still was active counts as succeeded."""
        for counts in self._replica_counts():
            active = counts.pop("active", 0)
            if active:
                counts["succeeded"] = counts.get("succeeded", 0) + active

    def update_active(self, active: Mapping[str, int]) -> None:
        """Bring the counts of active pods up to date, by type, and leave the others as they
        were.
        """
        for type, counts in (self.body.get("replicaStatuses") or {}).items():
            counts.pop("active", None)
            if active.get(type):
                counts["active"] = active[type]

    def _replica_counts(self) -> Iterable[Object]:
        found: dict[str, Object] = self.body.get("replicaStatuses") or {}
        return found.values()

    @property
    def has_changed(self) -> bool:
        return self.body != self._stored


def _serialize_counts(pod_counts: PodCounts) -> Object:
    counts = {
        "active": pod_counts.active,
        "succeeded": pod_counts.succeeded,
        "failed": pod_counts.failed,
    }
    return {name: count for name, count in counts.items() if count}
