"""How a cluster is reached and how we authenticate: inline data only. It never names a file of this
machine or a program.
"""

import base64
import binascii
import ipaddress
import re
import ssl
import tempfile
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import yaml

MAX_KUBECONFIG = 256 << 10
"""Characters of a kubeconfig that are read. That of one cluster takes about 6 thousand."""
MAX_TOKEN = 16 << 10
MAX_SERVER = 255
"""Characters of a server's address."""

_TOKEN = re.compile(r"[\x21-\x7e]+")
_SERVER_NAME = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*")
_PASTE_HINT = (
    "Paste a kubeconfig with the data inside, such as `kubectl config view --raw --minify "
    "--flatten` prints."
)
_SERVICE_ACCOUNT_HINT = "Use the token of a service account instead."

_REFUSED_USER_FIELDS = {
    "exec": ("runs a program on this machine to get its credentials", _SERVICE_ACCOUNT_HINT),
    "auth-provider": ("uses a provider that only kubectl knows", _SERVICE_ACCOUNT_HINT),
    "tokenFile": ("names a file on another machine", _PASTE_HINT),
    "username": ("uses a password, which Kubernetes no longer accepts", _SERVICE_ACCOUNT_HINT),
    "password": ("uses a password, which Kubernetes no longer accepts", _SERVICE_ACCOUNT_HINT),
    "as": ("acts as somebody else", "Use the credentials of the user that Muster shall be."),
    "as-uid": ("acts as somebody else", "Use the credentials of the user that Muster shall be."),
    "as-groups": ("acts as somebody else", "Use the credentials of the user that Muster shall be."),
    "as-user-extra": (
        "acts as somebody else",
        "Use the credentials of the user that Muster shall be.",
    ),
}


class BadKubeconfig(ValueError):
    """A kubeconfig, or its substitute, that cannot be used. The text says what, why and what to do,
    and holds no secret.
    """


@dataclass(frozen=True)
class ClusterAccess:
    """One cluster and one user of it. `ca`, `certificate` and `key` are PEM texts; without `ca` the
    authorities of this machine are trusted.

    `server_name` is the name that the server's certificate must carry, when it is not that of the
    address. Raises BadKubeconfig for an address or credentials that cannot work. Its repr shows no
    secret.
    """

    server: str
    ca: str | None = None
    token: str | None = field(default=None, repr=False)
    certificate: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    insecure: bool = False
    server_name: str | None = None

    def __post_init__(self) -> None:
        _check_server(self.server)
        if self.server_name is not None and not _is_server_name(self.server_name):
            raise BadKubeconfig(
                "`tls-server-name` is no name that a server's certificate can carry."
            )
        if self.token is not None:
            check_token(self.token)
        if (self.certificate is None) != (self.key is None):
            raise BadKubeconfig(
                "There is a client certificate without its key, or a key without its "
                "certificate. Give both."
            )
        self.build_tls_context()

    @property
    def is_loopback(self) -> bool:
        """Whether the cluster is on this machine, so that no proxy may come between."""
        return is_loopback(parse_host(self.server))

    def build_tls_context(self) -> ssl.SSLContext:
        """Return a TLS context that trusts only this cluster and presents the client certificate,
        if there is one.
        """
        try:
            context = trust_authority(self.ca)
        except (ssl.SSLError, ValueError, TypeError):  # the last for what is not ASCII
            raise BadKubeconfig(
                "The certificate authority is no PEM certificate. Give the one that signed the "
                "server's."
            ) from None
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate is not None and self.key is not None:
            load_client_certificate(context, self.certificate, self.key)
        return context


def parse_kubeconfig(text: str) -> ClusterAccess:
    """Return the access of the current context of a kubeconfig. Raises BadKubeconfig.

    Only inline data counts; plugins, providers, file references and proxies are refused by name.
    """
    if len(text) > MAX_KUBECONFIG:
        raise BadKubeconfig(
            f"The kubeconfig is longer than {MAX_KUBECONFIG >> 10} KiB. {_PASTE_HINT}"
        )
    config = _require_mapping(_parse_yaml(text), "the kubeconfig")
    current = config.get("current-context")
    if not isinstance(current, str) or not current:
        raise BadKubeconfig(
            "The kubeconfig has no current-context, so it does not say which cluster is meant. "
            f"{_PASTE_HINT}"
        )
    context = _get_section(config, "context", current)
    cluster = _get_section(config, "cluster", context.get("cluster"))
    user = _get_section(config, "user", context.get("user"))
    if cluster.get("proxy-url"):
        raise BadKubeconfig(
            "The cluster names a proxy (proxy-url). Set HTTPS_PROXY for Muster itself instead."
        )
    for name, (why, instead) in _REFUSED_USER_FIELDS.items():
        if user.get(name):
            raise BadKubeconfig(f"The user's `{name}` {why}; Muster does not do that. {instead}")
    access = ClusterAccess(
        server=_find_text(cluster, "server") or "",
        ca=_find_pem(cluster, "certificate-authority"),
        token=_find_text(user, "token"),
        certificate=_find_pem(user, "client-certificate"),
        key=_find_pem(user, "client-key"),
        insecure=cluster.get("insecure-skip-tls-verify") is True,
        server_name=_find_text(cluster, "tls-server-name"),
    )
    if access.token is None and access.certificate is None:
        raise BadKubeconfig(
            "The user of the current context has neither a token nor a client certificate. "
            f"{_PASTE_HINT}"
        )
    return access


def build_kubeconfig(server: str, token: str, ca: str = "") -> str:
    """Return a kubeconfig for an address, a token and the PEM text of an authority.

    `ca` is "" for the authorities that this machine trusts.
    """
    cluster = {"server": server} | (
        {"certificate-authority-data": base64.b64encode(ca.encode()).decode()} if ca else {}
    )
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "muster",
        "contexts": [{"name": "muster", "context": {"cluster": "muster", "user": "muster"}}],
        "clusters": [{"name": "muster", "cluster": cluster}],
        "users": [{"name": "muster", "user": {"token": token}}],
    }
    return yaml.safe_dump(config)


def check_token(token: str) -> None:
    """Raise BadKubeconfig for a text that cannot be sent as a bearer token."""
    if len(token) > MAX_TOKEN or not _TOKEN.fullmatch(token):
        raise BadKubeconfig(
            "The token holds characters that no token has, or is far too long. Copy it again, "
            "without quotes or line ends."
        )


def parse_host(server: str) -> str:
    """Return the name or IP address in a server's address, "" where there is none."""
    return urlsplit(server).hostname or ""


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _is_server_name(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return bool(_SERVER_NAME.fullmatch(name))
    return True


def _check_server(server: str) -> None:
    try:
        url = urlsplit(server)
        host, _ = url.hostname, url.port
    except ValueError:
        host = None
    if len(server) > MAX_SERVER:
        raise BadKubeconfig(
            f"The cluster's address is longer than {MAX_SERVER} characters. It looks like "
            "https://203.0.113.7:6443."
        )
    if (
        not host
        or url.scheme not in ("https", "http")
        or not server.isascii()
        or not server.isprintable()
        or " " in server
    ):
        raise BadKubeconfig(
            "The cluster's address is no URL. It looks like https://203.0.113.7:6443."
        )
    if url.username is not None or url.query or url.fragment:
        raise BadKubeconfig(
            "The cluster's address holds a user, a query or a fragment. Give only "
            "https://host:port and perhaps a path."
        )
    if url.scheme == "http" and not is_loopback(host):
        raise BadKubeconfig(
            "The cluster's address starts with http, so credentials would travel in the clear. "
            "Give its https address."
        )


def trust_authority(ca: str | None) -> ssl.SSLContext:
    """Return a TLS context that trusts an authority in PEM form, or those of the system.

    Raises SSLError, ValueError or TypeError for what is no PEM.
    """
    context = ssl.create_default_context(cadata=ca)
    # From Python 3.13 on certificates without key identifiers are refused by default, as those of
    # Amazon's EKS are; kubectl takes them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def load_client_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    # The ssl module reads certificates from files only; this one is readable by us alone and gone
    # at once.
    with tempfile.NamedTemporaryFile("w", suffix=".pem", encoding="utf-8") as file:
        try:
            file.write(f"{certificate}\n{key}\n")
            file.flush()
            # A password is given so that an encrypted key fails instead of asking at the terminal.
            context.load_cert_chain(file.name, password="")
        except (ssl.SSLError, ValueError):
            raise BadKubeconfig(
                "The client certificate and its key cannot be used: no PEM, encrypted, or not of "
                "each other. Export them again."
            ) from None


class _NoMergeLoader(yaml.SafeLoader):
    """A YAML loader without merge keys: a few lines of them, each merging the one above ten times,
    would fill the memory.
    """

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(
                    problem="merge keys", problem_mark=key.start_mark
                )


def _parse_yaml(text: str) -> Any:
    try:
        return yaml.load(text, _NoMergeLoader)  # noqa: S506 - it is a safe one
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError) as error:
        # The last two are how the library stumbles over a tag that does not fit its value.
        # The library's own text quotes the lines around the fault, credentials and all.
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        raise BadKubeconfig(f"The kubeconfig is no YAML{where}. {_PASTE_HINT}") from None


def _get_section(config: dict[str, Any], kind: str, name: Any) -> dict[str, Any]:
    entries = config.get(f"{kind}s")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(name, str):
            return _require_mapping(entry.get(kind), f"the {kind} of the current context")
    raise BadKubeconfig(
        f"The {kind} that the current context asks for is not in the kubeconfig. {_PASTE_HINT}"
    )


def _require_mapping(value: Any, label: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadKubeconfig(
            f"{label[0].upper()}{label[1:]} is not a list of names and values. {_PASTE_HINT}"
        )
    return value


def _find_text(section: dict[str, Any], name: str) -> str | None:
    value = section.get(name)
    if value is not None and not isinstance(value, str):
        raise BadKubeconfig(f"`{name}` is not a text. {_PASTE_HINT}")
    return value or None


def _find_pem(section: dict[str, Any], name: str) -> str | None:
    inline = _find_text(section, f"{name}-data")
    if inline is None:
        if section.get(name):
            raise BadKubeconfig(f"`{name}` names a file on another machine. {_PASTE_HINT}")
        return None
    try:
        return base64.b64decode(inline, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise BadKubeconfig(
            f"`{name}-data` is not the base64 of a PEM text. {_PASTE_HINT}"
        ) from None
