"""The fields that policies can rule, in the order and sections of the pages. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from workloads.policing.fields import Getter, PolicyField, Setter, build_field, build_lens
from workloads.policing.kinds import (
    LOCKED,
    OPTIONS,
    RANGE,
    REQUIRED,
    Choice,
    CommandLine,
    Flag,
    Pairs,
    Portion,
    PrefixText,
    Quantity,
    TextList,
    WholeNumber,
)
from workloads.specs import (
    CAPABILITIES,
    VOLUME_TYPES,
    Architecture,
    CleanPodPolicy,
    Framework,
    Gpus,
    Pair,
    Preemptibility,
    Priority,
    PullPolicy,
    RestartPolicy,
    Setup,
    Spec,
    Variable,
)

ENVIRONMENT, COMPUTE, PLACE, DATA, COUNT, LIFE, SECURITY = (
    "Environment",
    "Compute resource",
    "Nodes",
    "Data and metadata",
    "Kind and number of pods",
    "Lifecycle",
    "Security",
)
_PREFIX_HELP = "Texts, or their beginnings with a star at the end, as registry.example.com/team/*"


def _build_choice(enum: Any) -> Choice:
    return Choice(choices=tuple((each.value, getattr(each, "label", each.value)) for each in enum))


def _enum_setter(enum: Any, path: str) -> Setter:
    _, change = build_lens(path)
    return lambda whole, value: change(whole, enum(value))


def _effective_pull_policy(setup: Setup) -> str:
    """Return the pull policy that a cluster applies where none is set."""
    environment = setup.environment
    if environment.pull_policy is not None:
        return environment.pull_policy.value
    last = environment.image_reference.rpartition("/")[2]
    latest = "@" not in last and last.partition(":")[2] in ("", "latest")
    return (PullPolicy.ALWAYS if latest else PullPolicy.IF_NOT_PRESENT).value


def _effective_portion(setup: Setup) -> Decimal | None:
    """Return the part of each device that a pod gets; a whole one is 1.

    None without GPUs, and where GPU memory is requested.
    """
    gpus = setup.compute.gpus
    if gpus.memory or not gpus.device_count:
        return None
    return Decimal(1) if gpus.portion is None else gpus.portion


def _set_portion(setup: Setup, value: Decimal) -> Setup:
    gpus = setup.compute.gpus
    return replace(setup, compute=replace(setup.compute, gpus=Gpus(gpus.device_count or 1, value)))


def _request_getter(resource: str) -> Getter:
    """Return a function that reads a request; a limit without a request counts as one."""

    def value(setup: Setup) -> str:
        compute = setup.compute
        return str(
            getattr(compute, f"{resource}_request") or getattr(compute, f"{resource}_limit") or "0"
        )

    return value


def _volume_kinds(setup: Setup) -> tuple[str, ...] | None:
    return tuple(dict.fromkeys(volume.kind for volume in setup.volumes)) or None


def _variable_values(setup: Setup) -> dict[str, str | None] | None:
    """Return the values of variables by name; None for a value from a Secret or the like."""
    return {
        each.name: each.value if each == Variable(each.name, each.value) else None
        for each in setup.environment.variables
    } or None


def _set_variables(setup: Setup, missing: Mapping[str, str]) -> Setup:
    added = tuple(Variable(name, value) for name, value in missing.items())
    environment = setup.environment
    return replace(
        setup, environment=replace(environment, variables=(*environment.variables, *added))
    )


def _pair_accessors(name: str) -> tuple[Getter, Setter]:
    def get(setup: Setup) -> dict[str, str] | None:
        return {pair.key: pair.value for pair in getattr(setup, name)} or None

    def add(setup: Setup, missing: Mapping[str, str]) -> Setup:
        added = tuple(Pair(key, value) for key, value in missing.items())
        changed: Setup = build_lens(name)[1](setup, (*getattr(setup, name), *added))
        return changed

    return get, add


def _set_gpu_memory(setup: Setup, value: str) -> Setup:
    return replace(
        setup,
        compute=replace(
            setup.compute, gpus=Gpus(setup.compute.gpus.device_count or 1, None, value)
        ),
    )


def _large_shm(setup: Setup) -> bool:
    return setup.compute.large_shm


def _max_workers(spec: Spec) -> int | None:
    return None if spec.elastic is None else spec.elastic.max_workers


def _preemptibility(spec: Spec) -> str:
    return (
        Preemptibility.PREEMPTIBLE if spec.is_preemptible else Preemptibility.NON_PREEMPTIBLE
    ).value


def _environment_fields() -> list[PolicyField]:
    where, prefix = ENVIRONMENT, "environment."
    pull = {
        "value": _effective_pull_policy,
        "set": _enum_setter(PullPolicy, f"{prefix}pull_policy"),
    }
    lines = [
        build_field(
            name,
            label,
            CommandLine(),
            f"{prefix}{name}",
            name,
            where,
            value=build_lens(f"{prefix}{name}")[0],
        )
        for name, label in (("command", "Command"), ("args", "Arguments"))
    ]
    get = {"raw": _variable_values, "value": _variable_values, "set": _set_variables}
    return [
        build_field(
            "image", "Image", PrefixText(), f"{prefix}image", "image", where, about=_PREFIX_HELP
        ),
        build_field(
            "pull_policy",
            "Image pull policy",
            _build_choice(PullPolicy),
            f"{prefix}pull_policy",
            "pull_policy",
            where,
            **pull,
        ),
        *lines,
        build_field(
            "working_dir",
            "Working directory",
            PrefixText(),
            f"{prefix}working_dir",
            "working_dir",
            where,
            about=_PREFIX_HELP,
        ),
        build_field(
            "variables", "Environment variables", Pairs(), f"{prefix}variables", (), where, **get
        ),
    ]


def _compute_fields() -> list[PolicyField]:
    where, prefix = COMPUTE, "compute."
    gpus = tuple(f"{prefix}gpus.{part}" for part in ("devices", "portion", "memory"))
    devices = {
        "value": lambda setup: setup.compute.gpus.device_count,
        "given_paths": gpus,
        "implied": True,
    }
    portion = {
        "value": _effective_portion,
        "set": _set_portion,
        "given_paths": gpus,
        "implied": True,
        "attributes": Portion().attributes - {LOCKED},
    }
    memory = {
        "set": _set_gpu_memory,
        "given_paths": gpus,
        "implied": True,
        "attributes": Quantity().attributes - {LOCKED},
    }
    amounts = [
        build_field(
            f"{resource}_{bound}",
            f"{words} {bound}",
            Quantity(),
            f"{prefix}{resource}_{bound}",
            f"{resource}_{bound}",
            where,
            **({"is_open": True} if bound == "limit" else {"value": _request_getter(resource)}),
        )
        for resource, words in (("cpu", "CPU"), ("memory", "CPU memory"))
        for bound in ("request", "limit")
    ]
    shared = "Of GPUs that are asked for whole or in parts; a whole one counts as 1."
    of_memory = (
        "Of GPUs that are asked for by their memory; those asked for otherwise have the rule of "
        "the portion."
    )
    return [
        build_field(
            "gpus.devices",
            "GPU devices per pod",
            WholeNumber(largest=1000),
            gpus[0],
            "gpu_devices",
            where,
            **devices,
        ),
        build_field(
            "gpus.portion",
            "GPU portion",
            Portion(),
            gpus[1],
            "gpu_percent",
            where,
            about=shared,
            **portion,
        ),
        build_field(
            "gpus.memory",
            "GPU memory",
            Quantity(),
            gpus[2],
            "gpu_memory",
            where,
            about=of_memory,
            **memory,
        ),
        *amounts,
        build_field(
            "large_shm",
            "Increase shared memory",
            Flag(),
            f"{prefix}large_shm",
            "large_shm",
            where,
            implied=True,
            raw=_large_shm,
            value=_large_shm,
        ),
    ]


def _placement_fields() -> list[PolicyField]:
    labels, annotations = _pair_accessors("labels"), _pair_accessors("annotations")
    kinds = TextList(
        attributes=frozenset((OPTIONS,)),
        choices=tuple((each.kind, each.noun) for each in VOLUME_TYPES),
        nothing="no volumes",
    )
    stated = [
        build_field(name, label, Pairs(), name, (), DATA, raw=get, value=get, set=add)
        for name, label, (get, add) in (
            ("labels", "Labels", labels),
            ("annotations", "Annotations", annotations),
        )
    ]
    return [
        build_field(
            "node_type",
            "Node type",
            PrefixText(),
            "node_type",
            "node_type",
            PLACE,
            is_open=True,
            about=_PREFIX_HELP,
        ),
        build_field(
            "node_pools",
            "Node pools",
            TextList(nothing="any"),
            "node_pools",
            "node_pools",
            PLACE,
            is_open=True,
        ),
        build_field(
            "volumes",
            "Volumes",
            kinds,
            "volumes",
            (),
            DATA,
            raw=_volume_kinds,
            value=_volume_kinds,
            set=None,
            about="The kinds that there may be.",
        ),
        *stated,
    ]


def _security_fields() -> list[PolicyField]:
    where, prefix = SECURITY, "security."
    capabilities = TextList(
        choices=tuple((each, each) for each in sorted(CAPABILITIES)), nothing="none"
    )
    attributes = capabilities.attributes - {REQUIRED}
    flags = (
        ("non_root", "Refuse to run as root", False),
        ("read_only_root", "Read-only root file system", True),
        ("privilege_escalation", "Privilege escalation allowed", False),
        ("host_ipc", "Use the host's IPC", True),
        ("host_network", "Use the host's network", True),
    )
    return [
        *(
            build_field(name, label, WholeNumber(), f"{prefix}{name}", name, where, is_open=True)
            for name, label in (("uid", "User ID"), ("gid", "Group ID"))
        ),
        build_field(
            "capabilities",
            "Linux capabilities",
            capabilities,
            f"{prefix}capabilities",
            "capabilities",
            where,
            attributes=attributes,
        ),
        *(
            build_field(
                name,
                label,
                Flag(),
                f"{prefix}{name}",
                name,
                where,
                implied=implied,
                raw=(get := build_lens(f"{prefix}{name}")[0]),
                value=get,
            )
            for name, label, implied in flags
        ),
    ]


_WORKERS = ("workers", "elastic.min_workers", "elastic.max_workers")


def _count_fields() -> list[PolicyField]:
    where: dict[str, Any] = {"of_pods": False, "implied": True}
    distributed, standard = (
        where | {"architecture": Architecture.DISTRIBUTED},
        where | {"architecture": Architecture.STANDARD},
    )
    only = {"of_pods": False, "attributes": frozenset((OPTIONS,)), "set": None}
    upper_bound = WholeNumber(attributes=RANGE)
    bound = {
        "of_pods": False,
        "architecture": Architecture.DISTRIBUTED,
        "raw": _max_workers,
        "value": _max_workers,
        "set": None,
    }
    return [
        build_field(
            "architecture",
            "Workload architecture",
            _build_choice(Architecture),
            "architecture",
            "architecture",
            COUNT,
            **only,
        ),
        build_field(
            "framework",
            "Framework",
            _build_choice(Framework),
            "framework",
            "framework",
            COUNT,
            architecture=Architecture.DISTRIBUTED,
            **only,
        ),
        build_field(
            "workers",
            "Workers",
            WholeNumber(),
            "workers",
            "workers",
            COUNT,
            given_paths=_WORKERS,
            **distributed,
        ),
        build_field(
            "elastic.max_workers",
            "Maximum of workers",
            upper_bound,
            "elastic.max_workers",
            "max_workers",
            COUNT,
            **bound,
        ),
        build_field(
            "parameter_servers",
            "Parameter servers",
            WholeNumber(),
            "parameter_servers",
            "parameter_servers",
            COUNT,
            **distributed,
        ),
        build_field("runs", "Number of runs", WholeNumber(), "runs", "runs", COUNT, **standard),
        build_field(
            "parallelism",
            "Runs at once",
            WholeNumber(),
            "parallelism",
            "parallelism",
            COUNT,
            **standard,
        ),
    ]


def _lifecycle_fields() -> list[PolicyField]:
    def choice(name: str, label: str, enum: Any, **more: Any) -> PolicyField:
        path = f"lifecycle.{name}"
        return build_field(
            name,
            label,
            _build_choice(enum),
            path,
            name,
            LIFE,
            of_pods=False,
            set=_enum_setter(enum, path),
            **more,
        )

    def number(name: str, label: str, **more: Any) -> PolicyField:
        return build_field(
            name, label, WholeNumber(), f"lifecycle.{name}", name, LIFE, of_pods=False, **more
        )

    return [
        choice("priority", "Priority", Priority),
        choice("preemptibility", "Preemptibility", Preemptibility, value=_preemptibility),
        number("backoff_limit", "Backoff limit", implied=True),
        number("grace_seconds", "Grace period on preemption, in seconds"),
        number("auto_delete_seconds", "Auto-deletion after the end, in seconds", is_open=True),
        choice("restart_policy", "Restart policy", RestartPolicy),
        choice(
            "clean_pod_policy",
            "Pods to delete at the end",
            CleanPodPolicy,
            architecture=Architecture.DISTRIBUTED,
        ),
    ]


CATALOGUE: Mapping[str, PolicyField] = {
    each.name: each
    for each in (
        *_count_fields(),
        *_environment_fields(),
        *_compute_fields(),
        *_placement_fields(),
        *_lifecycle_fields(),
        *_security_fields(),
    )
}
"""By the names that rules have in JSON."""
