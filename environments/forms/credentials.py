"""The forms of credentials, one for each kind.

A secret is typed and stored, and never shown again: an empty field keeps the stored one.
"""

import json
from typing import Any, ClassVar

from django import forms

from console.typed_forms import FormRows, RowForm, TypedValues, build_row_values
from environments.cluster_secrets import (
    MAX_BYTES_OF_SCOPE,
    MAX_CREDENTIALS_OF_SCOPE,
    count_credentials,
    measure_secrets,
)
from environments.credentials import normalize_server
from environments.forms.asset import AssetForm
from environments.forms.fields import required_text_field, text_field
from environments.models import Asset, Credential
from environments.rest_mapping import TEXT, BodyPart, RestMapping, build_rows_shape

MAX_SECRET_CHARS = 64 << 10
MAX_SECRET_BYTES = 1 << 20
"""Bytes of all values of a Secret, as Kubernetes has it: it refuses what is larger."""


class SecretText(forms.PasswordInput):
    """A one-line input that is never rendered with its value."""

    is_never_shown = True


class SecretArea(forms.Textarea):
    """A text area that is never rendered with its value."""

    is_never_shown = True

    def format_value(self, value: Any) -> str:
        return ""


def secret_field(label: str, help_text: str = "", *, is_long: bool = False) -> forms.CharField:
    """Build a field whose value is never shown again."""
    attributes = {"autocomplete": "off", "spellcheck": "false"}
    widget = (
        SecretArea(attributes | {"rows": 4})
        if is_long
        else SecretText(attributes | {"autocomplete": "new-password"})
    )
    return forms.CharField(
        label=label,
        help_text=help_text,
        required=False,
        strip=False,
        max_length=MAX_SECRET_CHARS,
        widget=widget,
    )


class CredentialForm(AssetForm):
    """What all forms of credentials have.

    `public_fields` can be shown, `secret_fields` cannot; both by the names that they are stored
    under.
    """

    kind = "credential"
    model = Credential
    requires_scope_choice = True
    public_fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, data: TypedValues, **more: Any) -> None:
        super().__init__(data, **more)
        for name in self.secret_fields:
            field = self.fields[name]
            field.required = not self.changes
            field.error_messages["required"] = f"{field.label} must be given."
            if self.changes:
                field.help_text = (
                    f"A secret is stored; leave it empty to keep it. {field.help_text}".strip()
                )

    @property
    def values(self) -> dict[str, Any]:
        """The values; without `secret` where the stored one stays."""
        public = {name: self.read(name, "") for name in self.public_fields}
        values = super().values | {
            "kind": self.subtype,
            "public": {name: value for name, value in public.items() if value},
        }
        typed = {name: self.read(name, "") for name in self.secret_fields}
        return values | (
            {"secret": json.dumps(typed)} if any(typed.values()) or not self.changes else {}
        )

    @classmethod
    def build_typed(cls, asset: Asset) -> TypedValues:
        assert isinstance(asset, Credential)
        return {name: [str(asset.public.get(name, ""))] for name in cls.public_fields}

    def validate(self) -> bool:
        """Validate as for every asset, and limit the credentials of a scope and their bytes."""
        if not super().validate():
            return False
        is_added = not self.changes or self.asset is None or self.asset.scope != self.asset_scope
        if is_added and count_credentials(self.asset_scope) >= MAX_CREDENTIALS_OF_SCOPE:
            text = (
                f"There are {MAX_CREDENTIALS_OF_SCOPE} credentials of this scope already, and no "
                "scope can have more: each is a Secret in every project that it is for, and all "
                "of these are compared again and again. Delete some of them, or choose another "
                "scope."
            )
            self.add_error_once("scope", text)
        elif is_added or "secret" in self.values:
            self._check_bytes_of_scope()
        return not self.has_errors

    def _check_bytes_of_scope(self) -> None:
        asset = self.asset if self.changes and isinstance(self.asset, Credential) else None
        others = measure_secrets(self.asset_scope, without=asset)
        values = self.values
        secret = values.get("secret", asset.secret if asset else "")
        size = others + len(secret.encode()) + len(json.dumps(values["public"]))
        before = measure_secrets(self.asset_scope) if asset else others
        # In a scope that is too full already, one may still get a shorter secret, or as long a one.
        if size > max(MAX_BYTES_OF_SCOPE, before):
            text = (
                f"The secrets of this scope would have {size:,} bytes together, and a scope can "
                f"have {MAX_BYTES_OF_SCOPE:,}: all of them are compared with the clusters again "
                "and again. Shorten this one, delete others of the scope, or choose another scope."
            )
            self.add_error_once("scope", text)


class RegistryForm(CredentialForm):
    subtype, label = Credential.Kind.REGISTRY.value, Credential.Kind.REGISTRY.label
    public_fields = ("server", "username")
    secret_fields = ("password",)
    rest = RestMapping(
        "credentials/docker-registry",
        (
            BodyPart("spec.url", "server", TEXT),
            BodyPart("spec.user", "username", TEXT),
            BodyPart("spec.password", "password", TEXT, is_secret=True),
        ),
    )

    server = required_text_field(
        "Registry",
        (
            "The address that its images begin with, as registry.example.com:5000. Pods log in "
            "to it by themselves."
        ),
    )
    username = required_text_field("User")
    password = secret_field("Password or token")

    @property
    def values(self) -> dict[str, Any]:
        values = super().values
        public = values["public"]
        # As images name it: by this address it is found for them, and pods log in with it.
        return values | {"public": public | {"server": normalize_server(public.get("server", ""))}}


class AccessKeyForm(CredentialForm):
    subtype, label = Credential.Kind.ACCESS_KEY.value, Credential.Kind.ACCESS_KEY.label
    public_fields = ("access_key_id",)
    secret_fields = ("secret_key",)
    rest = RestMapping(
        "credentials/access-key",
        (
            BodyPart("spec.accessKeyId", "access_key_id", TEXT),
            BodyPart("spec.secretAccessKey", "secret_key", TEXT, is_secret=True),
        ),
    )

    access_key_id = required_text_field("Access key id")
    secret_key = secret_field("Secret key")


class PasswordForm(CredentialForm):
    subtype, label = Credential.Kind.PASSWORD.value, Credential.Kind.PASSWORD.label
    public_fields = ("username",)
    secret_fields = ("password",)
    rest = RestMapping(
        "credentials/password",
        (
            BodyPart("spec.user", "username", TEXT),
            BodyPart("spec.password", "password", TEXT, is_secret=True),
        ),
    )

    username = required_text_field("User")
    password = secret_field("Password or token")


class SshKeyForm(CredentialForm):
    subtype, label = Credential.Kind.SSH_KEY.value, Credential.Kind.SSH_KEY.label
    public_fields = ("known_hosts",)
    secret_fields = ("private_key",)
    rest = RestMapping(
        "credentials/ssh-key",
        (
            BodyPart("spec.privateKey", "private_key", TEXT, is_secret=True),
            BodyPart("spec.knownHosts", "known_hosts", TEXT),
        ),
    )

    private_key = secret_field(
        "Private key", "As a file of ssh-keygen has it, without a passphrase.", is_long=True
    )
    known_hosts = text_field(
        "Known hosts",
        (
            "Lines as ssh-keyscan writes them. Whoever else answers is not believed, so a Git "
            "repository needs its server's."
        ),
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        max_length=MAX_SECRET_CHARS,
    )

    @property
    def values(self) -> dict[str, Any]:
        values = super().values
        if "secret" in values:
            # A key file ends with a line end, which pasting loses.
            values["secret"] = json.dumps(
                {"private_key": self.read("private_key", "").strip() + "\n"}
            )
        return values


class SecretRow(RowForm):
    """A key and its value, which is never shown again."""

    content_fields = ("key", "value")
    key = text_field("Key")
    value = secret_field("Value", is_long=True)


class GenericForm(CredentialForm):
    subtype, label = Credential.Kind.GENERIC.value, Credential.Kind.GENERIC.label
    rest = RestMapping(
        "credentials/generic-secret",
        (
            BodyPart(
                "spec.keyValuePairs",
                "keys",
                build_rows_shape(key="key", value="value"),
                is_secret=True,
            ),
        ),
    )

    def __init__(self, data: TypedValues, **more: Any) -> None:
        super().__init__(data, **more)
        self.keys = FormRows("keys", SecretRow, data)
        self.help = "Leave a value empty to keep the one that is stored." if self.changes else ""

    @property
    def rows(self) -> FormRows[Any]:
        return self.keys

    @property
    def values(self) -> dict[str, Any]:
        typed_secret = {row.read("key", ""): row.read("value", "") for row in self.keys.filled_rows}
        values = super().values | {"public": {"keys": list(typed_secret)}}
        stored = self._stored_secret if self.changes else {}
        secret = {key: value or stored.get(key, "") for key, value in typed_secret.items()}
        return (
            values | {"secret": json.dumps(secret)}
            if secret != stored
            else {k: v for k, v in values.items() if k != "secret"}
        )

    @property
    def _stored_secret(self) -> dict[str, str]:
        assert isinstance(self.asset, Credential)
        stored: dict[str, str] = json.loads(self.asset.secret or "{}")
        return stored

    @classmethod
    def build_typed(cls, asset: Asset) -> TypedValues:
        assert isinstance(asset, Credential)
        return build_row_values(
            "keys", [{"key": key, "value": ""} for key in asset.public.get("keys", ())]
        )

    def validate(self) -> bool:
        self.quiet = False
        stored_keys = (
            self.asset.public.get("keys", ())
            if self.changes and isinstance(self.asset, Credential)
            else ()
        )
        if not self.keys.filled_rows:
            self.add_error_once(None, "There must be at least one key with its value.")
        earlier_keys: set[str] = set()
        for row in self.keys.filled_rows:
            key = row.read("key", "")
            if not row.read("value", "") and key not in stored_keys:
                self._add_row_error(row, "value", "The value must be given.")
                self.add_error_once(None, "Each key needs a value.")
            if key and key in earlier_keys:
                self._add_row_error(row, "key", "There is such a key above already.")
                self.add_error_once(None, "Each key can be there once.")
            earlier_keys.add(key)
        if super().validate():
            self._check_size()
        return not self.has_errors

    def _add_row_error(self, row: SecretRow, field: str, text: str) -> None:
        self.keys.quiet = False
        row.add_error_once(field, text)

    def _check_size(self) -> None:
        """Refuse what no cluster would take.

        A project's other credentials would not reach its cluster after it.
        """
        secret = json.loads(self.values.get("secret", "{}"))
        size = sum(len(value.encode()) for value in secret.values())
        if size > MAX_SECRET_BYTES:
            text = (
                f"The values have {size:,} bytes together; Kubernetes takes {MAX_SECRET_BYTES:,}. "
                "Shorten them, or make two credentials of it."
            )
            self.add_error_once(None, text)


CREDENTIAL_FORMS: dict[str, type[CredentialForm]] = {
    form.subtype: form
    for form in (RegistryForm, AccessKeyForm, PasswordForm, SshKeyForm, GenericForm)
}
