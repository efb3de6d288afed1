"""Addresses that people type: what may be in one, and where it may lead. Never to what only a
machine's own network answers.

A `Reach` says which addresses are fine beside public ones. `problem` judges a whole address before
it is kept; `Reach.bars` judges the IP address that a connection of ours ended at, because a name
may lead elsewhere by then.
"""

import ipaddress
import re
import socket
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from console.errors import UserError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

MAX_URL_CHARS = 2048
"""Characters of an address."""
WEB_SCHEMES = ("https", "http")
GIT_SCHEMES = ("https", "http", "ssh", "git")
METADATA_ADDRESSES = frozenset(
    ipaddress.ip_address(each)
    for each in (
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
    )
)
"""Where clouds answer their own machines; most are link-local addresses, these are not all."""
METADATA_NAMES = frozenset(
    {
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "instance-data",
        "instance-data.ec2.internal",
    }
)
"""The same by name: it leads there from a pod, though not from here."""
_LOOPBACK_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})
_PRIVATE_SUFFIXES = (
    ".internal",
    ".local",
    ".svc",
    ".localdomain",
    ".lan",
    ".intranet",
    ".corp",
    ".home.arpa",
)
"""How names end that no public resolver knows."""
_NAT64_NETWORK = ipaddress.ip_network("64:ff9b::/96")
_NUMBER = r"(?:0[xX][0-9a-fA-F]*|[0-9]+)"
_NUMERIC = re.compile(rf"{_NUMBER}(?:\.{_NUMBER}){{0,3}}")
"""An IPv4 address as the C library reads it: 2130706433, 0x7f.1, 0177.0.0.1."""
_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?:\.(?!-)[A-Za-z0-9_-]{1,63})*")
_SCP = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_.-]+)@)?(?P<host>[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):(?!//)(?P<path>[^:].*)"
)
_FORBIDDEN = frozenset(" \\<>\"{}|^`'")


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """Which addresses something may have, beside public ones. The settings that allow more are
    named to who is refused.
    """

    private: bool = True
    loopback: bool = False
    private_setting: str = "MUSTER_PRIVATE_CLUSTERS"
    loopback_setting: str = "MUSTER_LOOPBACK_CLUSTERS"
    resolves_names: bool = True
    """Whether the resolver is asked where a name leads: not for what only pods connect to, whose
    resolver is another one.
    """

    def find_ip_problem(self, text: str) -> str:
        """Why nothing is sent to this IP address, "" where it may be."""
        address = _unwrap_ipv4(ipaddress.ip_address(text.partition("%")[0]))
        if address in METADATA_ADDRESSES or address.is_link_local:
            return (
                "it is a link-local or metadata address, at which only a cloud answers its own "
                "machines"
            )
        if (
            address.is_multicast
            or address.is_unspecified
            or (address.is_reserved and not address.is_loopback)
        ):
            return "it is no address of a machine"
        if address.is_loopback:
            return self._find_loopback_problem()
        is_inner = not address.is_global or getattr(address, "is_site_local", False)
        return self._find_private_problem("a private address") if is_inner else ""

    def find_host_problem(self, host: str) -> str:
        """The same of a host as it stands in an address: a name, or an IP address in any of its
        forms. Unknown names pass.
        """
        name = host.lower().rstrip(".")
        if name in METADATA_NAMES:
            return "it is the name at which a cloud answers its own machines"
        if name in _LOOPBACK_NAMES or name.endswith(".localhost"):
            return self._find_loopback_problem()
        if (literal := _parse_ip(name)) is not None:
            return self.find_ip_problem(str(literal))
        if re.fullmatch(_NUMBER, name.rpartition(".")[2]):
            return "it is no address of a machine"
        if not self.private and ("." not in name or name.endswith(_PRIVATE_SUFFIXES)):
            return self._find_private_problem("a name of a private network")
        return (
            next((why for found in _resolve_host(name) if (why := self.find_ip_problem(found))), "")
            if self.resolves_names
            else ""
        )

    def _find_loopback_problem(self) -> str:
        return (
            ""
            if self.loopback
            else f"it is this machine's own{_describe_setting(self.loopback_setting, 'that')}"
        )

    def _find_private_problem(self, description: str) -> str:
        return (
            ""
            if self.private
            else f"it is {description}{_describe_setting(self.private_setting, 'those')}"
        )


def build_source_policy(*, is_local: bool) -> AddressPolicy:
    """Where pods may fetch from (Git, S3). Their loopback is a machine that people know only where
    the cluster `is_local`.
    """
    private: bool = settings.OPTIONS.private_sources
    return AddressPolicy(
        private, is_local, "MUSTER_PRIVATE_SOURCES", "", resolves_names=not private
    )


def build_service_policy() -> AddressPolicy:
    """Where the console itself may ask other services than clusters: single sign-on, webhooks."""
    inner: bool = settings.OPTIONS.inner_services
    return AddressPolicy(inner, inner, "MUSTER_PRIVATE_SERVICES", "MUSTER_PRIVATE_SERVICES")


def build_cluster_policy(*, is_local: bool = False) -> AddressPolicy:
    """Where the console may ask what belongs to a cluster, as its Prometheus. The embedded one is
    on this machine.
    """
    options = settings.OPTIONS
    return (
        AddressPolicy(loopback=True)
        if is_local
        else AddressPolicy(options.private_clusters, options.local_clusters)
    )


def find_url_problem(
    text: str,
    policy: AddressPolicy,
    *,
    schemes: Collection[str] = WEB_SCHEMES,
    allow_user: bool = False,
    allow_query: bool = False,
) -> str:
    """What is wrong with an address that somebody typed, as the end of a sentence that begins with
    it; "" where it is fine.

    `schemes` are those that it may begin with; with "ssh" among them user@host:path is one too.
    `user` allows a user's name in it, never a password. `query` allows ?a=b.
    """
    if len(text) > MAX_URL_CHARS:
        return f"must have at most {MAX_URL_CHARS} characters"
    if not text.isascii() or not text.isprintable() or _FORBIDDEN.intersection(text):
        return (
            "must be plain letters, digits and signs, without spaces (other letters as %41, names "
            "as xn--...)"
        )
    if "ssh" in schemes and "://" not in text and (short := _SCP.fullmatch(text)):
        return _find_server_problem(short["host"].strip("[]"), policy)
    url = _split_url(text)
    if url is None or url.scheme not in schemes or not url.netloc:
        return (
            f"must begin with {_join_schemes(schemes)} and a server, as "
            f"{next(iter(schemes))}://server.example.com"
        )
    if url.password is not None or (url.username is not None and not allow_user):
        return "must not hold a user or a password: everybody who sees the address would see them"
    if url.fragment or (url.query and not allow_query):
        return "must not hold a query or a fragment"
    return _find_server_problem(url.hostname or "", policy)


def validate_url(
    text: str,
    policy: AddressPolicy,
    subject: str,
    *,
    field: str = "",
    schemes: Collection[str] = WEB_SCHEMES,
    allow_user: bool = False,
) -> str:
    """The address again, or UserError. `what` begins the sentence, as "The issuer's address"."""
    if why := find_url_problem(text, policy, schemes=schemes, allow_user=allow_user):
        raise UserError(f"{subject} {why}.", field=field)
    return text


def _find_server_problem(host: str, policy: AddressPolicy) -> str:
    try:
        is_literal = bool(ipaddress.ip_address(host))
    except ValueError:
        is_literal = False
    if not is_literal and (len(host) > 253 or not _NAME.fullmatch(host.rstrip("."))):
        return "must have the name or the address of a server"
    why = policy.find_host_problem(host)
    return f"leads where it may not: {why}" if why else ""


def _split_url(text: str) -> SplitResult | None:
    try:
        url = urlsplit(text)
        _ = url.hostname, url.port
    except ValueError:
        return None
    return url


def _parse_ip(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    if not _NUMERIC.fullmatch(host):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _resolve_host(host: str) -> list[str]:
    try:
        return [
            str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        ]
    except (OSError, UnicodeError):
        return []


def _unwrap_ipv4(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, where it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64_NETWORK or 1 < int(address) < 1 << 32:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return (
        address.ipv4_mapped
        or address.sixtofour
        or (address.teredo[1] if address.teredo else address)
    )


def _describe_setting(setting: str, allowed: str) -> str:
    return f" ({setting} allows {allowed})" if setting else ""


def _join_schemes(schemes: Collection[str]) -> str:
    *others, last = (f"{each}://" for each in schemes)
    return f"{', '.join(others)} or {last}" if others else last
