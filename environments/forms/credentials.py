"""The forms of credentials, one a kind. A secret is typed and kept, and never shown again: an empty
field keeps the one that is stored.
"""

import json
from typing import Any, ClassVar

from django import forms

from console.typed import RowForm, Rows, Typed, as_rows
from environments.forms.asset import AssetForm
from environments.forms.fields import needed, words
from environments.models import Asset, Credential
from environments.rest import TEXT, Part, Rest, row_list

LONGEST_SECRET = 64 << 10


class SecretText(forms.PasswordInput):
    """One line that is never written into a page."""


class SecretArea(forms.Textarea):
    """Several lines that are never written into a page."""

    def format_value(self, value: Any) -> str:
        return ""


def secret(label: str, help_text: str = "", *, is_long: bool = False) -> forms.CharField:
    """A field whose value is never shown again."""
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
        max_length=LONGEST_SECRET,
        widget=widget,
    )


class CredentialForm(AssetForm):
    """What all of them have. `public_fields` can be shown, `secret_fields` cannot; both by the
    names that they are stored under.
    """

    kind = "credential"
    model = Credential
    asks_scope = True
    public_fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, data: Typed, **more: Any) -> None:
        super().__init__(data, **more)
        for name in self.secrets:
            field = self.fields[name]
            field.required = not self.changes
            field.error_messages["required"] = f"{field.label} must be given."
            if self.changes:
                field.help_text = (
                    f"A secret is stored; leave it empty to keep it. {field.help_text}".strip()
                )

    @property
    def values(self) -> dict[str, Any]:
        """Without `secret` where the one that is stored stays."""
        public = {name: self.read(name, "") for name in self.public_fields}
        found = super().values | {
            "kind": self.subtype,
            "public": {name: value for name, value in public.items() if value},
        }
        typed = {name: self.read(name, "") for name in self.secrets}
        return found | (
            {"secret": json.dumps(typed)} if any(typed.values()) or not self.changes else {}
        )

    @classmethod
    def typed_of(cls, asset: Asset) -> Typed:
        assert isinstance(asset, Credential)
        return {name: [str(asset.public.get(name, ""))] for name in cls.public_fields}


class RegistryForm(CredentialForm):
    subtype, label = Credential.Kind.REGISTRY.value, Credential.Kind.REGISTRY.label
    public_fields = ("server", "username")
    secrets = ("password",)
    rest = Rest(
        "credentials/docker-registry",
        (
            Part("spec.url", "server", TEXT),
            Part("spec.user", "username", TEXT),
            Part("spec.password", "password", TEXT, is_secret=True),
        ),
    )

    server = needed(
        "Registry",
        (
            "The address that its images begin with, as registry.example.com:5000. Pods log in "
            "to it by themselves."
        ),
    )
    username = needed("User")
    password = secret("Password or token")


class AccessKeyForm(CredentialForm):
    subtype, label = Credential.Kind.ACCESS_KEY.value, Credential.Kind.ACCESS_KEY.label
    public_fields = ("access_key_id",)
    secrets = ("secret_key",)
    rest = Rest(
        "credentials/access-key",
        (
            Part("spec.accessKeyId", "access_key_id", TEXT),
            Part("spec.secretAccessKey", "secret_key", TEXT, is_secret=True),
        ),
    )

    access_key_id = needed("Access key id")
    secret_key = secret("Secret key")


class PasswordForm(CredentialForm):
    subtype, label = Credential.Kind.PASSWORD.value, Credential.Kind.PASSWORD.label
    public_fields = ("username",)
    secrets = ("password",)
    rest = Rest(
        "credentials/password",
        (
            Part("spec.user", "username", TEXT),
            Part("spec.password", "password", TEXT, is_secret=True),
        ),
    )

    username = needed("User")
    password = secret("Password or token")


class SshKeyForm(CredentialForm):
    subtype, label = Credential.Kind.SSH_KEY.value, Credential.Kind.SSH_KEY.label
    public_fields = ("known_hosts",)
    secrets = ("private_key",)
    rest = Rest(
        "credentials/ssh-key",
        (
            Part("spec.privateKey", "private_key", TEXT, is_secret=True),
            Part("spec.knownHosts", "known_hosts", TEXT),
        ),
    )

    private_key = secret(
        "Private key", "As a file of ssh-keygen has it, without a passphrase.", is_long=True
    )
    known_hosts = words(
        "Known hosts",
        (
            "Lines as ssh-keyscan writes them. Whoever else answers is not believed, so a Git "
            "repository needs its server's."
        ),
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        max_length=LONGEST_SECRET,
    )

    @property
    def values(self) -> dict[str, Any]:
        found = super().values
        if "secret" in found:
            # A key file ends with a line end, which pasting loses.
            found["secret"] = json.dumps(
                {"private_key": self.read("private_key", "").strip() + "\n"}
            )
        return found


class SecretRow(RowForm):
    """A key and its value, which is never shown again."""

    content = ("key", "value")
    key = words("Key")
    value = secret("Value", is_long=True)


class GenericForm(CredentialForm):
    subtype, label = Credential.Kind.GENERIC.value, Credential.Kind.GENERIC.label
    rest = Rest(
        "credentials/generic-secret",
        (Part("spec.keyValuePairs", "keys", row_list(key="key", value="value"), is_secret=True),),
    )

    def __init__(self, data: Typed, **more: Any) -> None:
        super().__init__(data, **more)
        self.keys = Rows("keys", SecretRow, data)
        self.help = "Leave a value empty to keep the one that is stored." if self.changes else ""

    @property
    def rows(self) -> Rows[Any]:
        return self.keys

    @property
    def values(self) -> dict[str, Any]:
        given = {row.read("key", ""): row.read("value", "") for row in self.keys.filled}
        found = super().values | {"public": {"keys": list(given)}}
        kept = self._stored if self.changes else {}
        secret = {key: value or kept.get(key, "") for key, value in given.items()}
        return (
            found | {"secret": json.dumps(secret)}
            if secret != kept
            else {k: v for k, v in found.items() if k != "secret"}
        )

    @property
    def _stored(self) -> dict[str, str]:
        assert isinstance(self.asset, Credential)
        found: dict[str, str] = json.loads(self.asset.secret or "{}")
        return found

    @classmethod
    def typed_of(cls, asset: Asset) -> Typed:
        assert isinstance(asset, Credential)
        return as_rows("keys", [{"key": key, "value": ""} for key in asset.public.get("keys", ())])

    def judged(self) -> bool:
        self.quiet = False
        kept = (
            self.asset.public.get("keys", ())
            if self.changes and isinstance(self.asset, Credential)
            else ()
        )
        if not self.keys.filled:
            self.blame(None, "There must be at least one key with its value.")
        for row in self.keys.filled:
            if not row.read("value", "") and row.read("key", "") not in kept:
                self.keys.quiet = False
                row.blame("value", "The value must be given.")
                self.blame(None, "Each key needs a value.")
        return super().judged()


CREDENTIAL_FORMS: dict[str, type[CredentialForm]] = {
    form.subtype: form
    for form in (RegistryForm, AccessKeyForm, PasswordForm, SshKeyForm, GenericForm)
}
