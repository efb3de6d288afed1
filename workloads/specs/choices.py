"""The enums from which a person chooses.

Values are those of the REST API where it has the choice; `label` is what a page shows.
"""

from enum import StrEnum

from clusters.job_kinds import ADAPTERS, FrameworkAdapter


class Architecture(StrEnum):
    STANDARD = "Standard"
    DISTRIBUTED = "Distributed"

    @property
    def label(self) -> str:
        return self.value


class Framework(StrEnum):
    PYTORCH = "PyTorch"
    TENSORFLOW = "TF"
    MPI = "MPI"
    XGBOOST = "XGBoost"
    JAX = "JAX"
    PADDLE = "Paddle"

    @property
    def adapter(self) -> FrameworkAdapter:
        return ADAPTERS[self.value]

    @property
    def label(self) -> str:
        return self.adapter.label

    @property
    def configurations(self) -> "tuple[Configuration, ...]":
        """Return the configurations that the framework supports; the usual one comes first."""
        with_master = (Configuration.WORKERS_AND_MASTER,) if self.adapter.leader else ()
        return with_master + (
            (Configuration.WORKERS_ONLY,) if self.adapter.has_workers_only else ()
        )

    @property
    def master_name(self) -> str:
        """Return what the framework calls its one-of-a-kind pod, in lower case."""
        return self.adapter.leader.lower() or "master"

    @property
    def options(self) -> tuple[str, ...]:
        """Return the names of the fields that it has and not every framework."""
        return self.adapter.options


STANDARD_OPTIONS = ("data_delivery",)


def list_options(framework: Framework | None) -> tuple[str, ...]:
    """Return the names of the fields that workloads of a framework have and not all others.

    Without a framework they are those of a standard workload.
    """
    return STANDARD_OPTIONS if framework is None else framework.options


class Configuration(StrEnum):
    WORKERS_AND_MASTER = "workers-and-master"
    WORKERS_ONLY = "workers-only"

    @property
    def label(self) -> str:
        return "Workers & master" if self is Configuration.WORKERS_AND_MASTER else "Workers only"


class LauncherCreation(StrEnum):
    """When MPI's launcher is created: with the workers, or once they run."""

    AT_STARTUP = "AtStartup"
    WAIT_FOR_WORKERS = "WaitForWorkersReady"

    @property
    def label(self) -> str:
        return self.description.capitalize()

    @property
    def description(self) -> str:
        """Return the label as it goes on after other words."""
        return "with the workers" if self is LauncherCreation.AT_STARTUP else "once all workers run"


class GitAccess(StrEnum):
    """How a private repository is opened: which keys its Secret has.

    PASSWORD: `username` and `password`. SSH_KEY: `ssh-privatekey`.
    """

    PASSWORD = "password"  # noqa: S105 - the word, not a secret
    SSH_KEY = "ssh-key"


class ClaimAccess(StrEnum):
    """Who may mount a new claim: the pods of one node, many to read, or many to write."""

    ONE_NODE = "ReadWriteOnce"
    MANY_READ = "ReadOnlyMany"
    MANY_WRITE = "ReadWriteMany"


class PullPolicy(StrEnum):
    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class RestartPolicy(StrEnum):
    """What happens to a container that ended.

    EXIT_CODE restarts a container that a signal ended, and takes exit codes up to 127 as the
    program's own, final result.
    """

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"
    EXIT_CODE = "ExitCode"


class CleanPodPolicy(StrEnum):
    """Which pods are deleted when the workload has ended.

    With NONE, pods that still run keep their GPUs.
    """

    RUNNING = "Running"
    ALL = "All"
    NONE = "None"


class Preemptibility(StrEnum):
    PREEMPTIBLE = "preemptible"
    NON_PREEMPTIBLE = "non-preemptible"


class Priority(StrEnum):
    """Priority classes. Each value is the name of the cluster's PriorityClass."""

    VERY_LOW = "very-low"
    LOW = "low"
    MEDIUM_LOW = "medium-low"
    MEDIUM = "medium"
    MEDIUM_HIGH = "medium-high"
    HIGH = "high"
    VERY_HIGH = "very-high"

    @property
    def number(self) -> int:
        """Return the value of the PriorityClass; a higher one goes first."""
        return PRIORITY_VALUES[self]

    @property
    def label(self) -> str:
        return self.value.replace("-", " ").capitalize()


PRIORITY_VALUES = {
    Priority.VERY_LOW: 25,
    Priority.LOW: 40,
    Priority.MEDIUM_LOW: 65,
    Priority.MEDIUM: 80,
    Priority.MEDIUM_HIGH: 90,
    Priority.HIGH: 125,
    Priority.VERY_HIGH: 150,
}

NON_PREEMPTIBLE_FROM = 100
"""Workloads of this priority value and above are not preemptible, unless they choose otherwise."""


class VariableSource(StrEnum):
    """Where the value of an environment variable comes from."""

    CUSTOM = "custom"
    SECRET = "secret"  # noqa: S105 - the word, not a secret
    CONFIG_MAP = "configMap"
    POD_FIELD = "podFieldRef"


class VolumeAccess(StrEnum):
    """Who may write to a volume."""

    READ_WRITE = "read-write"
    READ_ONLY = "read-only"
    RANK_0_WRITES = "rank-0-writes"


class TolerationOperator(StrEnum):
    EQUAL = "Equal"
    EXISTS = "Exists"


class TolerationEffect(StrEnum):
    ANY = "Any"
    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"


class SeccompProfile(StrEnum):
    RUNTIME_DEFAULT = "RuntimeDefault"
    UNCONFINED = "Unconfined"


CAPABILITIES = frozenset(
    (
        "AUDIT_CONTROL",
        "AUDIT_READ",
        "AUDIT_WRITE",
        "BLOCK_SUSPEND",
        "BPF",
        "CHECKPOINT_RESTORE",
        "CHOWN",
        "DAC_OVERRIDE",
        "DAC_READ_SEARCH",
        "FOWNER",
        "FSETID",
        "IPC_LOCK",
        "IPC_OWNER",
        "KILL",
        "LEASE",
        "LINUX_IMMUTABLE",
        "MAC_ADMIN",
        "MAC_OVERRIDE",
        "MKNOD",
        "NET_ADMIN",
        "NET_BIND_SERVICE",
        "NET_BROADCAST",
        "NET_RAW",
        "PERFMON",
        "SETGID",
        "SETFCAP",
        "SETPCAP",
        "SETUID",
        "SYS_ADMIN",
        "SYS_BOOT",
        "SYS_CHROOT",
        "SYS_MODULE",
        "SYS_NICE",
        "SYS_PACCT",
        "SYS_PTRACE",
        "SYS_RAWIO",
        "SYS_RESOURCE",
        "SYS_TIME",
        "SYS_TTY_CONFIG",
        "SYSLOG",
        "WAKE_ALARM",
    )
)
"""Linux capabilities, as Kubernetes and the REST API spell them."""
