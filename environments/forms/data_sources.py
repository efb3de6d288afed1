"""The forms of data sources, one for each kind of origin.

`seams.ASSET_RULES` decides what is right; `url_safety` where an address may lead.
"""

import uuid
from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.db import models

from clusters.models import Cluster
from console import url_safety
from console.typed_forms import TypedValues
from environments.forms.asset import AssetForm
from environments.forms.fields import required_text_field, text_field
from environments.models import Asset, Credential, DataSource
from environments.rest_mapping import (
    FLAG,
    TEXT,
    BodyPart,
    RestMapping,
    build_choice_shape,
    build_flag_shape,
    build_flags_shape,
)
from environments.scope_coverage import scope_covers
from projects.scopes import Level, Scope

MAX_CREDENTIALS = 500
"""Credentials that a form lists; any other is taken by its id."""
READ_ONLY, READ_WRITE, RANK_0 = "read-only", "read-write", "rank-0-writes"
ACCESS_LABELS = {
    READ_ONLY: "Read-only",
    READ_WRITE: "Every pod reads and writes",
    RANK_0: "Writable by rank 0 only",
}
ACCESS_MODES = {
    "ReadWriteOnce": "Pods of one node (ReadWriteOnce)",
    "ReadOnlyMany": "All pods, to read (ReadOnlyMany)",
    "ReadWriteMany": "All pods (ReadWriteMany)",
}
_ACCESS_SHAPE = build_choice_shape(
    **{"read-only": READ_ONLY, "read-write": READ_WRITE, "rank-0-writes": RANK_0}
)
_MODE_SHAPE = build_flags_shape(
    readWriteOnce="ReadWriteOnce", readOnlyMany="ReadOnlyMany", readWriteMany="ReadWriteMany"
)


def access_field(default: str, help_text: str = "") -> forms.ChoiceField:
    """Build the field of who may write; `default` stands first."""
    choices = sorted(ACCESS_LABELS.items(), key=lambda each: each[0] != default)
    return forms.ChoiceField(
        label="Access", choices=choices, required=False, initial=default, help_text=help_text
    )


def credential_field(
    label: str = "Credential", help_text: str = "", *, required: bool = False
) -> forms.ChoiceField:
    """Build the field for a credential; the form sets its choices."""
    return forms.ChoiceField(
        label=label,
        help_text=help_text,
        required=required,
        error_messages={
            "required": "Choose a credential.",
            "invalid_choice": (
                "That credential is not for this, not there any more, or you may not see it."
            ),
        },
    )


class DataSourceForm(AssetForm):
    """What all forms of data sources have: the path in the container."""

    kind = "data-source"
    model = DataSource
    last_fields = ("path", "access")
    origin_fields: ClassVar[tuple[str, ...]] = ()
    """The fields that say where the data is."""
    credential_kinds: ClassVar[tuple[str, ...]] = ()
    address_fields: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Fields that are addresses, with their allowed schemes; a host alone has none."""

    path = required_text_field("Container path", "Where the files are in the container, as /data.")

    def __init__(self, data: TypedValues, **more: Any) -> None:
        super().__init__(data, **more)
        self.credentials: dict[str, Credential] = {}
        if "credential" in self.fields:
            self.credentials = {str(each.pk): each for each in self._load_usable_credentials()}
            empty_choices = (
                [("", "None: it is public")]
                if not self.fields["credential"].required
                else [("", "Choose one")]
            )
            credential_choices = [
                (key, f"{each.name} ({each.get_kind_display()}, {each.scope_words})")
                for key, each in self.credentials.items()
            ]
            self.fields["credential"].choices = [*empty_choices, *credential_choices]  # type: ignore[attr-defined]

    def _load_usable_credentials(self) -> Sequence[Credential]:
        if self.by is None:
            return []
        rows = Credential.objects.visible_to(self.by).with_scope().defer("secret")
        rows = rows.filter(kind__in=self.credential_kinds).order_by("name", "pk")
        listed = list(rows[:MAX_CREDENTIALS])
        # The chosen one may stand behind those: without it nothing else could be changed either.
        typed_id = _parse_id(self.data.get("credential"))
        is_listed = any(each.pk == typed_id for each in listed)
        return listed if is_listed else [*rows.filter(pk=typed_id), *listed]

    @property
    def chosen_credential(self) -> Credential | None:
        return (
            self.credentials.get(self.read("credential", ""))
            if "credential" in self.fields
            else None
        )

    @property
    def values(self) -> dict[str, Any]:
        origin = {name: self.read(name, "") for name in self.origin_fields}
        access = self.read("access", "") if "access" in self.fields else READ_ONLY
        own_values = {
            "kind": self.subtype,
            "origin": origin,
            "path": self.read("path", ""),
            "access": access or self.fields["access"].initial,
        }
        return super().values | own_values | {"credential": self.chosen_credential}

    @classmethod
    def build_typed(cls, asset: Asset) -> TypedValues:
        assert isinstance(asset, DataSource)
        origin = {
            name: _build_typed_value(asset.origin.get(name, "")) for name in cls.origin_fields
        }
        key = str(asset.credential_id) if asset.credential_id else ""
        return {"path": [asset.path], "access": [asset.access], "credential": [key]} | origin

    def validate(self) -> bool:
        super().validate()
        if not self.has_errors:
            for field, schemes in self.address_fields.items():
                if why := self._find_address_problem(self.read(field, ""), schemes):
                    self.add_error_once(field, f"{self.fields[field].label} {why}.")
            self._check_credential_scope()
        return not self.has_errors

    def _check_credential_scope(self) -> None:
        chosen = self.chosen_credential
        if chosen is not None and not scope_covers(chosen.scope, self.asset_scope):
            text = (
                f"{chosen.name} is for {chosen.scope_words} only, and this data source is seen "
                "beyond that. Choose a narrower scope for it."
            )
            self.add_error_once("credential", text)

    def _find_address_problem(self, address: str, schemes: tuple[str, ...]) -> str:
        if not address or address.startswith("file://"):
            return ""
        policy = url_safety.build_source_policy(is_local=_is_local(self.asset_scope))
        if schemes:
            return url_safety.find_url_problem(
                address, policy, schemes=schemes, allow_user="ssh" in schemes
            )
        why = policy.find_host_problem(address)
        return f"leads where it may not: {why}" if why else ""


def _parse_id(text: Any) -> uuid.UUID | None:
    """Return the id that a text is; None where it is none."""
    try:
        return uuid.UUID(str(text))
    except ValueError:
        return None


def _build_typed_value(value: Any) -> list[str]:
    if isinstance(value, bool):
        return ["on"] if value else []
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]


def _is_local(scope: Scope) -> bool:
    """Return whether pods of the scope run on this machine only."""
    clusters: models.QuerySet[Any] = Cluster.objects.there()
    if scope.level is Level.CLUSTER:
        clusters = clusters.filter(pk=scope.id)
    elif scope.level is Level.PROJECT:
        clusters = clusters.filter(projects=scope.id)
    elif scope.level is Level.DEPARTMENT:
        clusters = clusters.filter(projects__department=scope.id)
    are_local = set(clusters.values_list("is_local", flat=True))
    return are_local == {True}


class GitForm(DataSourceForm):
    subtype, label = DataSource.Kind.GIT.value, DataSource.Kind.GIT.label
    origin_fields = ("repository", "branch", "revision")
    credential_kinds = (Credential.Kind.PASSWORD.value, Credential.Kind.SSH_KEY.value)
    address_fields: ClassVar = {"repository": url_safety.GIT_SCHEMES}
    rest = RestMapping(
        "datasource/git",
        (
            BodyPart("spec.repository", "repository", TEXT),
            BodyPart("spec.branch", "branch", TEXT),
            BodyPart("spec.revision", "revision", TEXT),
            BodyPart("spec.credentialId", "credential", TEXT),
            BodyPart("spec.path", "path", TEXT),
            BodyPart("spec.access", "access", _ACCESS_SHAPE),
        ),
    )

    repository = required_text_field(
        "Repository",
        "As https://git.example.com/team/code.git or git@git.example.com:team/code.git",
    )
    branch = text_field("Branch", "Empty: the default one.")
    revision = text_field("Revision", "A commit or tag; it goes before the branch.")
    credential = credential_field(
        help_text="User and password for an https address, an SSH key for an SSH one."
    )
    access = access_field(READ_WRITE, "Each pod has a copy of its own; nothing goes back.")


EXISTING, NEW = "existing", "new"


class PvcForm(DataSourceForm):
    subtype, label = DataSource.Kind.PVC.value, DataSource.Kind.PVC.label
    origin_fields = ("way", "claim", "size", "storage_class", "modes", "ephemeral")
    rest = RestMapping(
        "datasource/pvc",
        (
            BodyPart("spec.existingPvc", "way", build_flag_shape(EXISTING, NEW)),
            BodyPart("spec.claimName", "claim", TEXT),
            BodyPart("spec.claimInfo.size", "size", TEXT),
            BodyPart("spec.claimInfo.storageClass", "storage_class", TEXT),
            BodyPart("spec.claimInfo.accessModes", "modes", _MODE_SHAPE),
            BodyPart("spec.ephemeral", "ephemeral", FLAG),
            BodyPart("spec.path", "path", TEXT),
            BodyPart("spec.access", "access", _ACCESS_SHAPE),
        ),
    )

    way = forms.ChoiceField(
        label="PVC",
        choices=[
            (EXISTING, "One that exists in the project's namespace"),
            (NEW, "A new one for each workload, until it is deleted"),
        ],
        initial=EXISTING,
        widget=forms.RadioSelect,
    )
    claim = text_field("Name of the PVC", "For one that exists.")
    size = text_field("Size", "For a new one: a number with a unit, as 10Gi.")
    storage_class = text_field("Storage class", "For a new one. Empty: the cluster's default.")
    modes = forms.MultipleChoiceField(
        label="Who may mount it",
        choices=list(ACCESS_MODES.items()),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="For a new one. None ticked: pods of one node.",
    )
    ephemeral = forms.BooleanField(
        label="One for each pod, gone with it", required=False, help_text="For a new one."
    )
    access = access_field(READ_WRITE)

    @property
    def values(self) -> dict[str, Any]:
        values = super().values
        way = self.read("way", EXISTING)
        used_fields = (
            ("way", "claim")
            if way == EXISTING
            else ("way", "size", "storage_class", "modes", "ephemeral")
        )
        values["origin"] = {
            name: self.read(name, [] if name == "modes" else "") for name in used_fields
        }
        return values


class NfsForm(DataSourceForm):
    subtype, label = DataSource.Kind.NFS.value, DataSource.Kind.NFS.label
    origin_fields = ("server", "export")
    address_fields: ClassVar = {"server": ()}
    rest = RestMapping(
        "datasource/nfs",
        (
            BodyPart("spec.server", "server", TEXT),
            BodyPart("spec.path", "export", TEXT),
            BodyPart("spec.mountPath", "path", TEXT),
            BodyPart("spec.access", "access", _ACCESS_SHAPE),
        ),
    )

    server = required_text_field("Server", "A name or an address.")
    export = required_text_field("Exported path", "As /export/datasets.")
    access = access_field(READ_ONLY)


class S3Form(DataSourceForm):
    subtype, label = DataSource.Kind.S3.value, DataSource.Kind.S3.label
    origin_fields = ("url", "bucket", "below")
    credential_kinds = (Credential.Kind.ACCESS_KEY.value,)
    address_fields: ClassVar = {"url": url_safety.WEB_SCHEMES}
    rest = RestMapping(
        "datasource/s3",
        (
            BodyPart("spec.url", "url", TEXT),
            BodyPart("spec.bucket", "bucket", TEXT),
            BodyPart("spec.prefix", "below", TEXT),
            BodyPart("spec.accessKeyAssetId", "credential", TEXT),
            BodyPart("spec.path", "path", TEXT),
        ),
    )

    url = text_field("Address of the service", "As https://s3.example.com. Empty: Amazon's.")
    bucket = required_text_field("Bucket")
    below = text_field("Only below", "As datasets/imagenet. Empty: the whole bucket.")
    credential = credential_field(
        "Access key", "It is read only: each pod downloads a copy before it starts."
    )


class HostPathForm(DataSourceForm):
    subtype, label = DataSource.Kind.HOST_PATH.value, DataSource.Kind.HOST_PATH.label
    origin_fields = ("source", "propagate")
    rest = RestMapping(
        "datasource/host-path",
        (
            BodyPart("spec.path", "source", TEXT),
            BodyPart("spec.mountPath", "path", TEXT),
            BodyPart(
                "spec.mountPropagation",
                "propagate",
                build_choice_shape(**{"None": "", "HostToContainer": "on"}),
            ),
            BodyPart("spec.access", "access", _ACCESS_SHAPE),
        ),
    )

    source = required_text_field("Path on the node", "As /mnt/datasets.")
    propagate = forms.BooleanField(label="See later mounts of the host", required=False)
    access = access_field(READ_ONLY)


def file_mode_field() -> forms.RegexField:
    return forms.RegexField(
        label="File mode",
        regex=r"^0?[0-7]{3}$",
        required=False,
        help_text="As 0644. Empty: the cluster's default.",
        error_messages={"invalid": "The file mode must be like 0644."},
    )


class ConfigMapForm(DataSourceForm):
    subtype, label = DataSource.Kind.CONFIG_MAP.value, DataSource.Kind.CONFIG_MAP.label
    origin_fields = ("configmap", "sub_path", "mode")
    rest = RestMapping(
        "datasource/config-map",
        (
            BodyPart("spec.configMap", "configmap", TEXT),
            BodyPart("spec.mountPath", "path", TEXT),
            BodyPart("spec.subPath", "sub_path", TEXT),
            BodyPart("spec.defaultMode", "mode", TEXT),
        ),
    )

    configmap = required_text_field(
        "Name of the ConfigMap", "It has to exist in the project's namespace."
    )
    sub_path = text_field("One file of it", "Empty: all of them.")
    mode = file_mode_field()


class SecretForm(DataSourceForm):
    subtype, label = DataSource.Kind.SECRET.value, DataSource.Kind.SECRET.label
    origin_fields = ("mode",)
    credential_kinds = tuple(Credential.Kind.values)
    rest = RestMapping(
        "datasource/secrets",
        (
            BodyPart("spec.credentialAssetId", "credential", TEXT),
            BodyPart("spec.mountPath", "path", TEXT),
            BodyPart("spec.defaultMode", "mode", TEXT),
        ),
    )

    credential = credential_field(help_text="Its keys become files.", required=True)
    mode = file_mode_field()


DATA_SOURCE_FORMS: dict[str, type[DataSourceForm]] = {
    form.subtype: form
    for form in (GitForm, PvcForm, NfsForm, S3Form, HostPathForm, ConfigMapForm, SecretForm)
}
