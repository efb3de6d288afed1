"""Throttling of sign-in attempts: after some failures each further one must wait longer.

Nobody is locked out for good. Failures are counted in the database, per name and address and per
address, so that every process knows them.
"""

import hashlib
import ipaddress
import math
from datetime import timedelta

from django.conf import settings
from django.db import models, transaction
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
LONGEST_WAIT = 300
"""Seconds between two attempts at most."""
ANY_ADDRESS = "*"
"""Stands for all addresses together.

For a code that is short enough to be guessed from many addresses.
"""
FORGET_AFTER = timedelta(hours=1)
"""How long after the last failure the failures count."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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


def record_attempt(name: str, address: str, *, free: int = FREE_FOR_PERSON) -> None:
    """Count an attempt; call it before the password is checked.

    It counts as failed until `record_success` is called. Raises TooManyAttempts, which is not
    counted.
    """
    limits = {_hash_key(name, address): free} | (
        {} if address == ANY_ADDRESS else {_hash_key(address): FREE_FOR_ADDRESS}
    )
    now = timezone.now()
    with transaction.atomic():
        FailedSignIns.objects.filter(last_at__lt=now - FORGET_AFTER).delete()
        # A row must exist before it can be locked; another process may create it at the same time.
        FailedSignIns.objects.bulk_create(
            [FailedSignIns(key=key) for key in limits], ignore_conflicts=True
        )
        # Locked before they are judged: guesses made at the same time are counted one after the
        # other. Always in the order of the keys, so that two attempts cannot deadlock.
        for row in FailedSignIns.objects.select_for_update().filter(key__in=limits).order_by("key"):
            remaining = (
                _compute_wait(row.failures - limits[row.key]) - (now - row.last_at).total_seconds()
            )
            if row.failures >= limits[row.key] and remaining > 0:
                raise TooManyAttempts(math.ceil(remaining))
        FailedSignIns.objects.filter(key__in=limits).update(
            failures=models.F("failures") + 1, last_at=now
        )


def record_success(name: str, address: str) -> None:
    """Forget the name's failures at this address, and take the attempt off the address."""
    FailedSignIns.objects.filter(key=_hash_key(name, address)).delete()
    if address != ANY_ADDRESS:
        FailedSignIns.objects.filter(key=_hash_key(address), failures__gt=0).update(
            failures=models.F("failures") - 1
        )


def _compute_wait(surplus: int) -> int:
    """Return the seconds to wait after so many surplus failures: 2, 4, 8 and so on."""
    return min(LONGEST_WAIT, int(2 ** min(16, surplus + 1)))


def _hash_key(*parts: str) -> str:
    """Return a digest, so that a typed name is neither stored nor too long."""
    return hashlib.sha256(
        "\x00".join(part.casefold() for part in parts).encode(errors="replace")
    ).hexdigest()
