"""The part of a body that is about one kind of pod, as a Setup: what `manifests.rest` writes of
one, read back.
"""

from collections.abc import Iterator
from decimal import Decimal
from enum import StrEnum

from workloads.api.fields import Fields
from workloads.api.reading_volumes import volumes
from workloads.specs import (
    BadWords,
    Compute,
    Environment,
    Extended,
    Gpus,
    Pair,
    PullPolicy,
    Seccomp,
    Security,
    Setup,
    Source,
    Toleration,
    TolerationEffect,
    TolerationOperator,
    Topology,
    Variable,
    split_words,
)


class GpuRequest(StrEnum):
    PORTION = "portion"
    MEMORY = "memory"


class Nearness(StrEnum):
    REQUIRED = "Required"
    PREFERRED = "Preferred"


class Ids(StrEnum):
    """Where the user and group of the containers come from."""

    IMAGE = "fromTheImage"
    CUSTOM = "custom"


def setup(spec: Fields) -> Setup:
    """What `spec` says of its pods. What this version cannot heed is refused by name."""
    spec.unsupported(
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
    spec.unsupported("can only be Training", category=("Training",))
    return Setup(
        environment=Environment(
            image=spec.text("image", "environment.image"),
            pull_policy=spec.choice("imagePullPolicy", PullPolicy, "environment.pull_policy"),
            pull_secrets=tuple(_pull_secrets(spec)),
            command=_words(spec, "command"),
            args=_words(spec, "args"),
            variables=tuple(
                _variable(entry)
                for entry in spec.each("environmentVariables", "environment.variables")
            ),
            working_dir=spec.text("workingDir", "environment.working_dir"),
        ),
        compute=_compute(spec.inner("compute", "compute")),
        volumes=volumes(spec.inner("storage", "volumes")),
        tolerations=tuple(_toleration(entry) for entry in spec.each("tolerations", "tolerations")),
        node_type=spec.text("nodeType", "node_type"),
        node_pools=_node_pools(spec),
        topology=_topology(spec),
        annotations=_pairs(spec, "annotations"),
        labels=_pairs(spec, "labels"),
        security=_security(spec.inner("security", "security")),
    )


def _node_pools(spec: Fields) -> tuple[str, ...]:
    """Clients that know of no pools send `default` alone, which asks for nothing: any node will
    do.
    """
    pools = spec.texts("nodePools", "node_pools")
    return () if pools == ("default",) else pools


def _topology(spec: Fields) -> Topology | None:
    asked = spec.inner("podAffinity", "topology")
    key, nearness = asked.text("key", "key"), asked.choice("type", Nearness, "required")
    return Topology(key, nearness is Nearness.REQUIRED) if key or nearness else None


def quantity(number: Decimal | None) -> str:
    """A number as the text of a quantity; empty for none."""
    if number is None:
        return ""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _words(spec: Fields, name: str) -> tuple[str, ...]:
    try:
        return split_words(spec.text(name, f"environment.{name}"))
    except BadWords as error:
        spec.refuse(name, str(error))
        return ()


def _pull_secrets(spec: Fields) -> Iterator[str]:
    for entry in spec.each("imagePullSecrets", "environment.pull_secrets"):
        entry.unsupported(userCredential=(False,))
        yield entry.text("name")


def _variable(entry: Fields) -> Variable:
    # What is written about a variable changes nothing, so it may be there.
    entry.text("description")
    entry.unsupported(userCredential=())
    name = entry.text("name", "name")
    given = [each for each in ("value", "secret", "configMap", "podFieldRef") if entry.has(each)]
    if len(given) > 1:
        entry.refuse(
            given[1], f"cannot be given together with {given[0]}: a variable has one source"
        )
        entry.ignore_rest()
    elif "podFieldRef" in given:
        return Variable(
            name,
            source=Source.POD_FIELD,
            key=entry.inner("podFieldRef").text("path", "/" + entry.target_of("key")),
        )
    elif given and given[0] != "value":
        found = entry.inner(given[0])
        return Variable(
            name,
            source=Source.SECRET if given[0] == "secret" else Source.CONFIG_MAP,
            object_name=found.text("name", "/" + entry.target_of("object_name")),
            key=found.text("key", "/" + entry.target_of("key")),
        )
    return Variable(name, entry.text("value", "value"))


def _compute(compute: Fields) -> Compute:
    return Compute(
        gpus=_gpus(compute),
        cpu_request=quantity(compute.number("cpuCoreRequest", "cpu_request")),
        cpu_limit=quantity(compute.number("cpuCoreLimit", "cpu_limit")),
        memory_request=compute.text("cpuMemoryRequest", "memory_request"),
        memory_limit=compute.text("cpuMemoryLimit", "memory_limit"),
        large_shm=bool(compute.flag("largeShmRequest", "large_shm")),
        extended=tuple(
            Extended(entry.text("resource", "resource"), entry.text("quantity", "quantity"))
            for entry in compute.each("extendedResources", "extended")
        ),
    )


def _gpus(compute: Fields) -> Gpus:
    kind = compute.choice("gpuRequestType", GpuRequest)
    devices = compute.whole("gpuDevicesRequest", "gpus.devices") or 0
    portion = compute.number("gpuPortionRequest", "gpus.portion")
    memory = compute.text("gpuMemoryRequest", "gpus.memory")
    limit = compute.number("gpuPortionLimit")
    if limit is not None and limit != portion:
        compute.refuse(
            "gpuPortionLimit", "cannot be other than gpuPortionRequest with this version"
        )
    if compute.text("gpuMemoryLimit") not in ("", memory):
        compute.refuse("gpuMemoryLimit", "cannot be other than gpuMemoryRequest with this version")
    if kind is GpuRequest.PORTION and portion is None:
        compute.refuse("gpuPortionRequest", "must be given where gpuRequestType is portion")
    if kind is GpuRequest.MEMORY and not memory:
        compute.refuse("gpuMemoryRequest", "must be given where gpuRequestType is memory")
    return Gpus(devices, portion, memory)


def _toleration(entry: Fields) -> Toleration:
    entry.text("name")
    return Toleration(
        key=entry.text("key", "key"),
        operator=entry.choice("operator", TolerationOperator, "operator")
        or TolerationOperator.EQUAL,
        value=entry.text("value", "value"),
        effect=entry.choice("effect", TolerationEffect, "effect") or TolerationEffect.ANY,
        seconds=entry.whole("seconds", "seconds"),
    )


def _pairs(spec: Fields, name: str) -> tuple[Pair, ...]:
    return tuple(
        Pair(entry.text("name", "key"), entry.text("value", "value"))
        for entry in spec.each(name, name)
    )


def _security(security: Fields) -> Security:
    if security.text("uidGidSource") == "fromIdpToken":
        security.refuse(
            "uidGidSource", "cannot be fromIdpToken with this version; fromTheImage and custom can"
        )
    elif security.choice("uidGidSource", Ids) is Ids.IMAGE:
        for name in ("runAsUid", "runAsGid", "supplementalGroups"):
            if security.has(name):
                security.refuse(name, "can be given only where uidGidSource is custom")
    if security.text("seccompProfileType") == "Localhost":
        security.refuse(
            "seccompProfileType",
            "cannot be Localhost with this version; RuntimeDefault and Unconfined can",
        )
        seccomp = None
    else:
        seccomp = security.choice("seccompProfileType", Seccomp, "seccomp")
    return Security(
        uid=security.whole("runAsUid", "uid"),
        gid=security.whole("runAsGid", "gid"),
        supplemental_groups=_groups(security),
        non_root=security.flag("runAsNonRoot", "non_root"),
        read_only_root=bool(security.flag("readOnlyRootFilesystem", "read_only_root")),
        privilege_escalation=security.flag("allowPrivilegeEscalation", "privilege_escalation"),
        capabilities=security.texts("capabilities", "capabilities"),
        host_ipc=bool(security.flag("hostIpc", "host_ipc")),
        host_network=bool(security.flag("hostNetwork", "host_network")),
        seccomp=seccomp,
    )


def _groups(security: Fields) -> tuple[int, ...]:
    parts = [
        part.strip()
        for part in security.text("supplementalGroups", "supplemental_groups").split(",")
        if part.strip()
    ]
    if not all(part.isascii() and part.isdigit() and len(part) < 16 for part in parts):
        security.refuse("supplementalGroups", "must be whole numbers with commas between them")
        return ()
    return tuple(map(int, parts))
