"""How Muster signs in to a cluster's Prometheus: what is stored, and what is right for it."""

import base64
import re
import ssl
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import msgspec

from clusters.kube.access import BadKubeconfig, load_client_certificate, trust_authority

MAX_HEADERS = 16
MAX_TEXT = 4096
"""Characters of one value: a token of OpenShift has about a thousand."""
MAX_PEM = 64 << 10
_HEADER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_PRINTABLE = re.compile(r"[\x20-\x7e]*")
_RESERVED = frozenset(
    {
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-length",
        "cookie",
        "host",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
    }
)
"""Headers that the request itself needs, and that sign in past the way that is chosen."""
_TENANT_HEADERS = frozenset({"x-scope-orgid", "thanos-tenant"})
"""Headers that name a tenant, and are no secret."""


class SignInWay(StrEnum):
    NONE = "none"
    BASIC = "basic"
    BEARER = "bearer"
    CERTIFICATE = "certificate"


class SignIn(msgspec.Struct, frozen=True, omit_defaults=True):
    """The way of signing in and its secrets. They are stored encrypted, and shown to nobody."""

    way: SignInWay = SignInWay.NONE
    user: str = ""
    password: str = ""
    token: str = ""
    certificate: Annotated[str, msgspec.Meta(max_length=MAX_PEM)] = ""
    """The client's certificate as PEM, with `key`."""
    key: Annotated[str, msgspec.Meta(max_length=MAX_PEM)] = ""
    ca: Annotated[str, msgspec.Meta(max_length=MAX_PEM)] = ""
    """Who signs the server's certificate, as PEM; empty: whom the system trusts."""
    headers: Mapping[str, str] = {}
    """Sent with every request: the tenant of Mimir or of OpenShift, say."""

    def find_problem(self) -> tuple[str, str] | None:
        """Return the field that is wrong, and why; None where all are right."""
        required = {
            SignInWay.NONE: (),
            SignInWay.BASIC: ("user", "password"),
            SignInWay.BEARER: ("token",),
            SignInWay.CERTIFICATE: ("certificate", "key"),
        }[self.way]
        for name in required:
            if not getattr(self, name):
                return name, f"Give the {name}."
        for name in ("user", "password", "token"):
            value = getattr(self, name)
            if len(value) > MAX_TEXT or not (name == "password" or _PRINTABLE.fullmatch(value)):
                return name, f"The {name} is too long, or has characters that HTTP cannot carry."
        if ":" in self.user:
            return "user", "The name of a user has no colon."
        return self._find_header_problem() or self._find_tls_problem()

    @property
    def has_secrets(self) -> bool:
        """Whether requests carry what nobody on the way may read."""
        names = {name.lower() for name in self.headers}
        return self.way is not SignInWay.NONE or not names <= _TENANT_HEADERS

    def build_headers(self) -> dict[str, str]:
        """Return the headers that every request has."""
        headers = dict(self.headers)
        if self.way is SignInWay.BASIC:
            pair = base64.b64encode(f"{self.user}:{self.password}".encode()).decode("ascii")
            headers["Authorization"] = f"Basic {pair}"
        elif self.way is SignInWay.BEARER:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers

    def build_tls_context(self) -> ssl.SSLContext:
        """Return what connections are secured with. Raises ValueError for what is no PEM."""
        try:
            context = trust_authority(self.ca or None)
        except (ssl.SSLError, ValueError, TypeError):  # the last for what is not ASCII
            raise ValueError("The certificate authority is no certificate in PEM form.") from None
        if self.way is SignInWay.CERTIFICATE:
            load_client_certificate(context, self.certificate, self.key)
        return context

    def to_text(self) -> str:
        """Return what is stored; "" where there is nothing to sign in with."""
        return "" if self == SignIn() else msgspec.json.encode(self).decode()

    def _find_header_problem(self) -> tuple[str, str] | None:
        if len(self.headers) > MAX_HEADERS:
            return "headers", f"There may be at most {MAX_HEADERS} headers."
        for name, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(name):
                return "headers", f"{name[:40]!r} is no name of a header."
            if name.lower() in _RESERVED:
                return (
                    "headers",
                    f"The header {name} is not one to give: the way of signing in sets it.",
                )
            if len(value) > MAX_TEXT or not _PRINTABLE.fullmatch(value):
                return "headers", f"The value of {name} is too long, or cannot be sent."
        return None

    def _find_tls_problem(self) -> tuple[str, str] | None:
        try:
            self.build_tls_context()
        except BadKubeconfig as error:
            return "certificate", str(error)
        except ValueError as error:
            return "ca", str(error)
        return None


def parse_sign_in(text: str) -> SignIn:
    """Return the stored way of signing in. Raises ValueError for what is none."""
    return msgspec.json.decode(text, type=SignIn) if text else SignIn()
