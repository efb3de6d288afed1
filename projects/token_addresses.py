"""The addresses from which each user's tokens are used.

The first use from an address is recorded in the audit log; later ones cost one look into the cache.
"""

import ipaddress
from datetime import timedelta

from django.core.cache import cache
from django.db import transaction
from django.utils import timezone

from projects import audit
from projects.audit import Event
from projects.models import KnownAddress, User

CACHE_SECONDS = 12 * 3600
"""Seconds for which a process does not ask the database again; the cache is bounded."""
MAX_ADDRESSES = 500
"""Addresses stored for one user; the one unused for the longest time goes first."""


def record_token_use(user: User) -> None:
    """Record that a token of the user was issued or used in this request."""
    origin = audit.origin.get()
    if origin is None or origin.address is None:
        return
    address = _shorten_address(origin.address)
    key = f"muster.known-address:{user.pk}:{address}"
    if cache.get(key) is None:
        _record_address(user, address)
        cache.set(key, True, CACHE_SECONDS)


def _record_address(user: User, address: str) -> None:
    now = timezone.now()
    with transaction.atomic():
        row, is_new = KnownAddress.objects.get_or_create(user=user, address=address)
        if is_new:
            KnownAddress.objects.filter(pk__in=_list_surplus(user)).delete()
            audit.record(Event.TOKEN, "user", by=user, id=user.pk, name=user.username)
        elif now - row.last_at > timedelta(seconds=CACHE_SECONDS):
            KnownAddress.objects.filter(pk=row.pk).update(last_at=now)


def _list_surplus(user: User) -> list[int]:
    return list(
        KnownAddress.objects.filter(user=user)
        .order_by("-last_at", "-pk")
        .values_list("pk", flat=True)[MAX_ADDRESSES : 2 * MAX_ADDRESSES]
    )


def _shorten_address(text: str) -> str:
    """Return the address to store: an IPv6 address by its /64 network.

    One person has many addresses of one /64 network.
    """
    address = ipaddress.ip_address(text)
    return (
        text
        if address.version == 4
        else str(ipaddress.ip_network((address, 64), strict=False).network_address)
    )
