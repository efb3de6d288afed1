"""How many connections the web process holds, in all and of one address, and which gives way.

Knows nothing of HTTP: a connection is anything that can be told to give way.
"""

import ipaddress
import logging
import resource
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

log = logging.getLogger(__name__)

MAX_DESCRIPTORS = 65_536
MAX_CONNECTIONS = 10_000
IPV6_PREFIX = 64
"""Bits of an IPv6 address that belong to one customer, who can use all addresses below them."""


class Refusal(Enum):
    """Why a connection is not served."""

    ADDRESS_FULL = "address full"
    ALL_FULL = "all full"


class Connection(Protocol):
    """A connection that others may have to make room for."""

    def give_way(self) -> None:
        """Close, because another client wants the place and this one has sent nothing."""


@dataclass(slots=True)
class _Group:
    """Connections with one bound. `waiting` are those whose clients owe something, oldest first."""

    limit: int
    count: int = 0
    waiting: dict[Connection, None] = field(default_factory=dict)


class ConnectionBounds:
    """Counts connections, in all and by address. One that is full makes room where it can.

    Room is made by the connection whose client has sent nothing for longest: one that is half open,
    or is kept for a next request. So whoever opens many and says nothing only pushes out their own.
    """

    def __init__(self, per_address: int, in_all: int) -> None:
        self._per_address = per_address
        self._all = _Group(in_all)
        self._groups: dict[str, _Group] = {}

    def find_refusal(self, address: str) -> Refusal | None:
        """Make room for one more connection, or return why there is none.

        `address` is "" for a proxy that is trusted: what it holds is of many clients.
        """
        group = self._groups.get(address)
        if group is not None and not _make_room(group):
            return Refusal.ADDRESS_FULL
        return None if _make_room(self._all) else Refusal.ALL_FULL

    def add(self, connection: Connection, address: str) -> None:
        """Count a connection."""
        for group in self._list_groups(address):
            group.count += 1

    def remove(self, connection: Connection, address: str) -> None:
        """Count a connection no more."""
        self.set_waiting(connection, address, is_waiting=False)
        for group in self._list_groups(address):
            group.count -= 1
        if address and not self._groups[address].count:
            del self._groups[address]

    def set_waiting(self, connection: Connection, address: str, *, is_waiting: bool) -> None:
        """Say whether the server waits for this client; when it does, that it has just sent."""
        for group in self._list_groups(address):
            group.waiting.pop(connection, None)
            if is_waiting:
                group.waiting[connection] = None

    def _list_groups(self, address: str) -> list[_Group]:
        if not address:
            return [self._all]
        return [self._all, self._groups.setdefault(address, _Group(self._per_address))]


def _make_room(group: _Group) -> bool:
    """Return whether the group has a place, after the oldest waiting connection gave way."""
    if group.count >= group.limit and group.waiting:
        next(iter(group.waiting)).give_way()
    return group.count < group.limit


def build_address_key(host: str) -> str:
    """Return what counts as one address: an IPv4 address, or the network of an IPv6 one."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address), IPV6_PREFIX), strict=False))


def compute_max_connections() -> int:
    """Return the most connections to hold: half of this process's file descriptors.

    The descriptors are first raised to what the system allows: a process that has none left can
    neither accept a connection nor open its database.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, soft // 2)
