"""What the training kinds of kubeflow.org share in their specs, and the interface by which one kind
differs from the next.

A kind is added as one small file with a `Framework`: what it adds to its pods, when it runs, and
when it has succeeded.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from localkube.metadata import Object, name_of, namespace_of
from localkube.resources.resource import Resource

RESTART_POLICIES = ("Always", "OnFailure", "Never", "ExitCode")
CLEAN_POD_POLICIES = ("None", "Running", "All")
OPERATOR = "kubeflow.org/training-operator"

_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a replica listens on this machine."""

    host: str
    port: int


FindAddress = Callable[[str, int], Address]
"""The address of a replica, by its type and index."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One entry of the replica map with the defaults that the operator fills in."""

    type: str
    count: int
    restart_policy: str
    template: Object

    def pod_name(self, job: str, index: int) -> str:
        return f"{job}-{self.type.lower()}-{index}"


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A training job of any kind, read from its object. Times are in seconds."""

    object: Object
    replicas: Mapping[str, Replica]
    clean_pod_policy: str
    ttl_seconds: int | None
    deadline_seconds: int | None
    backoff_limit: int | None
    suspended: bool
    managed_by: str

    @property
    def name(self) -> str:
        return name_of(self.object)

    @property
    def namespace(self) -> str:
        return namespace_of(self.object)

    @property
    def total_replicas(self) -> int:
        """The replicas of all types together."""
        return sum(replica.count for replica in self.replicas.values())


@dataclass(frozen=True, slots=True)
class PodCounts:
    """How many pods of a replica type are in which phase. Pending ones are in none of them."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    first_succeeded: bool = False
    """Whether the pod with index 0 is among those that succeeded."""


CountsByType = Mapping[str, PodCounts]


class Framework(Protocol):
    """What is a kind's own. `replica_types` are in the order in which pods are made."""

    @property
    def resource(self) -> Resource: ...
    @property
    def replicas_field(self) -> str:
        """The replica map in the spec, such as pytorchReplicaSpecs."""
        ...

    @property
    def replica_types(self) -> Sequence[str]: ...
    @property
    def container_name(self) -> str:
        """The container that does the training and whose exit code decides."""
        ...

    @property
    def port_name(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def default_restart_policy(self) -> str:
        """The default restart policy."""
        ...

    @property
    def expired_reason(self) -> str:
        """The reason of the event that tells of a removal by ttlSecondsAfterFinished."""
        ...

    def find_problems(self, job: TrainingJob) -> Iterator[str]:
        """What the kind's admission webhook would refuse, beyond what it does for every kind."""
        ...

    def is_master(self, job: TrainingJob, type: str, index: int) -> bool:
        """Whether a replica gets the label job-role: master."""
        ...

    def replaces_failed_pod(self, replica: Replica) -> bool:
        """Whether the operator replaces a failed pod of this replica type, as far as the exit code
        allows; else its failure is final.
        """
        ...

    def tolerates_failure(self, job: TrainingJob, type: str) -> bool:
        """Whether the job goes on although a replica of this type has failed for good."""
        ...

    def is_running(self, job: TrainingJob, counts: CountsByType) -> bool: ...
    def has_succeeded(self, job: TrainingJob, counts: CountsByType) -> bool: ...

    def configure_pod(
        self, job: TrainingJob, type: str, index: int, find_address: FindAddress, spec: Object
    ) -> None:
        """Put what the framework needs, mostly environment variables, into the pod spec of one
        replica.
        """
        ...


def operator_name(framework: Framework) -> str:
    """The name under which the operator labels what it makes and tells events:
    pytorchjob-controller.
    """
    return f"{framework.resource.kind.lower()}-controller"


def parse_training_job(framework: Framework, obj: Object) -> TrainingJob:
    """A job from its object, whatever is wrong with it: see `problems`."""
    spec = obj.get("spec") or {}
    policy = spec.get("runPolicy") or {}
    given = spec.get(framework.replicas_field) or {}
    known = [kind for kind in framework.replica_types if kind in given]
    return TrainingJob(
        object=obj,
        replicas={
            kind: _parse_replica(framework, kind, given[kind] or {})
            for kind in [*known, *sorted(set(given) - set(known))]
        },
        clean_pod_policy=policy.get("cleanPodPolicy") or "None",
        ttl_seconds=policy.get("ttlSecondsAfterFinished"),
        deadline_seconds=policy.get("activeDeadlineSeconds"),
        backoff_limit=policy.get("backoffLimit"),
        suspended=bool(policy.get("suspend")),
        managed_by=policy.get("managedBy") or OPERATOR,
    )


def _parse_replica(framework: Framework, kind: str, given: Object) -> Replica:
    count = given.get("replicas")
    return Replica(
        type=kind,
        count=1 if count is None else int(count),
        restart_policy=given.get("restartPolicy") or framework.default_restart_policy,
        template=given.get("template") or {},
    )


def find_problems(framework: Framework, job: TrainingJob) -> Sequence[str]:
    """Why the job makes no sense. A real cluster has an admission webhook for most of this; here
    the operator says it.
    """
    return [*_find_general_problems(framework, job), *framework.find_problems(job)]


def _find_general_problems(framework: Framework, job: TrainingJob) -> Iterator[str]:
    if not job.replicas:
        yield f"spec.{framework.replicas_field} must be specified"
    if not _DNS_1035.fullmatch(job.name):
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


def add_variables(
    containers: Sequence[Object], forced: dict[str, str], unless_set: Mapping[str, str]
) -> None:
    """Add variables to every container after its own, so that `forced` ones win; the others only
    where the user has none such.
    """
    for container in containers:
        given = container.get("env") or []
        names = {each.get("name") for each in given}
        added = forced | {name: value for name, value in unless_set.items() if name not in names}
        container["env"] = [
            *given,
            *({"name": name, "value": value} for name, value in added.items()),
        ]
