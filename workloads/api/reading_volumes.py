"""The storage of one kind of pod in a body, as volumes: what `manifests.rest` writes of them, read
back.
"""

import re
from collections.abc import Callable
from enum import StrEnum

from workloads.api.fields import Fields
from workloads.manifests.rest import MODES
from workloads.specs import (
    S3,
    Access,
    Claim,
    ClaimAccess,
    ConfigMap,
    EmptyDir,
    Git,
    GitAccess,
    HostPath,
    NewClaim,
    Nfs,
    Secret,
    Volume,
)

_MODE = re.compile(r"0?[0-7]{3}")


class Propagation(StrEnum):
    NONE = "None"
    HOST_TO_CONTAINER = "HostToContainer"


class VolumeMode(StrEnum):
    FILES = "Filesystem"


def volumes(storage: Fields) -> tuple[Volume, ...]:
    """What `storage` says. Kinds that this version does not have are refused by name."""
    storage.unsupported(dataVolume=())
    found: list[Volume] = []
    for field, read in _KINDS.items():
        for entry in storage.each(field, start=len(found)):
            # Muster names the volumes of a pod itself.
            entry.text("name")
            found.append(read(entry))
    return tuple(found)


def _empty_dir(entry: Fields) -> Volume:
    medium = entry.text("medium")
    if medium not in ("", "Memory"):
        entry.refuse("medium", "must be Memory, or not be given")
    return EmptyDir(
        path=entry.text("path", "path"),
        access=_access(entry),
        memory=medium == "Memory",
        size=entry.text("sizeLimit", "size"),
    )


def _host_path(entry: Fields) -> Volume:
    return HostPath(
        path=entry.text("mountPath", "path"),
        access=_access(entry, read_only=True),
        source=entry.text("path", "source"),
        propagate=entry.choice("mountPropagation", Propagation, "propagate")
        is Propagation.HOST_TO_CONTAINER,
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
    return Secret(
        path=path, access=_rank_0(entry) or Access.READ_ONLY, name=name, mode=_mode(entry)
    )


def _claim(entry: Fields) -> Volume:
    entry.unsupported(dataSharing=(False,))
    if not entry.flag("existingPvc"):
        return _new_claim(entry)
    entry.unsupported(
        "is for claims that are to be made, which existingPvc says this one is not",
        claimInfo=(),
        ephemeral=(False,),
    )
    return Claim(
        path=entry.text("path", "path"),
        access=_access(entry),
        claim=entry.text("claimName", "claim"),
    )


def _new_claim(entry: Fields) -> Volume:
    entry.unsupported(
        "is Muster's to choose for a claim that is to be made; existingPvc says that it exists",
        claimName=(),
    )
    info = entry.inner("claimInfo")
    info.unsupported(addedAttrValues=())
    info.choice("volumeMode", VolumeMode)
    wanted = info.inner("accessModes")
    modes = tuple(
        mode for mode in ClaimAccess if wanted.flag(MODES[mode], "/" + entry.target_of("modes"))
    )
    return NewClaim(
        path=entry.text("path", "path"),
        access=_access(entry),
        size=info.text("size", "/" + entry.target_of("size")),
        storage_class=info.text("storageClass", "/" + entry.target_of("storage_class")),
        modes=modes or (ClaimAccess.ONE_NODE,),
        ephemeral=bool(entry.flag("ephemeral", "ephemeral")),
    )


def _git(entry: Fields) -> Volume:
    entry.unsupported(
        "is deprecated: name the Secret in secretRef",
        passwordSecret=(),
        secretKeyOfUser=(),
        secretKeyOfPassword=(),
    )
    secret = entry.inner("secretRef")
    secret.unsupported("can only be username", secretKeyOfUser=("username",))
    secret.unsupported("can only be password", secretKeyOfPassword=("password",))
    return Git(
        path=entry.text("path", "path"),
        access=_access(entry),
        repository=entry.text("repository", "repository"),
        branch=entry.text("branch", "branch"),
        revision=entry.text("revision", "revision"),
        secret=secret.text("name", "/" + entry.target_of("secret")),
        credential=secret.choice(
            "authenticationMethod", GitAccess, "/" + entry.target_of("credential")
        ),
    )


def _s3(entry: Fields) -> Volume:
    entry.unsupported("can only be AccessKeyId", secretKeyOfAccessKeyId=("AccessKeyId",))
    entry.unsupported("can only be SecretKey", secretKeyOfSecretKey=("SecretKey",))
    return S3(
        path=entry.text("path", "path"),
        access=_rank_0(entry) or Access.READ_ONLY,
        bucket=entry.text("bucket", "bucket"),
        prefix=entry.text("prefix", "prefix"),
        url=entry.text("url", "url"),
        secret=entry.text("accessKeySecret", "secret"),
    )


def _nfs(entry: Fields) -> Volume:
    path, export = entry.text("mountPath", "path"), entry.text("path", "export")
    return Nfs(
        path=path,
        access=_access(entry, read_only=True),
        server=entry.text("server", "server"),
        export=export,
    )


_KINDS: dict[str, Callable[[Fields], Volume]] = {
    "emptyDirVolume": _empty_dir,
    "hostPath": _host_path,
    "configMapVolume": _config_map,
    "secretVolume": _secret,
    "pvc": _claim,
    "nfs": _nfs,
    "git": _git,
    "s3": _s3,
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
