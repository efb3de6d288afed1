"""The forms of data sources, one a kind of origin. What is right says the judge; where an address
may lead, `reach`.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.db import models

from clusters.models import Cluster
from console import reach
from console.typed import Typed
from environments.covering import covers
from environments.forms.asset import AssetForm
from environments.forms.fields import needed, words
from environments.models import Asset, Credential, DataSource
from environments.rest import FLAG, TEXT, Part, Rest, choice, flag, flags
from projects.scopes import Level, Scope

MOST_CREDENTIALS = 500
READ_ONLY, READ_WRITE, RANK_0 = "read-only", "read-write", "rank-0-writes"
ACCESS = {
    READ_ONLY: "Read-only",
    READ_WRITE: "Every pod reads and writes",
    RANK_0: "Writable by rank 0 only",
}
MODES = {
    "ReadWriteOnce": "Pods of one node (ReadWriteOnce)",
    "ReadOnlyMany": "All pods, to read (ReadOnlyMany)",
    "ReadWriteMany": "All pods (ReadWriteMany)",
}
_ACCESS_WORDS = choice(
    **{"read-only": READ_ONLY, "read-write": READ_WRITE, "rank-0-writes": RANK_0}
)
_MODE_FLAGS = flags(
    readWriteOnce="ReadWriteOnce", readOnlyMany="ReadOnlyMany", readWriteMany="ReadWriteMany"
)


def access(default: str, help_text: str = "") -> forms.ChoiceField:
    """Who may write; `default` stands first."""
    choices = sorted(ACCESS.items(), key=lambda each: each[0] != default)
    return forms.ChoiceField(
        label="Access", choices=choices, required=False, initial=default, help_text=help_text
    )


def credential(
    label: str = "Credential", help_text: str = "", *, required: bool = False
) -> forms.ChoiceField:
    """One of the credentials of a kind; the form says which there are."""
    return forms.ChoiceField(
        label=label,
        help_text=help_text,
        required=required,
        error_messages={
            "required": "Choose a credential.",
            "invalid_choice": "That credential is not there any more, or not for this.",
        },
    )


class DataSourceForm(AssetForm):
    """What all of them have: where the files are in the container."""

    kind = "data-source"
    model = DataSource
    last = ("path", "access")
    origin: ClassVar[tuple[str, ...]] = ()
    """The fields that say where the data is."""
    credential_kinds: ClassVar[tuple[str, ...]] = ()
    addresses: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Fields that are addresses, with the schemes that they may begin with; a host alone has none.
    """

    path = needed("Container path", "Where the files are in the container, as /data.")

    def __init__(self, data: Typed, **more: Any) -> None:
        super().__init__(data, **more)
        self.credentials: dict[str, Credential] = {}
        if "credential" in self.fields:
            self.credentials = {str(each.pk): each for each in self._usable()}
            first = (
                [("", "None: it is public")]
                if not self.fields["credential"].required
                else [("", "Choose one")]
            )
            named = [
                (key, f"{each.name} ({each.get_kind_display()}, {each.scope_words})")
                for key, each in self.credentials.items()
            ]
            self.fields["credential"].choices = [*first, *named]  # type: ignore[attr-defined]

    def _usable(self) -> Sequence[Credential]:
        if self.by is None:
            return []
        rows = Credential.objects.visible_to(self.by).with_scope().defer("secret")
        return list(
            rows.filter(kind__in=self.credential_kinds).order_by("name", "pk")[:MOST_CREDENTIALS]
        )

    @property
    def chosen_credential(self) -> Credential | None:
        return (
            self.credentials.get(self.read("credential", ""))
            if "credential" in self.fields
            else None
        )

    @property
    def values(self) -> dict[str, Any]:
        origin = {name: self.read(name, "") for name in self.origin}
        access = self.read("access", "") if "access" in self.fields else READ_ONLY
        mine = {
            "kind": self.subtype,
            "origin": origin,
            "path": self.read("path", ""),
            "access": access or self.fields["access"].initial,
        }
        return super().values | mine | {"credential": self.chosen_credential}

    @classmethod
    def typed_of(cls, asset: Asset) -> Typed:
        assert isinstance(asset, DataSource)
        origin = {name: _typed(asset.origin.get(name, "")) for name in cls.origin}
        key = str(asset.credential_id) if asset.credential_id else ""
        return {"path": [asset.path], "access": [asset.access], "credential": [key]} | origin

    def judged(self) -> bool:
        super().judged()
        if not self.is_wrong:
            for field, schemes in self.addresses.items():
                if why := self._barred(self.read(field, ""), schemes):
                    self.blame(field, f"{self.fields[field].label} {why}.")
            self._judge_credential()
        return not self.is_wrong

    def _judge_credential(self) -> None:
        chosen = self.chosen_credential
        if chosen is not None and not covers(chosen.scope, self.asset_scope):
            text = (
                f"{chosen.name} is for {chosen.scope_words} only, and this data source is seen "
                "beyond that. Choose a narrower scope for it."
            )
            self.blame("credential", text)

    def _barred(self, address: str, schemes: tuple[str, ...]) -> str:
        if not address or address.startswith("file://"):
            return ""
        there = reach.sources(is_local=_is_local(self.asset_scope))
        if schemes:
            return reach.problem(address, there, schemes=schemes, user="ssh" in schemes)
        why = there.bars_host(address)
        return f"leads where it may not: {why}" if why else ""


def _typed(value: Any) -> list[str]:
    if isinstance(value, bool):
        return ["on"] if value else []
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]


def _is_local(scope: Scope) -> bool:
    """Whether pods of the scope run on this machine only."""
    clusters: models.QuerySet[Any] = Cluster.objects.there()
    if scope.level is Level.CLUSTER:
        clusters = clusters.filter(pk=scope.id)
    elif scope.level is Level.PROJECT:
        clusters = clusters.filter(projects=scope.id)
    elif scope.level is Level.DEPARTMENT:
        clusters = clusters.filter(projects__department=scope.id)
    found = set(clusters.values_list("is_local", flat=True))
    return found == {True}


class GitForm(DataSourceForm):
    subtype, label = DataSource.Kind.GIT.value, DataSource.Kind.GIT.label
    origin = ("repository", "branch", "revision")
    credential_kinds = (Credential.Kind.PASSWORD.value, Credential.Kind.SSH_KEY.value)
    addresses: ClassVar = {"repository": reach.GIT}
    rest = Rest(
        "datasource/git",
        (
            Part("spec.repository", "repository", TEXT),
            Part("spec.branch", "branch", TEXT),
            Part("spec.revision", "revision", TEXT),
            Part("spec.credentialId", "credential", TEXT),
            Part("spec.path", "path", TEXT),
            Part("spec.access", "access", _ACCESS_WORDS),
        ),
    )

    repository = needed(
        "Repository",
        "As https://git.example.com/team/code.git or git@git.example.com:team/code.git",
    )
    branch = words("Branch", "Empty: the default one.")
    revision = words("Revision", "A commit or tag; it goes before the branch.")
    credential = credential(
        help_text="User and password for an https address, an SSH key for an SSH one."
    )
    access = access(READ_WRITE, "Each pod has a copy of its own; nothing goes back.")


EXISTING, NEW = "existing", "new"


class PvcForm(DataSourceForm):
    subtype, label = DataSource.Kind.PVC.value, DataSource.Kind.PVC.label
    origin = ("way", "claim", "size", "storage_class", "modes", "ephemeral")
    rest = Rest(
        "datasource/pvc",
        (
            Part("spec.existingPvc", "way", flag(EXISTING, NEW)),
            Part("spec.claimName", "claim", TEXT),
            Part("spec.claimInfo.size", "size", TEXT),
            Part("spec.claimInfo.storageClass", "storage_class", TEXT),
            Part("spec.claimInfo.accessModes", "modes", _MODE_FLAGS),
            Part("spec.ephemeral", "ephemeral", FLAG),
            Part("spec.path", "path", TEXT),
            Part("spec.access", "access", _ACCESS_WORDS),
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
    claim = words("Name of the PVC", "For one that exists.")
    size = words("Size", "For a new one: a number with a unit, as 10Gi.")
    storage_class = words("Storage class", "For a new one. Empty: the cluster's default.")
    modes = forms.MultipleChoiceField(
        label="Who may mount it",
        choices=list(MODES.items()),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="For a new one. None ticked: pods of one node.",
    )
    ephemeral = forms.BooleanField(
        label="One for each pod, gone with it", required=False, help_text="For a new one."
    )
    access = access(READ_WRITE)

    @property
    def values(self) -> dict[str, Any]:
        found = super().values
        way = self.read("way", EXISTING)
        kept = (
            ("way", "claim")
            if way == EXISTING
            else ("way", "size", "storage_class", "modes", "ephemeral")
        )
        found["origin"] = {name: self.read(name, [] if name == "modes" else "") for name in kept}
        return found


class NfsForm(DataSourceForm):
    subtype, label = DataSource.Kind.NFS.value, DataSource.Kind.NFS.label
    origin = ("server", "export")
    addresses: ClassVar = {"server": ()}
    rest = Rest(
        "datasource/nfs",
        (
            Part("spec.server", "server", TEXT),
            Part("spec.path", "export", TEXT),
            Part("spec.mountPath", "path", TEXT),
            Part("spec.access", "access", _ACCESS_WORDS),
        ),
    )

    server = needed("Server", "A name or an address.")
    export = needed("Exported path", "As /export/datasets.")
    access = access(READ_ONLY)


class S3Form(DataSourceForm):
    subtype, label = DataSource.Kind.S3.value, DataSource.Kind.S3.label
    origin = ("url", "bucket", "below")
    credential_kinds = (Credential.Kind.ACCESS_KEY.value,)
    addresses: ClassVar = {"url": reach.WEB}
    rest = Rest(
        "datasource/s3",
        (
            Part("spec.url", "url", TEXT),
            Part("spec.bucket", "bucket", TEXT),
            Part("spec.prefix", "below", TEXT),
            Part("spec.accessKeyAssetId", "credential", TEXT),
            Part("spec.path", "path", TEXT),
        ),
    )

    url = words("Address of the service", "As https://s3.example.com. Empty: Amazon's.")
    bucket = needed("Bucket")
    below = words("Only below", "As datasets/imagenet. Empty: the whole bucket.")
    credential = credential(
        "Access key", "It is read only: each pod downloads a copy before it starts."
    )


class HostPathForm(DataSourceForm):
    subtype, label = DataSource.Kind.HOST_PATH.value, DataSource.Kind.HOST_PATH.label
    origin = ("source", "propagate")
    rest = Rest(
        "datasource/host-path",
        (
            Part("spec.path", "source", TEXT),
            Part("spec.mountPath", "path", TEXT),
            Part(
                "spec.mountPropagation",
                "propagate",
                choice(**{"None": "", "HostToContainer": "on"}),
            ),
            Part("spec.access", "access", _ACCESS_WORDS),
        ),
    )

    source = needed("Path on the node", "As /mnt/datasets.")
    propagate = forms.BooleanField(label="See later mounts of the host", required=False)
    access = access(READ_ONLY)


def file_mode() -> forms.RegexField:
    return forms.RegexField(
        label="File mode",
        regex=r"^0?[0-7]{3}$",
        required=False,
        help_text="As 0644. Empty: the cluster's default.",
        error_messages={"invalid": "The file mode must be like 0644."},
    )


class ConfigMapForm(DataSourceForm):
    subtype, label = DataSource.Kind.CONFIG_MAP.value, DataSource.Kind.CONFIG_MAP.label
    origin = ("configmap", "sub_path", "mode")
    rest = Rest(
        "datasource/config-map",
        (
            Part("spec.configMap", "configmap", TEXT),
            Part("spec.mountPath", "path", TEXT),
            Part("spec.subPath", "sub_path", TEXT),
            Part("spec.defaultMode", "mode", TEXT),
        ),
    )

    configmap = needed("Name of the ConfigMap", "It has to exist in the project's namespace.")
    sub_path = words("One file of it", "Empty: all of them.")
    mode = file_mode()


class SecretForm(DataSourceForm):
    subtype, label = DataSource.Kind.SECRET.value, DataSource.Kind.SECRET.label
    origin = ("mode",)
    credential_kinds = tuple(Credential.Kind.values)
    rest = Rest(
        "datasource/secrets",
        (
            Part("spec.credentialAssetId", "credential", TEXT),
            Part("spec.mountPath", "path", TEXT),
            Part("spec.defaultMode", "mode", TEXT),
        ),
    )

    credential = credential(help_text="Its keys become files.", required=True)
    mode = file_mode()


DATA_SOURCE_FORMS: dict[str, type[DataSourceForm]] = {
    form.subtype: form
    for form in (GitForm, PvcForm, NfsForm, S3Form, HostPathForm, ConfigMapForm, SecretForm)
}
