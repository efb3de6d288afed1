"""What was asked for, in words: a Spec as titled lists of facts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from workloads import quantities
from workloads.forms.inwords import configuration_in_words
from workloads.specs import (
    INHERITED,
    S3,
    Access,
    Claim,
    Compute,
    ConfigMap,
    EmptyDir,
    Environment,
    Framework,
    Git,
    Gpus,
    HostPath,
    Lifecycle,
    NewClaim,
    Nfs,
    Secret,
    Security,
    Setup,
    Source,
    Spec,
    Toleration,
    Totals,
    Variable,
    Volume,
    join_words,
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A name and what it is: one text, or several."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    facts: tuple[Fact, ...]


_ACCESS = {
    Access.READ_WRITE: "",
    Access.READ_ONLY: ", read only",
    Access.RANK_0_WRITES: ", writable by rank 0 only",
}


def sections(spec: Spec) -> list[Section]:
    """Everything that was chosen; what was left to the image, the framework or the cluster is left
    out.
    """
    compute, setup = spec.setup.compute, spec.setup
    found = [
        Section("Workload", tuple(_workload(spec))),
        Section(
            "Environment" if not spec.is_distributed else "Environment of the workers",
            tuple(_environment(setup.environment)),
        ),
        Section("Compute resources of each pod", tuple(_compute(compute))),
        Section("Storage", tuple(_facts(("Volumes", map(_volume, setup.volumes))))),
        Section("Placement and labels", tuple(_placement(setup))),
        Section("Lifecycle", tuple(_lifecycle(spec.lifecycle))),
        Section("Security", tuple(_security(setup.security))),
    ]
    if spec.has_master:
        leader = spec.framework.master if spec.framework else "master"
        found.append(Section(f"Where the {leader} differs from the workers", tuple(_master(spec))))
    return [section for section in found if section.facts]


def _facts(*pairs: tuple[str, Any]) -> Iterator[Fact]:
    for name, value in pairs:
        values = (value,) if isinstance(value, str) else tuple(value or ())
        if any(values):
            yield Fact(name, values)


def _workload(spec: Spec) -> Iterator[Fact]:
    yield from _facts(
        ("Architecture", spec.architecture.label),
        ("Framework", spec.framework.label if spec.framework else ""),
        (
            "Configuration",
            configuration_in_words(spec.configuration, spec.framework)
            if spec.is_distributed
            else "",
        ),
        ("Workers", str(spec.workers) if spec.is_distributed else ""),
        (
            "Workers while it runs",
            f"{spec.elastic.min_workers} to {spec.elastic.max_workers}" if spec.elastic else "",
        ),
        ("Restarts while workers come and go", _restarts(spec)),
        ("Parameter servers", str(spec.parameter_servers) if spec.parameter_servers else ""),
        *(_mpi(spec) if spec.framework is Framework.MPI else ()),
        ("Runs", "" if spec.is_distributed else f"{spec.runs}, {spec.parallelism} at once"),
        ("In total", _totals(spec.totals)),
        ("Preemptible", "Yes" if spec.is_preemptible else "No"),
        ("Priority", spec.lifecycle.priority.label if spec.lifecycle.priority else ""),
        ("Namespace", spec.namespace),
        ("Queue", spec.queue),
    )


def _restarts(spec: Spec) -> str:
    return (
        f"at most {spec.elastic.max_restarts}"
        if spec.elastic and spec.elastic.max_restarts is not None
        else ""
    )


def _mpi(spec: Spec) -> Iterator[tuple[str, str]]:
    yield "Slots per worker", str(spec.mpi.slots)
    yield "The launcher is made", spec.mpi.launcher.label.lower()
    yield "SSH path", spec.mpi.ssh_path


def _totals(totals: Totals) -> str:
    shared = f" and {totals.gpu_memory} MiB of GPU memory" if totals.gpu_memory else ""
    cpu, memory = quantities.counted(totals.cpu, "CPU core"), quantities.memory(totals.memory)
    return (
        f"{quantities.counted(totals.pods, 'pod')}: "
        f"{quantities.counted(totals.gpus, 'GPU')}{shared}, {cpu}, {memory} of memory"
    )


def _environment(environment: Environment) -> Iterator[Fact]:
    yield from _facts(
        ("Image", environment.image),
        ("Image pull policy", environment.pull_policy.value if environment.pull_policy else ""),
        ("Pull secrets", environment.pull_secrets),
        ("Command", join_words(environment.command)),
        ("Arguments", join_words(environment.args)),
        ("Working directory", environment.working_dir),
        ("Environment variables", map(_variable, environment.variables)),
    )


def _variable(variable: Variable) -> str:
    match variable.source:
        case Source.CUSTOM:
            return f"{variable.name}={variable.value}"
        case Source.POD_FIELD:
            return f"{variable.name} from the pod's field {variable.key}"
        case Source.SECRET:
            return (
                f"{variable.name} from the key {variable.key} of the Secret {variable.object_name}"
            )
        case Source.CONFIG_MAP:
            return (
                f"{variable.name} from the key {variable.key} of the ConfigMap "
                f"{variable.object_name}"
            )


def _compute(compute: Compute) -> Iterator[Fact]:
    yield from _facts(
        ("GPUs", _gpus(compute.gpus)),
        ("CPU", _range(compute.cpu_request, compute.cpu_limit, " cores")),
        ("Memory", _range(compute.memory_request, compute.memory_limit, "")),
        ("Shared memory", "as large as the memory" if compute.large_shm else ""),
        ("Other resources", (f"{each.quantity} of {each.resource}" for each in compute.extended)),
    )


def _gpus(gpus: Gpus) -> str:
    if not gpus.device_count:
        return "none"
    if gpus.memory:
        return f"{gpus.memory} of the memory of {quantities.counted(gpus.device_count, 'device')}"
    if gpus.portion is not None and gpus.is_shared:
        return (
            f"{quantities.plain(gpus.portion)} of {quantities.counted(gpus.device_count, 'device')}"
        )
    return quantities.counted(gpus.device_count, "device")


def _range(request: str, limit: str, unit: str) -> str:
    said = (
        f"{request}{unit} requested" if request else "",
        f"at most {limit}{unit}" if limit else "",
    )
    return ", ".join(each for each in said if each)


def _volume(volume: Volume) -> str:
    match volume:
        case EmptyDir():
            where = " in memory" if volume.memory else ""
            limit = f" of at most {volume.size}" if volume.size else ""
            what = f"an empty directory{where}{limit}"
        case HostPath():
            what = f"{volume.source} of the node"
        case ConfigMap() | Secret():
            what = f"the {volume.noun} {volume.name}"
        case Claim():
            what = f"the PVC {volume.claim}"
        case NewClaim():
            what = _new_claim(volume)
        case Git():
            what = _git(volume)
        case S3():
            where = f" at {volume.url}" if volume.url else ""
            below = f" below {volume.prefix}" if volume.prefix else ""
            what = f"a copy of the S3 bucket {volume.bucket}{below}{where}{_opened(volume.secret)}"
        case Nfs():
            what = f"{volume.export} of the NFS server {volume.server}"
        case _:
            what = f"a {volume.noun}"
    return f"{volume.path}: {what}{_ACCESS[volume.access]}"


def _new_claim(claim: NewClaim) -> str:
    whose = "a new PVC for each pod" if claim.ephemeral else "a new PVC"
    kind = f" of class {claim.storage_class}" if claim.storage_class else ""
    return f"{whose} of {claim.size}{kind} ({', '.join(claim.modes)})"


def _git(git: Git) -> str:
    of = git.revision or (f"branch {git.branch}" if git.branch else "its default branch")
    return f"{of} of the Git repository {git.repository}{_opened(git.secret)}"


def _opened(secret: str) -> str:
    return f", opened by the Secret {secret}" if secret else ""


def _placement(setup: Setup) -> Iterator[Fact]:
    yield from _facts(
        ("Node type", setup.node_type),
        ("Node pools, in order", setup.node_pools),
        ("Together on nodes with the same", _topology(setup)),
        ("Tolerations", map(_toleration, setup.tolerations)),
        ("Labels", (f"{pair.key}={pair.value}" for pair in setup.labels)),
        ("Annotations", (f"{pair.key}={pair.value}" for pair in setup.annotations)),
    )


def _topology(setup: Setup) -> str:
    if setup.topology is None:
        return ""
    return f"{setup.topology.key} ({'required' if setup.topology.required else 'preferred'})"


def _toleration(each: Toleration) -> str:
    value = f" = {each.value}" if each.value else ""
    seconds = f", for {each.seconds} s" if each.seconds is not None else ""
    return (
        f"{each.key or 'every taint'}{value} ({each.operator.value}, {each.effect.value}{seconds})"
    )


def _lifecycle(lifecycle: Lifecycle) -> Iterator[Fact]:
    yield from _facts(
        ("Tried again", f"at most {quantities.counted(lifecycle.backoff_limit, 'time')}"),
        ("Restart policy", lifecycle.restart_policy.value if lifecycle.restart_policy else ""),
        (
            "Pods cleaned up at the end",
            lifecycle.clean_pod_policy.value if lifecycle.clean_pod_policy else "",
        ),
        (
            "Time to end in peace",
            f"{lifecycle.grace_seconds} s" if lifecycle.grace_seconds is not None else "",
        ),
        (
            "Deleted after its end",
            f"after {lifecycle.auto_delete_seconds} s"
            if lifecycle.auto_delete_seconds is not None
            else "",
        ),
    )


def _security(security: Security) -> Iterator[Fact]:
    yield from _facts(
        ("User ID", "" if security.uid is None else str(security.uid)),
        ("Group ID", "" if security.gid is None else str(security.gid)),
        ("Supplemental groups", map(str, security.supplemental_groups)),
        ("Must not be root", _said(security.non_root)),
        ("Root file system read only", _said(security.read_only_root or None)),
        ("Privilege escalation", _said(security.privilege_escalation)),
        ("Capabilities", security.capabilities),
        ("Host's IPC", _said(security.host_ipc or None)),
        ("Host's network", _said(security.host_network or None)),
        ("Seccomp profile", security.seccomp.value if security.seccomp else ""),
    )


def _said(choice: bool | None) -> str:
    return "" if choice is None else "yes" if choice else "no"


def _master(spec: Spec) -> Iterator[Fact]:
    """The master's own values; "none" where it has none of what the workers have."""
    changed = {
        field.name
        for field in fields(spec.master)
        if getattr(spec.master, field.name) is not INHERITED
    }
    if not changed:
        yield Fact("Differences", ("none",))
        return
    setup = spec.master_setup
    theirs = {fact.name: fact for fact in _of_setup(spec.setup)}
    own = {fact.name: fact for fact in _of_setup(setup)}
    for name in {**theirs, **own}:
        if own.get(name) != theirs.get(name):
            yield own.get(name) or Fact(name, ("none",))


def _of_setup(setup: Setup) -> Iterable[Fact]:
    yield from _environment(setup.environment)
    yield from _compute(setup.compute)
    yield from _facts(("Volumes", map(_volume, setup.volumes)))
    yield from _placement(setup)
    yield from _security(setup.security)
