"""The part of a body that is about one kind of pod, as a Setup: what `manifests.rest` writes of one, read back."""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import StrEnum

from workloads.api.fields import Fields
from workloads.specs import (
    Access,
    BadWords,
    Claim,
    Compute,
    ConfigMap,
    EmptyDir,
    Environment,
    Extended,
    Gpus,
    HostPath,
    Nfs,
    Pair,
    PullPolicy,
    Seccomp,
    Secret,
    Security,
    Setup,
    Source,
    Toleration,
    TolerationEffect,
    TolerationOperator,
    Variable,
    Volume,
    split_words,
)

_MODE = re.compile(r"0?[0-7]{3}")


class GpuRequest(StrEnum):
    PORTION = "portion"
    MEMORY = "memory"


class Propagation(StrEnum):
    NONE = "None"
    HOST_TO_CONTAINER = "HostToContainer"


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
        podAffinity=(),
        ports=(),
        probes=(),
        relatedUrls=(),
        stdin=(False,),
        terminateAfterPreemption=(False,),
        tty=(False,),
    )
    spec.unsupported("can only be Training", category=("Training",))
    spec.unsupported("can only be default: this version has one node pool", nodePools=(["default"],))
    return Setup(
        environment=Environment(
            image=spec.text("image", "environment.image"),
            pull_policy=spec.choice("imagePullPolicy", PullPolicy, "environment.pull_policy"),
            pull_secrets=tuple(_pull_secrets(spec)),
            command=_words(spec, "command"),
            args=_words(spec, "args"),
            variables=tuple(_variable(entry) for entry in spec.each("environmentVariables", "environment.variables")),
            working_dir=spec.text("workingDir", "environment.working_dir"),
        ),
        compute=_compute(spec.inner("compute", "compute")),
        volumes=_volumes(spec.inner("storage", "volumes")),
        tolerations=tuple(_toleration(entry) for entry in spec.each("tolerations", "tolerations")),
        node_type=spec.text("nodeType", "node_type"),
        annotations=_pairs(spec, "annotations"),
        labels=_pairs(spec, "labels"),
        security=_security(spec.inner("security", "security")),
    )


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
        entry.refuse(given[1], f"cannot be given together with {given[0]}: a variable has one source")
        entry.ignore_rest()
    elif "podFieldRef" in given:
        return Variable(name, source=Source.POD_FIELD, key=entry.inner("podFieldRef").text("path", "/" + entry.target_of("key")))
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
        compute.refuse("gpuPortionLimit", "cannot be other than gpuPortionRequest with this version")
    if compute.text("gpuMemoryLimit") not in ("", memory):
        compute.refuse("gpuMemoryLimit", "cannot be other than gpuMemoryRequest with this version")
    if kind is GpuRequest.PORTION and portion is None:
        compute.refuse("gpuPortionRequest", "must be given where gpuRequestType is portion")
    if kind is GpuRequest.MEMORY and not memory:
        compute.refuse("gpuMemoryRequest", "must be given where gpuRequestType is memory")
    return Gpus(devices, portion, memory)


def _volumes(storage: Fields) -> tuple[Volume, ...]:
    storage.unsupported(dataVolume=(), git=(), s3=())
    volumes: list[Volume] = []
    for field, read in _KINDS.items():
        for entry in storage.each(field, start=len(volumes)):
            # Muster names the volumes of a pod itself.
            entry.text("name")
            volumes.append(read(entry))
    return tuple(volumes)


def _empty_dir(entry: Fields) -> Volume:
    medium = entry.text("medium")
    if medium not in ("", "Memory"):
        entry.refuse("medium", "must be Memory, or not be given")
    return EmptyDir(path=entry.text("path", "path"), access=_access(entry), memory=medium == "Memory", size=entry.text("sizeLimit", "size"))


def _host_path(entry: Fields) -> Volume:
    return HostPath(
        path=entry.text("mountPath", "path"),
        access=_access(entry, read_only=True),
        source=entry.text("path", "source"),
        propagate=entry.choice("mountPropagation", Propagation, "propagate") is Propagation.HOST_TO_CONTAINER,
    )


def _config_map(entry: Fields) -> Volume:
    return ConfigMap(
        path=entry.text("mountPath", "path"),
        access=_rank_0(entry) or Access.READ_ONLY,
        name=entry.text("configMap", "name"),
        sub_path=entry.text("subPath", "sub_path"),
        mode=_mode(entry),
    )


def _secret(entry: Fields) -> Volume:
    path, name = entry.text("mountPath", "path"), entry.text("secret", "name")
    return Secret(path=path, access=_rank_0(entry) or Access.READ_ONLY, name=name, mode=_mode(entry))


def _claim(entry: Fields) -> Volume:
    entry.unsupported(claimInfo=(), dataSharing=(False,), ephemeral=(False,))
    if not entry.flag("existingPvc"):
        entry.refuse("existingPvc", "must be true: this version makes no claims, it mounts those that exist")
    return Claim(path=entry.text("path", "path"), access=_access(entry), claim=entry.text("claimName", "claim"))


def _nfs(entry: Fields) -> Volume:
    path, export = entry.text("mountPath", "path"), entry.text("path", "export")
    return Nfs(path=path, access=_access(entry, read_only=True), server=entry.text("server", "server"), export=export)


_KINDS: dict[str, Callable[[Fields], Volume]] = {
    "emptyDirVolume": _empty_dir,
    "hostPath": _host_path,
    "configMapVolume": _config_map,
    "secretVolume": _secret,
    "pvc": _claim,
    "nfs": _nfs,
}


def _access(entry: Fields, *, read_only: bool = False) -> Access:
    """`read_only` is the API's default, which differs from kind to kind."""
    said = entry.flag("readOnly", "access")
    if rank_0 := _rank_0(entry):
        if said:
            entry.refuse("readOnly", "cannot be true together with writableByRank0Only")
        return rank_0
    return Access.READ_ONLY if (read_only if said is None else said) else Access.READ_WRITE


def _rank_0(entry: Fields) -> Access | None:
    return Access.RANK_0_WRITES if entry.flag("writableByRank0Only", "access") else None


def _mode(entry: Fields) -> int | None:
    text = entry.text("defaultMode", "mode")
    if text and not _MODE.fullmatch(text):
        entry.refuse("defaultMode", "must be octal digits as in 0644")
        return None
    return int(text, 8) if text else None


def _toleration(entry: Fields) -> Toleration:
    entry.text("name")
    return Toleration(
        key=entry.text("key", "key"),
        operator=entry.choice("operator", TolerationOperator, "operator") or TolerationOperator.EQUAL,
        value=entry.text("value", "value"),
        effect=entry.choice("effect", TolerationEffect, "effect") or TolerationEffect.ANY,
        seconds=entry.whole("seconds", "seconds"),
    )


def _pairs(spec: Fields, name: str) -> tuple[Pair, ...]:
    return tuple(Pair(entry.text("name", "key"), entry.text("value", "value")) for entry in spec.each(name, name))


def _security(security: Fields) -> Security:
    if security.text("uidGidSource") == "fromIdpToken":
        security.refuse("uidGidSource", "cannot be fromIdpToken with this version; fromTheImage and custom can")
    elif security.choice("uidGidSource", Ids) is Ids.IMAGE:
        for name in ("runAsUid", "runAsGid", "supplementalGroups"):
            if security.has(name):
                security.refuse(name, "can be given only where uidGidSource is custom")
    if security.text("seccompProfileType") == "Localhost":
        security.refuse("seccompProfileType", "cannot be Localhost with this version; RuntimeDefault and Unconfined can")
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
    parts = [part.strip() for part in security.text("supplementalGroups", "supplemental_groups").split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and len(part) < 16 for part in parts):
        security.refuse("supplementalGroups", "must be whole numbers with commas between them")
        return ()
    return tuple(map(int, parts))
