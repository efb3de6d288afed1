"""Why a workload failed: the first pod, how it ended, and the line of its log that says why."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import IntEnum

from workloads import quantities
from workloads.diagnosis.causes import Confidence, FailureCause
from workloads.diagnosis.container_ends import (
    KILL,
    OUT_OF_MEMORY,
    TERM,
    ContainerEnd,
    describe_end,
    find_cluster_end,
    is_by_signal,
    is_fetcher,
    parse_time,
)
from workloads.diagnosis.failed_processes import FailedProcess, find_failed_process
from workloads.diagnosis.job_ends import diagnose_by_condition, has_run_out_of_time
from workloads.diagnosis.log_clues import Clue, find_clue
from workloads.diagnosis.missing_ranks import MissingRanks, find_missing_ranks
from workloads.diagnosis.node_faults import FAULT_HELP, NodeFault
from workloads.diagnosis.result import Diagnosis, build_sentence
from workloads.diagnosis.sign_forms import Weight
from workloads.diagnosis.starting import FETCHER_ADVICE
from workloads.kube_objects import Object, filter_own_pods, find_true_condition, nested_dict
from workloads.pod_views import ContainerExit, PodView, build_pod_view, rank_pods

SAME_CAUSE_WINDOW = timedelta(seconds=15)
"""Pods that end within this time of the first may share its cause: the clock does not tell which
pod caused it.
"""
RESTART_WINDOW = timedelta(minutes=15)
"""For how long a run that failed may explain why the next one was asked to end.

Peers that wait for it in a collective of NCCL give up after ten minutes by default.
"""


class Cause(IntEnum):
    """What ended a pod; a lower value is likelier the cause of the other pods' ends."""

    OWN = 0
    UNKNOWN = 1
    ECHO = 2
    """Another pod's end."""


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
_LOADER_CAUSES = (FailureCause.MISSING_MODULE, FailureCause.GPU_UNUSABLE)
"""What the loader of libraries may miss: it ends with 127, as a shell does without the command."""
_MAY_BE_NODE = frozenset(
    {
        *_SAID_BY_LOG,
        FailureCause.GPU_FAULT,
        FailureCause.GPU_PROGRAM,
        FailureCause.GPU_UNUSABLE,
        FailureCause.LOST_PEERS,
        FailureCause.MISSING_RANK,
    }
)
"""Causes that a faulty device of the node explains."""
_MISSING_RANK_HELP = (
    "Look at what it did last, in its log: it may have died, hung, or gone another way than the "
    "others."
)


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
    process: FailedProcess | None
    """The process of several that failed first, as a launcher says."""

    @property
    def ended_at(self) -> datetime | None:
        return parse_time(self.end.finished_at if self.end else "")

    @property
    def cause(self) -> Cause:
        end = self.end
        if end is None or end.reason == OUT_OF_MEMORY or find_cluster_end(self.view, self.pod):
            return Cause.OWN
        if end.exit_code == TERM or (self.clue and self.clue.is_echo):
            return Cause.ECHO
        if self.clue is None or not self.clue.is_sure or self.clue.weight > Weight.VAGUE:
            return Cause.UNKNOWN
        return Cause.OWN


def diagnose_failure(
    job: Object,
    pods: Iterable[Object],
    logs: Mapping[str, Sequence[str]] | None = None,
    *,
    ranks: Mapping[str, int | None] | None = None,
    failed: int = 0,
    faults: Sequence[NodeFault] = (),
) -> Diagnosis | None:
    """Return the first failure of a job's pods, or what the job itself reports.

    None when nothing failed, or when the job succeeded nevertheless. `logs` are the last lines of
    each pod's failed container, by pod name; a pod without any is judged by its termination
    message. Of a job of very many pods only the first that `failed` are given, with their `ranks`
    by name. `faults` are those of its nodes' devices that were found while it ran.
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
    if culprit is not None and has_run_out_of_time(condition) and _was_asked_to_end(culprit):
        culprit = None
    if culprit is not None:
        alone = len(views) == 1 and failed <= 1
        return _build_diagnosis(culprit, faults, alone=alone, failed=failed)
    return None if condition is None else diagnose_by_condition(condition)


def _was_asked_to_end(suspect: _Suspect) -> bool:
    end = suspect.end
    return end is not None and end.exit_code in (TERM, KILL) and end.reason != OUT_OF_MEMORY


def _has_failed(view: PodView) -> bool:
    return view.phase == "Failed" or (
        view.phase != "Succeeded" and any(end.exit_code for end in view.ends)
    )


def find_failed_end(view: PodView) -> ContainerExit | None:
    """Return how the container of a pod ended that failed first; None where none failed."""
    bad = _drop_old_ends([end for end in view.ends if end.exit_code])
    # A run that was ended by SIGTERM hides how the run before it failed: prefer that one.
    return min(
        bad, key=lambda end: (end.exit_code == TERM, not end.current, end.finished_at), default=None
    )


def _build_suspect(
    rank: int | None, view: PodView, pod: Object, logs: Mapping[str, Sequence[str]]
) -> _Suspect:
    end = find_failed_end(view)
    # The given log is the newest run's, so an earlier run is judged by its message.
    message_lines = end.message.splitlines() if end else []
    log = logs.get(view.name) or ()
    lines = (message_lines or log) if end and not end.current else (log or message_lines)
    return _Suspect(
        view,
        pod,
        rank,
        end,
        find_clue(lines, by_signal=end is not None and is_by_signal(end)),
        from_log=lines is log,
        missing=find_missing_ranks(lines, pod),
        process=find_failed_process(lines),
    )


def _drop_old_ends(ends: Sequence[ContainerExit]) -> list[ContainerExit]:
    """Return the ends without earlier runs that ended long before the present ones.

    Where no container is at its end now, or the times are unknown, all of them.
    """
    moments = [parse_time(end.finished_at) for end in ends if end.current]
    first = min((moment for moment in moments if moment is not None), default=None)
    return [
        end
        for end in ends
        if end.current
        or first is None
        or (at := parse_time(end.finished_at)) is None
        or first - at <= RESTART_WINDOW
    ]


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


def _build_diagnosis(
    suspect: _Suspect, faults: Sequence[NodeFault], *, alone: bool, failed: int
) -> Diagnosis:
    view, clue, restarts = suspect.view, suspect.clue, suspect.view.restarts
    end = describe_end(view, suspect.pod, suspect.end)
    clue_advice = clue.help if clue and _is_said_by_log(suspect, end.cause) else ""
    words, advice = _describe_cause(suspect, end), clue_advice or end.advice
    if suspect.end is not None and view.is_init(suspect.end.container):
        words = (
            f"{suspect.end.container}, which has to end well before the program starts, did not: "
            f"{words}"
        )
        has_own_advice = bool(clue_advice) or end.cause is FailureCause.MEMORY
        if is_fetcher(suspect.end.container) and not has_own_advice:
            advice = FETCHER_ADVICE
    if suspect.missing is not None and _is_said_by_log(suspect, end.cause):
        words = (
            f"{quantities.format_ranks(suspect.missing.ranks)} did not come to the collective in "
            "which it waited"
        )
    subject = "The pod" if alone and not view.role else view.title
    rank = f" (rank {suspect.rank})" if suspect.rank is not None and view.role else ""
    first = f" first of {failed} pods that failed" if failed > 1 else "" if alone else " first"
    again = f", after {quantities.format_count(restarts, 'restart')}" if restarts else ""
    through = _describe_process(suspect, end.cause)
    cause, confidence = _judge_cause(suspect, end.cause)
    diagnosis = Diagnosis(
        sentence=build_sentence(f"{subject}{rank} failed{first}{through}: {words}{again}"),
        help=advice,
        pod=view.name,
        container=suspect.end.container if suspect.end else "",
        line=clue.line if clue else "",
        line_index=clue.index if clue and suspect.from_log else None,
        cause=cause,
        rank=suspect.rank,
        confidence=confidence,
    )
    if not _is_said_by_log(suspect, end.cause):
        return diagnosis
    return _blame_node(_blame_missing_ranks(diagnosis, suspect), suspect, faults)


def _is_said_by_log(suspect: _Suspect, cause: FailureCause) -> bool:
    """Return whether the log may say more than how a container ended."""
    if cause is FailureCause.MISSING_COMMAND and suspect.clue is not None:
        return suspect.clue.cause in _LOADER_CAUSES
    return cause in _SAID_BY_LOG


def _describe_process(suspect: _Suspect, cause: FailureCause) -> str:
    """Return which process of a pod failed; "" where its rank is the pod's, or is not known.

    The one whose line says why goes before the one that a launcher names.
    """
    clue, named = suspect.clue, suspect.process
    rank = clue.rank if clue is not None and clue.rank is not None else named and named.rank
    if rank is None or not _is_said_by_log(suspect, cause) or suspect.missing is not None:
        return ""
    if named is not None and named.rank == rank and named.host:
        return f", through the process of rank {rank} on {named.host}"
    # A pod without a rank is the only one.
    return "" if rank == (suspect.rank or 0) else f", through its process of rank {rank}"


def _describe_cause(suspect: _Suspect, end: ContainerEnd) -> str:
    """Return how a pod ended, and what the line of its log means where that says more."""
    clue = suspect.clue
    if clue is None or not clue.words or not _is_said_by_log(suspect, end.cause):
        return end.words
    if clue.is_echo and end.cause is FailureCause.ASKED_TO_END:
        return end.words
    return f"{end.words}, because {clue.words}"


def _blame_node(diagnosis: Diagnosis, suspect: _Suspect, faults: Sequence[NodeFault]) -> Diagnosis:
    """Return the diagnosis with the fault of the node that explains it; as it is without one."""
    missed = suspect.missing.ranks if suspect.missing else ()
    fault = next(
        (
            each
            for each in faults
            if each.rank in missed
            or (not missed and each.node == suspect.view.node and each.rank in (None, suspect.rank))
        ),
        None,
    )
    if fault is None or diagnosis.cause not in _MAY_BE_NODE:
        return diagnosis
    if not missed and suspect.clue is not None and suspect.clue.is_sure and not suspect.clue.cause:
        # The program names an error of its own, which no device explains.
        return diagnosis
    return replace(
        diagnosis,
        sentence=f"{diagnosis.sentence} Node {fault.node} was faulty: {fault.text}.",
        help=FAULT_HELP,
        cause=FailureCause.GPU_FAULT,
        rank=fault.rank if fault.rank is not None else diagnosis.rank,
        confidence=Confidence.LIKELY,
    )


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
    if not _is_said_by_log(suspect, cause):
        return cause, Confidence.CERTAIN
    if clue is None or not clue.is_sure:
        return cause, Confidence.POSSIBLE
    confidence = Confidence.POSSIBLE if clue.is_echo else Confidence.LIKELY
    return clue.cause or cause, confidence
