"""A Spec in words: titled lists of facts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from console.templatetags.muster import bytes_, mebibytes
from workloads import quantities
from workloads.forms.setup_descriptions import describe_configuration
from workloads.specs import (
    S3,
    Claim,
    ConfigMap,
    EmptyDir,
    ExtendedResource,
    Framework,
    Git,
    Gpus,
    HostPath,
    NewClaim,
    Nfs,
    Pair,
    Secret,
    Setup,
    Spec,
    Toleration,
    Topology,
    Totals,
    Variable,
    VariableSource,
    Volume,
    VolumeAccess,
    gpu_totals,
    join_command_line,
    list_options,
)
from workloads.specs.fields import FIELDS, FactSection, Field, get_value
from workloads.specs.fields.types import CommandLine, Flag, Number, Switch


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
UNENFORCED = " (not enforced here)"
"""What is said of a read-only volume where every pod can write to it."""
_OPTIONS = frozenset(name for framework in Framework for name in framework.options)
"""The names of the fields that not every framework has."""


def describe_spec(spec: Spec, *, enforces_mounts: bool = True) -> list[Section]:
    """Describe everything that was chosen.

    What was left to the image, the framework or the cluster is left out. `enforces_mounts` is
    whether the cluster keeps mounts read-only.
    """
    sections = [_describe_section(section, spec) for section in FactSection]
    if spec.has_master:
        leader = spec.framework.master_name if spec.framework else "master"
        sections.append(
            Section(f"Where the {leader} differs from the workers", tuple(_describe_master(spec)))
        )
    if not enforces_mounts:
        sections = [_mark_mounts(section) for section in sections]
    return [section for section in sections if section.facts]


def has_read_only_mounts(spec: Spec) -> bool:
    """Tell whether some pod of a spec may not write to a volume that it has."""
    setups = (spec.setup, spec.master_setup) if spec.has_master else (spec.setup,)
    return any(_ACCESS[volume.access] for setup in setups for volume in setup.volumes)


def _mark_mounts(section: Section) -> Section:
    """Return a section whose read-only volumes are said to be writable all the same."""
    words = tuple(filter(None, _ACCESS.values()))
    facts = (
        Fact(
            fact.name,
            tuple(
                f"{value}{UNENFORCED}" if value.startswith("/") and value.endswith(words) else value
                for value in fact.values
            ),
        )
        for fact in section.facts
    )
    return Section(section.title, tuple(facts))


def _describe_section(section: FactSection, spec: Spec) -> Section:
    title = section.value
    fields = [each for each in FIELDS.values() if each.fact_section is section]
    facts = _list_facts(fields, spec, spec.setup)
    if section is FactSection.WORKLOAD:
        facts += _list_results(spec)
    elif section is FactSection.ENVIRONMENT and spec.is_distributed:
        title = "Environment of the workers"
    return Section(title, tuple(facts))


def _list_results(spec: Spec) -> Iterator[Fact]:
    """Yield what follows from several fields, or from the project."""
    data = spec.data_totals
    for name, text in (
        ("In total", _describe_totals(spec.totals)),
        ("Data workers in total", _describe_cpu_and_memory(data) if data.pods else ""),
        ("Preemptible", "Yes" if spec.is_preemptible else "No"),
        ("Namespace", spec.namespace),
        ("Queue", spec.queue),
    ):
        if text:
            yield Fact(name, (text,))


def _list_facts(fields: Iterable[Field], spec: Spec, setup: Setup) -> list[Fact]:
    """Return what these fields say of a workload with this setup of its pods."""
    facts: dict[str, tuple[str, ...]] = {}
    for field in fields:
        name = field.fact or field.label
        if texts := _describe_field(field, spec, setup):
            facts[name] = (", ".join((*facts[name], *texts)),) if name in facts else texts
    return [Fact(name, texts) for name, texts in facts.items()]


def _describe_field(field: Field, spec: Spec, setup: Setup) -> tuple[str, ...]:
    """Describe the value of a field; () where there is none, or nothing was chosen."""
    type_ = field.type
    value = get_value(setup if field.is_of_pods else spec, field.fact_value or field.pod_path)
    is_of_kind = field.architecture in (None, spec.architecture)
    if field.option_key in _OPTIONS:
        is_of_kind &= field.option_key in list_options(spec.framework)
    is_off = not value and (
        isinstance(type_, Flag) or (isinstance(type_, Number) and type_.default == 0)
    )
    is_usual = is_off or (isinstance(type_, Switch) and value)
    if not is_of_kind or is_usual or value in (None, "", ()):
        return ()
    if field.path == "configuration":
        # Its words depend on the framework.
        value = describe_configuration(spec.configuration, spec.framework)
    elif field.path == gpu_totals.TOTAL_FIELD:
        value = gpu_totals.describe_machines(spec)
    elif isinstance(type_, CommandLine):
        value = join_command_line(value)
    elif isinstance(type_, Number) and type_.noun:
        value = quantities.format_count(value, type_.noun)
    values = value if isinstance(value, tuple) else (value,)
    return tuple(field.phrase.format(_describe_value(each)) for each in values)


def _describe_value(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case StrEnum():
            return str(getattr(value, "label", value))
        case Gpus():
            return _describe_gpus(value)
        case ExtendedResource():
            return f"{value.quantity} of {value.resource}"
        case Variable():
            return _describe_variable(value)
        case Volume():
            return _describe_volume(value)
        case Topology():
            return f"{value.key} ({'required' if value.required else 'preferred'})"
        case Toleration():
            return _describe_toleration(value)
        case Pair():
            return f"{value.key}={value.value}"
        case _:
            return str(value)


def _describe_totals(totals: Totals) -> str:
    shared = f" and {mebibytes(totals.gpu_memory)} of GPU memory" if totals.gpu_memory else ""
    return (
        f"{quantities.format_count(totals.pods, 'pod')}: "
        f"{quantities.format_count(totals.gpus, 'GPU')}{shared}, {_describe_cpu_and_memory(totals)}"
    )


def _describe_cpu_and_memory(totals: Totals) -> str:
    cpu = quantities.format_count(totals.cpu, "CPU core")
    return f"{cpu}, {bytes_(int(totals.memory))} of memory"


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


def _describe_toleration(toleration: Toleration) -> str:
    value = f" = {toleration.value}" if toleration.value else ""
    seconds = f", for {toleration.seconds} s" if toleration.seconds is not None else ""
    return (
        f"{toleration.key or 'every taint'}{value} ({toleration.operator.value}, "
        f"{toleration.effect.value}{seconds})"
    )


def _describe_master(spec: Spec) -> Iterator[Fact]:
    """Describe the values of the master that differ; "none" where it lacks the workers' value."""
    if not spec.master.changes:
        yield Fact("Differences", ("none",))
        return
    fields = [each for each in FIELDS.values() if each.is_of_pods and each.fact_section]
    worker_facts, master_facts = (
        {fact.name: fact for fact in _list_facts(fields, spec, setup)}
        for setup in (spec.setup, spec.master_setup)
    )
    for name in worker_facts | master_facts:
        if master_facts.get(name) != worker_facts.get(name):
            yield master_facts.get(name) or Fact(name, ("none",))
