"""A Spec in words: titled lists of facts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from workloads import quantities
from workloads.forms.setup_descriptions import describe_configuration
from workloads.specs import (
    INHERITED,
    S3,
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
    Spec,
    Toleration,
    Totals,
    Variable,
    VariableSource,
    Volume,
    VolumeAccess,
    join_command_line,
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A name and its value: one text, or several."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    facts: tuple[Fact, ...]


_ACCESS = {
    VolumeAccess.READ_WRITE: "",
    VolumeAccess.READ_ONLY: ", read only",
    VolumeAccess.RANK_0_WRITES: ", writable by rank 0 only",
}


def describe_spec(spec: Spec) -> list[Section]:
    """Describe everything that was chosen.

    What was left to the image, the framework or the cluster is left out.
    """
    compute, setup = spec.setup.compute, spec.setup
    sections = [
        Section("Workload", tuple(_describe_workload(spec))),
        Section(
            "Environment" if not spec.is_distributed else "Environment of the workers",
            tuple(_describe_environment(setup.environment)),
        ),
        Section("Compute resources of each pod", tuple(_describe_compute(compute))),
        Section("Storage", tuple(_build_facts(("Volumes", map(_describe_volume, setup.volumes))))),
        Section("Placement and labels", tuple(_describe_placement(setup))),
        Section("Lifecycle", tuple(_describe_lifecycle(spec.lifecycle))),
        Section("Security", tuple(_describe_security(setup.security))),
    ]
    if spec.has_master:
        leader = spec.framework.master_name if spec.framework else "master"
        sections.append(
            Section(f"Where the {leader} differs from the workers", tuple(_describe_master(spec)))
        )
    return [section for section in sections if section.facts]


def _build_facts(*pairs: tuple[str, Any]) -> Iterator[Fact]:
    for name, value in pairs:
        values = (value,) if isinstance(value, str) else tuple(value or ())
        if any(values):
            yield Fact(name, values)


def _describe_workload(spec: Spec) -> Iterator[Fact]:
    yield from _build_facts(
        ("Architecture", spec.architecture.label),
        ("Framework", spec.framework.label if spec.framework else ""),
        (
            "Configuration",
            describe_configuration(spec.configuration, spec.framework)
            if spec.is_distributed
            else "",
        ),
        ("Workers", str(spec.workers) if spec.is_distributed else ""),
        (
            "Workers while it runs",
            f"{spec.elastic.min_workers} to {spec.elastic.max_workers}" if spec.elastic else "",
        ),
        ("Restarts while workers come and go", _describe_restarts(spec)),
        ("Parameter servers", str(spec.parameter_servers) if spec.parameter_servers else ""),
        *(_describe_mpi(spec) if spec.framework is Framework.MPI else ()),
        ("Runs", "" if spec.is_distributed else f"{spec.runs}, {spec.parallelism} at once"),
        ("In total", _describe_totals(spec.totals)),
        ("Preemptible", "Yes" if spec.is_preemptible else "No"),
        ("Priority", spec.lifecycle.priority.label if spec.lifecycle.priority else ""),
        ("Namespace", spec.namespace),
        ("Queue", spec.queue),
    )


def _describe_restarts(spec: Spec) -> str:
    return (
        f"at most {spec.elastic.max_restarts}"
        if spec.elastic and spec.elastic.max_restarts is not None
        else ""
    )


def _describe_mpi(spec: Spec) -> Iterator[tuple[str, str]]:
    yield "Slots per worker", str(spec.mpi.slots)
    yield "The launcher is made", spec.mpi.launcher.label.lower()
    yield "SSH path", spec.mpi.ssh_path


def _describe_totals(totals: Totals) -> str:
    shared = f" and {totals.gpu_memory} MiB of GPU memory" if totals.gpu_memory else ""
    cpu, memory = (
        quantities.format_count(totals.cpu, "CPU core"),
        quantities.format_memory(totals.memory),
    )
    return (
        f"{quantities.format_count(totals.pods, 'pod')}: "
        f"{quantities.format_count(totals.gpus, 'GPU')}{shared}, {cpu}, {memory} of memory"
    )


def _describe_environment(environment: Environment) -> Iterator[Fact]:
    yield from _build_facts(
        ("Image", environment.image),
        ("Image pull policy", environment.pull_policy.value if environment.pull_policy else ""),
        ("Pull secrets", environment.pull_secrets),
        ("Command", join_command_line(environment.command)),
        ("Arguments", join_command_line(environment.args)),
        ("Working directory", environment.working_dir),
        ("Environment variables", map(_describe_variable, environment.variables)),
    )


def _describe_variable(variable: Variable) -> str:
    match variable.source:
        case VariableSource.CUSTOM:
            return f"{variable.name}={variable.value}"
        case VariableSource.POD_FIELD:
            return f"{variable.name} from the pod's field {variable.key}"
        case VariableSource.SECRET:
            return (
                f"{variable.name} from the key {variable.key} of the Secret {variable.object_name}"
            )
        case VariableSource.CONFIG_MAP:
            return (
                f"{variable.name} from the key {variable.key} of the ConfigMap "
                f"{variable.object_name}"
            )


def _describe_compute(compute: Compute) -> Iterator[Fact]:
    yield from _build_facts(
        ("GPUs", _describe_gpus(compute.gpus)),
        ("CPU", _describe_range(compute.cpu_request, compute.cpu_limit, " cores")),
        ("Memory", _describe_range(compute.memory_request, compute.memory_limit, "")),
        ("Shared memory", "as large as the memory" if compute.large_shm else ""),
        ("Other resources", (f"{each.quantity} of {each.resource}" for each in compute.extended)),
    )


def _describe_gpus(gpus: Gpus) -> str:
    if not gpus.device_count:
        return "none"
    if gpus.memory:
        return (
            f"{gpus.memory} of the memory of {quantities.format_count(gpus.device_count, 'device')}"
        )
    if gpus.portion is not None and gpus.is_shared:
        return (
            f"{quantities.format_number(gpus.portion)} of "
            f"{quantities.format_count(gpus.device_count, 'device')}"
        )
    return quantities.format_count(gpus.device_count, "device")


def _describe_range(request: str, limit: str, unit: str) -> str:
    parts = (
        f"{request}{unit} requested" if request else "",
        f"at most {limit}{unit}" if limit else "",
    )
    return ", ".join(part for part in parts if part)


def _describe_volume(volume: Volume) -> str:
    match volume:
        case EmptyDir():
            medium = " in memory" if volume.memory else ""
            limit = f" of at most {volume.size}" if volume.size else ""
            content = f"an empty directory{medium}{limit}"
        case HostPath():
            content = f"{volume.source} of the node"
        case ConfigMap() | Secret():
            content = f"the {volume.noun} {volume.name}"
        case Claim():
            content = f"the PVC {volume.claim}"
        case NewClaim():
            content = _describe_new_claim(volume)
        case Git():
            content = _describe_git(volume)
        case S3():
            address = f" at {volume.url}" if volume.url else ""
            prefix = f" below {volume.prefix}" if volume.prefix else ""
            content = (
                "a copy of the S3 bucket "
                f"{volume.bucket}{prefix}{address}{_describe_secret(volume.secret)}"
            )
        case Nfs():
            content = f"{volume.export} of the NFS server {volume.server}"
        case _:
            content = f"a {volume.noun}"
    return f"{volume.path}: {content}{_ACCESS[volume.access]}"


def _describe_new_claim(claim: NewClaim) -> str:
    whose = "a new PVC for each pod" if claim.ephemeral else "a new PVC"
    kind = f" of class {claim.storage_class}" if claim.storage_class else ""
    return f"{whose} of {claim.size}{kind} ({', '.join(claim.modes)})"


def _describe_git(git: Git) -> str:
    of = git.revision or (f"branch {git.branch}" if git.branch else "its default branch")
    return f"{of} of the Git repository {git.repository}{_describe_secret(git.secret)}"


def _describe_secret(secret: str) -> str:
    return f", opened by the Secret {secret}" if secret else ""


def _describe_placement(setup: Setup) -> Iterator[Fact]:
    yield from _build_facts(
        ("Node type", setup.node_type),
        ("Node pools, in order", setup.node_pools),
        ("Together on nodes with the same", _describe_topology(setup)),
        ("Tolerations", map(_describe_toleration, setup.tolerations)),
        ("Labels", (f"{pair.key}={pair.value}" for pair in setup.labels)),
        ("Annotations", (f"{pair.key}={pair.value}" for pair in setup.annotations)),
    )


def _describe_topology(setup: Setup) -> str:
    if setup.topology is None:
        return ""
    return f"{setup.topology.key} ({'required' if setup.topology.required else 'preferred'})"


def _describe_toleration(toleration: Toleration) -> str:
    value = f" = {toleration.value}" if toleration.value else ""
    seconds = f", for {toleration.seconds} s" if toleration.seconds is not None else ""
    return (
        f"{toleration.key or 'every taint'}{value} ({toleration.operator.value}, "
        f"{toleration.effect.value}{seconds})"
    )


def _describe_lifecycle(lifecycle: Lifecycle) -> Iterator[Fact]:
    yield from _build_facts(
        ("Tried again", f"at most {quantities.format_count(lifecycle.backoff_limit, 'time')}"),
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


def _describe_security(security: Security) -> Iterator[Fact]:
    yield from _build_facts(
        ("User ID", "" if security.uid is None else str(security.uid)),
        ("Group ID", "" if security.gid is None else str(security.gid)),
        ("Supplemental groups", map(str, security.supplemental_groups)),
        ("Must not be root", _describe_choice(security.non_root)),
        ("Root file system read only", _describe_choice(security.read_only_root or None)),
        ("Privilege escalation", _describe_choice(security.privilege_escalation)),
        ("Capabilities", security.capabilities),
        ("Host's IPC", _describe_choice(security.host_ipc or None)),
        ("Host's network", _describe_choice(security.host_network or None)),
        ("Seccomp profile", security.seccomp.value if security.seccomp else ""),
    )


def _describe_choice(choice: bool | None) -> str:
    return "" if choice is None else "yes" if choice else "no"


def _describe_master(spec: Spec) -> Iterator[Fact]:
    """Describe the values of the master that differ; "none" where it lacks the workers' value."""
    changed = {
        field.name
        for field in fields(spec.master)
        if getattr(spec.master, field.name) is not INHERITED
    }
    if not changed:
        yield Fact("Differences", ("none",))
        return
    setup = spec.master_setup
    worker_facts = {fact.name: fact for fact in _describe_setup(spec.setup)}
    master_facts = {fact.name: fact for fact in _describe_setup(setup)}
    for name in {**worker_facts, **master_facts}:
        if master_facts.get(name) != worker_facts.get(name):
            yield master_facts.get(name) or Fact(name, ("none",))


def _describe_setup(setup: Setup) -> Iterable[Fact]:
    yield from _describe_environment(setup.environment)
    yield from _describe_compute(setup.compute)
    yield from _build_facts(("Volumes", map(_describe_volume, setup.volumes)))
    yield from _describe_placement(setup)
    yield from _describe_security(setup.security)
