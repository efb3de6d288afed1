"""What container runtimes say of a container that they cannot start, and what it means. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

CHECK_COMMAND = "Check the command and the working directory against the image."


@dataclass(frozen=True, slots=True)
class RuntimeRefusal:
    """A form of words of a runtime, its meaning, "" where the words say it, and what would help."""

    pattern: re.Pattern[str]
    meaning: str
    help: str


_REFUSALS: Sequence[RuntimeRefusal] = (
    RuntimeRefusal(
        re.compile(r"unsatisfied condition: (?:cuda|driver|arch|brand)", re.I),
        "its image needs a newer driver, or another GPU, than its node has",
        "Choose an image for an older CUDA, or nodes with a newer driver.",
    ),
    RuntimeRefusal(
        re.compile(r"nvidia-container-cli: mount error: file creation failed: .{1,400}file exists"),
        "its image has files of a GPU driver, in the way of those of its node",
        "Build the image without libnvidia-*.so and libcuda.so.1: the node brings its own.",
    ),
    RuntimeRefusal(
        re.compile(r"stale (?:NFS )?file handle|transport endpoint is not connected", re.I),
        "one of its volumes no longer answers on its node",
        "Ask the administrator of the cluster to mount it anew on the node, or choose other nodes.",
    ),
    RuntimeRefusal(
        re.compile(r"unable to find (?:user|group) \S{1,253}: no matching entries"),
        "its image lacks the user or group that it is to run as",
        "Set a user ID, or choose an image that has the user.",
    ),
    RuntimeRefusal(
        re.compile(r"nvidia-container-cli|nvidia-container-runtime|nvml error|CDI device", re.I),
        "the GPU of its node cannot be given to it",
        "Tell the administrator of the cluster about the node: its GPU driver or its container "
        "toolkit does not work.",
    ),
    RuntimeRefusal(
        re.compile(r"OOM-killed|memory limit too low", re.I),
        "its limit of memory is too small to start anything",
        "Ask for more CPU memory.",
    ),
    RuntimeRefusal(
        re.compile(r"exec format error", re.I),
        "its command is not made for the processors of its node",
        "Build the image for the nodes' architecture, or choose nodes of another one; a script "
        "needs its first line to name its interpreter.",
    ),
    RuntimeRefusal(
        re.compile(r"mount a directory onto a file|error mounting", re.I),
        "one of its volumes cannot be put where it is to be",
        "Check the paths of its volumes: a file cannot lie where the image has a directory, nor "
        "the other way round.",
    ),
    RuntimeRefusal(
        re.compile(r"no space left on device", re.I),
        "the node's disk is full",
        "Ask the administrator of the cluster to make room on the node, or choose other nodes.",
    ),
    RuntimeRefusal(
        re.compile(r"deadline ?exceeded|is reserved\b|name already in use", re.I),
        "the container runtime of its node does not come to an end",
        "The node tries again by itself; if it lasts, tell the administrator of the cluster.",
    ),
    RuntimeRefusal(
        re.compile(
            r"\bexec|command|\bchdir\b|\bcwd\b|no such file|permission denied|read-only file", re.I
        ),
        "",
        CHECK_COMMAND,
    ),
)
_ANY = RuntimeRefusal(
    re.compile(""),
    "",
    "Look at what the message names; if that is nothing of the workload's own, ask the "
    "administrator of the cluster.",
)


def find_runtime_refusal(message: str) -> RuntimeRefusal:
    """Return what a runtime's words mean; of unknown words only what may help."""
    return next((each for each in _REFUSALS if each.pattern.search(message)), _ANY)
