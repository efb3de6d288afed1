"""Rows that repeat: variables, volumes, tolerations and the like, and the parts of a Spec that they
make.
"""

from collections.abc import Callable, Sequence
from typing import Any

from django import forms

from console.typed import RowForm, Typed
from environments.forms import lines, words
from workloads.asset_uses import is_secret_name
from workloads.forms.credentials import Shared
from workloads.specs import (
    S3,
    Access,
    Claim,
    ClaimAccess,
    ConfigMap,
    EmptyDir,
    Extended,
    Git,
    GitAccess,
    HostPath,
    NewClaim,
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
NEVER_WRITTEN = (ConfigMap.kind, Secret.kind, S3.kind)
"""Kinds that can only be read."""
MODES = {
    ClaimAccess.ONE_NODE: "Pods of one node (ReadWriteOnce)",
    ClaimAccess.MANY_READ: "All pods, to read (ReadOnlyMany)",
    ClaimAccess.MANY_WRITE: "All pods (ReadWriteMany)",
}
STORAGE_CLASSES = "storage-classes"
"""The id of the page's list of the cluster's storage classes."""
EPHEMERAL = "ephemeral"
SHARED = "credential"
"""The source of a variable that a credential gives."""


class VariableRow(RowForm):
    """A variable: a value of its own, or a key of a shared secret, of a Secret or ConfigMap, or a
    field of the pod.
    """

    content = ("name", "value", "object_name", "credential", "key")
    name = words("Name")
    source = forms.ChoiceField(
        label="Source",
        choices=[
            (Source.CUSTOM.value, "Value"),
            (SHARED, "Shared secret"),
            (Source.SECRET.value, "Secret"),
            (Source.CONFIG_MAP.value, "ConfigMap"),
            (Source.POD_FIELD.value, "Pod field"),
        ],
        required=False,
    )
    value = lines("Value", strip=False)
    object_name = words("Secret or ConfigMap")
    credential = forms.ChoiceField(
        label="Credential",
        required=False,
        error_messages={
            "invalid_choice": (
                "That credential is not there any more, or not for use in this project. Choose "
                "another."
            )
        },
    )
    key = words("Key or field path")

    def __init__(
        self, data: Typed | None = None, *, credentials: Sequence[Shared] = (), **more: Any
    ) -> None:
        super().__init__(data, **more)
        self.credentials = {each.secret: each for each in credentials}
        none = ("", "Choose a credential" if credentials else "There is none for this project")
        self.fields["credential"].choices = [  # type: ignore[attr-defined]
            none,
            *((key, each.words) for key, each in self.credentials.items()),
        ]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("source") != SHARED:
            self.wrong.pop("credential", None)
        elif "credential" not in self.wrong:
            chosen = self.credentials.get(cleaned.get("credential", ""))
            if chosen is None:
                self.add_error("credential", "Choose the credential that it comes from.")
            elif chosen.keys and cleaned.get("key") not in chosen.keys:
                self.add_error(
                    "key", f"{chosen.name} has no such key. It has {', '.join(chosen.keys)}."
                )
        return cleaned

    def part(self) -> Variable:
        chosen = self.read("source")
        name, value = self.read("name", ""), self.read("value", "")
        if chosen == SHARED:
            return Variable(
                name,
                source=Source.SECRET,
                object_name=self.read("credential") or "not-chosen",
                key=self.read("key") or "none",
            )
        source = Source(chosen or Source.CUSTOM)
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


class AnnotationRow(PairRow):
    """An annotation's value may be any text, of several lines and with spaces around it."""

    value = lines("Value", strip=False)


class TolerationRow(RowForm):
    content = ("key", "value", "seconds", "operator")
    key = words("Key")
    # Empty is Equal: a row of which only the operator was chosen says something, one of which
    # nothing was does not.
    operator = forms.ChoiceField(
        label="Operator",
        choices=[("", "Equal"), (TolerationOperator.EXISTS.value, "Exists")],
        required=False,
    )
    value = words("Value")
    effect = forms.ChoiceField(
        label="Effect",
        choices=[(each.value, each.value) for each in TolerationEffect],
        required=False,
    )
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

    content = (
        "path",
        "name",
        "source",
        "server",
        "size",
        "sub_path",
        "storage_class",
        "repository",
        "branch",
        "revision",
        "bucket",
        "below",
        "url",
        "secret",
    )
    kind = forms.ChoiceField(
        label="Type",
        choices=[
            (Claim.kind, "Existing PVC"),
            (NewClaim.kind, "New PVC"),
            (Git.kind, "Git repository"),
            (S3.kind, "S3 bucket"),
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
    size = words("Size")
    storage_class = words(
        "Storage class",
        "Empty: the cluster's default.",
        widget=forms.TextInput(attrs={"list": STORAGE_CLASSES}),
    )
    modes = forms.MultipleChoiceField(
        label="Who may mount it",
        choices=[(each.value, label) for each, label in MODES.items()],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="None ticked: pods of one node.",
    )
    lifetime = forms.ChoiceField(
        label="Kept",
        choices=[
            ("", "For all pods, until the workload is deleted"),
            (EPHEMERAL, "One for each pod, gone with it"),
        ],
        required=False,
    )
    medium = forms.ChoiceField(
        label="Medium", choices=[("", "Disk"), ("memory", "Memory")], required=False
    )
    sub_path = words("One file of it")
    mode = forms.RegexField(
        label="File mode",
        regex=r"^0?[0-7]{3}$",
        required=False,
        error_messages={"invalid": "The file mode must be like 0644."},
    )
    repository = words(
        "Repository",
        "As https://git.example.com/team/code.git or git@git.example.com:team/code.git",
    )
    branch = words("Branch", "Empty: the default one.")
    revision = words("Revision", "A commit or tag; it goes before the branch.")
    bucket = words("Bucket")
    below = words("Only below", "As datasets/imagenet. Empty: the whole bucket.")
    url = words("Address of the service", "As https://s3.example.com. Empty: Amazon's.")
    secret = words("Secret", "In the project's namespace. Empty: public.")
    credential = forms.ChoiceField(
        label="What the Secret has",
        choices=[
            ("", "Nothing: it is public"),
            (GitAccess.PASSWORD.value, "username and password"),
            (GitAccess.SSH_KEY.value, "ssh-privatekey and known_hosts"),
        ],
        required=False,
    )
    path = words("Container path")
    access = forms.ChoiceField(
        label="Access",
        choices=[(each.value, label) for each, label in ACCESS.items()],
        required=False,
    )
    propagate = forms.BooleanField(label="See later mounts of the host", required=False)

    def part(self) -> Volume:
        kind = self.read("kind") or Claim.kind
        make, fields = _VOLUMES[kind]
        given: dict[str, Any] = {"path": self.read("path", "")} | {
            ours: self.read(theirs, "") for ours, theirs in fields.items()
        }
        if kind not in NEVER_WRITTEN:
            given["access"] = Access(self.read("access") or Access.READ_WRITE)
        match kind:
            case ConfigMap.kind | Secret.kind:
                given["mode"] = int(mode, 8) if (mode := self.read("mode", "")) else None
            case EmptyDir.kind:
                given["memory"] = self.read("medium") == "memory"
            case HostPath.kind:
                given["propagate"] = bool(self.read("propagate"))
            case Git.kind:
                given["credential"] = (
                    GitAccess(chosen) if (chosen := self.read("credential")) else None
                )
            case NewClaim.kind:
                given["modes"] = tuple(ClaimAccess(each) for each in self.read("modes", ())) or (
                    ClaimAccess.ONE_NODE,
                )
                given["ephemeral"] = self.read("lifetime") == EPHEMERAL
        return make(**given)


_VOLUMES: dict[str, tuple[Callable[..., Volume], dict[str, str]]] = {
    Claim.kind: (Claim, {"claim": "name"}),
    NewClaim.kind: (NewClaim, {"size": "size", "storage_class": "storage_class"}),
    Git.kind: (Git, {name: name for name in ("repository", "branch", "revision", "secret")}),
    S3.kind: (S3, {"bucket": "bucket", "prefix": "below", "url": "url", "secret": "secret"}),
    Nfs.kind: (Nfs, {"server": "server", "export": "source"}),
    HostPath.kind: (HostPath, {"source": "source"}),
    ConfigMap.kind: (ConfigMap, {"name": "name", "sub_path": "sub_path"}),
    Secret.kind: (Secret, {"name": "name"}),
    EmptyDir.kind: (EmptyDir, {"size": "size"}),
}
VOLUME_FIELDS = {"claim": "name", "export": "source", "prefix": "below", "ephemeral": "lifetime"}
"""Where the row shows a field of a volume under another name."""


def typed_variable(variable: Variable) -> dict[str, str]:
    shared = variable.source is Source.SECRET and is_secret_name(variable.object_name)
    return {
        "name": variable.name,
        "source": SHARED if shared else variable.source.value,
        "value": variable.value,
        "object_name": "" if shared else variable.object_name,
        "credential": variable.object_name if shared else "",
        "key": variable.key,
    }


def typed_pair(pair: Pair) -> dict[str, str]:
    return {"key": pair.key, "value": pair.value}


def typed_extended(extended: Extended) -> dict[str, str]:
    return {"resource": extended.resource, "quantity": extended.quantity}


def typed_toleration(toleration: Toleration) -> dict[str, str]:
    return {
        "key": toleration.key,
        "operator": ""
        if toleration.operator is TolerationOperator.EQUAL
        else toleration.operator.value,
        "value": toleration.value,
        "effect": toleration.effect.value,
        "seconds": "" if toleration.seconds is None else str(toleration.seconds),
    }


def typed_volume(volume: Volume) -> dict[str, str | list[str]]:
    """A volume as it would be typed: `part` of the row makes an equal one."""
    _, fields = _VOLUMES[volume.kind]
    given: dict[str, str | list[str]] = {
        "kind": volume.kind,
        "path": volume.path,
        "access": volume.access.value,
    }
    given |= {theirs: getattr(volume, ours) for ours, theirs in fields.items()}
    match volume:
        case EmptyDir(memory=True):
            given["medium"] = "memory"
        case HostPath(propagate=True):
            given["propagate"] = "on"
        case ConfigMap(mode=int() as mode) | Secret(mode=int() as mode):
            given["mode"] = f"{mode:04o}"
        case Git(credential=GitAccess() as credential):
            given["credential"] = credential.value
        case NewClaim():
            given |= {
                "modes": [mode.value for mode in volume.modes],
                "lifetime": EPHEMERAL if volume.ephemeral else "",
            }
    return given
