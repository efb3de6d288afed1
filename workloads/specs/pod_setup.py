"""The setup of one kind of pod: environment, compute, volumes, placement and security.

Plain values; `pod_problems` validates them.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from workloads.specs.choices import (
    ClaimAccess,
    GitAccess,
    PullPolicy,
    SeccompProfile,
    TolerationEffect,
    TolerationOperator,
    VariableSource,
    VolumeAccess,
)


@dataclass(frozen=True, slots=True)
class Pair:
    """One label or annotation."""

    key: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable. `value` is used by source CUSTOM only.

    The other sources read `key` of the Secret or ConfigMap `object_name`, or the pod field whose
    path is `key`.
    """

    name: str
    value: str = ""
    source: VariableSource = VariableSource.CUSTOM
    object_name: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """What runs in a pod. An empty command, arguments or working directory mean the image's own."""

    image: str
    pull_policy: PullPolicy | None = None
    pull_secrets: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    variables: tuple[Variable, ...] = ()
    working_dir: str = ""

    @property
    def image_reference(self) -> str:
        """Return the image as a container runtime takes it.

        A leading slash, as tutorials write it, is dropped.
        """
        return self.image.lstrip("/")

    @property
    def effective_pull_policy(self) -> PullPolicy:
        """Return the pull policy that a cluster applies, also where none is set."""
        if self.pull_policy is not None:
            return self.pull_policy
        last = self.image_reference.rpartition("/")[2]
        is_latest = "@" not in last and last.partition(":")[2] in ("", "latest")
        return PullPolicy.ALWAYS if is_latest else PullPolicy.IF_NOT_PRESENT


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs of each pod: whole devices, or a part of each device.

    `devices` is their number. A part is a `portion` (above 0, at most 1) or some `memory` (a
    Kubernetes quantity) of each device; with one of these, 0 devices are read as 1.
    """

    devices: int = 0
    portion: Decimal | None = None
    memory: str = ""

    @property
    def is_shared(self) -> bool:
        """Tell whether parts of devices are requested. A portion of 1 is a whole device."""
        return bool(self.memory) or (self.portion is not None and self.portion != 1)

    @property
    def device_count(self) -> int:
        """Return the number of devices; with a portion or memory, at least 1."""
        return max(1, self.devices) if self.memory or self.portion is not None else self.devices

    @property
    def effective_portion(self) -> Decimal | None:
        """Return the part of each device that a pod gets; a whole one is 1.

        None without GPUs, and where GPU memory is requested.
        """
        if self.memory or not self.device_count:
            return None
        return Decimal(1) if self.portion is None else self.portion


@dataclass(frozen=True, slots=True)
class ExtendedResource:
    """A quantity of another resource that nodes offer, such as "rdma/hca"."""

    resource: str
    quantity: str


@dataclass(frozen=True, slots=True)
class Compute:
    """What each pod gets.

    Requests and limits are Kubernetes quantities; empty ones are left out.
    """

    gpus: Gpus = Gpus()
    cpu_request: str = ""
    cpu_limit: str = ""
    memory_request: str = ""
    memory_limit: str = ""
    large_shm: bool = False
    extended: tuple[ExtendedResource, ...] = ()

    @property
    def effective_cpu_request(self) -> str:
        """Return the CPU request; a limit without a request counts as one."""
        return self.cpu_request or self.cpu_limit or "0"

    @property
    def effective_memory_request(self) -> str:
        """Return the memory request; a limit without a request counts as one."""
        return self.memory_request or self.memory_limit or "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """Files at `path` in the container. The subclasses below are its kinds.

    Field names and `kind` are stored in database rows (`spec_json`).
    """

    kind: ClassVar[str] = ""
    noun: ClassVar[str] = "volume"

    path: str
    access: VolumeAccess = VolumeAccess.READ_WRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyDir(Volume):
    """An empty directory that lives as long as the pod.

    On disk, or with `memory` in memory; `size` is its limit, a quantity.
    """

    kind: ClassVar[str] = "emptyDir"
    noun: ClassVar[str] = "empty directory"

    memory: bool = False
    size: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPath(Volume):
    """A directory of the node."""

    kind: ClassVar[str] = "hostPath"
    noun: ClassVar[str] = "host path"

    source: str
    propagate: bool = False
    """Whether the container sees what the host mounts below the directory later (HostToContainer).
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigMap(Volume):
    """The files of a ConfigMap of the namespace; with `sub_path`, one of them.

    `mode` is their permission bits.
    """

    kind: ClassVar[str] = "configMap"
    noun: ClassVar[str] = "ConfigMap"

    name: str
    sub_path: str = ""
    mode: int | None = None
    access: VolumeAccess = VolumeAccess.READ_ONLY


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret(Volume):
    """The files of a Secret of the namespace."""

    kind: ClassVar[str] = "secret"
    noun: ClassVar[str] = "Secret"

    name: str
    mode: int | None = None
    access: VolumeAccess = VolumeAccess.READ_ONLY


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Volume):
    """An existing PersistentVolumeClaim of the namespace."""

    kind: ClassVar[str] = "pvc"
    noun: ClassVar[str] = "PVC"

    claim: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Nfs(Volume):
    """A directory that an NFS server exports."""

    kind: ClassVar[str] = "nfs"
    noun: ClassVar[str] = "NFS"

    server: str
    export: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewClaim(Volume):
    """A PersistentVolumeClaim that is created for the workload.

    There is one for all its pods until the workload is deleted or, with `ephemeral`, one for each
    pod. `size` is a quantity; without a storage class the cluster's default is used.
    """

    kind: ClassVar[str] = "newPvc"
    noun: ClassVar[str] = "new PVC"

    size: str
    storage_class: str = ""
    modes: tuple[ClaimAccess, ...] = (ClaimAccess.ONE_NODE,)
    ephemeral: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Git(Volume):
    """The files of a Git repository, fetched before the containers start.

    Each pod has its own copy. `revision` is a commit or tag and takes precedence over `branch`;
    without both, the repository's default branch is fetched. `secret` names the Secret of a private
    repository.
    """

    kind: ClassVar[str] = "git"
    noun: ClassVar[str] = "Git repository"

    repository: str
    branch: str = ""
    revision: str = ""
    secret: str = ""
    credential: GitAccess | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class S3(Volume):
    """The objects of a bucket below `prefix`, downloaded before the containers start.

    Each pod has its own copy, and nothing is written back. `url` is the service's address, empty
    for Amazon's. `secret` names a Secret with `AccessKeyId` and `SecretKey`; a public bucket needs
    none.
    """

    kind: ClassVar[str] = "s3"
    noun: ClassVar[str] = "S3 bucket"

    bucket: str
    prefix: str = ""
    url: str = ""
    secret: str = ""
    access: VolumeAccess = VolumeAccess.READ_ONLY


VOLUME_TYPES: tuple[type[Volume], ...] = (
    EmptyDir,
    HostPath,
    ConfigMap,
    Secret,
    Claim,
    NewClaim,
    Nfs,
    Git,
    S3,
)


@dataclass(frozen=True, slots=True)
class Toleration:
    """A taint that the pods tolerate. An empty key with EXISTS means every taint."""

    key: str = ""
    operator: TolerationOperator = TolerationOperator.EQUAL
    value: str = ""
    effect: TolerationEffect = TolerationEffect.ANY
    seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Topology:
    """The pods run together, on nodes with the same value of the label `key`.

    Without `required` this is a preference.
    """

    key: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Security:
    """The security context of the containers.

    None and empty values leave it to the image or the cluster.
    """

    uid: int | None = None
    gid: int | None = None
    supplemental_groups: tuple[int, ...] = ()
    non_root: bool | None = None
    read_only_root: bool = False
    privilege_escalation: bool | None = None
    capabilities: tuple[str, ...] = ()
    host_ipc: bool = False
    host_network: bool = False
    seccomp: SeccompProfile | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything about one kind of pod."""

    environment: Environment
    compute: Compute = Compute()
    volumes: tuple[Volume, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    node_type: str = ""
    annotations: tuple[Pair, ...] = ()
    labels: tuple[Pair, ...] = ()
    security: Security = Security()
    node_pools: tuple[str, ...] = ()
    """Names of node pools, in order of preference; the first with free capacity is used."""
    topology: Topology | None = None
    node_selector: tuple[Pair, ...] = ()
    """Labels that a node must have, beside that of `node_type`."""
