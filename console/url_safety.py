"""Addresses that people type: what may be in one, and where it may lead.

An `AddressPolicy` says which addresses are allowed beside public ones. `find_url_problem` judges a
whole address before it is stored; `AddressPolicy.find_ip_problem` judges the IP address that a
connection of ours ended at, because a name may resolve to another one by then. Link-local and
metadata addresses, which only a machine's own network answers, are never allowed.
"""

import ipaddress
import re
import socket
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from console.texts import join_words

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
"""Metadata services of clouds; most are link-local addresses, not all."""
METADATA_NAMES = frozenset(
    {
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "instance-data",
        "instance-data.ec2.internal",
    }
)
"""Names of metadata services: they resolve in a pod, though not here."""
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
"""Ends of names that no public resolver knows."""
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
    """Which addresses something may have, beside public ones.

    A refusal names the settings that would allow more.
    """

    private: bool = True
    loopback: bool = False
    private_setting: str = "MUSTER_PRIVATE_CLUSTERS"
    loopback_setting: str = "MUSTER_LOOPBACK_CLUSTERS"
    resolves_names: bool = True
    """Whether names are resolved: not for what only pods connect to, whose resolver is another."""

    def find_ip_problem(self, text: str) -> str:
        """Return why nothing may be sent to this IP address, "" where it may be."""
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
        """Return why nothing may be sent to this host, "" where it may be.

        The host is a name or an IP address in any notation. A name that does not resolve passes.
        """
        name = host.lower().rstrip(".")
        if name in METADATA_NAMES:
            return "it is the name at which a cloud answers its own machines"
        if name in _LOOPBACK_NAMES or name.endswith(".localhost"):
            return self._find_loopback_problem()
        if (literal := _parse_ip(name)) is not None:
            return self.find_ip_problem(str(literal))
        # Clients read a host that ends in a number as an IPv4 address (WHATWG URL, "ends in a
        # number checker"), whatever it is to us.
        if re.fullmatch(_NUMBER, name.rpartition(".")[2]):
            return "it is no address of a machine"
        if not self.private and ("." not in name or name.endswith(_PRIVATE_SUFFIXES)):
            return self._find_private_problem("a name of a private network")
        return (
            next(
                (why for address in _resolve_host(name) if (why := self.find_ip_problem(address))),
                "",
            )
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
    """Return where pods may fetch from (Git, S3).

    Loopback is allowed only where the cluster `is_local`: there it is a machine that people know.
    """
    private: bool = settings.OPTIONS.private_sources
    return AddressPolicy(
        private, is_local, "MUSTER_PRIVATE_SOURCES", "", resolves_names=not private
    )


def build_service_policy() -> AddressPolicy:
    """Return where the console may reach services other than clusters: single sign-on, webhooks."""
    inner: bool = settings.OPTIONS.inner_services
    return AddressPolicy(inner, inner, "MUSTER_PRIVATE_SERVICES", "MUSTER_PRIVATE_SERVICES")


def build_cluster_policy(*, is_local: bool = False) -> AddressPolicy:
    """Return where the console may reach a cluster's services, as its Prometheus.

    The embedded cluster is on this machine.
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
    """Return what is wrong with a typed address, as the end of a sentence; "" where it is fine.

    The sentence begins with the address's name. `schemes` are the allowed ones; with "ssh" among
    them user@host:path is allowed too. `allow_user` allows a user's name in it, never a password.
    `allow_query` allows ?a=b.
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
        prefixes = join_words([f"{each}://" for each in schemes], "or")
        return (
            f"must begin with {prefixes} and a server, as "
            f"{next(iter(schemes))}://server.example.com"
        )
    if url.password is not None or (url.username is not None and not allow_user):
        return "must not hold a user or a password: everybody who sees the address would see them"
    if url.fragment or (url.query and not allow_query):
        return "must not hold a query or a fragment"
    return _find_server_problem(url.hostname or "", policy)


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
    """Return the IPv4 address that an IPv6 address stands for; else the address."""
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
