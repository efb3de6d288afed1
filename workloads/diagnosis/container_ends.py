"""How a container or its pod ended, in words: by the cluster, a signal or an exit code. Pure."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass

from workloads import quantities
from workloads.diagnosis.causes import FailureCause
from workloads.diagnosis.result import LOOK_INTO_LOG
from workloads.kube_objects import Object, nested_dict, nested_list
from workloads.pod_views import ContainerExit, PodView

TERM = 128 + signal.SIGTERM
MORE_TIME = "Give it more time, or make the work smaller."
_BAD_NODE = "Run it again; if this repeats, tell the administrator of the cluster about the node."
ENDED_BY_CLUSTER: Mapping[str, tuple[FailureCause, str]] = {
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
    "DeadlineExceeded": (FailureCause.TIME_LIMIT, MORE_TIME),
    "UnexpectedAdmissionError": (FailureCause.NODE, _BAD_NODE),
}


@dataclass(frozen=True, slots=True)
class ContainerEnd:
    """How a container ended, in words, and advice that follows from that alone."""

    cause: FailureCause
    words: str
    advice: str


def describe_end(view: PodView, pod: Object, end: ContainerExit | None) -> ContainerEnd:
    """Return how a pod ended; `end` is None where none of its containers says it."""
    if view.status in ENDED_BY_CLUSTER:
        reason = f": {view.reason}" if view.reason else ""
        cause, advice = ENDED_BY_CLUSTER[view.status]
        return ContainerEnd(cause, f"the cluster ended it ({view.status}){reason}", advice)
    if end is None:
        words = f"{view.status}{': ' if view.reason else ''}{view.reason}"
        return ContainerEnd(FailureCause.UNKNOWN, words, "")
    if end.reason == "OOMKilled":
        limit = _describe_memory_limit(pod, end.container)
        return ContainerEnd(
            FailureCause.MEMORY,
            f"it was killed for using more memory than {limit}",
            "Ask for more CPU memory, or load less of the data at once.",
        )
    if end.reason in ("ContainerCannotRun", "StartError", "RunContainerError"):
        return ContainerEnd(
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
