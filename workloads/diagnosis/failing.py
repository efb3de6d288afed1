"""Why a workload failed: the first pod, how it ended, and the line of its log that says why."""

import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import IntEnum

from workloads import quantities
from workloads.diagnosis.causes import Confidence, FailureCause
from workloads.diagnosis.log_clues import Clue, find_clue
from workloads.diagnosis.missing_ranks import MissingRanks, find_missing_ranks
from workloads.diagnosis.result import Diagnosis, build_sentence
from workloads.diagnosis.starting import FETCHER_ADVICE
from workloads.kube_objects import (
    ContainerExit,
    Object,
    PodView,
    build_pod_view,
    clean_text,
    filter_own_pods,
    find_true_condition,
    nested_dict,
    nested_list,
    rank_pods,
)

SAME_CAUSE_WINDOW = timedelta(seconds=15)
"""Pods that end within this time of the first may share its cause: the clock does not tell which
pod caused it.
"""

TERM, KILL = 128 + signal.SIGTERM, 128 + signal.SIGKILL


class Cause(IntEnum):
    """What ended a pod; a lower value is likelier the cause of the other pods' ends."""

    OWN = 0
    UNKNOWN = 1
    ECHO = 2
    """Another pod's end."""


_MORE_TIME = "Give it more time, or make the work smaller."
_BAD_NODE = "Run it again; if this repeats, tell the administrator of the cluster about the node."
_ENDED_BY_CLUSTER: Mapping[str, tuple[FailureCause, str]] = {
    "Evicted": (
        FailureCause.EVICTED,
        "The node needed its resources back; ask for as much memory and disk as the pod uses.",
    ),
    "NodeLost": (FailureCause.NODE, _BAD_NODE),
    "NodeShutdown": (FailureCause.NODE, "Run it again: the node was shut down."),
    "Terminated": (FailureCause.NODE, "Run it again: the node was shut down."),
    "NodeAffinity": (
        FailureCause.NODE,
        "Run it again: the node no longer fits what the pod asks for.",
    ),
    "DeadlineExceeded": (FailureCause.TIME_LIMIT, _MORE_TIME),
    "UnexpectedAdmissionError": (FailureCause.NODE, _BAD_NODE),
}

_JOB_ENDS: Mapping[str, tuple[FailureCause, str, str]] = {
    "BackoffLimitExceeded": (
        FailureCause.BACKOFF_LIMIT,
        "It was tried as often as its backoff limit allows",
        "Look into the log of its last try.",
    ),
    "DeadlineExceeded": (
        FailureCause.TIME_LIMIT,
        "It ran longer than it was allowed to",
        _MORE_TIME,
    ),
}
_SAID_BY_LOG = frozenset(
    {
        FailureCause.ASKED_TO_END,
        FailureCause.CRASH,
        FailureCause.EXIT_CODE,
        FailureCause.KILLED,
        FailureCause.UNKNOWN,
    }
)
"""Ends of which a line of the log may say more."""
_MISSING_RANK_HELP = (
    "Look at what it did last, in its log: it may have died, hung, or gone another way than the "
    "others."
)


@dataclass(frozen=True, slots=True)
class _End:
    """How a container ended, in words, and advice that follows from that alone."""

    cause: FailureCause
    words: str
    advice: str


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A pod that failed; `end` is None when no container of it says how."""

    view: PodView
    pod: Object
    rank: int | None
    end: ContainerExit | None
    clue: Clue | None
    from_log: bool
    """Whether the clue is a line of the given log, and not of the container's termination message.
    """
    missing: MissingRanks | None
    """The ranks that this pod waited for, as its lines say."""

    @property
    def ended_at(self) -> datetime | None:
        return _parse_time(self.end.finished_at if self.end else "")

    @property
    def cause(self) -> Cause:
        end = self.end
        if end is None or end.reason == "OOMKilled" or self.view.status in _ENDED_BY_CLUSTER:
            return Cause.OWN
        if end.exit_code == TERM or (self.clue and self.clue.is_echo):
            return Cause.ECHO
        return Cause.OWN if self.clue and self.clue.is_sure else Cause.UNKNOWN


def diagnose_failure(
    job: Object,
    pods: Iterable[Object],
    logs: Mapping[str, Sequence[str]] | None = None,
    *,
    ranks: Mapping[str, int | None] | None = None,
    failed: int = 0,
) -> Diagnosis | None:
    """Return the first failure of a job's pods, or what the job itself reports.

    None when nothing failed, or when the job succeeded nevertheless. `logs` are the last lines of
    each pod's log, by pod name; a pod without any is judged by its termination message. Of a job
    of very many pods only the first that `failed` are given, with their `ranks` by name.
    """
    if find_true_condition(job, "Succeeded", "Complete"):
        return None
    own_pods = filter_own_pods(job, pods)
    by_name = {str(nested_dict(pod, "metadata").get("name")): pod for pod in own_pods}
    views = rank_pods([build_pod_view(pod) for pod in own_pods])
    suspects = [
        _build_suspect((ranks or {}).get(each.name, rank), each, by_name[each.name], logs or {})
        for rank, each in views
        if _has_failed(each)
    ]
    # Once pods have failed finally, pods that merely restarted did not end the job.
    final = [each for each in suspects if each.view.phase == "Failed"]
    culprit = _choose_culprit(final or suspects)
    condition = find_true_condition(job, "Failed")
    if culprit is not None:
        alone = len(views) == 1 and failed <= 1
        return _build_diagnosis(culprit, alone=alone, failed=failed)
    return None if condition is None else _diagnose_by_condition(condition)


def _has_failed(view: PodView) -> bool:
    return view.phase == "Failed" or (
        view.phase != "Succeeded" and any(end.exit_code for end in view.ends)
    )


def _build_suspect(
    rank: int | None, view: PodView, pod: Object, logs: Mapping[str, Sequence[str]]
) -> _Suspect:
    bad = [end for end in view.ends if end.exit_code]
    # A run that was ended by SIGTERM hides how the run before it failed: prefer that one. But the
    # given log is the newest run's, so an earlier run is judged by its message.
    end = min(
        bad, key=lambda end: (end.exit_code == TERM, not end.current, end.finished_at), default=None
    )
    message_lines = end.message.splitlines() if end else []
    log = logs.get(view.name) or ()
    lines = (message_lines or log) if end and not end.current else (log or message_lines)
    return _Suspect(
        view,
        pod,
        rank,
        end,
        find_clue(lines),
        from_log=lines is log,
        missing=find_missing_ranks(lines, pod),
    )


def _choose_culprit(suspects: Sequence[_Suspect]) -> _Suspect | None:
    """Return the pod that most likely caused the failure.

    Of the pods that ended with the first one: the one whose end is most its own doing; then the
    earliest, then the lowest rank.
    """
    if not suspects:
        return None
    moments = [each.ended_at for each in suspects if each.ended_at is not None]
    start = min(moments, default=None)
    near = [
        each
        for each in suspects
        if start is None or each.ended_at is None or each.ended_at - start <= SAME_CAUSE_WINDOW
    ]
    late = datetime.max.replace(tzinfo=start.tzinfo) if start else datetime.max
    return min(
        near,
        key=lambda each: (each.cause, each.ended_at or late, each.rank is None, each.rank or 0),
    )


def _build_diagnosis(suspect: _Suspect, *, alone: bool, failed: int) -> Diagnosis:
    view, clue, restarts = suspect.view, suspect.clue, suspect.view.restarts
    end = _describe_end(suspect)
    words, advice = end.words, (clue.help if clue else "") or end.advice
    if suspect.end is not None and view.is_init(suspect.end.container):
        words = (
            f"{suspect.end.container}, which has to end well before the program starts, did not: "
            f"{words}"
        )
        if suspect.end.container.startswith("fetch-") and not (clue and clue.help):
            advice = FETCHER_ADVICE
    if suspect.missing is not None and end.cause in _SAID_BY_LOG:
        words = (
            f"{quantities.format_ranks(suspect.missing.ranks)} did not come to the collective in "
            "which it waited"
        )
    who = "The pod" if alone and not view.role else view.title
    rank = f" (rank {suspect.rank})" if suspect.rank is not None and view.role else ""
    first = f" first of {failed} pods that failed" if failed > 1 else "" if alone else " first"
    again = f", after {quantities.format_count(restarts, 'restart')}" if restarts else ""
    cause, confidence = _judge_cause(suspect, end.cause)
    diagnosis = Diagnosis(
        sentence=build_sentence(f"{who}{rank} failed{first}: {words}{again}"),
        help=advice,
        pod=view.name,
        container=suspect.end.container if suspect.end else "",
        line=clue.line if clue else "",
        line_index=clue.index if clue and suspect.from_log else None,
        cause=cause,
        rank=suspect.rank,
        confidence=confidence,
    )
    return _blame_missing_ranks(diagnosis, suspect) if end.cause in _SAID_BY_LOG else diagnosis


def _blame_missing_ranks(diagnosis: Diagnosis, suspect: _Suspect) -> Diagnosis:
    """Return the diagnosis of the ranks that a pod waited for; the same where it names none."""
    missing = suspect.missing
    if missing is None:
        return diagnosis
    return replace(
        diagnosis,
        help=_MISSING_RANK_HELP,
        line=missing.line,
        line_index=missing.index if suspect.from_log else None,
        cause=FailureCause.MISSING_RANK,
        rank=missing.ranks[0] if len(missing.ranks) == 1 else None,
        confidence=Confidence.CERTAIN,
    )


def _judge_cause(suspect: _Suspect, cause: FailureCause) -> tuple[FailureCause, Confidence]:
    """Return what its log says where that says more than how it ended, and how sure that is."""
    clue = suspect.clue
    if cause not in _SAID_BY_LOG:
        return cause, Confidence.CERTAIN
    if clue is None or not clue.is_sure:
        return cause, Confidence.POSSIBLE
    confidence = Confidence.POSSIBLE if clue.is_echo else Confidence.LIKELY
    return clue.cause or cause, confidence


def _describe_end(suspect: _Suspect) -> _End:
    view, end = suspect.view, suspect.end
    if view.status in _ENDED_BY_CLUSTER:
        reason = f": {view.reason}" if view.reason else ""
        cause, advice = _ENDED_BY_CLUSTER[view.status]
        return _End(cause, f"the cluster ended it ({view.status}){reason}", advice)
    if end is None:
        words = f"{view.status}{': ' if view.reason else ''}{view.reason}"
        return _End(FailureCause.UNKNOWN, words, "")
    if end.reason == "OOMKilled":
        limit = _describe_memory_limit(suspect.pod, end.container)
        return _End(
            FailureCause.MEMORY,
            f"it was killed for using more memory than {limit}",
            "Ask for more CPU memory, or load less of the data at once.",
        )
    if end.reason in ("ContainerCannotRun", "StartError", "RunContainerError"):
        return _End(
            FailureCause.CANNOT_START,
            f"its container could not be started: {end.message}",
            "Check the command and the working directory against the image.",
        )
    return _describe_exit_code(end)


def _describe_memory_limit(pod: Object, container: str) -> str:
    containers = [
        *nested_list(pod, "spec", "containers"),
        *nested_list(pod, "spec", "initContainers"),
    ]
    limits = [
        nested_dict(each, "resources", "limits")
        for each in containers
        if each.get("name") == container
    ]
    limit = next((each["memory"] for each in limits if each.get("memory")), None)
    return (
        "the node could give"
        if limit is None
        else f"its limit of {quantities.format_memory(quantities.parse_or_zero(limit))}"
    )


def _describe_exit_code(end: ContainerExit) -> _End:
    code, number = end.exit_code, end.signal or (end.exit_code - 128 if end.exit_code > 128 else 0)
    code_words = f"exit code {code}"
    if code == 126:
        return _End(
            FailureCause.CANNOT_START,
            f"its command cannot be executed ({code_words})",
            "Check that the command is a program and may be executed.",
        )
    if code == 127:
        return _End(
            FailureCause.MISSING_COMMAND,
            f"its command was not found ({code_words})",
            "Check the command against what the image contains.",
        )
    try:
        name = signal.Signals(number).name if number else ""
    except ValueError:
        name = ""
    if name == "SIGKILL":
        return _End(
            FailureCause.KILLED,
            f"it was killed ({name}, {code_words})",
            (
                "Most often the node was out of memory, or the pod did not end within its grace "
                "period."
            ),
        )
    if name == "SIGTERM":
        return _End(
            FailureCause.ASKED_TO_END,
            f"it was asked to end ({name}, {code_words})",
            "Look for what stopped it: an eviction, a preemption or another pod's failure.",
        )
    if name:
        return _End(
            FailureCause.CRASH,
            f"it crashed with {name} ({code_words})",
            "The program crashed in native code: check the versions of its libraries.",
        )
    return _End(
        FailureCause.EXIT_CODE, f"the program ended with {code_words}", "Look into its log."
    )


def _diagnose_by_condition(condition: Object) -> Diagnosis:
    reason, message = str(condition.get("reason") or ""), clean_text(condition.get("message"))
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


def _parse_time(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None
