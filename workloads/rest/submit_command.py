"""A submission as the `muster` command that makes it.

What flags cannot say goes into a document, over which the command line merges its flags.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from console.shell_commands import build_command, is_typable
from workloads.rest.submit_flags import (
    FieldFlag,
    VolumeFlag,
    get_command,
    list_field_flags,
    list_volume_flags,
)
from workloads.rest.writing import build_rest_body
from workloads.specs import Framework, Spec

Body = dict[str, Any]
Flag = FieldFlag | VolumeFlag
Words = tuple[str, ...]

COMMAND = "command"
GPU_PLACES = ("compute.gpuDevicesRequest", "compute.gpuPortionRequest", "compute.gpuMemoryRequest")
IMPLIED_PLACES = ("compute.gpuRequestType", "security.uidGidSource", "distributedFramework")
"""What the flags of other fields, and the framework's command, say already."""


class CannotType(Exception):
    """A value that no flag can say."""


def build_submit_command(spec: Spec, project: str) -> str:
    """Return the shell command that submits a spec in the project of this name."""
    body = build_rest_body(spec, project_id="", cluster_id="")
    workers: Body = _normalise(body["spec"])
    writer = _FlagWriter(spec.framework if spec.is_distributed else None)
    document: Body = {}
    flags, leftover = writer.split_spec(workers)
    words: Words = ()
    if COMMAND in leftover and all(map(is_typable, spec.setup.environment.command)):
        words = ("--", *spec.setup.environment.command)
        del leftover[COMMAND]
    if leftover:
        document["spec"] = leftover
    if body.get("noMaster"):
        flags.append(("--no-master",))
    if "masterSpec" in body:
        try:
            flags += writer.list_master_flags(workers, _normalise(body["masterSpec"]))
        except CannotType:
            document |= {"masterSpecSameAsWorker": False, "masterSpec": body["masterSpec"]}
    if document:
        flags.append(("-f", "-"))
    start = ("muster", "submit", get_command(writer.framework), spec.name, "-p", project)
    groups = [start, *flags, *([words] if words else [])]
    return build_command(groups, document or None)


class _FlagWriter:
    """Writes the values of a body as the flags that `submit` has for one framework."""

    def __init__(self, framework: Framework | None) -> None:
        self.framework = framework
        fields, self._volumes = _list_flags()
        self._fields = [each for each in fields if each.is_offered(framework)]

    def split_spec(self, spec: Mapping[str, Any]) -> tuple[list[Words], Body]:
        """Return the flags of a spec, and what they leave for a document: `command` always."""
        flags: list[Words] = []
        leftover: Body = _copy(spec)
        for each, value in self._list_values(spec):
            if each.place != COMMAND:
                try:
                    flags += _write_flags(each, value)
                except CannotType:
                    continue
                _remove(leftover, each.place)
        if _has_shared_gpu(spec) and GPU_PLACES[0] not in dict(_walk(spec)):
            # The command line takes one device for meant where a part of it is asked for.
            flags.append(("--gpus", "0"))
        return flags, leftover

    def list_master_flags(
        self, workers: Mapping[str, Any], master: Mapping[str, Any]
    ) -> list[Words]:
        """Return the flags of a master where it differs. Raises CannotType.

        What the workers have and it has not cannot be taken away by a flag.
        """
        flags: list[Words] = []
        of_pods: list[Flag] = [each for each in self._fields if each.field.is_of_pods]
        gpus = [[_find_value(each, place) for place in GPU_PLACES] for each in (workers, master)]
        says_gpus = gpus[0] != gpus[1]
        for each in [*of_pods, *self._volumes]:
            ours, theirs = _find_value(workers, each.place), _find_value(master, each.place)
            is_gpu = each.place in GPU_PLACES
            if ours == theirs and not (is_gpu and says_gpus):
                continue
            if theirs is None and not is_gpu:
                raise CannotType
            if theirs is not None:
                flags += _write_flags(each, theirs, "--master-")
        if says_gpus and gpus[1][0] is None:
            # Said, it takes the workers' own way to share a GPU away too.
            flags.append(("--master-gpus", "0"))
        return flags

    def _list_values(self, spec: Mapping[str, Any]) -> Iterator[tuple[Flag, Any]]:
        flags: list[Flag] = [*self._fields, *self._volumes]
        for each in flags:
            value = _find_value(spec, each.place)
            if value is not None:
                yield each, value


@cache
def _list_flags() -> tuple[Sequence[FieldFlag], Sequence[VolumeFlag]]:
    return tuple(list_field_flags()), tuple(list_volume_flags())


def _has_shared_gpu(spec: Mapping[str, Any]) -> bool:
    return any(_find_value(spec, place) is not None for place in GPU_PLACES[1:])


def _write_flags(flag: Flag, value: Any, prefix: str = "--") -> list[Words]:
    """Return a value as words: one flag, or one for each of several. Raises CannotType."""
    if isinstance(flag, VolumeFlag):
        name, texts = flag.flag, [_write_volume(flag, each) for each in value]
    elif flag.kind == "flag":
        return [(f"{prefix}{'' if value else 'no-'}{flag.flags[0][2:]}",)]
    else:
        name, texts = flag.flags[0], _write_texts(flag.kind, value)
    if not all(map(is_typable, texts)):
        raise CannotType
    return [(f"{prefix}{name[2:]}", text) for text in texts]


def _write_texts(kind: str, value: Any) -> list[str]:
    match kind:
        case "names":
            return [_require_name(each, "") for each in value]
        case "objects":
            return [_require_name(each["name"], "") for each in value]
        case "pairs":
            return [f"{_require_name(each['name'], '=')}={each['value']}" for each in value]
        case "resources":
            return [f"{_require_name(each['resource'], '=')}={each['quantity']}" for each in value]
        case "variables":
            return [_write_variable(each) for each in value]
        case "tolerations":
            return [_write_toleration(each) for each in value]
        case "topology":
            return [f"{_require_name(value['key'], ':')}:{value['type']}"]
    # Cores are numbers with a point in a body, and mostly whole.
    return [str(value).removesuffix(".0") if isinstance(value, float) else str(value)]


def _require_name(text: str, signs: str) -> str:
    """Return a name that can be told from what follows it. Raises CannotType."""
    if not text or set(text) & set(signs) or any(each.isspace() for each in text):
        raise CannotType
    return text


def _write_variable(variable: Mapping[str, Any]) -> str:
    name = _require_name(variable["name"], "=")
    for place, word in (("secret", "secret"), ("configMap", "config-map")):
        if source := variable.get(place):
            return f"{name}={word}:{_require_name(source['name'], '/')}/{source['key']}"
    value = variable.get("value")
    if value is None or value.startswith(("secret:", "config-map:")):
        raise CannotType
    return f"{name}={value}"


def _write_toleration(toleration: Mapping[str, Any]) -> str:
    """Return KEY[=VALUE][:EFFECT]."""
    key, value = toleration.get("key", ""), toleration.get("value", "")
    is_equal = toleration["operator"] == "Equal"
    if toleration.get("seconds") is not None or set(f"{key}{value}") & set(":="):
        raise CannotType
    if value and not is_equal:
        raise CannotType
    return f"{key}{f'={value}' if is_equal else ''}:{toleration['effect']}"


def _write_volume(flag: VolumeFlag, volume: Mapping[str, Any]) -> str:
    parts = []
    for key, value in _walk(volume):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if key not in flag.keys or "," in text:
            raise CannotType
        parts.append(f"{key}={text}")
    if not parts:
        raise CannotType
    return ",".join(parts)


def _normalise(spec: Mapping[str, Any]) -> Body:
    """Return a spec without what is implied, and without the names that only count its parts."""
    body: Body = _copy(spec)
    for place in IMPLIED_PLACES:
        _remove(body, place)
    storage = body.get("storage", {})
    for entries in (body.get("tolerations", []), *storage.values()):
        for each in entries:
            each.pop("name", None)
    return body


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copy(each) for name, each in value.items()}
    return [_copy(each) for each in value] if isinstance(value, list) else value


def _walk(body: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a body by their places."""
    for name, value in body.items():
        if isinstance(value, Mapping):
            yield from _walk(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _find_value(body: Any, place: str) -> Any:
    """Return the value at a place; None where there is none."""
    for name in place.split("."):
        body = body.get(name) if isinstance(body, Mapping) else None
    return body


def _remove(body: Body, place: str) -> None:
    """Take a value away, and the objects that are empty without it."""
    above, _, leaf = place.rpartition(".")
    parent = _find_value(body, above) if above else body
    if isinstance(parent, dict) and leaf in parent:
        del parent[leaf]
        if not parent and above:
            _remove(body, above)
