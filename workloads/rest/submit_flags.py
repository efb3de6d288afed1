"""The flags of `muster submit`, from the catalogue of fields: one rule for their names.

The command line's data file is made of them (scripts/command_line.py), and so is the command that
pages show (`submit_command`).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from console.rest_schemas import describe_body
from workloads.rest.volumes import StorageBody
from workloads.rest.writing import ALL_OPTIONS
from workloads.specs import Architecture, ExtendedResource, Framework, Toleration, Variable
from workloads.specs.fields import FIELDS, Field, types

FLAG_NAMES: Mapping[str, tuple[str, ...]] = {
    "setup.environment.image": ("--image", "-i"),
    "setup.environment.variables": ("--env", "-e"),
    "setup.environment.pull_secrets": ("--image-pull-secret",),
    "setup.security.capabilities": ("--capability",),
    "setup.compute.gpus.devices": ("--gpus", "-g"),
    "setup.compute.gpus.portion": ("--gpu-portion",),
    "setup.compute.gpus.memory": ("--gpu-memory",),
    "setup.compute.cpu_request": ("--cpu",),
    "setup.compute.cpu_limit": ("--cpu-limit",),
    "setup.compute.memory_request": ("--memory",),
    "setup.compute.memory_limit": ("--memory-limit",),
    "setup.compute.large_shm": ("--large-shm",),
    "setup.compute.extended": ("--extended-resource",),
    "setup.node_pools": ("--node-pool",),
    "setup.topology": ("--topology",),
    "setup.tolerations": ("--toleration",),
    "workers": ("--workers",),
    "data_delivery.workers": ("--data-workers",),
    "data_delivery.units": ("--data-units",),
    "data_delivery.compute.cpu_request": ("--data-cpu",),
    "data_delivery.compute.cpu_limit": ("--data-cpu-limit",),
    "data_delivery.compute.memory_request": ("--data-memory",),
    "data_delivery.compute.memory_limit": ("--data-memory-limit",),
    "data_delivery.image": ("--data-image",),
    "lifecycle.priority": ("--priority",),
    "lifecycle.grace_seconds": ("--grace-period",),
    "lifecycle.preemption_delay": ("--preemption-delay",),
    "lifecycle.auto_delete_seconds": ("--auto-delete",),
    "setup.annotations": ("--annotation",),
    "setup.labels": ("--label", "-l"),
}
"""Shorter flags than the field's name in REST; other fields are called as REST calls them."""
VOLUME_FLAGS: Mapping[str, str] = {
    "emptyDirVolume": "--empty-dir",
    "configMapVolume": "--config-map",
    "secretVolume": "--secret",
}
FRAMEWORK_COMMANDS: Mapping[Framework, str] = {Framework.TENSORFLOW: "tensorflow"}
STANDARD_COMMAND = "standard"
KINDS: Mapping[type[types.FieldType], str] = {
    types.Text: "text",
    types.CommandLine: "text",
    types.Names: "names",
    types.Ids: "text",
    types.Number: "integer",
    types.Flag: "flag",
    types.Switch: "flag",
    types.YesNo: "flag",
    types.Choice: "choice",
    types.Quantity: "text",
    types.Cores: "number",
    types.Portion: "number",
    types.Pairs: "pairs",
    types.TopologyKey: "topology",
}
"""How each type of field is typed on the command line."""
ROW_KINDS: Mapping[type, str] = {
    Variable: "variables",
    ExtendedResource: "resources",
    Toleration: "tolerations",
}


@dataclass(frozen=True, slots=True)
class FieldFlag:
    """A field of a submission: its flags, the usual one first, and how its value is typed."""

    field: Field
    flags: tuple[str, ...]
    kind: str

    @property
    def place(self) -> str:
        """Return its place in the `spec` of a body."""
        return self.field.rest

    @property
    def frameworks(self) -> tuple[Framework, ...]:
        """Return the frameworks that have it; () where all do."""
        option = self.field.option_key
        if option not in ALL_OPTIONS:
            return ()
        return tuple(each for each in Framework if option in each.options)

    def is_offered(self, framework: Framework | None) -> bool:
        """Tell whether `submit` has it for a framework; None is a standard workload."""
        architecture = Architecture.DISTRIBUTED if framework else Architecture.STANDARD
        return self.field.architecture in (None, architecture) and (
            not self.frameworks or framework is None or framework in self.frameworks
        )


@dataclass(frozen=True, slots=True)
class VolumeFlag:
    """A kind of volume: its flag, its place in a body, and the type of each key."""

    flag: str
    place: str
    keys: Mapping[str, str]


def get_command(framework: Framework | None) -> str:
    """Return the word behind `submit`."""
    if framework is None:
        return STANDARD_COMMAND
    return FRAMEWORK_COMMANDS.get(framework, framework.value.lower())


def list_field_flags() -> Iterator[FieldFlag]:
    """Yield the fields that have a flag; volumes have their own."""
    for path, field in FIELDS.items():
        if field.rest and path not in ("framework", "setup.volumes"):
            usual = f"--{hyphenate(field.rest.rpartition('.')[2])}"
            yield FieldFlag(field, FLAG_NAMES.get(path) or (usual,), find_kind(field.type))


def find_kind(kind: types.FieldType) -> str:
    """Return how a field of this type is typed. Raises TypeError for a new type."""
    if isinstance(kind, types.Names) and kind.are_objects:
        return "objects"
    if type(kind) in KINDS:
        return KINDS[type(kind)]
    if isinstance(kind, types.Rows) and kind.part in ROW_KINDS:
        return ROW_KINDS[kind.part]
    raise TypeError(f"the command line does not know how a {kind!r} is typed")


def hyphenate(name: str) -> str:
    """Return a name of REST as a flag: "runAsUid" is "run-as-uid"."""
    return re.sub("(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


def list_volume_flags() -> Iterator[VolumeFlag]:
    """Yield the kinds of volumes, each with its keys; those that do nothing are left out."""
    for name, schema in describe_body(StorageBody)["properties"].items():
        if "items" in schema:
            keys = dict(_list_keys(schema["items"]["properties"]))
            flag = VOLUME_FLAGS.get(name, f"--{hyphenate(name)}")
            yield VolumeFlag(flag, f"storage.{name}", keys)


def _list_keys(properties: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the keys of a volume by their paths, with the type of each."""
    for name, schema in properties.items():
        if (above, name) in (("", "exclude"), ("", "name")):
            continue
        if "properties" in schema:
            yield from _list_keys(schema["properties"], f"{above}{name}.")
            continue
        kind = schema.get("type", "string")
        kinds = [kind] if isinstance(kind, str) else [each for each in kind if each != "null"]
        yield f"{above}{name}", kinds[0]
