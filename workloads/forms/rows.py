"""Rows that repeat: variables, volumes, tolerations and the like, and the parts of a Spec that they make."""

from collections.abc import Callable
from typing import Any

from django import forms

from console.typed import RowForm
from environments.forms import lines, words
from workloads.specs import (
    Access,
    Claim,
    ConfigMap,
    EmptyDir,
    Extended,
    HostPath,
    Nfs,
    Pair,
    Secret,
    Source,
    Toleration,
    TolerationEffect,
    TolerationOperator,
    Variable,
    Volume,
)

ACCESS = {
    Access.READ_WRITE: "Every pod reads and writes",
    Access.READ_ONLY: "Read-only",
    Access.RANK_0_WRITES: "Writable by rank 0 only",
}
WRITTEN_BY_CLUSTER = (ConfigMap.kind, Secret.kind)


class VariableRow(RowForm):
    content = ("name", "value", "object_name", "key")
    name = words("Name")
    source = forms.ChoiceField(
        label="Source",
        choices=[
            (Source.CUSTOM.value, "Value"),
            (Source.SECRET.value, "Secret"),
            (Source.CONFIG_MAP.value, "ConfigMap"),
            (Source.POD_FIELD.value, "Pod field"),
        ],
        required=False,
    )
    value = lines("Value", strip=False)
    object_name = words("Secret or ConfigMap")
    key = words("Key or field path")

    def part(self) -> Variable:
        source = Source(self.read("source") or Source.CUSTOM)
        name, value = self.read("name", ""), self.read("value", "")
        if source is Source.CUSTOM:
            return Variable(name, value)
        object_name = "" if source is Source.POD_FIELD else self.read("object_name", "")
        return Variable(name, source=source, object_name=object_name, key=self.read("key", ""))


class ExtendedRow(RowForm):
    content = ("resource", "quantity")
    resource = words("Resource")
    quantity = words("Quantity")

    def part(self) -> Extended:
        return Extended(self.read("resource", ""), self.read("quantity", ""))


class PairRow(RowForm):
    content = ("key", "value")
    key = words("Name")
    value = words("Value")

    def part(self) -> Pair:
        return Pair(self.read("key", ""), self.read("value", ""))


class TolerationRow(RowForm):
    content = ("key", "value", "seconds", "operator")
    key = words("Key")
    # Empty is Equal: a row of which only the operator was chosen says something, one of which nothing was does not.
    operator = forms.ChoiceField(label="Operator", choices=[("", "Equal"), (TolerationOperator.EXISTS.value, "Exists")], required=False)
    value = words("Value")
    effect = forms.ChoiceField(label="Effect", choices=[(each.value, each.value) for each in TolerationEffect], required=False)
    seconds = forms.IntegerField(label="Seconds", required=False)

    def part(self) -> Toleration:
        return Toleration(
            key=self.read("key", ""),
            operator=TolerationOperator(self.read("operator") or TolerationOperator.EQUAL),
            value=self.read("value", ""),
            effect=TolerationEffect(self.read("effect") or TolerationEffect.ANY),
            seconds=self.read("seconds"),
        )


class VolumeRow(RowForm):
    """A volume of any kind: which fields matter depends on `kind`."""

    content = ("path", "name", "source", "server", "size", "sub_path")
    kind = forms.ChoiceField(
        label="Type",
        choices=[
            (Claim.kind, "Existing PVC"),
            (Nfs.kind, "NFS"),
            (HostPath.kind, "Host path"),
            (ConfigMap.kind, "ConfigMap"),
            (Secret.kind, "Secret"),
            (EmptyDir.kind, "Empty directory"),
        ],
        required=False,
    )
    name = words("Name in the cluster")
    server = words("Server")
    source = words("Path there")
    size = words("Size limit")
    medium = forms.ChoiceField(label="Medium", choices=[("", "Disk"), ("memory", "Memory")], required=False)
    sub_path = words("One file of it")
    mode = forms.RegexField(
        label="File mode", regex=r"^0?[0-7]{3}$", required=False, error_messages={"invalid": "The file mode must be like 0644."}
    )
    path = words("Container path")
    access = forms.ChoiceField(label="Access", choices=[(each.value, label) for each, label in ACCESS.items()], required=False)
    propagate = forms.BooleanField(label="See later mounts of the host", required=False)

    def part(self) -> Volume:
        kind = self.read("kind") or Claim.kind
        make, fields = _VOLUMES[kind]
        given: dict[str, Any] = {"path": self.read("path", "")} | {ours: self.read(theirs, "") for ours, theirs in fields.items()}
        if kind not in WRITTEN_BY_CLUSTER:
            given["access"] = Access(self.read("access") or Access.READ_WRITE)
        elif mode := self.read("mode", ""):
            given["mode"] = int(mode, 8)
        if kind == EmptyDir.kind:
            given["memory"] = self.read("medium") == "memory"
        if kind == HostPath.kind:
            given["propagate"] = bool(self.read("propagate"))
        return make(**given)


_VOLUMES: dict[str, tuple[Callable[..., Volume], dict[str, str]]] = {
    Claim.kind: (Claim, {"claim": "name"}),
    Nfs.kind: (Nfs, {"server": "server", "export": "source"}),
    HostPath.kind: (HostPath, {"source": "source"}),
    ConfigMap.kind: (ConfigMap, {"name": "name", "sub_path": "sub_path"}),
    Secret.kind: (Secret, {"name": "name"}),
    EmptyDir.kind: (EmptyDir, {"size": "size"}),
}
VOLUME_FIELDS = {"claim": "name", "export": "source"}
"""Where the row shows a field of a volume under another name."""


def typed_variable(variable: Variable) -> dict[str, str]:
    return {
        "name": variable.name,
        "source": variable.source.value,
        "value": variable.value,
        "object_name": variable.object_name,
        "key": variable.key,
    }


def typed_pair(pair: Pair) -> dict[str, str]:
    return {"key": pair.key, "value": pair.value}


def typed_extended(extended: Extended) -> dict[str, str]:
    return {"resource": extended.resource, "quantity": extended.quantity}


def typed_toleration(toleration: Toleration) -> dict[str, str]:
    return {
        "key": toleration.key,
        "operator": "" if toleration.operator is TolerationOperator.EQUAL else toleration.operator.value,
        "value": toleration.value,
        "effect": toleration.effect.value,
        "seconds": "" if toleration.seconds is None else str(toleration.seconds),
    }


def typed_volume(volume: Volume) -> dict[str, str]:
    """A volume as it would be typed: `part` of the row makes an equal one."""
    _, fields = _VOLUMES[volume.kind]
    given = {"kind": volume.kind, "path": volume.path, "access": volume.access.value}
    given |= {theirs: getattr(volume, ours) for ours, theirs in fields.items()}
    if isinstance(volume, EmptyDir) and volume.memory:
        given["medium"] = "memory"
    if isinstance(volume, HostPath) and volume.propagate:
        given["propagate"] = "on"
    if isinstance(volume, ConfigMap | Secret) and volume.mode is not None:
        given["mode"] = f"{volume.mode:04o}"
    return given
