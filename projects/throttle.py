"""Throttling of sign-in attempts: after some failures each further one must wait longer.

Nobody is locked out for good. Failures are counted in the database, per name and address and per
address, so that every process knows them. One name counts for its address only a few times: a
program that goes on with an old secret keeps nobody else behind the same address waiting.
"""

import hashlib
import ipaddress
import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import models, transaction
from django.db.models.functions import Greatest
from django.http import HttpRequest
from django.utils import timezone

from console.errors import UserError
from projects.models import FailedSignIns

FREE_FOR_PERSON = 10
"""Failures for one name at one address before attempts have to wait."""
FREE_FOR_PROGRAM = 100
"""The same for a client id: its secret cannot be guessed, and many programs behind one address may
start at once.
"""
FREE_FOR_ADDRESS = 100
"""Failures of one address with any names."""
COUNTED_FOR_ADDRESS = 10
"""Failures of one name that count for its address; further ones have to wait by the name alone."""
LONGEST_WAIT = 300
"""Seconds between two attempts at most."""
ANY_ADDRESS = "*"
"""Stands for all addresses together.

For a code that is short enough to be guessed from many addresses.
"""
FORGET_AFTER = timedelta(hours=1)
"""How long after the last failure the failures count."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that was counted; `record_success` takes it back.

    `address_key` is "" where no address counts.
    """

    name_key: str
    address_key: str


class TooManyAttempts(UserError):
    """An attempt that comes too early. `wait` is in seconds."""

    status = 429

    def __init__(self, wait: int) -> None:
        unit = "second" if wait == 1 else "seconds"
        super().__init__(
            f"There were too many failed attempts to sign in. Wait {wait} {unit}, and try again."
        )
        self.wait = wait


def find_client_ip(request: HttpRequest) -> Address | None:
    """Return the address that a request comes from; None where it cannot be known."""
    text = str(request.META.get("REMOTE_ADDR", ""))
    if settings.OPTIONS.behind_proxy:
        # The proxy appends the address it saw; what stands before that is the client's own claim.
        text = str(request.META.get("HTTP_X_FORWARDED_FOR", text)).rpartition(",")[2].strip()
        text = _strip_port(text)
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    # A socket for both kinds shows IPv4 addresses so; all of them lie in one /64 network.
    return getattr(address, "ipv4_mapped", None) or address


def client_address(request: HttpRequest) -> str:
    """Return the address under which attempts are counted.

    An IPv6 address is counted by its /64 network, of which one person has many addresses.
    """
    address = find_client_ip(request)
    if address is None:
        return "unknown"
    return (
        str(ipaddress.ip_network((address, 64), strict=False))
        if address.version == 6
        else str(address)
    )


def record_attempt(name: str, address: str, *, free: int = FREE_FOR_PERSON) -> Attempt:
    """Count an attempt; call it before the password is checked.

    It counts as failed until `record_success` is called. Raises TooManyAttempts, which is not
    counted.
    """
    attempt = build_attempt(name, address)
    name_key, address_key = attempt.name_key, attempt.address_key
    limits = {name_key: free} | ({address_key: FREE_FOR_ADDRESS} if address_key else {})
    now = timezone.now()
    with transaction.atomic():
        FailedSignIns.objects.filter(last_at__lt=now - FORGET_AFTER).delete()
        # A row must exist before it can be locked; another process may create it at the same time.
        FailedSignIns.objects.bulk_create(
            [FailedSignIns(key=key) for key in limits], ignore_conflicts=True
        )
        # Locked before they are judged: guesses made at the same time are counted one after the
        # other. Always in the order of the keys, so that two attempts cannot deadlock.
        rows = FailedSignIns.objects.select_for_update().filter(key__in=limits).order_by("key")
        failures = {row.key: _require_waited(row, limits[row.key], now) for row in rows}
        # A success of the same name may have deleted the row just before it was locked.
        is_over = failures.get(name_key, 0) >= COUNTED_FOR_ADDRESS
        FailedSignIns.objects.filter(key__in={name_key} if is_over else limits).update(
            failures=models.F("failures") + 1, last_at=now
        )
    return attempt


def build_attempt(name: str, address: str) -> Attempt:
    """Build the attempt of a name at an address, which is counted elsewhere."""
    return Attempt(_hash_key(name, address), "" if address == ANY_ADDRESS else _hash_key(address))


def record_success(attempt: Attempt) -> None:
    """Forget the name's failures at this address, and take what counts of them off the address."""
    keys = (attempt.name_key, attempt.address_key)
    with transaction.atomic():
        # In the order of the keys, as attempts are.
        rows = FailedSignIns.objects.select_for_update().filter(key__in=keys).order_by("key")
        failures = {row.key: row.failures for row in rows}
        FailedSignIns.objects.filter(key=attempt.name_key).delete()
        counted = min(failures.get(attempt.name_key, 0), COUNTED_FOR_ADDRESS)
        FailedSignIns.objects.filter(key=attempt.address_key).update(
            failures=Greatest(models.F("failures") - counted, 0)
        )


def _require_waited(row: FailedSignIns, limit: int, now: datetime) -> int:
    """Return the failures of a row. Raises TooManyAttempts where there is still time to wait."""
    remaining = _compute_wait(row.failures - limit) - (now - row.last_at).total_seconds()
    if row.failures >= limit and remaining > 0:
        raise TooManyAttempts(math.ceil(remaining))
    return row.failures


def _compute_wait(surplus: int) -> int:
    """Return the seconds to wait after so many surplus failures: 2, 4, 8 and so on."""
    return min(LONGEST_WAIT, int(2 ** min(16, surplus + 1)))


def _strip_port(text: str) -> str:
    """Return an address without brackets and port, which some proxies add.

    They write 192.0.2.7:51234 or [2001:db8::1]:51234; IPv6 without brackets has no port.
    """
    if text.startswith("["):
        return text[1:].partition("]")[0]
    host, _, port = text.rpartition(":")
    return host if "." in host and port.isdecimal() else text


def _hash_key(*parts: str) -> str:
    """Return a digest, so that a typed name is neither stored nor too long."""
    return hashlib.sha256(
        "\x00".join(part.casefold() for part in parts).encode(errors="replace")
    ).hexdigest()
