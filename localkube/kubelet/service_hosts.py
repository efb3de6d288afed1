"""Host names of headless Services, as loopback addresses.

A real cluster's DNS answers `HOST.SERVICE` with the address of the Service's pod whose host name is
HOST. Here all pods share one machine and nobody answers, so the kubelet writes an address into a
container's variables instead: one of 127.64.0.0/10, the same for every pod that asks for the host,
and another than that of any other host. A program listens there beside others on the same port.
"""

import hashlib
import ipaddress
import re
from collections.abc import Callable

from localkube.metadata import Object, uid_of
from localkube.resources.services import HEADLESS

LOOPBACK_HOSTS = ipaddress.IPv4Network("127.64.0.0/10")
"""The addresses of hosts; 127.0.0.1, which everything else uses, is not among them."""

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_ENDINGS = ((), ("svc",), ("svc", "cluster", "local"))
"""What may follow the namespace in the name of a host."""

FindService = Callable[[str], Object | None]
"""Returns a Service of the pod's namespace by its name."""


def replace_host_names(text: str, namespace: str, find_service: FindService) -> str:
    """Replace each name of a headless Service's host in a text by the host's loopback address.

    A name is HOST.SERVICE, or that with the namespace, `svc` and `cluster.local` after it. What
    stands before and after it, such as a port, stays.
    """
    services: dict[str, Object | None] = {}

    def substitute(match: re.Match[str]) -> str:
        host, *rest = match.group().split(".")
        if not rest or not _LABEL.fullmatch(host) or not _LABEL.fullmatch(rest[0]):
            return match.group()
        if len(rest) > 1 and not (rest[1] == namespace and tuple(rest[2:]) in _ENDINGS):
            return match.group()
        service = rest[0]
        if service not in services:
            services[service] = find_service(service)
        service_object = services[service]
        if service_object is None or service_object["spec"].get("clusterIP") != HEADLESS:
            return match.group()
        return compute_address(service_object, host)

    return _NAME.sub(substitute, text)


def compute_address(service: Object, host: str) -> str:
    """Return the loopback address of a Service's host; it follows from the Service's uid and the
    host's name.
    """
    digest = hashlib.sha256(f"{uid_of(service)}/{host}".encode()).digest()
    number = int.from_bytes(digest[:8]) % LOOPBACK_HOSTS.num_addresses
    return str(LOOPBACK_HOSTS[number])
