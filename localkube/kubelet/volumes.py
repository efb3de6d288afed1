"""A pod's volumes as directories of this machine, and how a container finds them.

Without root there is no mount namespace that could show a volume at its mountPath, so a path in the
pod's spec is translated instead: wherever a container's command, arguments, working directory or
environment values name a mountPath, or anything below it, the real directory is put in its place
(`Mounts.translate`). Each mount is also named by the variable LOCALKUBE_MOUNT_NAME. What this
cannot do: a path written inside a program or a file is not seen, so such a program must take its
paths from arguments or variables. `readOnly` is kept where the kernel can (`read_only_mounts`): by
real paths, so that what is mounted writable too, here or above, stays writable. The files of config
maps and secrets are made read-only besides.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from localkube.kubelet import environment, removal
from localkube.kubelet.environment import ConfigError, PodSources
from localkube.metadata import Object, uid_of

MAX_LOADS = 256
"""Most times that a pod's volumes may take a config map or a secret.

Each has up to a megabyte, which is decoded and written while nothing else runs: about 10 ms.
"""

DEFAULT_MODE = 0o644
CONFIG_MASK, SECRET_MASK = 0o555, 0o500
"""The bits that a file's mode may have: nobody writes to it, a secret is its owner's alone."""

HOST_PATH_OPTION = "--allow-host-path"

VOLUMES, HOME, SCRATCH = "_volumes", "_home", "_tmp"
"""Directories of a pod beside those of its containers; no container can have such a name."""

_NOT_PATH = r"(?![\w.@%+~-])"
_NOT_WITHIN = r"(?<![\w.@%+~/*?\]})-])"


class MountError(Exception):
    """A volume is not available: the pod waits in ContainerCreating with an event FailedMount of
    this text.
    """


@dataclass(frozen=True, slots=True)
class Mounts:
    """Where the paths of one container really are: mountPath to a directory or file of this
    machine.
    """

    targets: Mapping[str, Path]
    names: Mapping[str, Path] = field(default_factory=dict)
    read_only: Sequence[Path] = ()
    """Real paths of the mounts that are read-only and not writable by another mount."""
    writable: Sequence[Path] = ()
    """Real paths of the writable mounts below those."""
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Once for all the texts of a container: there may be thousands of each.
        paths = "|".join(re.escape(path) for path in sorted(self.targets, key=len, reverse=True))
        pattern = re.compile(f"{_NOT_WITHIN}(?:{paths}){_NOT_PATH}")
        object.__setattr__(self, "_pattern", pattern)

    def translate(self, text: str) -> str:
        """Replace each mounted path that `text` names as a whole path by the real one.

        A whole path stands alone, or after `=`, `:`, a quote or a blank. The longest mountPath
        wins; a part of another path (`/srv/data` for a mount at `/data`) is left alone.
        """
        if not self.targets:
            return text
        return self._pattern.sub(lambda match: str(self.targets[match.group()]), text)

    def build_variables(self) -> dict[str, str]:
        """Build LOCALKUBE_MOUNT_NAME for each mounted volume, its name in capitals with
        underscores.
        """
        return {
            f"LOCALKUBE_MOUNT_{re.sub('[^A-Z0-9]', '_', name.upper())}": str(path)
            for name, path in self.names.items()
        }


def prepare_volumes(
    pod: Object, directory: Path, sources: PodSources, allowed: Sequence[Path]
) -> dict[str, Path]:
    """Make the pod's volumes under `directory` and return where each is.

    A repeated call renews config maps and secrets only. `allowed` are the directories at and below
    which hostPath volumes may be. Raises MountError.
    """
    volumes = pod["spec"].get("volumes") or ()
    _check_loads(volumes)
    return {
        volume["name"]: _prepare_volume(pod, volume, directory / volume["name"], sources, allowed)
        for volume in volumes
    }


def _check_loads(volumes: Iterable[Object]) -> None:
    """Check how often volumes take a config map or a secret. Raises MountError."""
    sources = [
        source
        for volume in volumes
        for source in (volume, *((volume.get("projected") or {}).get("sources") or ()))
    ]
    loads = sum("configMap" in source or "secret" in source for source in sources)
    if loads > MAX_LOADS:
        raise MountError(
            f"the pod's volumes take config maps and secrets {loads} times, at most {MAX_LOADS} "
            "are possible: have one volume of each, and mount it where it is needed"
        )


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
    builders: Mapping[str, Callable[[Object, Object, PodSources], Files]] = {
        "configMap": _config_map_files,
        "secret": _secret_files,
        "downwardAPI": _downward_files,
        "projected": _projected_files,
    }
    if kind not in builders:
        advice = (
            "use an emptyDir, a persistentVolumeClaim, or a hostPath below a directory given with "
            f"{HOST_PATH_OPTION}"
        )
        raise MountError(f'volume "{name}": {kind} is not on localkube; {advice}')
    try:
        _write_files(place, builders[kind](volume[kind] or {}, pod, sources))
    except ConfigError as error:
        raise MountError(f'MountVolume.SetUp failed for volume "{name}" : {error}') from error
    return place


def _claim_directory(name: str, sources: PodSources) -> Path:
    """Return the directory of a claim, which outlives the pod and is shared by all its users."""
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
    builders = {
        "configMap": _config_map_files,
        "secret": _secret_files,
        "downwardAPI": _downward_files,
    }
    files: Files = {}
    parts = (part for each in source.get("sources") or () for part in each.items())
    for kind, part in parts:
        if kind not in builders:
            raise ConfigError(f"a projected {kind} is not on localkube")
        files |= builders[kind](part, pod, sources)
    return files


def _write_files(place: Path, files: Files) -> None:
    """Make `place` hold exactly these files.

    Each is replaced atomically, so a reader sees the old one or the new one. Raises ConfigError.
    """
    contents = {_parse_relative_path(path): content for path, content in files.items()}
    _check_nesting(contents)
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path, (content, mode) in contents.items():
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.new")
        draft.unlink(missing_ok=True)
        draft.write_bytes(content)
        draft.chmod(mode)
        draft.replace(target)
    wanted_paths = {place / path for path in contents}
    for stale in [
        existing
        for existing in place.rglob("*")
        if existing.is_file() and existing not in wanted_paths
    ]:
        stale.unlink()


def _check_nesting(paths: Collection[Path]) -> None:
    """Check that no file is to lie below another one. Raises ConfigError."""
    for path in paths:
        above = next((parent for parent in path.parents if parent in paths), None)
        if above is not None:
            raise ConfigError(
                f"the paths {str(above)!r} and {str(path)!r} exclude each other: {str(above)!r} "
                "cannot be both a file and a directory; give one of them another path"
            )


def _parse_relative_path(path: str) -> Path:
    """Return a relative path that stays within its volume. Raises ConfigError."""
    parts = Path(path)
    if not parts.name or "\0" in path:
        raise ConfigError(f"the path {path!r} names no file")
    if parts.is_absolute() or ".." in parts.parts:
        raise ConfigError(f"the path {path!r} leaves the volume")
    return parts


def _resolve_host_path(name: str, source: Object, allowed: Sequence[Path]) -> Path:
    """Return the real path, when it lies at or below an allowed directory.

    This is a guard against mistakes, as pods are this user anyway.
    """
    host_path = Path(source["path"])
    if "\0" in source["path"]:
        raise MountError(f'volume "{name}": hostPath {str(host_path)!r} is no path')
    path = Path(os.path.realpath(host_path))
    if not any(path.is_relative_to(os.path.realpath(root)) for root in allowed):
        advice = f"start localkube with {HOST_PATH_OPTION} {host_path} or a directory above it"
        raise MountError(f'volume "{name}": hostPath {host_path} is not allowed; {advice}')
    kind = source.get("type") or ""
    try:
        if kind == "DirectoryOrCreate":
            path.mkdir(parents=True, exist_ok=True)
        elif kind == "FileOrCreate":
            path.touch(exist_ok=True)
    except OSError as error:
        raise MountError(
            f'volume "{name}": hostPath {host_path} cannot be made: {error.strerror}'
        ) from error
    if not path.exists():
        raise MountError(f'volume "{name}": hostPath {host_path} does not exist')
    if (kind in ("Directory", "DirectoryOrCreate") and not path.is_dir()) or (
        kind in ("File", "FileOrCreate") and not path.is_file()
    ):
        raise MountError(
            f'volume "{name}": hostPath type check failed: {host_path} is not a '
            f"{kind.removesuffix('OrCreate').lower()}"
        )
    return path


def build_mounts(
    container: Object,
    volume_paths: Mapping[str, Path],
    env: Mapping[str, str],
    extra: Mapping[str, Path],
) -> Mounts:
    """Build where a container finds its volumeMounts; `extra` are further paths to translate.

    Raises MountError.
    """
    targets = dict(extra)
    names: dict[str, Path] = {}
    read_only: set[Path] = set()
    writable: set[Path] = set()
    for mount in container.get("volumeMounts") or ():
        if mount["name"] not in volume_paths:
            raise MountError(
                f'volumeMounts of container "{container["name"]}" name volume "{mount["name"]}", '
                "which the pod does not have"
            )
        place = _resolve_sub_path(mount, volume_paths[mount["name"]], env)
        names.setdefault(mount["name"], place)
        (read_only if mount.get("readOnly") else writable).add(Path(os.path.realpath(place)))
        path = mount["mountPath"].rstrip("/")
        if path.startswith("/"):
            targets[path] = place
    read_only = {path for path in read_only if not _is_within(path, writable)}
    return Mounts(
        targets, names, sorted(read_only), sorted(p for p in writable if _is_within(p, read_only))
    )


def _is_within(path: Path, others: Iterable[Path]) -> bool:
    return any(path.is_relative_to(other) for other in others)


def _resolve_sub_path(mount: Object, place: Path, env: Mapping[str, str]) -> Path:
    below = mount.get("subPath") or environment.expand_variables(
        mount.get("subPathExpr") or "", env
    )
    if not below:
        return place
    try:
        path = place / _parse_relative_path(below)
        # Check before creating: a container may have put a link on the way that leads outside, and
        # nothing must be created there.
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
