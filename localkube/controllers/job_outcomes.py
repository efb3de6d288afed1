"""How a batch/v1 Job ends by its conditions and its indexes, as pure functions."""

from collections.abc import Iterable

from localkube.controllers.job_rules import JobSpec
from localkube.metadata import Object, find_condition

END_CONDITIONS = {"FailureTarget": "Failed", "SuccessCriteriaMet": "Complete"}
"""The condition that announces how a Job will end, and the one set once its last pod has ended."""

Outcome = tuple[str, str, str]
"""A key of END_CONDITIONS, the reason and the message."""


def find_announced_outcome(conditions: Iterable[Object]) -> Outcome | None:
    """Return the outcome that an earlier reconciliation announced, if any."""
    conditions = tuple(conditions)
    for kind in END_CONDITIONS:
        condition = find_condition(conditions, kind)
        if condition is not None and condition.get("status") == "True":
            return kind, str(condition.get("reason")), str(condition.get("message"))
    return None


def find_index_failure(spec: JobSpec, succeeded: int, failed_indexes: int) -> Outcome | None:
    """Return the failure of a Job too many of whose indexes failed, or none of which is open."""
    if spec.max_failed_indexes is not None and failed_indexes > spec.max_failed_indexes:
        return (
            "FailureTarget",
            "MaxFailedIndexesExceeded",
            "Job has exceeded the specified maximal number of failed indexes",
        )
    if failed_indexes and failed_indexes + succeeded >= (spec.completions or 0):
        return "FailureTarget", "FailedIndexes", "Job has failed indexes"
    return None
