"""The status of a job: conditions with their order and mutual effects, times, replica
counts.
"""

from collections.abc import Iterable, Mapping

from localkube import clock
from localkube.controllers.framework import CountsByType, PodCounts
from localkube.metadata import Object, deep_copy, find_condition

_REPLACES: Mapping[str, str] = {"Running": "Restarting", "Restarting": "Running"}


class TrainingStatus:
    """A copy of a status to work on. Reasons are the kind and a word: PyTorchJobRunning."""

    def __init__(self, kind: str, stored: Object | None) -> None:
        self._kind = kind
        self._stored = stored or {}
        self.body: Object = deep_copy(self._stored)

    @property
    def conditions(self) -> list[Object]:
        conditions: list[Object] = self.body.setdefault("conditions", [])
        return conditions

    def has_condition(self, type: str) -> bool:
        """Return whether a condition is present and true."""
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
        reason: str = "",
    ) -> bool:
        """Set a condition as the real operator does; return whether it changed.

        The reason is by default the kind and the type.

        A changed condition moves to the end. Running and Restarting replace each other; the end of
        a job turns Running to False and keeps it. After Failed nothing is written any more.
        """
        if self.has_condition("Failed"):
            return False
        old = find_condition(self.conditions, type)
        reason = reason or self._kind + type
        if old is not None and (old.get("status"), old.get("reason")) == (str(status), reason):
            return False
        now = clock.format_time()
        transition_time = (
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
            "lastTransitionTime": transition_time,
        }
        others = [
            condition
            for condition in self.conditions
            if condition["type"] not in (type, _REPLACES.get(type))
        ]
        for condition in others:
            if type in ("Succeeded", "Failed") and condition["type"] == "Running":
                condition["status"] = "False"
        self.body["conditions"] = [*others, new]
        return True

    def set_note(self, type: str, message: str, *, status: bool, reason: str) -> bool:
        """Set a condition that is no step of the job's way, before all others; return whether it
        changed.

        The last condition stays the job's state, which `kubectl get` prints.
        """
        if not self.set_condition(type, message, status=status, reason=reason):
            return False
        self.conditions.insert(0, self.conditions.pop())
        return True

    def set_start_time(self) -> None:
        self.body["startTime"] = clock.format_time()

    def set_completion_time(self) -> None:
        self.body.setdefault("completionTime", clock.format_time())

    def set_replica_statuses(self, counts: CountsByType, selectors: Mapping[str, str]) -> None:
        """Set the counts by replica type, without zeros, as Go's omitempty does.

        `selectors` has the label selector of each type's pods where the kind reports one.
        """
        self.body["replicaStatuses"] = {
            type: _serialize_counts(tally, selectors.get(type, ""))
            for type, tally in counts.items()
        }

    def count_active_as_succeeded(self) -> None:
        """Count the pods that were still active in a succeeded job as succeeded."""
        for counts in self._replica_counts():
            active = counts.pop("active", 0)
            if active:
                counts["succeeded"] = counts.get("succeeded", 0) + active

    def update_active(self, active: Mapping[str, int]) -> None:
        """Update the counts of active pods by type, and leave the other counts."""
        for type, counts in (self.body.get("replicaStatuses") or {}).items():
            counts.pop("active", None)
            if active.get(type):
                counts["active"] = active[type]

    def _replica_counts(self) -> Iterable[Object]:
        statuses: dict[str, Object] = self.body.get("replicaStatuses") or {}
        return statuses.values()

    @property
    def has_changed(self) -> bool:
        return self.body != self._stored

    @property
    def has_changed_conditions(self) -> bool:
        return self.body.get("conditions") != self._stored.get("conditions")


def _serialize_counts(pod_counts: PodCounts, selector: str) -> Object:
    fields = {
        "active": pod_counts.active,
        "succeeded": pod_counts.succeeded,
        "failed": pod_counts.failed,
        "selector": selector,
    }
    return {name: value for name, value in fields.items() if value}
