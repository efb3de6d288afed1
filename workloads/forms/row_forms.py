"""Rows that repeat: variables, volumes, tolerations and the like.

Each row builds its part of a Spec.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar

from django import forms

from console.typed_forms import RowForm, TypedValues
from environments.forms import lines_field, text_field
from workloads.asset_uses import is_secret_name
from workloads.forms.credential_choices import CredentialChoice
from workloads.specs import (
    S3,
    VOLUME_TYPES,
    Claim,
    ClaimAccess,
    ConfigMap,
    EmptyDir,
    ExtendedResource,
    Git,
    GitAccess,
    HostPath,
    NewClaim,
    Nfs,
    Pair,
    Secret,
    Toleration,
    TolerationEffect,
    TolerationOperator,
    Variable,
    VariableSource,
    Volume,
    VolumeAccess,
)

ACCESS_LABELS = {
    VolumeAccess.READ_WRITE: "Every pod reads and writes",
    VolumeAccess.READ_ONLY: "Read-only",
    VolumeAccess.RANK_0_WRITES: "Writable by rank 0 only",
}
READ_ONLY_KINDS = (ConfigMap.kind, Secret.kind, S3.kind)
"""The kinds of volumes that can only be read."""
CLAIM_ACCESS_LABELS = {
    ClaimAccess.ONE_NODE: "Pods of one node (ReadWriteOnce)",
    ClaimAccess.MANY_READ: "All pods, to read (ReadOnlyMany)",
    ClaimAccess.MANY_WRITE: "All pods (ReadWriteMany)",
}
STORAGE_CLASS_LIST_ID = "storage-classes"
"""The id of the page's list of the cluster's storage classes."""
EPHEMERAL = "ephemeral"
CREDENTIAL_SOURCE = "credential"
"""The source of a variable that takes its value from a credential."""


class VariableRow(RowForm):
    """An environment variable.

    It has a value of its own, or takes it from a credential, a Secret, a ConfigMap, or a field of
    the pod.
    """

    content_fields = ("name", "value", "object_name", "credential", "key")
    name = text_field("Name")
    source = forms.ChoiceField(
        label="Source",
        choices=[
            (VariableSource.CUSTOM.value, "Value"),
            (CREDENTIAL_SOURCE, "Shared secret"),
            (VariableSource.SECRET.value, "Secret"),
            (VariableSource.CONFIG_MAP.value, "ConfigMap"),
            (VariableSource.POD_FIELD.value, "Pod field"),
        ],
        required=False,
    )
    value = lines_field("Value", strip=False)
    object_name = text_field("Secret or ConfigMap")
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
    key = text_field("Key or field path")

    def __init__(
        self,
        data: TypedValues | None = None,
        *,
        credentials: Sequence[CredentialChoice] = (),
        **more: Any,
    ) -> None:
        super().__init__(data, **more)
        self.credentials = {each.secret: each for each in credentials}
        none = ("", "Choose a credential" if credentials else "There is none for this project")
        self.fields["credential"].choices = [  # type: ignore[attr-defined]
            none,
            *((key, each.label) for key, each in self.credentials.items()),
        ]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("source") != CREDENTIAL_SOURCE:
            self.all_errors.pop("credential", None)
        elif "credential" not in self.all_errors:
            chosen = self.credentials.get(cleaned.get("credential", ""))
            if chosen is None:
                self.add_error("credential", "Choose the credential that it comes from.")
            elif chosen.keys and cleaned.get("key") not in chosen.keys:
                self.add_error(
                    "key", f"{chosen.name} has no such key. It has {', '.join(chosen.keys)}."
                )
        return cleaned

    def build_part(self) -> Variable:
        chosen = self.read("source")
        name, value = self.read("name", ""), self.read("value", "")
        if chosen == CREDENTIAL_SOURCE:
            return Variable(
                name,
                source=VariableSource.SECRET,
                object_name=self.read("credential") or "not-chosen",
                key=self.read("key") or "none",
            )
        source = VariableSource(chosen or VariableSource.CUSTOM)
        if source is VariableSource.CUSTOM:
            return Variable(name, value)
        object_name = "" if source is VariableSource.POD_FIELD else self.read("object_name", "")
        return Variable(name, source=source, object_name=object_name, key=self.read("key", ""))

    @staticmethod
    def build_texts(variable: Variable) -> dict[str, str]:
        is_from_credential = variable.source is VariableSource.SECRET and is_secret_name(
            variable.object_name
        )
        return {
            "name": variable.name,
            "source": CREDENTIAL_SOURCE if is_from_credential else variable.source.value,
            "value": variable.value,
            "object_name": "" if is_from_credential else variable.object_name,
            "credential": variable.object_name if is_from_credential else "",
            "key": variable.key,
        }


class TextsRow(RowForm):
    """A row whose part of a Spec has nothing but its texts."""

    part: ClassVar[type]

    def build_part(self) -> Any:
        return self.part(*(self.read(name, "") for name in self.content_fields))

    @classmethod
    def build_texts(cls, part: Any) -> dict[str, str]:
        return {name: getattr(part, name) for name in cls.content_fields}


class ExtendedResourceRow(TextsRow):
    part = ExtendedResource
    content_fields = ("resource", "quantity")
    resource = text_field("Resource")
    quantity = text_field("Quantity")


class PairRow(TextsRow):
    part = Pair
    content_fields = ("key", "value")
    key = text_field("Name")
    value = text_field("Value")


class AnnotationRow(PairRow):
    """An annotation. Its value may be any text, of several lines and with spaces around it."""

    value = lines_field("Value", strip=False)


class TolerationRow(RowForm):
    content_fields = ("key", "value", "seconds", "operator")
    key = text_field("Key")
    # Empty is Equal: a row of which only the operator was chosen says something, one of which
    # nothing was does not.
    operator = forms.ChoiceField(
        label="Operator",
        choices=[("", "Equal"), (TolerationOperator.EXISTS.value, "Exists")],
        required=False,
    )
    value = text_field("Value")
    effect = forms.ChoiceField(
        label="Effect",
        choices=[(each.value, each.value) for each in TolerationEffect],
        required=False,
    )
    seconds = forms.IntegerField(label="Seconds", required=False)

    def build_part(self) -> Toleration:
        return Toleration(
            key=self.read("key", ""),
            operator=TolerationOperator(self.read("operator") or TolerationOperator.EQUAL),
            value=self.read("value", ""),
            effect=TolerationEffect(self.read("effect") or TolerationEffect.ANY),
            seconds=self.read("seconds"),
        )

    @staticmethod
    def build_texts(toleration: Toleration) -> dict[str, str]:
        return {
            "key": toleration.key,
            "operator": ""
            if toleration.operator is TolerationOperator.EQUAL
            else toleration.operator.value,
            "value": toleration.value,
            "effect": toleration.effect.value,
            "seconds": "" if toleration.seconds is None else str(toleration.seconds),
        }


RENAMED_VOLUME_FIELDS = {
    "claim": "name",
    "export": "source",
    "prefix": "below",
    "ephemeral": "lifetime",
}
"""The fields of a volume that the row shows under another name."""
_VOLUME_TYPES = {each.kind: each for each in VOLUME_TYPES}


def _list_texts(volume_type: type[Volume]) -> dict[str, str]:
    """Return the attributes of volumes that are plain texts, with the row's names for them."""
    return {
        each.name: RENAMED_VOLUME_FIELDS.get(each.name, each.name)
        for each in fields(volume_type)
        if each.type is str
    }


class VolumeRow(RowForm):
    """A volume of any kind; `kind` decides which fields matter."""

    content_fields = tuple({name for each in VOLUME_TYPES for name in _list_texts(each).values()})
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
    name = text_field("Name in the cluster")
    server = text_field("Server")
    source = text_field("Path there")
    size = text_field("Size")
    storage_class = text_field(
        "Storage class",
        "Empty: the cluster's default.",
        widget=forms.TextInput(attrs={"list": STORAGE_CLASS_LIST_ID}),
    )
    modes = forms.MultipleChoiceField(
        label="Who may mount it",
        choices=[(each.value, label) for each, label in CLAIM_ACCESS_LABELS.items()],
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
    sub_path = text_field("One file of it")
    mode = forms.RegexField(
        label="File mode",
        regex=r"^0?[0-7]{3}$",
        required=False,
        error_messages={"invalid": "The file mode must be like 0644."},
    )
    repository = text_field(
        "Repository",
        "As https://git.example.com/team/code.git or git@git.example.com:team/code.git",
    )
    branch = text_field("Branch", "Empty: the default one.")
    revision = text_field("Revision", "A commit or tag; it goes before the branch.")
    bucket = text_field("Bucket")
    below = text_field("Only below", "As datasets/imagenet. Empty: the whole bucket.")
    url = text_field("Address of the service", "As https://s3.example.com. Empty: Amazon's.")
    secret = text_field("Secret", "In the project's namespace. Empty: public.")
    credential = forms.ChoiceField(
        label="What the Secret has",
        choices=[
            ("", "Nothing: it is public"),
            (GitAccess.PASSWORD.value, "username and password"),
            (GitAccess.SSH_KEY.value, "ssh-privatekey and known_hosts"),
        ],
        required=False,
    )
    path = text_field("Container path")
    access = forms.ChoiceField(
        label="Access",
        choices=[(each.value, label) for each, label in ACCESS_LABELS.items()],
        required=False,
    )
    propagate = forms.BooleanField(label="See later mounts of the host", required=False)

    def build_part(self) -> Volume:
        kind = self.read("kind") or Claim.kind
        volume_type = _VOLUME_TYPES[kind]
        values: dict[str, Any] = {
            attribute: self.read(name, "") for attribute, name in _list_texts(volume_type).items()
        }
        if kind not in READ_ONLY_KINDS:
            values["access"] = VolumeAccess(self.read("access") or VolumeAccess.READ_WRITE)
        match kind:
            case ConfigMap.kind | Secret.kind:
                values["mode"] = int(mode, 8) if (mode := self.read("mode", "")) else None
            case EmptyDir.kind:
                values["memory"] = self.read("medium") == "memory"
            case HostPath.kind:
                values["propagate"] = bool(self.read("propagate"))
            case Git.kind:
                values["credential"] = (
                    GitAccess(chosen) if (chosen := self.read("credential")) else None
                )
            case NewClaim.kind:
                values["modes"] = tuple(ClaimAccess(each) for each in self.read("modes", ())) or (
                    ClaimAccess.ONE_NODE,
                )
                values["ephemeral"] = self.read("lifetime") == EPHEMERAL
        return volume_type(**values)

    @staticmethod
    def build_texts(volume: Volume) -> dict[str, str | list[str]]:
        """Return a volume as it would be typed; the row's `build_part` builds an equal one."""
        texts: dict[str, str | list[str]] = {"kind": volume.kind, "access": volume.access.value}
        texts |= {
            name: getattr(volume, attribute)
            for attribute, name in _list_texts(type(volume)).items()
        }
        match volume:
            case EmptyDir(memory=True):
                texts["medium"] = "memory"
            case HostPath(propagate=True):
                texts["propagate"] = "on"
            case ConfigMap(mode=int() as mode) | Secret(mode=int() as mode):
                texts["mode"] = f"{mode:04o}"
            case Git(credential=GitAccess() as credential):
                texts["credential"] = credential.value
            case NewClaim():
                texts |= {
                    "modes": [mode.value for mode in volume.modes],
                    "lifetime": EPHEMERAL if volume.ephemeral else "",
                }
        return texts
