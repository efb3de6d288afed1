"""What ended a workload, as words for programs, and how sure that is. Pure."""

from enum import StrEnum


class FailureCause(StrEnum):
    """Why a workload failed; the value is what REST says."""

    ARGUMENTS = "arguments"
    """The program did not take its arguments."""
    ASKED_TO_END = "asked-to-end"
    """It got SIGTERM, and nothing says from whom."""
    BACKOFF_LIMIT = "backoff-limit"
    CANNOT_START = "cannot-start"
    """Its container could not be started, or its command not be executed."""
    CRASH = "crash"
    """A signal ended it, or native code did."""
    DISK_FULL = "disk-full"
    EVICTED = "evicted"
    EXIT_CODE = "exit-code"
    """The program ended so, and its log says nothing that is known."""
    GPU_MEMORY = "gpu-memory"
    GPU_UNUSABLE = "gpu-unusable"
    KILLED = "killed"
    LOST_PEERS = "lost-peers"
    """It lost its peers: the cause is another pod, or the network."""
    MEMORY = "memory"
    MISSING_COMMAND = "missing-command"
    MISSING_FILE = "missing-file"
    MISSING_MODULE = "missing-module"
    MISSING_RANK = "missing-rank"
    """A rank did not come to a collective, as the library of the others says."""
    NODE = "node"
    """Its node was lost, shut down, or did not take it."""
    PERMISSION = "permission"
    PORT_TAKEN = "port-taken"
    REFUSED = "refused"
    """The training operator refused the job."""
    SHARED_MEMORY = "shared-memory"
    TIME_LIMIT = "time-limit"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """How sure a cause is."""

    CERTAIN = "certain"
    """The cluster itself says so, or the library of collectives."""
    LIKELY = "likely"
    """A line of the log says so."""
    POSSIBLE = "possible"
