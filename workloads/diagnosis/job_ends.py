"""Why a job failed by its own word, where no pod of it says more. Pure."""

import re
from collections.abc import Mapping

from workloads.diagnosis.causes import Confidence, FailureCause
from workloads.diagnosis.container_ends import MORE_TIME
from workloads.diagnosis.result import Diagnosis, build_sentence
from workloads.kube_objects import Object, clean_text

_JOB_ENDS: Mapping[str, tuple[FailureCause, str, str]] = {
    "BackoffLimitExceeded": (
        FailureCause.BACKOFF_LIMIT,
        "It was tried as often as its backoff limit allows",
        "Look into the log of its last try.",
    ),
    "DeadlineExceeded": (
        FailureCause.TIME_LIMIT,
        "It ran longer than it was allowed to",
        MORE_TIME,
    ),
}


_OVER_TIME = re.compile(r"active longer than specified deadline")
_OVER_TRIES = re.compile(r"reached the specified backoff limit")


def has_run_out_of_time(condition: Object | None) -> bool:
    """Return whether a job failed because of its time limit: its pods were asked to end then."""
    return condition is not None and _find_reason(condition) == "DeadlineExceeded"


def _find_reason(condition: Object) -> str:
    """Return the reason of a failed job; the training operator has it in the message alone."""
    message = str(condition.get("message") or "")
    if _OVER_TIME.search(message):
        return "DeadlineExceeded"
    if _OVER_TRIES.search(message):
        return "BackoffLimitExceeded"
    return str(condition.get("reason") or "")


def diagnose_by_condition(condition: Object) -> Diagnosis:
    """Return what the condition of a failed job says."""
    reason, message = _find_reason(condition), clean_text(condition.get("message"))
    cause, words, advice = _JOB_ENDS.get(reason, (FailureCause.UNKNOWN, "", ""))
    if reason.endswith("FailedValidation"):
        cause, words = FailureCause.REFUSED, "The training operator refused it"
        advice = "Change what it names and run it again."
    if words:
        sentence = build_sentence(f"{words}{': ' if message else ''}{message}")
        return Diagnosis(sentence, advice, cause=cause, confidence=Confidence.CERTAIN)
    return Diagnosis(
        build_sentence(message or f"The job failed ({clean_text(reason) or 'no reason is given'})"),
        "Look into the event history.",
        cause=cause,
        confidence=Confidence.POSSIBLE,
    )
