"""What the tests of all kinds of assets share: a valid sample of each form, and test clients."""

from dataclasses import dataclass
from typing import Any

from django.test import Client

from environments import actions
from environments.forms import AssetForm
from environments.kinds import COMPUTE, CREDENTIAL, DATA_SOURCE, ENVIRONMENT, KINDS, AssetKind
from environments.models import Asset
from projects import tokens
from projects.models import User
from projects.scopes import Scope

SECRET = "n0b0dy-may-see-this"
REPOSITORY = "https://git.example.com/team/code.git"


@dataclass(frozen=True)
class Sample:
    """One form of a kind: typed values, and the same as a body of the API."""

    kind: AssetKind
    subtype: str
    typed: dict[str, Any]
    spec: dict[str, Any]
    change: tuple[str, str]
    """A field that is typed anew, and its value."""

    @property
    def form(self) -> type[AssetForm]:
        return self.kind.forms[self.subtype]

    @property
    def new(self) -> str:
        return f"/{self.kind.path}/new" + (f"/{self.subtype}" if self.subtype else "")

    @property
    def api(self) -> str:
        assert self.form.rest is not None
        return f"/api/v1/asset/{self.form.rest.path}"

    def make(self, scope: Scope, by: User, name: str = "mine", **typed: Any) -> Asset:
        """Create this asset."""
        sent = {
            key: [value] if isinstance(value, str) else value
            for key, value in (self.typed | typed).items()
        }
        form = self.form(
            sent | {"name": [name], "scope": [str(scope)]}, scopes=[(scope, "there")], by=by
        )
        assert form.validate(), (form.errors, form.rows and [row.errors for row in form.rows.all])
        return actions.create(form.model, form.values, scope=scope, user=by)

    def __str__(self) -> str:
        return f"{self.kind.key}-{self.subtype}".rstrip("-")


SAMPLES = (
    Sample(
        ENVIRONMENT,
        "",
        {
            "image": "team/x",
            "serves": "Distributed:PyTorch",
            "variables-0-name": "A",
            "variables-0-value": "1",
        },
        {"image": "team/x", "environmentVariables": [{"name": "A", "value": "1"}]},
        ("image", "team/y"),
    ),
    Sample(
        COMPUTE,
        "",
        {
            "gpu_devices": "1",
            "gpu_share": "portion",
            "gpu_percent": "50",
            "cpu_request": "0.5",
            "memory_request": "1G",
        },
        {
            "gpuDevicesRequest": 1,
            "gpuRequestType": "portion",
            "gpuPortionRequest": 0.5,
            "cpuCoreRequest": 0.5,
            "cpuMemoryRequest": "1G",
        },
        ("memory_request", "2G"),
    ),
    Sample(
        DATA_SOURCE,
        "git",
        {"repository": REPOSITORY, "branch": "main", "path": "/code", "access": "read-only"},
        {"repository": REPOSITORY, "branch": "main", "path": "/code", "access": "read-only"},
        ("branch", "next"),
    ),
    Sample(
        DATA_SOURCE,
        "pvc",
        {
            "way": "new",
            "size": "10Gi",
            "storage_class": "fast",
            "modes": ["ReadWriteMany"],
            "path": "/data",
            "access": "read-write",
        },
        {
            "existingPvc": False,
            "claimInfo": {
                "size": "10Gi",
                "storageClass": "fast",
                "accessModes": {
                    "readWriteOnce": False,
                    "readOnlyMany": False,
                    "readWriteMany": True,
                },
            },
            "path": "/data",
            "access": "read-write",
        },
        ("size", "20Gi"),
    ),
    Sample(
        DATA_SOURCE,
        "nfs",
        {"server": "nfs.example.com", "export": "/export", "path": "/data", "access": "read-only"},
        {
            "server": "nfs.example.com",
            "path": "/export",
            "mountPath": "/data",
            "access": "read-only",
        },
        ("export", "/other"),
    ),
    Sample(
        DATA_SOURCE,
        "s3",
        {"url": "https://s3.example.com", "bucket": "images", "below": "cats", "path": "/data"},
        {"url": "https://s3.example.com", "bucket": "images", "prefix": "cats", "path": "/data"},
        ("bucket", "others"),
    ),
    Sample(
        DATA_SOURCE,
        "host-path",
        {"source": "/mnt/data", "path": "/data", "access": "read-only", "propagate": "on"},
        {
            "path": "/mnt/data",
            "mountPath": "/data",
            "access": "read-only",
            "mountPropagation": "HostToContainer",
        },
        ("source", "/mnt/other"),
    ),
    Sample(
        DATA_SOURCE,
        "config-map",
        {"configmap": "settings", "sub_path": "a.yaml", "mode": "0644", "path": "/etc/settings"},
        {
            "configMap": "settings",
            "subPath": "a.yaml",
            "defaultMode": "0644",
            "mountPath": "/etc/settings",
        },
        ("configmap", "others"),
    ),
    Sample(
        CREDENTIAL,
        "registry",
        {"server": "registry.example.com:5000", "username": "robot", "password": SECRET},
        {"url": "registry.example.com:5000", "user": "robot", "password": SECRET},
        ("username", "another"),
    ),
    Sample(
        CREDENTIAL,
        "access-key",
        {"access_key_id": "AKIA", "secret_key": SECRET},
        {"accessKeyId": "AKIA", "secretAccessKey": SECRET},
        ("access_key_id", "AKIB"),
    ),
    Sample(
        CREDENTIAL,
        "password",
        {"username": "robot", "password": SECRET},
        {"user": "robot", "password": SECRET},
        ("username", "another"),
    ),
    Sample(
        CREDENTIAL,
        "ssh-key",
        {
            "private_key": f"-----BEGIN\n{SECRET}\n-----END",
            "known_hosts": "git.example.com ssh-ed25519 AAAA",
        },
        {
            "privateKey": f"-----BEGIN\n{SECRET}\n-----END",
            "knownHosts": "git.example.com ssh-ed25519 AAAA",
        },
        ("known_hosts", "git.example.com ssh-ed25519 BBBB"),
    ),
    Sample(
        CREDENTIAL,
        "generic",
        {"keys-0-key": "token", "keys-0-value": SECRET},
        {"keyValuePairs": [{"key": "token", "value": SECRET}]},
        ("description", "other words"),
    ),
)
BY_NAME = {str(sample): sample for sample in SAMPLES}
CREDENTIALS = [sample for sample in SAMPLES if sample.kind is CREDENTIAL]
ONE_OF_EACH = [
    next(sample for sample in SAMPLES if sample.kind is kind)
    for kind in KINDS
    if kind.key not in ("template", "policy")
]


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(User.objects.get(pk=user.pk))
    return client


class Api:
    """A REST client of a user."""

    def __init__(self, user: User) -> None:
        self._client = Client()
        self._token, _ = tokens.issue_token(User.objects.get(pk=user.pk))

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        sent = {} if body is None else {"data": body, "content_type": "application/json"}
        answer = getattr(self._client, method)(
            path, headers={"authorization": f"Bearer {self._token}"}, **sent
        )
        return answer.status_code, answer.json()
