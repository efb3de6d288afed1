"""Parsing of the part of a body about one kind of pod into a Setup.

The reverse of what `manifests.rest_body` writes.
"""

from collections.abc import Iterator
from decimal import Decimal
from enum import StrEnum

from workloads.api.body_fields import BodyFields
from workloads.api.volume_bodies import parse_volumes
from workloads.specs import (
    Compute,
    Environment,
    ExtendedResource,
    Gpus,
    InvalidCommandLine,
    Pair,
    PullPolicy,
    SeccompProfile,
    Security,
    Setup,
    Toleration,
    TolerationEffect,
    TolerationOperator,
    Topology,
    Variable,
    VariableSource,
    split_command_line,
)


class GpuRequestType(StrEnum):
    PORTION = "portion"
    MEMORY = "memory"


class AffinityType(StrEnum):
    REQUIRED = "Required"
    PREFERRED = "Preferred"


class IdSource(StrEnum):
    """Where the user and group of the containers come from."""

    IMAGE = "fromTheImage"
    CUSTOM = "custom"


def parse_setup(spec: BodyFields) -> Setup:
    """Return the setup of the pods in `spec`.

    Fields that this version does not support are refused by name.
    """
    spec.refuse_unsupported(
        createHomeDir=(False,),
        exposedUrls=(),
        nodeAffinityRequired=(),
        ports=(),
        probes=(),
        relatedUrls=(),
        stdin=(False,),
        terminateAfterPreemption=(False,),
        tty=(False,),
    )
    spec.refuse_unsupported("can only be Training", category=("Training",))
    return Setup(
        environment=Environment(
            image=spec.read_text("image", "environment.image"),
            pull_policy=spec.read_choice("imagePullPolicy", PullPolicy, "environment.pull_policy"),
            pull_secrets=tuple(_parse_pull_secrets(spec)),
            command=_parse_command_line(spec, "command"),
            args=_parse_command_line(spec, "args"),
            variables=tuple(
                _parse_variable(entry)
                for entry in spec.read_objects("environmentVariables", "environment.variables")
            ),
            working_dir=spec.read_text("workingDir", "environment.working_dir"),
        ),
        compute=_parse_compute(spec.read_object("compute", "compute")),
        volumes=parse_volumes(spec.read_object("storage", "volumes")),
        tolerations=tuple(
            _parse_toleration(entry) for entry in spec.read_objects("tolerations", "tolerations")
        ),
        node_type=spec.read_text("nodeType", "node_type"),
        node_pools=_parse_node_pools(spec),
        topology=_parse_topology(spec),
        annotations=_parse_pairs(spec, "annotations"),
        labels=_parse_pairs(spec, "labels"),
        security=_parse_security(spec.read_object("security", "security")),
    )


def _parse_node_pools(spec: BodyFields) -> tuple[str, ...]:
    """Return the names of node pools.

    Clients that do not know pools send `default` alone, which requests nothing: any node will do.
    """
    pools = spec.read_texts("nodePools", "node_pools")
    return () if pools == ("default",) else pools


def _parse_topology(spec: BodyFields) -> Topology | None:
    affinity = spec.read_object("podAffinity", "topology")
    key, affinity_type = (
        affinity.read_text("key", "key"),
        affinity.read_choice("type", AffinityType, "required"),
    )
    return Topology(key, affinity_type is AffinityType.REQUIRED) if key or affinity_type else None


def format_quantity(number: Decimal | None) -> str:
    """Return a number as the text of a quantity; "" for None."""
    if number is None:
        return ""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _parse_command_line(spec: BodyFields, name: str) -> tuple[str, ...]:
    try:
        return split_command_line(spec.read_text(name, f"environment.{name}"))
    except InvalidCommandLine as error:
        spec.refuse(name, str(error))
        return ()


def _parse_pull_secrets(spec: BodyFields) -> Iterator[str]:
    for entry in spec.read_objects("imagePullSecrets", "environment.pull_secrets"):
        entry.refuse_unsupported(userCredential=(False,))
        yield entry.read_text("name")


def _parse_variable(entry: BodyFields) -> Variable:
    # What is written about a variable changes nothing, so it may be there.
    entry.read_text("description")
    entry.refuse_unsupported(userCredential=())
    name = entry.read_text("name", "name")
    sources = [each for each in ("value", "secret", "configMap", "podFieldRef") if entry.has(each)]
    if len(sources) > 1:
        entry.refuse(
            sources[1], f"cannot be given together with {sources[0]}: a variable has one source"
        )
        entry.ignore_rest()
    elif "podFieldRef" in sources:
        return Variable(
            name,
            source=VariableSource.POD_FIELD,
            key=entry.read_object("podFieldRef").read_text(
                "path", "/" + entry.get_spec_path("key")
            ),
        )
    elif sources and sources[0] != "value":
        reference = entry.read_object(sources[0])
        return Variable(
            name,
            source=VariableSource.SECRET if sources[0] == "secret" else VariableSource.CONFIG_MAP,
            object_name=reference.read_text("name", "/" + entry.get_spec_path("object_name")),
            key=reference.read_text("key", "/" + entry.get_spec_path("key")),
        )
    return Variable(name, entry.read_text("value", "value"))


def _parse_compute(compute: BodyFields) -> Compute:
    return Compute(
        gpus=_parse_gpus(compute),
        cpu_request=format_quantity(compute.read_decimal("cpuCoreRequest", "cpu_request")),
        cpu_limit=format_quantity(compute.read_decimal("cpuCoreLimit", "cpu_limit")),
        memory_request=compute.read_text("cpuMemoryRequest", "memory_request"),
        memory_limit=compute.read_text("cpuMemoryLimit", "memory_limit"),
        large_shm=bool(compute.read_flag("largeShmRequest", "large_shm")),
        extended=tuple(
            ExtendedResource(
                entry.read_text("resource", "resource"), entry.read_text("quantity", "quantity")
            )
            for entry in compute.read_objects("extendedResources", "extended")
        ),
    )


def _parse_gpus(compute: BodyFields) -> Gpus:
    kind = compute.read_choice("gpuRequestType", GpuRequestType)
    devices = compute.read_integer("gpuDevicesRequest", "gpus.devices") or 0
    portion = compute.read_decimal("gpuPortionRequest", "gpus.portion")
    memory = compute.read_text("gpuMemoryRequest", "gpus.memory")
    limit = compute.read_decimal("gpuPortionLimit")
    if limit is not None and limit != portion:
        compute.refuse(
            "gpuPortionLimit", "cannot be other than gpuPortionRequest with this version"
        )
    if compute.read_text("gpuMemoryLimit") not in ("", memory):
        compute.refuse("gpuMemoryLimit", "cannot be other than gpuMemoryRequest with this version")
    if kind is GpuRequestType.PORTION and portion is None:
        compute.refuse("gpuPortionRequest", "must be given where gpuRequestType is portion")
    if kind is GpuRequestType.MEMORY and not memory:
        compute.refuse("gpuMemoryRequest", "must be given where gpuRequestType is memory")
    return Gpus(devices, portion, memory)


def _parse_toleration(entry: BodyFields) -> Toleration:
    entry.read_text("name")
    return Toleration(
        key=entry.read_text("key", "key"),
        operator=entry.read_choice("operator", TolerationOperator, "operator")
        or TolerationOperator.EQUAL,
        value=entry.read_text("value", "value"),
        effect=entry.read_choice("effect", TolerationEffect, "effect") or TolerationEffect.ANY,
        seconds=entry.read_integer("seconds", "seconds"),
    )


def _parse_pairs(spec: BodyFields, name: str) -> tuple[Pair, ...]:
    return tuple(
        Pair(entry.read_text("name", "key"), entry.read_text("value", "value"))
        for entry in spec.read_objects(name, name)
    )


def _parse_security(security: BodyFields) -> Security:
    if security.read_text("uidGidSource") == "fromIdpToken":
        security.refuse(
            "uidGidSource", "cannot be fromIdpToken with this version; fromTheImage and custom can"
        )
    elif security.read_choice("uidGidSource", IdSource) is IdSource.IMAGE:
        for name in ("runAsUid", "runAsGid", "supplementalGroups"):
            if security.has(name):
                security.refuse(name, "can be given only where uidGidSource is custom")
    if security.read_text("seccompProfileType") == "Localhost":
        security.refuse(
            "seccompProfileType",
            "cannot be Localhost with this version; RuntimeDefault and Unconfined can",
        )
        seccomp = None
    else:
        seccomp = security.read_choice("seccompProfileType", SeccompProfile, "seccomp")
    return Security(
        uid=security.read_integer("runAsUid", "uid"),
        gid=security.read_integer("runAsGid", "gid"),
        supplemental_groups=_parse_groups(security),
        non_root=security.read_flag("runAsNonRoot", "non_root"),
        read_only_root=bool(security.read_flag("readOnlyRootFilesystem", "read_only_root")),
        privilege_escalation=security.read_flag("allowPrivilegeEscalation", "privilege_escalation"),
        capabilities=security.read_texts("capabilities", "capabilities"),
        host_ipc=bool(security.read_flag("hostIpc", "host_ipc")),
        host_network=bool(security.read_flag("hostNetwork", "host_network")),
        seccomp=seccomp,
    )


def _parse_groups(security: BodyFields) -> tuple[int, ...]:
    parts = [
        part.strip()
        for part in security.read_text("supplementalGroups", "supplemental_groups").split(",")
        if part.strip()
    ]
    if not all(part.isascii() and part.isdigit() and len(part) < 16 for part in parts):
        security.refuse("supplementalGroups", "must be whole numbers with commas between them")
        return ()
    return tuple(map(int, parts))
