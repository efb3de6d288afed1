"""A credential as a Secret of a cluster: its name, its type and its keys.

`public` and the JSON text `secret` of a credential hold, by kind: registry {server, username} and
{password}; access-key {access_key_id} and {secret_key}; password {username} and {password}; ssh-key
{known_hosts} and {private_key}; generic {keys: [...]} and {key: value}.
"""

import base64
import json
import re

from console.errors import UserError
from environments.models import Credential

Kind = Credential.Kind

_DOCKER_HUB = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})
_DOCKER_HUB_KEY = "https://index.docker.io/v1/"
_API_PATHS = ("v1", "v2")
"""Paths of a registry's own interface, which no image's address has."""
_SERVER = re.compile(
    r"[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[A-Za-z0-9][-._/A-Za-z0-9]*)?"
)
SECRET_TYPES = {
    Kind.REGISTRY: "kubernetes.io/dockerconfigjson",
    Kind.ACCESS_KEY: "Opaque",
    Kind.PASSWORD: "kubernetes.io/basic-auth",
    Kind.SSH_KEY: "kubernetes.io/ssh-auth",
    Kind.GENERIC: "Opaque",
}
"""The type of the Secret of each kind of credential."""


def secret_name(credential: Credential) -> str:
    """Return the name of its Secret, the same in every namespace and for its whole life."""
    return f"muster-{credential.kind}-{credential.pk.hex[:12]}"


def list_secret_keys(credential: Credential) -> tuple[str, ...]:
    """Return the keys of its Secret that a variable can be read from."""
    if credential.kind == Kind.GENERIC:
        return tuple(credential.public.get("keys", ()))
    return {
        Kind.REGISTRY.value: (".dockerconfigjson",),
        Kind.ACCESS_KEY.value: ("AccessKeyId", "SecretKey"),
        Kind.PASSWORD.value: ("username", "password"),
        Kind.SSH_KEY.value: ("ssh-privatekey",),
    }[credential.kind]


def build_secret_data(credential: Credential) -> dict[str, str]:
    """Return the data of its Secret in clear, for the cluster alone.

    Raises KeyError and ValueError where what is stored is of an unknown form.
    """
    public, secret = credential.public, json.loads(credential.secret or "{}")
    if credential.kind == Kind.REGISTRY:
        return {
            ".dockerconfigjson": _build_docker_config(
                public["server"], public["username"], secret["password"]
            )
        }
    if credential.kind == Kind.ACCESS_KEY:
        return {"AccessKeyId": public["access_key_id"], "SecretKey": secret["secret_key"]}
    if credential.kind == Kind.PASSWORD:
        return {"username": public["username"], "password": secret["password"]}
    if credential.kind == Kind.SSH_KEY:
        known_hosts = {"known_hosts": public["known_hosts"]} if public.get("known_hosts") else {}
        return {"ssh-privatekey": secret["private_key"]} | known_hosts
    return {str(key): str(value) for key, value in secret.items()}


def parse_registry_address(text: str) -> str:
    """Return a pasted address as images name it: host[:port][/path]. Raises UserError."""
    address = text.strip().removeprefix("https://").removeprefix("http://").rstrip("/")
    host, _, path = address.partition("/")
    if path in _API_PATHS:
        address = host
    if len(address) > 255 or not _SERVER.fullmatch(address):
        raise UserError(
            (
                "The registry must be the address that its images begin with, as in "
                "registry.example.com:5000."
            ),
            field="server",
        )
    return address


def normalize_server(server: str) -> str:
    """Return a registry as images name it; what is no address stays as it is."""
    try:
        return parse_registry_address(server)
    except UserError:
        return server


def is_login_for(server: str, image: str) -> bool:
    """Return whether the login to a registry is tried for an image.

    The image's address begins with the registry's; without a host it is Docker Hub's.
    """
    first, _, rest = image.partition("/")
    has_host = bool(rest) and (first == "localhost" or "." in first or ":" in first)
    host, path = (first, rest) if has_host else ("docker.io", image)
    registry, _, path_prefix = normalize_server(server).partition("/")
    is_same_host = host == registry or {host, registry} <= _DOCKER_HUB
    return is_same_host and path.startswith(path_prefix)


def _build_docker_config(server: str, username: str, password: str) -> str:
    """Build a dockerconfigjson as kubelets read it; Docker Hub has an old address there."""
    auth = base64.b64encode(f"{username}:{password}".encode()).decode()
    entry = {"username": username, "password": password, "auth": auth}
    address = normalize_server(server)
    return json.dumps(
        {"auths": {_DOCKER_HUB_KEY if address in _DOCKER_HUB else address: entry}}, sort_keys=True
    )
