"""A pod's volumes as directories of this machine, and how a container finds them.

Without root there is no mount namespace that could show a volume at its mountPath, so a path in the
pod's spec is translated instead: wherever a container's command, arguments, working directory or
environment values name a mountPath, or anything below it, the real directory is put in its place
(`Mounts.translate`). Each mount is also named by the variable LOCALKUBE_MOUNT_NAME. What this
cannot do: a path written inside a program or a file is not seen, so such a program must take its
paths from arguments or variables; `readOnly` is kept for the files of config maps and secrets,
which are made read-only, but not for directories, because a pod is the same user as the server.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from localkube.kubelet import environment, removal
from localkube.kubelet.environment import ConfigError, PodSources
from localkube.metadata import Object, uid_of

DEFAULT_MODE = 0o644
CONFIG_MASK, SECRET_MASK = 0o555, 0o500
"""What a file's mode may keep: nobody writes to it, and a secret is its owner's alone."""
HOST_PATH_OPTION = "--allow-host-path"

VOLUMES, HOME, SCRATCH = "_volumes", "_home", "_tmp"
"""Directories of a pod beside those of its containers; no container can be called so."""

_NOT_PATH = r"(?![\w.@%+~-])"
_NOT_WITHIN = r"(?<![\w.@%+~/*?\]})-])"


class MountError(Exception):
    """A volume cannot be had: the pod waits in ContainerCreating with an event FailedMount of this
    text.
    """


@dataclass(frozen=True, slots=True)
class Mounts:
    """Where the paths of one container really are: mountPath to directory or file of this
    machine.
    """

    targets: Mapping[str, Path]
    names: Mapping[str, Path] = field(default_factory=dict)

    def translate(self, text: str) -> str:
        """Put the real path wherever `text` names a mounted one as a whole path: alone, after `=`,
        `:`, a quote or a blank.

        The longest mountPath wins; a part of another path (`/srv/data` for a mount at `/data`) is
        left alone.
        """
        if not self.targets:
            return text
        paths = "|".join(re.escape(path) for path in sorted(self.targets, key=len, reverse=True))
        return re.sub(
            f"{_NOT_WITHIN}(?:{paths}){_NOT_PATH}",
            lambda match: str(self.targets[match.group()]),
            text,
        )

    def build_variables(self) -> dict[str, str]:
        """LOCALKUBE_MOUNT_NAME for each mounted volume, its name in capitals with underscores."""
        return {
            f"LOCALKUBE_MOUNT_{re.sub('[^A-Z0-9]', '_', name.upper())}": str(path)
            for name, path in self.names.items()
        }


def prepare_volumes(
    pod: Object, directory: Path, sources: PodSources, allowed: Sequence[Path]
) -> dict[str, Path]:
    """Make the pod's volumes under `directory` and say where each is; done again, it renews config
    maps and secrets only.

    `allowed` are the directories at and below which hostPath volumes may be. Raises MountError.
    """
    wanted = pod["spec"].get("volumes") or ()
    return {
        volume["name"]: _prepare_volume(pod, volume, directory / volume["name"], sources, allowed)
        for volume in wanted
    }


def _prepare_volume(
    pod: Object, volume: Object, place: Path, sources: PodSources, allowed: Sequence[Path]
) -> Path:
    name = volume["name"]
    kind = next((key for key in volume if key != "name"), "emptyDir")
    if kind == "hostPath":
        return _resolve_host_path(name, volume[kind], allowed)
    if kind == "persistentVolumeClaim":
        return _claim_directory(volume[kind]["claimName"], sources)
    if kind in ("emptyDir", "ephemeral"):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return place
    makers: Mapping[str, Callable[[Object, Object, PodSources], Files]] = {
        "configMap": _config_map_files,
        "secret": _secret_files,
        "downwardAPI": _downward_files,
        "projected": _projected_files,
    }
    if kind not in makers:
        instead = (
            "use an emptyDir, a persistentVolumeClaim, or a hostPath below a directory given with "
            f"{HOST_PATH_OPTION}"
        )
        raise MountError(f'volume "{name}": {kind} is not on localkube; {instead}')
    try:
        _write_files(place, makers[kind](volume[kind] or {}, pod, sources))
    except ConfigError as error:
        raise MountError(f'MountVolume.SetUp failed for volume "{name}" : {error}') from error
    return place


def _claim_directory(name: str, sources: PodSources) -> Path:
    """The directory of a claim, which outlives the pod and is the same for all that name it."""
    claim = sources.claim(name)
    if claim is None:
        raise MountError(f'persistentvolumeclaim "{name}" not found')
    if (claim.get("status") or {}).get("phase") != "Bound":
        raise MountError(f'persistentvolumeclaim "{name}" is not bound: its events say why')
    place = sources.claims / uid_of(claim)
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return place


Files = dict[str, tuple[bytes, int]]
"""Relative path to content and mode."""


def _config_map_files(source: Object, pod: Object, sources: PodSources) -> Files:
    data = environment.load_config_map_data(
        sources, source["name"], optional=bool(source.get("optional"))
    )
    return _select_items(data, source, f"configmap {source['name']}", CONFIG_MASK)


def _secret_files(source: Object, pod: Object, sources: PodSources) -> Files:
    name = source.get("secretName") or source["name"]
    data = environment.load_secret_data(sources, name, optional=bool(source.get("optional")))
    return _select_items(data, source, f"secret {name}", SECRET_MASK)


def _select_items(data: Mapping[str, bytes], source: Object, description: str, mask: int) -> Files:
    mode = source.get("defaultMode") or DEFAULT_MODE
    items = source.get("items")
    if not items:
        return {key: (value, mode & mask) for key, value in data.items()}
    missing = [item["key"] for item in items if item["key"] not in data]
    if missing and not source.get("optional"):
        raise ConfigError(f"references non-existent {description} key: {missing[0]}")
    return {
        item["path"]: (data[item["key"]], (item.get("mode") or mode) & mask)
        for item in items
        if item["key"] in data
    }


def _downward_files(source: Object, pod: Object, sources: PodSources) -> Files:
    files: Files = {}
    for item in source.get("items") or ():
        if ref := item.get("fieldRef"):
            text = environment.resolve_field(pod, ref["fieldPath"])
        else:
            text = environment.resolve_resource_field(
                pod, pod["spec"]["containers"][0], item["resourceFieldRef"], sources.allocatable
            )
        files[item["path"]] = (
            text.encode(),
            (item.get("mode") or source.get("defaultMode") or DEFAULT_MODE) & CONFIG_MASK,
        )
    return files


def _projected_files(source: Object, pod: Object, sources: PodSources) -> Files:
    makers = {
        "configMap": _config_map_files,
        "secret": _secret_files,
        "downwardAPI": _downward_files,
    }
    files: Files = {}
    for part in source.get("sources") or ():
        kind = next(iter(part))
        if kind not in makers:
            raise ConfigError(f"a projected {kind} is not on localkube")
        files |= makers[kind](part[kind], pod, sources)
    return files


def _write_files(place: Path, files: Files) -> None:
    """Make `place` hold exactly these files; each is replaced at once, so a reader sees the old one
    or the new one.
    """
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path, (content, mode) in files.items():
        target = place / _parse_relative_path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f".{target.name}.new")
        fresh.unlink(missing_ok=True)
        fresh.write_bytes(content)
        fresh.chmod(mode)
        fresh.replace(target)
    wanted = {place / path for path in files}
    for stale in [found for found in place.rglob("*") if found.is_file() and found not in wanted]:
        stale.unlink()


def _parse_relative_path(path: str) -> Path:
    """A relative path that stays within its volume. Raises ConfigError."""
    parts = Path(path)
    if not parts.name or "\0" in path:
        raise ConfigError(f"the path {path!r} names no file")
    if parts.is_absolute() or ".." in parts.parts:
        raise ConfigError(f"the path {path!r} leaves the volume")
    return parts


def _resolve_host_path(name: str, source: Object, allowed: Sequence[Path]) -> Path:
    """The real path, when it lies at or below an allowed directory: a guard against mistakes, as
    pods are this user anyway.
    """
    wanted = Path(source["path"])
    if "\0" in source["path"]:
        raise MountError(f'volume "{name}": hostPath {str(wanted)!r} is no path')
    path = Path(os.path.realpath(wanted))
    if not any(path.is_relative_to(os.path.realpath(root)) for root in allowed):
        how = f"start localkube with {HOST_PATH_OPTION} {wanted} or a directory above it"
        raise MountError(f'volume "{name}": hostPath {wanted} is not allowed; {how}')
    kind = source.get("type") or ""
    try:
        if kind == "DirectoryOrCreate":
            path.mkdir(parents=True, exist_ok=True)
        elif kind == "FileOrCreate":
            path.touch(exist_ok=True)
    except OSError as error:
        raise MountError(
            f'volume "{name}": hostPath {wanted} cannot be made: {error.strerror}'
        ) from error
    if not path.exists():
        raise MountError(f'volume "{name}": hostPath {wanted} does not exist')
    if (kind in ("Directory", "DirectoryOrCreate") and not path.is_dir()) or (
        kind in ("File", "FileOrCreate") and not path.is_file()
    ):
        raise MountError(
            f'volume "{name}": hostPath type check failed: {wanted} is not a '
            f"{kind.removesuffix('OrCreate').lower()}"
        )
    return path


def build_mounts(
    container: Object,
    volume_paths: Mapping[str, Path],
    env: Mapping[str, str],
    extra: Mapping[str, Path],
) -> Mounts:
    """Where a container finds its volumeMounts; `extra` are further paths to translate. Raises
    MountError.
    """
    targets = dict(extra)
    names: dict[str, Path] = {}
    for mount in container.get("volumeMounts") or ():
        if mount["name"] not in volume_paths:
            raise MountError(
                f'volumeMounts of container "{container["name"]}" name volume "{mount["name"]}", '
                "which the pod does not have"
            )
        place = _resolve_sub_path(mount, volume_paths[mount["name"]], env)
        names.setdefault(mount["name"], place)
        path = mount["mountPath"].rstrip("/")
        if path.startswith("/"):
            targets[path] = place
    return Mounts(targets, names)


def _resolve_sub_path(mount: Object, place: Path, env: Mapping[str, str]) -> Path:
    below = mount.get("subPath") or environment.expand_variables(
        mount.get("subPathExpr") or "", env
    )
    if not below:
        return place
    try:
        path = place / _parse_relative_path(below)
        # Before it is made: a link that a container put on the way leads to where nothing must be
        # made either.
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(place)):
            raise ConfigError(f"{below} leaves the volume")
        if not path.exists():
            path.mkdir(parents=True)
    except (OSError, ConfigError) as error:
        raise MountError(
            f'failed to prepare subPath for volumeMount "{mount["name"]}": {error}'
        ) from error
    return path


def clear_pod_directory(directory: Path) -> None:
    """Remove what a finished pod leaves beside its logs: volumes, home and scratch directory."""
    for part in (VOLUMES, HOME, SCRATCH):
        removal.remove_tree(directory / part)
