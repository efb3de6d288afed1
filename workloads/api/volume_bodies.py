"""Parsing of the storage of one kind of pod in a body into volumes.

The reverse of what `manifests.rest_body` writes.
"""

import re
from collections.abc import Callable
from enum import StrEnum

from workloads.api.body_fields import BodyFields
from workloads.manifests.rest_body import ACCESS_MODES
from workloads.specs import (
    S3,
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
    VolumeAccess,
)

_FILE_MODE = re.compile(r"0?[0-7]{3}")


class Propagation(StrEnum):
    NONE = "None"
    HOST_TO_CONTAINER = "HostToContainer"


class VolumeMode(StrEnum):
    FILES = "Filesystem"


def parse_volumes(storage: BodyFields) -> tuple[Volume, ...]:
    """Return the volumes in `storage`.

    Kinds that this version does not have are refused by name.
    """
    storage.refuse_unsupported(dataVolume=())
    parsed: list[Volume] = []
    for field, parse in _VOLUME_PARSERS.items():
        for entry in storage.read_objects(field, start=len(parsed)):
            # Muster names the volumes of a pod itself.
            entry.read_text("name")
            parsed.append(parse(entry))
    return tuple(parsed)


def _parse_empty_dir(entry: BodyFields) -> Volume:
    medium = entry.read_text("medium")
    if medium not in ("", "Memory"):
        entry.refuse("medium", "must be Memory, or not be given")
    return EmptyDir(
        path=entry.read_text("path", "path"),
        access=_parse_access(entry),
        memory=medium == "Memory",
        size=entry.read_text("sizeLimit", "size"),
    )


def _parse_host_path(entry: BodyFields) -> Volume:
    return HostPath(
        path=entry.read_text("mountPath", "path"),
        access=_parse_access(entry, read_only=True),
        source=entry.read_text("path", "source"),
        propagate=entry.read_choice("mountPropagation", Propagation, "propagate")
        is Propagation.HOST_TO_CONTAINER,
    )


def _parse_config_map(entry: BodyFields) -> Volume:
    return ConfigMap(
        path=entry.read_text("mountPath", "path"),
        access=_parse_rank_0_access(entry) or VolumeAccess.READ_ONLY,
        name=entry.read_text("configMap", "name"),
        sub_path=entry.read_text("subPath", "sub_path"),
        mode=_parse_file_mode(entry),
    )


def _parse_secret(entry: BodyFields) -> Volume:
    path, name = entry.read_text("mountPath", "path"), entry.read_text("secret", "name")
    return Secret(
        path=path,
        access=_parse_rank_0_access(entry) or VolumeAccess.READ_ONLY,
        name=name,
        mode=_parse_file_mode(entry),
    )


def _parse_claim(entry: BodyFields) -> Volume:
    entry.refuse_unsupported(dataSharing=(False,))
    if not entry.read_flag("existingPvc"):
        return _parse_new_claim(entry)
    entry.refuse_unsupported(
        "is for claims that are to be made, which existingPvc says this one is not",
        claimInfo=(),
        ephemeral=(False,),
    )
    return Claim(
        path=entry.read_text("path", "path"),
        access=_parse_access(entry),
        claim=entry.read_text("claimName", "claim"),
    )


def _parse_new_claim(entry: BodyFields) -> Volume:
    entry.refuse_unsupported(
        "is Muster's to choose for a claim that is to be made; existingPvc says that it exists",
        claimName=(),
    )
    info = entry.read_object("claimInfo")
    info.refuse_unsupported(addedAttrValues=())
    info.read_choice("volumeMode", VolumeMode)
    wanted = info.read_object("accessModes")
    modes = tuple(
        mode
        for mode in ClaimAccess
        if wanted.read_flag(ACCESS_MODES[mode], "/" + entry.get_spec_path("modes"))
    )
    return NewClaim(
        path=entry.read_text("path", "path"),
        access=_parse_access(entry),
        size=info.read_text("size", "/" + entry.get_spec_path("size")),
        storage_class=info.read_text("storageClass", "/" + entry.get_spec_path("storage_class")),
        modes=modes or (ClaimAccess.ONE_NODE,),
        ephemeral=bool(entry.read_flag("ephemeral", "ephemeral")),
    )


def _parse_git(entry: BodyFields) -> Volume:
    entry.refuse_unsupported(
        "is deprecated: name the Secret in secretRef",
        passwordSecret=(),
        secretKeyOfUser=(),
        secretKeyOfPassword=(),
    )
    secret = entry.read_object("secretRef")
    secret.refuse_unsupported("can only be username", secretKeyOfUser=("username",))
    secret.refuse_unsupported("can only be password", secretKeyOfPassword=("password",))
    return Git(
        path=entry.read_text("path", "path"),
        access=_parse_access(entry),
        repository=entry.read_text("repository", "repository"),
        branch=entry.read_text("branch", "branch"),
        revision=entry.read_text("revision", "revision"),
        secret=secret.read_text("name", "/" + entry.get_spec_path("secret")),
        credential=secret.read_choice(
            "authenticationMethod", GitAccess, "/" + entry.get_spec_path("credential")
        ),
    )


def _parse_s3(entry: BodyFields) -> Volume:
    entry.refuse_unsupported("can only be AccessKeyId", secretKeyOfAccessKeyId=("AccessKeyId",))
    entry.refuse_unsupported("can only be SecretKey", secretKeyOfSecretKey=("SecretKey",))
    return S3(
        path=entry.read_text("path", "path"),
        access=_parse_rank_0_access(entry) or VolumeAccess.READ_ONLY,
        bucket=entry.read_text("bucket", "bucket"),
        prefix=entry.read_text("prefix", "prefix"),
        url=entry.read_text("url", "url"),
        secret=entry.read_text("accessKeySecret", "secret"),
    )


def _parse_nfs(entry: BodyFields) -> Volume:
    path, export = entry.read_text("mountPath", "path"), entry.read_text("path", "export")
    return Nfs(
        path=path,
        access=_parse_access(entry, read_only=True),
        server=entry.read_text("server", "server"),
        export=export,
    )


_VOLUME_PARSERS: dict[str, Callable[[BodyFields], Volume]] = {
    "emptyDirVolume": _parse_empty_dir,
    "hostPath": _parse_host_path,
    "configMapVolume": _parse_config_map,
    "secretVolume": _parse_secret,
    "pvc": _parse_claim,
    "nfs": _parse_nfs,
    "git": _parse_git,
    "s3": _parse_s3,
}


def _parse_access(entry: BodyFields, *, read_only: bool = False) -> VolumeAccess:
    """Return who may write to a volume.

    `read_only` is the API's default, which differs from kind to kind.
    """
    is_read_only = entry.read_flag("readOnly", "access")
    if rank_0 := _parse_rank_0_access(entry):
        if is_read_only:
            entry.refuse("readOnly", "cannot be true together with writableByRank0Only")
        return rank_0
    return (
        VolumeAccess.READ_ONLY
        if (read_only if is_read_only is None else is_read_only)
        else VolumeAccess.READ_WRITE
    )


def _parse_rank_0_access(entry: BodyFields) -> VolumeAccess | None:
    return VolumeAccess.RANK_0_WRITES if entry.read_flag("writableByRank0Only", "access") else None


def _parse_file_mode(entry: BodyFields) -> int | None:
    text = entry.read_text("defaultMode", "mode")
    if text and not _FILE_MODE.fullmatch(text):
        entry.refuse("defaultMode", "must be octal digits as in 0644")
        return None
    return int(text, 8) if text else None
