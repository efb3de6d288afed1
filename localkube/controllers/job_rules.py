"""The rules of batch/v1 Jobs as pure functions: indexes, delays, failure policies, conditions."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from localkube import clock
from localkube.metadata import Object, annotations_of, find_condition
from localkube.resources.job_index_rules import MAX_INDEXED
from localkube.tallies import Tally

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"

FIRST_DELAY = timedelta(seconds=10)
MAX_DELAY = timedelta(minutes=6)
"""The longest wait before another pod: 10 s after the first failure, doubled each time, as
documented.
"""

FailureAction = Literal["FailJob", "FailIndex", "Ignore", "Count"]


@dataclass(frozen=True, slots=True)
class JobSpec:
    """The fields of a Job's spec that the controller uses, with the API's defaults."""

    parallelism: int
    completions: int | None
    indexed: bool
    backoff_limit: int
    deadline_seconds: int | None
    suspended: bool
    restart_in_place: bool
    """restartPolicy OnFailure: the kubelet restarts containers, and these restarts count as
    failures.
    """
    replace_terminating: bool
    """podReplacementPolicy TerminatingOrFailed: a terminating pod counts as failed and is replaced
    at once.
    """
    failure_rules: Sequence[Object]
    limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    success_rules: Sequence[Object] = ()

    @classmethod
    def from_job(cls, job: Object) -> "JobSpec":
        spec = job["spec"]
        parallelism, completions = spec.get("parallelism"), spec.get("completions")
        if parallelism is None and completions is None:
            completions = 1
        policy = spec.get("podFailurePolicy")
        indexed = spec.get("completionMode") == "Indexed"
        return cls(
            parallelism=1 if parallelism is None else int(parallelism),
            completions=None if completions is None else int(completions),
            indexed=indexed,
            backoff_limit=int(spec.get("backoffLimit", 6)),
            deadline_seconds=spec.get("activeDeadlineSeconds"),
            suspended=bool(spec.get("suspend")),
            restart_in_place=(spec["template"].get("spec") or {}).get("restartPolicy")
            == "OnFailure",
            replace_terminating=spec.get(
                "podReplacementPolicy", "Failed" if policy else "TerminatingOrFailed"
            )
            == "TerminatingOrFailed",
            failure_rules=(policy or {}).get("rules") or (),
            limit_per_index=spec.get("backoffLimitPerIndex") if indexed else None,
            max_failed_indexes=spec.get("maxFailedIndexes"),
            success_rules=((spec.get("successPolicy") or {}).get("rules") or ()) if indexed else (),
        )


def find_end_condition(job: Object) -> Object | None:
    """Return the condition that says how a Job has ended, or None."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    ends = (find_condition(conditions, type) for type in ("Complete", "Failed"))
    return next((end for end in ends if end is not None and end.get("status") == "True"), None)


def completion_index(pod: Object) -> int:
    """Return the completion index of a pod; -1 when it has no readable one."""
    return parse_index(annotations_of(pod).get(COMPLETION_INDEX, ""))


def parse_index(text: str) -> int:
    """Parse a completion index; return -1 for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1


def parse_indexes(text: str, completions: int) -> set[int]:
    """Parse a text like "0,2-4" into the indexes below `completions` and MAX_INDEXED.

    Anybody may write a status, so parts that are no indexes are left out.
    """
    bound = min(completions, MAX_INDEXED)
    indexes: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        start, end = parse_index(first), parse_index(last or first)
        if 0 <= start <= end:
            indexes.update(range(start, min(end, bound - 1) + 1))
    return indexes


def format_indexes(indexes: Iterable[int]) -> str:
    """Format indexes in increasing order, with runs of three and more as "FIRST-LAST".

    The form of status.completedIndexes, such as "0,2-4,7,8".
    """
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(_format_run(first, last) for first, last in runs)


def _format_run(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first}{',' if last == first + 1 else '-'}{last}"


def seconds_until_retry(
    failures: Iterable[datetime], last_success: datetime | None, now: datetime
) -> float:
    """Return the seconds until another pod may be started, from when pods have ended.

    Only pods that failed after the last success lengthen the delay, and none that ended in the
    future: the clock was set back since.
    """
    ends = [end for end in failures if end <= now and (last_success is None or end > last_success)]
    if not ends:
        return 0
    return max(0.0, (max(ends) + find_retry_delay(len(ends)) - now).total_seconds())


def find_retry_delay(failures: int) -> timedelta:
    """Return how long after the last of so many failures another pod may be started."""
    return min(MAX_DELAY, FIRST_DELAY * (1 << min(failures - 1, 10)))


def find_success_rule(rules: Sequence[Object], completed: Set[int], completions: int) -> int | None:
    """Return the number of the first success policy rule that the completed indexes fulfil."""
    for number, rule in enumerate(rules if completed else ()):
        count, text = rule.get("succeededCount"), rule.get("succeededIndexes")
        wanted = completed if text is None else parse_indexes(text, completions)
        needed = len(wanted) if count is None else count
        if len(wanted & completed) >= needed:
            return number
    return None


def exceeds_restart_limit(tallies: Mapping[Tally, int], spec: JobSpec) -> bool:
    """Return whether restarts in place of unfinished pods exceed the limit.

    Follows pastBackoffLimitOnFailure of the real controller.
    """
    if not spec.restart_in_place:
        return False
    restarts = sum(
        tally.restarts * count for tally, count in tallies.items() if not tally.is_finished
    )
    return restarts > 0 if spec.backoff_limit == 0 else restarts >= spec.backoff_limit


def match_failure_policy(pod: Object, rules: Sequence[Object]) -> tuple[FailureAction, str]:
    """Return the action of the first failure policy rule that matches a failed pod, and the FailJob
    message.

    Without a match a failure counts.
    """
    for number, rule in enumerate(rules):
        text = _match_exit_code(pod, rule.get("onExitCodes")) or _match_condition(
            pod, rule.get("onPodConditions") or ()
        )
        if text:
            action: FailureAction = (
                rule["action"]
                if rule.get("action") in ("FailJob", "FailIndex", "Ignore")
                else "Count"
            )
            return action, f"{text} matching {rule.get('action')} rule at index {number}"
    return "Count", ""


def _match_exit_code(pod: Object, requirement: Object | None) -> str:
    if not requirement:
        return ""
    status = pod.get("status") or {}
    metadata = pod["metadata"]
    for container in [
        *(status.get("containerStatuses") or ()),
        *(status.get("initContainerStatuses") or ()),
    ]:
        code = ((container.get("state") or {}).get("terminated") or {}).get("exitCode", 0)
        is_named = requirement.get("containerName") in (None, container.get("name"))
        if (
            is_named
            and code != 0
            and (code in (requirement.get("values") or ())) == (requirement.get("operator") == "In")
        ):
            return (
                f"Container {container.get('name')} for pod "
                f"{metadata['namespace']}/{metadata['name']} failed with exit code {code}"
            )
    return ""


def _match_condition(pod: Object, patterns: Iterable[Object]) -> str:
    metadata = pod["metadata"]
    for pattern in patterns:
        condition = find_condition(
            (pod.get("status") or {}).get("conditions") or (), str(pattern.get("type"))
        )
        if condition is not None and condition.get("status") == pattern.get("status", "True"):
            return (
                f"Pod {metadata['namespace']}/{metadata['name']} has condition {condition['type']}"
            )
    return ""


def set_job_condition(
    conditions: list[Object], kind: str, status: bool, reason: str, message: str
) -> bool:
    """Add or change a condition; return whether anything changed.

    A missing condition is not added only to say False.
    """
    old = find_condition(conditions, kind)
    if old is None and not status:
        return False
    if old is not None and (old.get("status"), old.get("reason"), old.get("message")) == (
        str(status),
        reason,
        message,
    ):
        return False
    now = clock.format_time()
    transition_time = (
        old.get("lastTransitionTime", now)
        if old is not None and old.get("status") == str(status)
        else now
    )
    new = {
        "type": kind,
        "status": str(status),
        "lastProbeTime": now,
        "lastTransitionTime": transition_time,
        "reason": reason,
        "message": message,
    }
    if old is None:
        conditions.append(new)
    else:
        conditions[conditions.index(old)] = new
    return True
