"""The common spec of the kubeflow.org job kinds, and the interfaces in which they differ.

A training kind is one small file with a `Framework`: what it adds to its pods, when it counts as
running, and when it has succeeded. MPIJob is a `JobKind` only: it follows its launcher.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from localkube.metadata import Object, name_of, namespace_of
from localkube.resources.resource import Resource

RESTART_POLICIES = ("Always", "OnFailure", "Never", "ExitCode")
CLEAN_POD_POLICIES = ("None", "Running", "All")
OPERATOR = "kubeflow.org/training-operator"

MAX_COUNT = 2**31 - 1
"""The greatest count that the API's int32 holds."""

MAX_LISTED_ADDRESSES = 1000
"""How many replicas a job may have that lists the addresses of all in each of its pods.

Ten thousand pods with ten thousand addresses each would be a gigabyte.
"""

DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a replica listens on this machine."""

    host: str
    port: int


FindAddress = Callable[[str, int], Address]
"""Returns the address of a replica, given its type and index."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One entry of the replica map, with the operator's defaults filled in."""

    type: str
    count: int
    restart_policy: str
    template: Object

    def pod_name(self, job: str, index: int) -> str:
        return f"{job}-{self.type.lower()}-{index}"


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A job of any kind, parsed from its object. Times are in seconds."""

    object: Object
    replicas: Mapping[str, Replica]
    clean_pod_policy: str
    ttl_seconds: int | None
    deadline_seconds: int | None
    backoff_limit: int | None
    suspended: bool
    managed_by: str | None

    @property
    def spec(self) -> Object:
        return self.object.get("spec") or {}

    @property
    def name(self) -> str:
        return name_of(self.object)

    @property
    def namespace(self) -> str:
        return namespace_of(self.object)

    @property
    def total_replicas(self) -> int:
        """The number of replicas of all types together."""
        return sum(replica.count for replica in self.replicas.values())


@dataclass(frozen=True, slots=True)
class PodCounts:
    """How many pods of one replica type are in each phase. Pending pods are not counted."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    first_succeeded: bool = False
    """Whether the pod with index 0 has succeeded."""


CountsByType = Mapping[str, PodCounts]
"""Pod counts by replica type."""


class JobKind(Protocol):
    """The names and defaults of a kind of job that an operator runs."""

    @property
    def resource(self) -> Resource: ...
    @property
    def replicas_field(self) -> str:
        """The name of the replica map in the spec, such as pytorchReplicaSpecs."""
        ...

    @property
    def replica_types(self) -> Mapping[str, str]:
        """The replica types, each with the restart policy of replicas that set none.

        Pods are created in this order.
        """
        ...


class Framework(JobKind, Protocol):
    """What differs between the training kinds."""

    @property
    def container_name(self) -> str:
        """The name of the container that trains and whose exit code decides."""
        ...

    @property
    def port_name(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def expired_reason(self) -> str:
        """The reason of the event that reports a removal by ttlSecondsAfterFinished."""
        ...

    def find_problems(self, job: TrainingJob) -> Iterator[str]:
        """Yield what the kind's admission webhook would refuse beyond the rules for every kind."""
        ...

    def is_master(self, job: TrainingJob, type: str, index: int) -> bool:
        """Return whether a replica gets the label job-role: master."""
        ...

    def replaces_failed_pod(self, replica: Replica) -> bool:
        """Return whether the operator replaces failed pods of this replica type.

        If not, a failure is final. With restartPolicy ExitCode the exit code must allow a
        replacement too.
        """
        ...

    def tolerates_failure(self, job: TrainingJob, type: str) -> bool:
        """Return whether the job continues after a replica of this type has failed for good."""
        ...

    def list_known_replicas(self, job: TrainingJob) -> Iterable[tuple[str, int]]:
        """Yield the replicas, by type and index, whose addresses `configure_pod` asks for.

        At most MAX_LISTED_ADDRESSES of them in a job without problems.
        """
        ...

    def is_running(self, job: TrainingJob, counts: CountsByType) -> bool: ...
    def has_succeeded(self, job: TrainingJob, counts: CountsByType) -> bool: ...

    def configure_pod(
        self, job: TrainingJob, type: str, index: int, find_address: FindAddress, spec: Object
    ) -> None:
        """Add what the framework needs to one replica's pod spec, mostly environment variables."""
        ...


def operator_name(framework: Framework) -> str:
    """Return the name that the operator uses in labels and events: pytorchjob-controller."""
    return f"{framework.resource.kind.lower()}-controller"


def parse_training_job(kind: JobKind, obj: Object) -> TrainingJob:
    """Parse a job from its object, even an invalid one; see `find_problems`."""
    spec = obj.get("spec") or {}
    policy = spec.get("runPolicy") or {}
    replica_map = spec.get(kind.replicas_field) or {}
    known_types = [
        replica_type for replica_type in kind.replica_types if replica_type in replica_map
    ]
    return TrainingJob(
        object=obj,
        replicas={
            replica_type: _parse_replica(kind, replica_type, replica_map[replica_type] or {})
            for replica_type in [*known_types, *sorted(set(replica_map) - set(known_types))]
        },
        clean_pod_policy=policy.get("cleanPodPolicy") or "None",
        ttl_seconds=policy.get("ttlSecondsAfterFinished"),
        deadline_seconds=policy.get("activeDeadlineSeconds"),
        backoff_limit=policy.get("backoffLimit"),
        suspended=bool(policy.get("suspend")),
        managed_by=policy.get("managedBy"),
    )


def _parse_replica(kind: JobKind, replica_type: str, entry: Object) -> Replica:
    count = entry.get("replicas")
    return Replica(
        type=replica_type,
        count=1 if count is None else int(count),
        restart_policy=entry.get("restartPolicy") or kind.replica_types.get(replica_type, ""),
        template=entry.get("template") or {},
    )


def find_problems(framework: Framework, job: TrainingJob) -> Sequence[str]:
    """Return why the job's spec is invalid.

    A real cluster has an admission webhook for most of this; here the operator reports it.
    """
    return [*_find_general_problems(framework, job), *framework.find_problems(job)]


def _find_general_problems(framework: Framework, job: TrainingJob) -> Iterator[str]:
    if not job.replicas:
        yield f"spec.{framework.replicas_field} must be specified"
    if not DNS_1035.fullmatch(job.name):
        yield (
            f"the name {job.name!r} must consist of lower case letters, digits and '-', start with "
            "a letter and not end with '-'"
        )
    if job.clean_pod_policy not in CLEAN_POD_POLICIES:
        yield (
            f"spec.runPolicy.cleanPodPolicy is {job.clean_pod_policy!r}, must be one of "
            f"{', '.join(CLEAN_POD_POLICIES)}"
        )
    for replica in job.replicas.values():
        yield from (
            f"spec.{framework.replicas_field}[{replica.type}]{text}"
            for text in _find_replica_problems(framework, job, replica)
        )


def _find_replica_problems(
    framework: Framework, job: TrainingJob, replica: Replica
) -> Iterator[str]:
    if replica.type not in framework.replica_types:
        yield f" is unknown, must be one of {', '.join(framework.replica_types)}"
        return
    longest = replica.pod_name(job.name, max(replica.count - 1, 0))
    if len(longest) > 63:
        yield (
            f" makes the name {longest}, which is longer than 63 characters: give the job a "
            "shorter one"
        )
    if replica.count < 0:
        yield f".replicas is {replica.count}, must not be negative"
    if replica.count > MAX_COUNT:
        yield f".replicas is {replica.count}, must not be more than {MAX_COUNT}"
    if replica.restart_policy not in RESTART_POLICIES:
        yield (
            f".restartPolicy is {replica.restart_policy!r}, must be one of "
            f"{', '.join(RESTART_POLICIES)}"
        )
    containers = (replica.template.get("spec") or {}).get("containers") or ()
    if not containers:
        yield ".template.spec.containers must be specified"
        return
    for container in containers:
        if not container.get("image"):
            yield f".template.spec: the container {container.get('name')!r} has no image"
    if all(container.get("name") != framework.container_name for container in containers):
        yield f".template.spec must have a container named {framework.container_name}"


def describe_too_many_addresses(field: str, variable: str, count: int, advice: str) -> str:
    """Describe that a job would list more addresses in each pod than are allowed."""
    return (
        f"spec.{field} has {count} replicas whose addresses each pod gets in {variable}, at most "
        f"{MAX_LISTED_ADDRESSES} are possible here: {advice}"
    )


def add_variables(
    containers: Sequence[Object], forced: dict[str, str], unless_set: Mapping[str, str]
) -> None:
    """Add environment variables to every container, after the container's own.

    Because they come last, `forced` variables win; `unless_set` ones are added only where the user
    set none of that name.
    """
    for container in containers:
        own_variables = container.get("env") or []
        names = {variable.get("name") for variable in own_variables}
        added = forced | {name: value for name, value in unless_set.items() if name not in names}
        container["env"] = [
            *own_variables,
            *({"name": name, "value": value} for name, value in added.items()),
        ]
