"""How a container or its pod ended, in words: by the cluster, a signal or an exit code. Pure."""

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from workloads import quantities
from workloads.cluster_texts import strip_names
from workloads.diagnosis.causes import FailureCause
from workloads.diagnosis.node_rejections import BAD_NODE, describe_rejection
from workloads.diagnosis.result import LOOK_INTO_LOG
from workloads.diagnosis.runtime_refusals import find_runtime_refusal
from workloads.kube_objects import (
    FETCHER_PREFIX,
    Object,
    clean_text,
    find_true_condition,
    nested_dict,
    nested_list,
)
from workloads.pod_views import ContainerExit, PodView

TERM = 128 + signal.SIGTERM
KILL = 128 + signal.SIGKILL
OUT_OF_MEMORY = "OOMKilled"
"""The reason of a container that was killed for its use of memory."""
_MORE_MEMORY = "Ask for more CPU memory, or load less of the data at once."
_MORE_FETCHER_MEMORY = (
    "Ask for more CPU memory, or fetch less: what fetches may use as much as the program."
)
MORE_TIME = "Give it more time, or make the work smaller."
_SHUT_DOWN = (
    "Run it again: the node was shut down. A program that writes checkpoints goes on at the last "
    "one."
)
ENDED_BY_CLUSTER: Mapping[str, tuple[FailureCause, str]] = {
    "Evicted": (
        FailureCause.EVICTED,
        "The node needed its resources back; ask for as much memory and disk as the pod uses.",
    ),
    "NodeLost": (FailureCause.NODE, BAD_NODE),
    "Terminated": (FailureCause.NODE, _SHUT_DOWN),
    "DeadlineExceeded": (FailureCause.TIME_LIMIT, MORE_TIME),
    "Preempting": (
        FailureCause.EVICTED,
        "Run it again: the node needed its room for a pod of the system.",
    ),
}
"""By the reason in a pod's status, which the kubelet or a controller writes there."""
_OVER_DISK = re.compile(
    r"ephemeral local storage usage exceeds|local ephemeral storage limit|"
    r"EmptyDir volume .{0,253} exceeds"
)
_OVER_DISK_ADVICE = (
    "It wrote more to its own disk or shared memory than it may: write less, write to a volume, or "
    "ask for more."
)
_LOW_ON = re.compile(
    r"low on resource: (?:(?P<disk>ephemeral-storage|\w{1,20}fs|inodes)|(?P<processes>pids))"
)
"""What an eviction is for, where that is not memory."""
_LOW_ON_DISK_ADVICE = (
    "The node needed its disk back; write less outside of volumes, or ask for as much disk as the "
    "pod uses: those that use more than they ask for go first."
)
_LOW_ON_PROCESSES_ADVICE = (
    "The node had no process IDs left; start fewer processes and threads, such as workers of data "
    "loaders."
)
_DISRUPTED: Mapping[str, tuple[FailureCause, str]] = {
    "PreemptionByScheduler": (
        FailureCause.EVICTED,
        "Run it again: work of a higher priority took its place.",
    ),
    "EvictionByEvictionAPI": (
        FailureCause.EVICTED,
        "Run it again: somebody emptied its node, or took its pod away.",
    ),
    "DeletionByTaintManager": (
        FailureCause.NODE,
        "Run it again: its node got a taint that it does not tolerate, as a lost node does.",
    ),
    "DeletionByPodGC": (FailureCause.NODE, "Run it again: its node is no more."),
}
"""By the reason of the condition DisruptionTarget of a pod that was taken from its workload."""


@dataclass(frozen=True, slots=True)
class ContainerEnd:
    """How a container ended, in words, and advice that follows from that alone."""

    cause: FailureCause
    words: str
    advice: str


def find_cluster_end(view: PodView, pod: Object) -> ContainerEnd | None:
    """Return how the cluster ended a pod; None of one that ended by itself."""
    has_reason = view.phase == "Failed" and nested_dict(pod, "status").get("reason")
    if has_reason and (rejection := describe_rejection(view.status, view.reason)):
        words, advice = rejection
        return ContainerEnd(
            FailureCause.NODE, f"its node rejected it ({view.status}): {words}", advice
        )
    known = ENDED_BY_CLUSTER.get(view.status)
    if known is None and has_reason:
        known = FailureCause.NODE, BAD_NODE
    if known is not None:
        reason = f": {view.reason}" if view.reason else ""
        advice = _advise_by_message(view.reason) or known[1]
        return ContainerEnd(known[0], f"the cluster ended it ({view.status}){reason}", advice)
    disrupted = find_true_condition(pod, "DisruptionTarget") or {}
    taken = _DISRUPTED.get(str(disrupted.get("reason")))
    if taken is None or _has_failed_by_itself(view, disrupted.get("lastTransitionTime")):
        return None
    namespace = str(nested_dict(pod, "metadata").get("namespace") or "")
    message = strip_names(clean_text(disrupted.get("message")), namespace)
    words = f"the cluster ended it ({disrupted['reason']}){': ' if message else ''}{message}"
    return ContainerEnd(taken[0], words, taken[1])


def _advise_by_message(message: str) -> str:
    """Return what helps against an eviction by what its message says; "" where it says no more."""
    if _OVER_DISK.search(message):
        return _OVER_DISK_ADVICE
    low_on = _LOW_ON.search(message)
    if low_on is None:
        return ""
    return _LOW_ON_DISK_ADVICE if low_on["disk"] else _LOW_ON_PROCESSES_ADVICE


def _has_failed_by_itself(view: PodView, disrupted_at: object) -> bool:
    """Return whether a container failed, and not because its pod was taken away.

    A drain, for one, takes pods that failed days ago, too.
    """
    taken_at = parse_time(str(disrupted_at or ""))
    for end in view.ends:
        if not end.current or not end.exit_code:
            continue
        ended_at = parse_time(end.finished_at)
        if end.reason == OUT_OF_MEMORY or (ended_at and taken_at and ended_at < taken_at):
            return True
    return False


def parse_time(text: str) -> datetime | None:
    """Return the moment of RFC 3339 text; None where it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def describe_end(view: PodView, pod: Object, end: ContainerExit | None) -> ContainerEnd:
    """Return how a pod ended; `end` is None where none of its containers says it."""
    if cluster_end := find_cluster_end(view, pod):
        return cluster_end
    if end is None:
        return ContainerEnd(
            FailureCause.UNKNOWN, "nothing in the cluster says how it ended", LOOK_INTO_LOG
        )
    if end.reason == OUT_OF_MEMORY:
        limit = _describe_memory_limit(pod, end.container)
        return ContainerEnd(
            FailureCause.MEMORY,
            f"it was killed for using more memory than {limit}",
            choose_memory_advice(end.container),
        )
    if end.reason in ("ContainerCannotRun", "StartError", "RunContainerError"):
        refusal = find_runtime_refusal(end.message)
        meaning = f", because {refusal.meaning}" if refusal.meaning else ""
        return ContainerEnd(
            FailureCause.CANNOT_START,
            f"its container could not be started{meaning}: {end.message}",
            refusal.help,
        )
    if end.reason == "ContainerStatusUnknown":
        return ContainerEnd(
            FailureCause.NODE,
            "its node lost sight of its container, so that nobody knows how it ended",
            BAD_NODE,
        )
    return _describe_exit_code(end)


def is_by_signal(end: ContainerExit) -> bool:
    """Return whether a signal ended a container."""
    return bool(end.signal) or 128 < end.exit_code < 128 + signal.NSIG


def is_fetcher(container: str) -> bool:
    """Return whether Muster made a container to fetch a repository or a bucket."""
    return container.startswith(FETCHER_PREFIX)


def choose_memory_advice(container: str) -> str:
    """Return what helps a container that was killed for its use of memory."""
    return _MORE_FETCHER_MEMORY if is_fetcher(container) else _MORE_MEMORY


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


def _describe_exit_code(end: ContainerExit) -> ContainerEnd:
    code, number = end.exit_code, end.signal or (end.exit_code - 128 if end.exit_code > 128 else 0)
    code_words = f"exit code {code}"
    if code == 126:
        return ContainerEnd(
            FailureCause.CANNOT_START,
            f"its command cannot be executed ({code_words})",
            "Check that the command is a program and may be executed.",
        )
    if code == 127:
        return ContainerEnd(
            FailureCause.MISSING_COMMAND,
            f"its command was not found ({code_words})",
            "Check the command against what the image contains.",
        )
    try:
        name = signal.Signals(number).name if number else ""
    except ValueError:
        name = ""
    if name == "SIGKILL":
        return ContainerEnd(
            FailureCause.KILLED,
            f"it was killed ({name}, {code_words})",
            (
                "Most often the node was out of memory, or the pod did not end within its grace "
                "period."
            ),
        )
    if name == "SIGTERM":
        return ContainerEnd(
            FailureCause.ASKED_TO_END,
            f"it was asked to end ({name}, {code_words})",
            "Look for what stopped it: an eviction, a preemption or another pod's failure.",
        )
    if name in ("SIGINT", "SIGHUP"):
        return ContainerEnd(
            FailureCause.ASKED_TO_END,
            f"it was interrupted ({name}, {code_words})",
            "Look for what stopped it: its own launcher, or somebody in its terminal.",
        )
    if name == "SIGILL":
        return ContainerEnd(
            FailureCause.CRASH,
            f"it crashed with {name} ({code_words})",
            "Its libraries use instructions that the node's processor has not: choose an image "
            "that is built for it, or other nodes.",
        )
    if name:
        return ContainerEnd(
            FailureCause.CRASH,
            f"it crashed with {name} ({code_words})",
            "The program crashed in native code: check the versions of its libraries.",
        )
    return ContainerEnd(
        FailureCause.EXIT_CODE, f"the program ended with {code_words}", LOOK_INTO_LOG
    )
