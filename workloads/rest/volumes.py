"""The storage of one kind of pod in a body: a list for each kind of volume."""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import field

from console.rest_bodies import RestBody, describe_field, mark_unsupported
from workloads.rest.parts import PartBody, Refuse, drop_empty
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

EXTENSION = "An extension of Muster"
ReadOnly = Annotated[
    bool | None,
    describe_field("The default differs: true for nfs and hostPath, false elsewhere."),
]
_MODE = re.compile("(0?[0-7]{3})?")
FileMode = Annotated[str, describe_field(pattern=f"^{_MODE.pattern}$")]
ACCESS_MODES: Mapping[ClaimAccess, str] = {
    ClaimAccess.ONE_NODE: "readWriteOnce",
    ClaimAccess.MANY_READ: "readOnlyMany",
    ClaimAccess.MANY_WRITE: "readWriteMany",
}
"""The access modes of a new claim, as the API names its flags."""


class VolumeBody(PartBody, kw_only=True):
    """What all volumes have."""

    RENAMED: ClassVar[Mapping[str, str]] = {}
    """Attributes of the volume that are elsewhere in the body."""

    # Muster names the volumes of a pod itself.
    given_name: Annotated[str, describe_field("Taken, and not kept.")] = field(
        name="name", default=""
    )
    rank_0_writes: Annotated[
        bool | None,
        describe_field(f"{EXTENSION}: the master (rank 0) may write, the others read."),
    ] = field(name="writableByRank0Only", default=None)

    def locate(self, attribute: str) -> str:
        if attribute == "access":
            return "writableByRank0Only" if self.rank_0_writes is not None else "readOnly"
        return self.RENAMED.get(attribute) or super().locate(attribute)


class WritableBody(VolumeBody, kw_only=True):
    """A volume that may be written to."""

    IS_READ_ONLY: ClassVar[bool] = False
    """The API's default, which differs from kind to kind."""

    read_only: ReadOnly = None

    def read_access(self, refuse: Refuse) -> VolumeAccess:
        if self.rank_0_writes:
            if self.read_only:
                refuse("readOnly", "cannot be true together with writableByRank0Only")
            return VolumeAccess.RANK_0_WRITES
        is_read_only = self.IS_READ_ONLY if self.read_only is None else self.read_only
        return VolumeAccess.READ_ONLY if is_read_only else VolumeAccess.READ_WRITE


class CopyBody(VolumeBody, kw_only=True):
    """A volume that is a copy, and therefore read-only."""

    def read_access(self, refuse: Refuse) -> VolumeAccess:
        return VolumeAccess.RANK_0_WRITES if self.rank_0_writes else VolumeAccess.READ_ONLY


class EmptyDirBody(WritableBody, kw_only=True):
    RENAMED = {"memory": "medium"}  # noqa: RUF012

    path: str = ""
    medium: Annotated[str, describe_field(enum=["Memory"])] = ""
    size: str = field(name="sizeLimit", default="")

    def build_part(self, refuse: Refuse) -> Volume:
        if self.medium not in ("", "Memory"):
            refuse("medium", "must be Memory, or not be given")
        return EmptyDir(
            path=self.path,
            access=self.read_access(refuse),
            memory=self.medium == "Memory",
            size=self.size,
        )

    @classmethod
    def write(cls, volume: EmptyDir) -> dict[str, Any]:
        medium = "Memory" if volume.memory else None
        return drop_empty(path=volume.path, medium=medium, sizeLimit=volume.size)


class Propagation(StrEnum):
    NONE = "None"
    HOST_TO_CONTAINER = "HostToContainer"


class HostPathBody(WritableBody, kw_only=True):
    IS_READ_ONLY = True

    source: str = field(name="path", default="")
    path: str = field(name="mountPath", default="")
    propagate: Propagation | None = field(name="mountPropagation", default=None)

    def build_part(self, refuse: Refuse) -> Volume:
        return HostPath(
            path=self.path,
            access=self.read_access(refuse),
            source=self.source,
            propagate=self.propagate is Propagation.HOST_TO_CONTAINER,
        )

    @classmethod
    def write(cls, volume: HostPath) -> dict[str, Any]:
        propagation = Propagation.HOST_TO_CONTAINER.value if volume.propagate else None
        return drop_empty(path=volume.source, mountPath=volume.path, mountPropagation=propagation)


class ConfigMapBody(CopyBody, kw_only=True):
    RENAMED = {"name": "configMap"}  # noqa: RUF012

    config_map: str = ""
    path: str = field(name="mountPath", default="")
    sub_path: str = ""
    mode: FileMode = field(name="defaultMode", default="")

    def build_part(self, refuse: Refuse) -> Volume:
        return ConfigMap(
            path=self.path,
            access=self.read_access(refuse),
            name=self.config_map,
            sub_path=self.sub_path,
            mode=_parse_mode(self.mode, refuse),
        )

    @classmethod
    def write(cls, volume: ConfigMap) -> dict[str, Any]:
        return drop_empty(
            configMap=volume.name,
            mountPath=volume.path,
            subPath=volume.sub_path,
            defaultMode=_format_mode(volume.mode),
        )


class SecretBody(CopyBody, kw_only=True):
    RENAMED = {"name": "secret"}  # noqa: RUF012

    secret: str = ""
    path: str = field(name="mountPath", default="")
    mode: FileMode = field(name="defaultMode", default="")

    def build_part(self, refuse: Refuse) -> Volume:
        return Secret(
            path=self.path,
            access=self.read_access(refuse),
            name=self.secret,
            mode=_parse_mode(self.mode, refuse),
        )

    @classmethod
    def write(cls, volume: Secret) -> dict[str, Any]:
        mode = _format_mode(volume.mode)
        return drop_empty(secret=volume.name, mountPath=volume.path, defaultMode=mode)


class AccessModesBody(RestBody, forbid_unknown_fields=True):
    read_write_once: bool | None = None
    read_only_many: bool | None = None
    read_write_many: bool | None = None


class ClaimInfoBody(RestBody, forbid_unknown_fields=True):
    """A claim that is to be made."""

    size: str = ""
    storage_class: Annotated[
        str, describe_field("The cluster's default where it is not given.")
    ] = ""
    access_modes: Annotated[
        AccessModesBody | None, describe_field("readWriteOnce where none is true.")
    ] = None
    volume_mode: Literal["Filesystem"] | None = None
    added_attr_values: Annotated[Any, mark_unsupported()] = None


class ClaimBody(WritableBody, kw_only=True):
    RENAMED = {  # noqa: RUF012
        "claim": "claimName",
        "size": "claimInfo.size",
        "storage_class": "claimInfo.storageClass",
        "modes": "claimInfo.accessModes.readWriteMany",
    }

    claim_name: Annotated[
        str, describe_field("Of a claim that exists; Muster names those that it makes.")
    ] = ""
    existing_pvc: Annotated[
        bool | None,
        describe_field(
            "False, and so is leaving it out: a claim is made as claimInfo says, and goes with the "
            "workload."
        ),
    ] = None
    ephemeral: Annotated[
        bool | None,
        describe_field(
            "Of a claim that is made: each pod has one of its own, which goes with the pod."
        ),
    ] = None
    claim_info: ClaimInfoBody | None = None
    path: str = ""
    data_sharing: Annotated[Any, mark_unsupported(False)] = None

    def build_part(self, refuse: Refuse) -> Volume:
        if not self.existing_pvc:
            return self._read_new_claim(refuse)
        has_info = self.claim_info not in (None, ClaimInfoBody())
        for name, is_given in (("claimInfo", has_info), ("ephemeral", self.ephemeral)):
            if is_given:
                refuse(
                    name,
                    "is for claims that are to be made, which existingPvc says this one is not",
                )
        return Claim(path=self.path, access=self.read_access(refuse), claim=self.claim_name)

    def _read_new_claim(self, refuse: Refuse) -> Volume:
        if self.claim_name:
            refuse(
                "claimName",
                "is Muster's to choose for a claim that is to be made; existingPvc says that it "
                "exists",
            )
        info = self.claim_info or ClaimInfoBody()
        wanted = msgspec.to_builtins(info.access_modes or AccessModesBody())
        modes = tuple(mode for mode in ClaimAccess if wanted[ACCESS_MODES[mode]])
        return NewClaim(
            path=self.path,
            access=self.read_access(refuse),
            size=info.size,
            storage_class=info.storage_class,
            modes=modes or (ClaimAccess.ONE_NODE,),
            ephemeral=bool(self.ephemeral),
        )

    @classmethod
    def write(cls, volume: Claim | NewClaim) -> dict[str, Any]:
        if isinstance(volume, Claim):
            return {"claimName": volume.claim, "existingPvc": True, "path": volume.path}
        info = drop_empty(
            size=volume.size,
            storageClass=volume.storage_class,
            accessModes={ACCESS_MODES[mode]: True for mode in volume.modes},
            volumeMode="Filesystem",
        )
        return {
            "existingPvc": False,
            "claimInfo": info,
            "ephemeral": volume.ephemeral,
            "path": volume.path,
        }


class NfsBody(WritableBody, kw_only=True):
    IS_READ_ONLY = True

    server: str = ""
    export: str = field(name="path", default="")
    path: str = field(name="mountPath", default="")

    def build_part(self, refuse: Refuse) -> Volume:
        return Nfs(
            path=self.path,
            access=self.read_access(refuse),
            server=self.server,
            export=self.export,
        )

    @classmethod
    def write(cls, volume: Nfs) -> dict[str, Any]:
        return {"server": volume.server, "path": volume.export, "mountPath": volume.path}


class GitSecretBody(RestBody, forbid_unknown_fields=True):
    name: str = ""
    authentication_method: GitAccess | None = None
    secret_key_of_user: Annotated[
        Any, mark_unsupported("username", reason="can only be username")
    ] = None
    secret_key_of_password: Annotated[
        Any, mark_unsupported("password", reason="can only be password")
    ] = None


_Deprecated = Annotated[Any, mark_unsupported(reason="is deprecated: name the Secret in secretRef")]


class GitBody(WritableBody, kw_only=True):
    RENAMED = {  # noqa: RUF012
        "secret": "secretRef.name",
        "credential": "secretRef.authenticationMethod",
    }

    repository: Annotated[str, describe_field("Fetched before the containers start.")]
    branch: str = ""
    revision: Annotated[str, describe_field("A commit or tag; it goes before the branch.")] = ""
    path: str
    secret_ref: Annotated[
        GitSecretBody | None,
        describe_field(
            "Of a private repository: the Secret has username and password, or ssh-privatekey and "
            "known_hosts."
        ),
    ] = None
    password_secret: _Deprecated = None
    secret_key_of_user: _Deprecated = None
    secret_key_of_password: _Deprecated = None

    def build_part(self, refuse: Refuse) -> Volume:
        secret = self.secret_ref or GitSecretBody()
        return Git(
            path=self.path,
            access=self.read_access(refuse),
            repository=self.repository,
            branch=self.branch,
            revision=self.revision,
            secret=secret.name,
            credential=secret.authentication_method,
        )

    @classmethod
    def write(cls, volume: Git) -> dict[str, Any]:
        method = volume.credential and volume.credential.value
        return drop_empty(
            repository=volume.repository,
            branch=volume.branch,
            revision=volume.revision,
            path=volume.path,
            secretRef=drop_empty(name=volume.secret, authenticationMethod=method),
        )


class S3Body(CopyBody, kw_only=True):
    bucket: Annotated[
        str, describe_field("Downloaded before the containers start; nothing goes back.")
    ]
    prefix: Annotated[str, describe_field(f"{EXTENSION}: only what lies below it.")] = ""
    path: str
    url: Annotated[str, describe_field("Of the service; Amazon's where it is not given.")] = ""
    secret: Annotated[
        str,
        describe_field("The Secret with AccessKeyId and SecretKey; a public bucket needs none."),
    ] = field(name="accessKeySecret", default="")
    key_id_name: Annotated[
        Any, mark_unsupported("AccessKeyId", reason="can only be AccessKeyId")
    ] = field(name="secretKeyOfAccessKeyId", default=None)
    key_name: Annotated[Any, mark_unsupported("SecretKey", reason="can only be SecretKey")] = field(
        name="secretKeyOfSecretKey", default=None
    )

    def build_part(self, refuse: Refuse) -> Volume:
        return S3(
            path=self.path,
            access=self.read_access(refuse),
            bucket=self.bucket,
            prefix=self.prefix,
            url=self.url,
            secret=self.secret,
        )

    @classmethod
    def write(cls, volume: S3) -> dict[str, Any]:
        return drop_empty(
            bucket=volume.bucket,
            prefix=volume.prefix,
            path=volume.path,
            url=volume.url,
            accessKeySecret=volume.secret,
        )


class StorageBody(RestBody, forbid_unknown_fields=True):
    """The volumes of one kind of pod by their kinds; they are mounted in this order."""

    empty_dir_volume: tuple[EmptyDirBody, ...] = ()
    host_path: tuple[HostPathBody, ...] = ()
    config_map_volume: tuple[ConfigMapBody, ...] = ()
    secret_volume: tuple[SecretBody, ...] = ()
    pvc: tuple[ClaimBody, ...] = ()
    nfs: tuple[NfsBody, ...] = ()
    git: tuple[GitBody, ...] = ()
    s3: tuple[S3Body, ...] = ()
    data_volume: Annotated[Any, mark_unsupported()] = None

    def list_bodies(self) -> Iterator[tuple[str, Any]]:
        """Yield each volume's body with its place: "pvc.0"."""
        for name, place in zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True):
            for index, body in enumerate(getattr(self, name) or ()):
                yield f"{place}.{index}", body


_BODIES: Mapping[type[Volume], tuple[str, type[Any]]] = {
    EmptyDir: ("emptyDirVolume", EmptyDirBody),
    HostPath: ("hostPath", HostPathBody),
    ConfigMap: ("configMapVolume", ConfigMapBody),
    Secret: ("secretVolume", SecretBody),
    Claim: ("pvc", ClaimBody),
    NewClaim: ("pvc", ClaimBody),
    Nfs: ("nfs", NfsBody),
    Git: ("git", GitBody),
    S3: ("s3", S3Body),
}


def write_volumes(volumes: Iterable[Volume]) -> dict[str, Any]:
    """Return volumes as the storage of a body."""
    storage: dict[str, Any] = {}
    for number, volume in enumerate(volumes, 1):
        place, body = _BODIES[type(volume)]
        access: dict[str, Any] = {}
        if place in ("pvc", "nfs", "hostPath"):
            # Always written: the API's own defaults differ between these kinds.
            access["readOnly"] = volume.access is VolumeAccess.READ_ONLY
        elif place in ("emptyDirVolume", "git") and volume.access is VolumeAccess.READ_ONLY:
            access["readOnly"] = True
        if volume.access is VolumeAccess.RANK_0_WRITES:
            access["writableByRank0Only"] = True
        entry = {"name": f"volume-{number}"} | body.write(volume) | access
        storage.setdefault(place, []).append(entry)
    return storage


def _parse_mode(text: str, refuse: Refuse) -> int | None:
    if not _MODE.fullmatch(text):
        refuse("defaultMode", "must be octal digits as in 0644")
        return None
    return int(text, 8) if text else None


def _format_mode(mode: int | None) -> str | None:
    return None if mode is None else f"{mode:04o}"
