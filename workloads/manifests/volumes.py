"""The volumes of a pod: their sources, their mounts, and what is fetched or created first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from workloads.kube_objects import FETCHER_PREFIX, Object
from workloads.manifests import keys
from workloads.specs import (
    S3,
    Claim,
    ConfigMap,
    EmptyDir,
    Git,
    GitAccess,
    HostPath,
    NewClaim,
    Nfs,
    Secret,
    Setup,
    Spec,
    Volume,
    VolumeAccess,
)

GIT_ROOT = "/git"
GIT_LINK = "code"
"""git-sync checks out beside this link, which always leads to a complete tree; the container mounts
its target.
"""
GIT_SECRET = "/etc/git-secret"  # noqa: S105 - a mount path
S3_ROOT = "/data"
S3_REMOTE = "source"
NOBODY = 65534
"""The user ID with which rclone runs where its image's own, root, is forbidden."""
AMAZON = "AWS"
OTHER = "Other"


@dataclass(frozen=True, slots=True)
class Images:
    """Images that fetch files before the containers start: git-sync (v4) and rclone."""

    git: str = "registry.k8s.io/git-sync/git-sync:v4.4.0"
    s3: str = "docker.io/rclone/rclone:1.68"


IMAGES = Images()
"""The images where no others are configured."""


def build_pod_volumes(spec: Spec, setup: Setup) -> list[Object]:
    """Build the volumes of a pod, including those with the fetchers' secrets."""
    return [
        entry
        for name, volume in _name_volumes(setup)
        for entry in _build_entries(spec, name, volume, is_root=setup.security.uid == 0)
    ]


def build_mounts(setup: Setup, *, rank_0: bool) -> list[Object]:
    """Build the mounts of the training container.

    Only `rank_0` writes where only rank 0 may.
    """
    return [_build_mount(name, volume, rank_0) for name, volume in _name_volumes(setup)]


def build_fetchers(setup: Setup, images: Images, resources: Object) -> list[Object]:
    """Build the init containers that fetch Git repositories and buckets, in volume order.

    `resources` are the training container's CPU and memory. It waits meanwhile, so the pod needs no
    more for the fetchers; and a namespace with a quota refuses a pod of which a container names
    none.
    """
    given_resources = {"resources": resources} if resources else {}
    return [fetcher | given_resources for fetcher in _iterate_fetchers(setup, images)]


def build_claims(spec: Spec) -> list[Object]:
    """Build the new claims that all pods of the workload share, without their labels."""
    return [_build_claim(spec, volume) for volume in _list_shared_claims(spec)]


def drop_unset(**values: Any) -> Object:
    """Return the fields that have a value."""
    return {name: value for name, value in values.items() if value is not None}


def _name_volumes(setup: Setup) -> Sequence[tuple[str, Volume]]:
    """Return the volumes with their names in the pod."""
    named: list[tuple[str, Volume]] = [
        (f"volume-{number}", volume) for number, volume in enumerate(setup.volumes, 1)
    ]
    return (
        [*named, ("shared-memory", EmptyDir(path=keys.SHARED_MEMORY, memory=True))]
        if setup.compute.large_shm
        else named
    )


def _build_mount(name: str, volume: Volume, rank_0: bool) -> Object:
    mount: Object = {"name": name, "mountPath": volume.path}
    if volume.access is VolumeAccess.READ_ONLY or (
        volume.access is VolumeAccess.RANK_0_WRITES and not rank_0
    ):
        mount["readOnly"] = True
    if isinstance(volume, ConfigMap) and volume.sub_path:
        mount["subPath"] = volume.sub_path
    if isinstance(volume, Git):
        mount["subPath"] = GIT_LINK
    if isinstance(volume, HostPath) and volume.propagate:
        mount["mountPropagation"] = "HostToContainer"
    return mount


def _build_entries(spec: Spec, name: str, volume: Volume, *, is_root: bool) -> Iterator[Object]:
    yield {"name": name, **_build_source(spec, volume)}
    if isinstance(volume, Git) and volume.secret:
        # The files belong to root: other users can read them only with 0444, while ssh refuses a
        # key of its own user (root) that others can read.
        yield {
            "name": f"{name}-secret",
            "secret": {"secretName": volume.secret, "defaultMode": 0o400 if is_root else 0o444},
        }


def _build_source(spec: Spec, volume: Volume) -> Object:
    match volume:
        case EmptyDir():
            return {
                "emptyDir": drop_unset(
                    medium="Memory" if volume.memory else None, sizeLimit=volume.size or None
                )
            }
        case Git() | S3():
            return {"emptyDir": {}}
        case HostPath():
            return {"hostPath": {"path": volume.source}}
        case ConfigMap():
            return {"configMap": drop_unset(name=volume.name, defaultMode=volume.mode)}
        case Secret():
            return {"secret": drop_unset(secretName=volume.name, defaultMode=volume.mode)}
        case Claim():
            return {"persistentVolumeClaim": {"claimName": volume.claim}}
        case NewClaim(ephemeral=True):
            return {"ephemeral": {"volumeClaimTemplate": {"spec": _build_claim_spec(volume)}}}
        case NewClaim():
            return {"persistentVolumeClaim": {"claimName": _claim_name(spec, volume)}}
        case Nfs():
            return {"nfs": {"server": volume.server, "path": volume.export}}
    raise TypeError(f"{type(volume).__name__} is no kind of volume that a pod can have")


def _list_shared_claims(spec: Spec) -> list[NewClaim]:
    """Return the new claims of workers and master; one that both have counts once."""
    both = (*spec.setup.volumes, *(spec.master_setup.volumes if spec.has_master else ()))
    return list(
        dict.fromkeys(each for each in both if isinstance(each, NewClaim) and not each.ephemeral)
    )


def _claim_name(spec: Spec, volume: NewClaim) -> str:
    return f"{spec.name}-data-{_list_shared_claims(spec).index(volume) + 1}"


def _build_claim(spec: Spec, volume: NewClaim) -> Object:
    metadata = {"name": _claim_name(spec, volume), "namespace": spec.namespace}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": _build_claim_spec(volume),
    }


def _build_claim_spec(volume: NewClaim) -> Object:
    return drop_unset(
        accessModes=[mode.value for mode in volume.modes],
        storageClassName=volume.storage_class or None,
        resources={"requests": {"storage": volume.size}},
    )


def _iterate_fetchers(setup: Setup, images: Images) -> Iterator[Object]:
    for name, volume in _name_volumes(setup):
        match volume:
            case Git():
                yield _build_fetcher(
                    name, images.git, _build_git_variables(volume), _build_git_mounts(name, volume)
                )
            case S3():
                # Kubernetes expands $(NAME) in arguments, and the S3 keys are variables here: a
                # bucket named so would leak them into the arguments.
                place = "/".join(filter(None, (volume.bucket, volume.prefix))).replace("$(", "$$(")
                fetcher = _build_fetcher(
                    name,
                    images.s3,
                    _build_s3_variables(volume),
                    [{"name": name, "mountPath": S3_ROOT}],
                )
                if setup.security.non_root and setup.security.uid is None:
                    fetcher["securityContext"] |= {"runAsUser": NOBODY}
                yield fetcher | {"args": ["copy", f"{S3_REMOTE}:{place}", S3_ROOT]}


def _build_fetcher(name: str, image: str, variables: list[Object], mounts: list[Object]) -> Object:
    return {
        "name": f"{FETCHER_PREFIX}{name}",
        "image": image,
        "env": variables,
        "volumeMounts": mounts,
        "securityContext": {"allowPrivilegeEscalation": False},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _build_git_variables(volume: Git) -> list[Object]:
    """Build git-sync's settings.

    The host of an SSH address must be in `known_hosts` of the Secret: an unknown host is not
    trusted.
    """
    plain = {
        "REPO": volume.repository,
        "ROOT": GIT_ROOT,
        "LINK": GIT_LINK,
        "ONE_TIME": "true",
        "DEPTH": "1",
    }
    if reference := volume.revision or volume.branch:
        plain["REF"] = reference
    secret: list[Object] = []
    if volume.credential is GitAccess.SSH_KEY:
        plain |= {
            "SSH_KEY_FILE": f"{GIT_SECRET}/ssh-privatekey",
            "SSH_KNOWN_HOSTS_FILE": f"{GIT_SECRET}/known_hosts",
        }
        # ssh refuses to run for a user ID without an entry in /etc/passwd.
        plain["ADD_USER"] = "true"
    elif volume.credential is GitAccess.PASSWORD:
        plain["PASSWORD_FILE"] = f"{GIT_SECRET}/password"
        secret = [_build_secret_variable("GITSYNC_USERNAME", volume.secret, "username")]
    return [*({"name": f"GITSYNC_{key}", "value": value} for key, value in plain.items()), *secret]


def _build_git_mounts(name: str, volume: Git) -> list[Object]:
    root: Object = {"name": name, "mountPath": GIT_ROOT}
    return (
        [root, {"name": f"{name}-secret", "mountPath": GIT_SECRET, "readOnly": True}]
        if volume.secret
        else [root]
    )


def _build_s3_variables(volume: S3) -> list[Object]:
    """Build rclone's settings of a remote; without keys it connects anonymously."""
    plain = {"TYPE": "s3", "PROVIDER": OTHER if volume.url else AMAZON} | (
        {"ENDPOINT": volume.url} if volume.url else {}
    )
    head = f"RCLONE_CONFIG_{S3_REMOTE.upper()}"
    variables: list[Object] = [
        {"name": f"{head}_{key}", "value": value} for key, value in plain.items()
    ]
    if volume.secret:
        variables.append(
            _build_secret_variable(f"{head}_ACCESS_KEY_ID", volume.secret, "AccessKeyId")
        )
        variables.append(
            _build_secret_variable(f"{head}_SECRET_ACCESS_KEY", volume.secret, "SecretKey")
        )
    return variables


def _build_secret_variable(variable: str, secret: str, key: str) -> Object:
    return {"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
