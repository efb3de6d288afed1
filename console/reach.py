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

LONGEST = 2048
"""Characters of an address."""
WEB = ("https", "http")
GIT = ("https", "http", "ssh", "git")
METADATA = frozenset(
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
_OWN_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})
_INNER = (".internal", ".local", ".svc", ".localdomain", ".lan", ".intranet", ".corp", ".home.arpa")
"""How names end that no public resolver knows."""
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
_NUMBER = r"(?:0[xX][0-9a-fA-F]*|[0-9]+)"
_NUMERIC = re.compile(rf"{_NUMBER}(?:\.{_NUMBER}){{0,3}}")
"""An IPv4 address as the C library reads it: 2130706433, 0x7f.1, 0177.0.0.1."""
_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?:\.(?!-)[A-Za-z0-9_-]{1,63})*")
_SCP = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_.-]+)@)?(?P<host>[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):(?!//)(?P<path>[^:].*)"
)
_FORBIDDEN = frozenset(" \\<>\"{}|^`'")


@dataclass(frozen=True, slots=True)
class Reach:
    """Which addresses something may have, beside public ones. The settings that allow more are
    named to who is refused.
    """

    private: bool = True
    loopback: bool = False
    private_setting: str = "MUSTER_PRIVATE_CLUSTERS"
    loopback_setting: str = "MUSTER_LOOPBACK_CLUSTERS"
    asks: bool = True
    """Whether the resolver is asked where a name leads: not for what only pods connect to, whose
    resolver is another one.
    """

    def bars(self, text: str) -> str:
        """Why nothing is sent to this IP address, "" where it may be."""
        address = _plain(ipaddress.ip_address(text.partition("%")[0]))
        if address in METADATA or address.is_link_local:
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
            return self._own()
        is_inner = not address.is_global or getattr(address, "is_site_local", False)
        return self._inner("a private address") if is_inner else ""

    def bars_host(self, host: str) -> str:
        """The same of a host as it stands in an address: a name, or an IP address in any of its
        forms. Unknown names pass.
        """
        name = host.lower().rstrip(".")
        if name in METADATA_NAMES:
            return "it is the name at which a cloud answers its own machines"
        if name in _OWN_NAMES or name.endswith(".localhost"):
            return self._own()
        if (literal := _literal(name)) is not None:
            return self.bars(str(literal))
        if re.fullmatch(_NUMBER, name.rpartition(".")[2]):
            return "it is no address of a machine"
        if not self.private and ("." not in name or name.endswith(_INNER)):
            return self._inner("a name of a private network")
        return (
            next((why for found in _resolved(name) if (why := self.bars(found))), "")
            if self.asks
            else ""
        )

    def _own(self) -> str:
        return (
            ""
            if self.loopback
            else f"it is this machine's own{_allowed(self.loopback_setting, 'that')}"
        )

    def _inner(self, what: str) -> str:
        return "" if self.private else f"it is {what}{_allowed(self.private_setting, 'those')}"


def sources(*, is_local: bool) -> Reach:
    """Where pods may fetch from (Git, S3). Their loopback is a machine that people know only where
    the cluster `is_local`.
    """
    private: bool = settings.OPTIONS.private_sources
    return Reach(private, is_local, "MUSTER_PRIVATE_SOURCES", "", asks=not private)


def services() -> Reach:
    """Where the console itself may ask other services than clusters: single sign-on, webhooks."""
    inner: bool = settings.OPTIONS.inner_services
    return Reach(inner, inner, "MUSTER_PRIVATE_SERVICES", "MUSTER_PRIVATE_SERVICES")


def clusters(*, is_local: bool = False) -> Reach:
    """Where the console may ask what belongs to a cluster, as its Prometheus. The embedded one is
    on this machine.
    """
    options = settings.OPTIONS
    return (
        Reach(loopback=True)
        if is_local
        else Reach(options.private_clusters, options.local_clusters)
    )


def problem(
    text: str,
    reach: Reach,
    *,
    schemes: Collection[str] = WEB,
    user: bool = False,
    query: bool = False,
) -> str:
    """What is wrong with an address that somebody typed, as the end of a sentence that begins with
    it; "" where it is fine.

    `schemes` are those that it may begin with; with "ssh" among them user@host:path is one too.
    `user` allows a user's name in it, never a password. `query` allows ?a=b.
    """
    if len(text) > LONGEST:
        return f"must have at most {LONGEST} characters"
    if not text.isascii() or not text.isprintable() or _FORBIDDEN.intersection(text):
        return (
            "must be plain letters, digits and signs, without spaces (other letters as %41, names "
            "as xn--...)"
        )
    if "ssh" in schemes and "://" not in text and (short := _SCP.fullmatch(text)):
        return _led(short["host"].strip("[]"), reach)
    url = _split(text)
    if url is None or url.scheme not in schemes or not url.netloc:
        return (
            f"must begin with {_either(schemes)} and a server, as "
            f"{next(iter(schemes))}://server.example.com"
        )
    if url.password is not None or (url.username is not None and not user):
        return "must not hold a user or a password: everybody who sees the address would see them"
    if url.fragment or (url.query and not query):
        return "must not hold a query or a fragment"
    return _led(url.hostname or "", reach)


def require(
    text: str,
    reach: Reach,
    what: str,
    *,
    field: str = "",
    schemes: Collection[str] = WEB,
    user: bool = False,
) -> str:
    """The address again, or UserError. `what` begins the sentence, as "The issuer's address"."""
    if why := problem(text, reach, schemes=schemes, user=user):
        raise UserError(f"{what} {why}.", field=field)
    return text


def _led(host: str, reach: Reach) -> str:
    try:
        is_literal = bool(ipaddress.ip_address(host))
    except ValueError:
        is_literal = False
    if not is_literal and (len(host) > 253 or not _NAME.fullmatch(host.rstrip("."))):
        return "must have the name or the address of a server"
    why = reach.bars_host(host)
    return f"leads where it may not: {why}" if why else ""


def _split(text: str) -> SplitResult | None:
    try:
        url = urlsplit(text)
        _ = url.hostname, url.port
    except ValueError:
        return None
    return url


def _literal(host: str) -> Address | None:
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


def _resolved(host: str) -> list[str]:
    try:
        return [
            str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        ]
    except (OSError, UnicodeError):
        return []


def _plain(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, where it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _TRANSLATED or 1 < int(address) < 1 << 32:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return (
        address.ipv4_mapped
        or address.sixtofour
        or (address.teredo[1] if address.teredo else address)
    )


def _allowed(setting: str, what: str) -> str:
    return f" ({setting} allows {what})" if setting else ""


def _either(schemes: Collection[str]) -> str:
    *others, last = (f"{each}://" for each in schemes)
    return f"{', '.join(others)} or {last}" if others else last
