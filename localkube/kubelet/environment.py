"""The environment variables of a container, from its spec and the objects that it refers to.

Nothing of the server's own environment reaches a pod: a container gets the base environment, then
envFrom, then env, then its devices.
"""

import base64
import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from localkube import quantities
from localkube.kubelet import mpi, service_hosts
from localkube.kubelet.gpus import Gpu
from localkube.metadata import Object, annotations_of, labels_of, name_of, namespace_of, uid_of
from localkube.options import GPU_DEVICES_ANNOTATION
from localkube.resources.count_rules import MAX_VARIABLES

POD_IP = "127.0.0.1"
"""Every pod shares the network of this machine."""

SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
MAX_LOADED_OBJECTS = 64
"""Most secrets, and config maps, whose values are kept while one environment is built."""

MAX_STRING = 128 * 1024
MAX_TOTAL = 1 << 20
"""Linux refuses a longer single string (MAX_ARG_STRLEN), and commands fail near 2 MiB in all.

Refused here instead, with a message.
"""

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class ConfigError(Exception):
    """The container cannot be made from its spec: waiting reason CreateContainerConfigError with
    this text.
    """


@dataclass(frozen=True, slots=True)
class PodSources:
    """How to read the secrets, config maps, claims and services of a pod's namespace by name, and
    what the node has.
    """

    secret: Callable[[str], Object | None]
    config_map: Callable[[str], Object | None]
    allocatable: Mapping[str, str]
    devices: Sequence[Gpu] = ()
    """The node's devices, by the index that the scheduler knows them by."""
    claim: Callable[[str], Object | None] = lambda _: None
    claims: Path = Path()
    """The directory with the directories of bound claims, each named by its claim's uid."""
    service: Callable[[str], Object | None] = lambda _: None


def build_base_environment(pod: Object, home: Path, scratch: Path, python: Path) -> dict[str, str]:
    """Build the variables that every container starts with.

    `python` is the directory of the interpreter, so that `python` means the same one in the pod.
    The collective libraries are pointed at the loopback interface, the only network that the pods
    of this machine have.
    """
    return {
        "PATH": ":".join((str(python), *SYSTEM_PATH)),
        "HOME": str(home),
        "TMPDIR": str(scratch),
        "LANG": "C.UTF-8",
        "HOSTNAME": str(pod["spec"].get("hostname") or name_of(pod)),
        "GLOO_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
        **mpi.build_variables(pod),
    }


def build_environment(
    pod: Object, container: Object, sources: PodSources, base_environment: Mapping[str, str]
) -> dict[str, str]:
    """Build a container's whole environment, starting from `base_environment`.

    Later variables win, and a value may refer to earlier ones as `$(NAME)`. Names of headless
    Services' hosts in values of the spec become addresses. Raises ConfigError for a missing secret,
    config map or key that is not optional, an unknown field, or too large an environment.
    """
    env = _BoundedEnvironment(base_environment)
    bundles, items = container.get("envFrom") or (), container.get("env") or ()
    # Before any is resolved: one whose optional source is missing sets no variable.
    _check_count(len(bundles) + len(items))
    loaders = _DataLoaders(sources)
    for bundle in bundles:
        for name, value in _load_source(bundle, namespace_of(pod), loaders).items():
            env.set_variable(name, value)
    for item in items:
        resolved = _resolve_value(item, pod, container, sources, loaders, env.variables)
        if resolved is not None:
            env.set_variable(item["name"], resolved)
    variables = env.variables | build_device_variables(pod, container, devices=sources.devices)
    check_size(variables, ())
    return variables


class _BoundedEnvironment:
    """Variables that are checked as they come.

    Values that refer to earlier ones can double with every variable: forty of them would fill any
    memory before the whole could be checked.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.variables = dict(variables)
        self._size = sum(len(name) + len(value) for name, value in variables.items())

    def set_variable(self, name: str, value: str) -> None:
        """Set a variable. Raises ConfigError when there is too much."""
        old_value = self.variables.get(name)
        self._size += len(value) - len(old_value or "")
        if old_value is None:
            self._size += len(name)
        self.variables[name] = value
        _check_count(len(self.variables))
        _check_length(len(value))
        _check_total(self._size)


def check_size(env: Mapping[str, str], argv: Sequence[str]) -> None:
    """Raise ConfigError for what the kernel would refuse to start, or for a NUL in a string."""
    strings = [*argv, *(f"{name}={value}" for name, value in env.items())]
    _check_count(len(env))
    if any("\0" in text for text in strings):
        raise ConfigError("an argument or environment variable contains a NUL character")
    sizes = [len(text.encode("utf-8", "surrogateescape")) + 1 for text in strings]
    _check_length(max(sizes, default=0))
    _check_total(sum(sizes))


def _check_count(count: int) -> None:
    if count > MAX_VARIABLES:
        raise ConfigError(f"too many environment variables: {count}, at most {MAX_VARIABLES}")


def _check_length(size: int) -> None:
    if size > MAX_STRING:
        raise ConfigError(f"an argument or environment variable is longer than {MAX_STRING} bytes")


def _check_total(size: int) -> None:
    if size > MAX_TOTAL:
        raise ConfigError(f"arguments and environment take more than {MAX_TOTAL} bytes")


def expand_variables(text: str, env: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by its value and `$$` by `$`; an unknown name stays as it is written.

    Raises ConfigError when the values alone are longer than a string may be.
    """
    inserted = 0

    def substitute(match: re.Match[str]) -> str:
        nonlocal inserted
        name = match.group(1)
        value = "$" if name is None else env.get(name, match.group())
        inserted += len(value)
        _check_length(inserted)
        return value

    return _REFERENCE.sub(substitute, text)


def expand_arguments(arguments: Iterable[str], env: Mapping[str, str]) -> list[str]:
    """Replace the variables in each argument. Raises ConfigError for too many bytes together."""
    expanded: list[str] = []
    size = 0
    for argument in arguments:
        expanded.append(expand_variables(argument, env))
        size += len(expanded[-1])
        _check_total(size)
    return expanded


class _DataLoaders:
    """Loads the values of secrets and config maps, each once for the many variables it may give.

    Decoding takes milliseconds a megabyte, and a container may name one object in every variable.
    """

    def __init__(self, sources: PodSources) -> None:
        remember = functools.lru_cache(MAX_LOADED_OBJECTS)
        self.load_secret = remember(functools.partial(load_secret_data, sources))
        self.load_config_map = remember(functools.partial(load_config_map_data, sources))


def _load_source(source: Object, namespace: str, loaders: _DataLoaders) -> dict[str, str]:
    prefix = source.get("prefix") or ""
    if ref := source.get("secretRef"):
        data = loaders.load_secret(ref["name"], optional=bool(ref.get("optional")))
    elif ref := source.get("configMapRef"):
        data = loaders.load_config_map(ref["name"], optional=bool(ref.get("optional")))
    else:
        return {}
    pairs = {
        prefix + key: _decode_text(value, f"{namespace}/{ref['name']}", key)
        for key, value in data.items()
    }
    return {name: value for name, value in pairs.items() if name and "=" not in name}


def _resolve_value(
    item: Object,
    pod: Object,
    container: Object,
    sources: PodSources,
    loaders: _DataLoaders,
    env: Mapping[str, str],
) -> str | None:
    """Return the value of one env entry; None when an optional reference leads nowhere."""
    source = item.get("valueFrom")
    if not source:
        text = expand_variables(str(item.get("value") or ""), env)
        return service_hosts.replace_host_names(text, namespace_of(pod), sources.service)
    if ref := source.get("fieldRef"):
        return resolve_field(pod, ref["fieldPath"])
    if ref := source.get("resourceFieldRef"):
        return resolve_resource_field(pod, container, ref, sources.allocatable)
    if ref := source.get("secretKeyRef"):
        return _resolve_key(ref, "Secret", loaders.load_secret, pod)
    if ref := source.get("configMapKeyRef"):
        return _resolve_key(ref, "ConfigMap", loaders.load_config_map, pod)
    raise ConfigError(
        f"environment variable {item['name']}: valueFrom {', '.join(source)} is not on localkube"
    )


def _resolve_key(
    ref: Object,
    kind: str,
    load_data: Callable[..., Mapping[str, bytes]],
    pod: Object,
) -> str | None:
    optional = bool(ref.get("optional"))
    data = load_data(ref["name"], optional=optional)
    if ref["key"] in data:
        return _decode_text(data[ref["key"]], f"{namespace_of(pod)}/{ref['name']}", ref["key"])
    if optional:
        return None
    raise ConfigError(f"couldn't find key {ref['key']} in {kind} {namespace_of(pod)}/{ref['name']}")


def _decode_text(value: bytes, name: str, key: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"key {key} of {name} is not text, so it cannot be an environment variable"
        ) from error


def load_secret_data(
    sources: PodSources, name: str, *, optional: bool = False
) -> Mapping[str, bytes]:
    """Return the decoded values of a secret.

    Raises ConfigError when it is missing and not optional.
    """
    secret = sources.secret(name)
    if secret is None:
        return _accept_missing("secret", name, optional)
    return {key: base64.b64decode(value) for key, value in (secret.get("data") or {}).items()}


def load_config_map_data(
    sources: PodSources, name: str, *, optional: bool = False
) -> Mapping[str, bytes]:
    """Return the values of a config map, binary ones too.

    Raises ConfigError when it is missing and not optional.
    """
    config = sources.config_map(name)
    if config is None:
        return _accept_missing("configmap", name, optional)
    text = {key: value.encode() for key, value in (config.get("data") or {}).items()}
    return text | {
        key: base64.b64decode(value) for key, value in (config.get("binaryData") or {}).items()
    }


def _accept_missing(kind: str, name: str, optional: bool) -> Mapping[str, bytes]:
    if optional:
        return {}
    raise ConfigError(f'{kind} "{name}" not found')


def resolve_field(pod: Object, path: str) -> str:
    """Return a pod's field by its path (the downward API).

    Raises ConfigError for a path that the API does not offer.
    """
    if match := _SUBSCRIPT.fullmatch(path):
        return (labels_of(pod) if match.group(1) == "labels" else annotations_of(pod)).get(
            match.group(2), ""
        )
    spec = pod["spec"]
    fields: dict[str, Callable[[], str]] = {
        "metadata.name": lambda: name_of(pod),
        "metadata.namespace": lambda: namespace_of(pod),
        "metadata.uid": lambda: uid_of(pod),
        "metadata.labels": lambda: _format_pairs(labels_of(pod)),
        "metadata.annotations": lambda: _format_pairs(annotations_of(pod)),
        "spec.nodeName": lambda: str(spec.get("nodeName") or ""),
        "spec.serviceAccountName": lambda: str(spec.get("serviceAccountName") or "default"),
    }
    fields |= dict.fromkeys(
        ("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"), lambda: POD_IP
    )
    if path not in fields:
        raise ConfigError(f"unsupported fieldPath: {path}")
    return fields[path]()


def _format_pairs(values: Mapping[str, str]) -> str:
    quoted = (
        (key, value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))
        for key, value in sorted(values.items())
    )
    return "\n".join(f'{key}="{value}"' for key, value in quoted)


def resolve_resource_field(
    pod: Object, container: Object, ref: Object, allocatable: Mapping[str, str]
) -> str:
    """Return a request or limit of a container, rounded up in units of the divisor.

    A limit that is not set is what the node has.
    """
    kind, _, name = ref["resource"].partition(".")
    named = ref.get("containerName") or container["name"]
    owner = next((c for c in _all_containers(pod) if c["name"] == named), None)
    if owner is None:
        raise ConfigError(f"container {named} not found")
    resources = owner.get("resources") or {}
    amount = (resources.get(kind) or {}).get(name)
    if kind not in ("limits", "requests") or name.split("-")[0] not in (
        "cpu",
        "memory",
        "ephemeral",
        "hugepages",
    ):
        raise ConfigError(f"unsupported container resource: {ref['resource']}")
    if amount is None:
        amount = allocatable.get(name, "0") if kind == "limits" else "0"
    divisor = quantities.parse_quantity(ref.get("divisor") or "1") or Decimal(1)
    return str(math.ceil(quantities.parse_quantity(amount) / divisor))


def build_device_variables(
    pod: Object, container: Object, *, devices: Sequence[Gpu]
) -> dict[str, str]:
    """Build the variables that say which GPUs a container sees.

    The scheduler gives devices of the node to the pod; they are named as the machine knows them,
    and dealt out in order to the containers that ask for whole ones. When none asks for whole
    devices (a fraction, by annotation) all containers share the pod's. A pod without devices sees
    none, so that nobody computes on another pod's GPU; nor does one with virtual devices, which no
    program could open.
    """
    if any(gpu.virtual for gpu in devices):
        return {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}
    own = annotations_of(pod).get(GPU_DEVICES_ANNOTATION, "").split(",")
    # What the node no longer has is left out: the pod that had it ends by itself.
    device_indexes = [
        str(devices[int(index)].index)
        for index in own
        if index.isdecimal() and int(index) < len(devices)
    ]
    demands = [(c["name"], _gpu_count(c)) for c in pod["spec"]["containers"]]
    if any(count for _, count in demands):
        device_indexes = _select_devices(device_indexes, demands, container["name"])
    device_list = ",".join(device_indexes)
    return {"CUDA_VISIBLE_DEVICES": device_list, "NVIDIA_VISIBLE_DEVICES": device_list or "void"}


def _select_devices(devices: list[str], wants: Iterable[tuple[str, int]], name: str) -> list[str]:
    start = 0
    for owner, count in wants:
        if owner == name:
            return devices[start : start + count]
        start += count
    return devices


def _gpu_count(container: Object) -> int:
    amount = ((container.get("resources") or {}).get("limits") or {}).get("nvidia.com/gpu")
    return quantities.parse_count(amount) if amount is not None else 0


def _all_containers(pod: Object) -> list[Object]:
    return [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
