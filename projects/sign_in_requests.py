"""Signing in a program by a one-time code that a signed-in person confirms (RFC 8628).

The program asks for a code and shows it; the person opens a page, sees who asks from where, and
confirms; the program exchanges its secret for a token, once.
"""

import hashlib
import ipaddress
import secrets
from collections import defaultdict
from datetime import timedelta

from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from console.errors import NotAllowed, UserError
from projects import audit, throttle
from projects.audit import Event
from projects.models import SignInRequest, User

LIFETIME = timedelta(minutes=10)
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""Letters of a code: no vowels, so no words, and nothing that is read for a digit."""
GROUP_LETTERS = 4
POLL_SECONDS = 2
"""How often a program may ask whether its code is confirmed."""
MOST_OF_NETWORK = 20
"""Codes of one address, or one IPv6 network, that wait at once."""
MOST_REQUESTS = 2000
"""Codes that wait at once, of all addresses; for one more, whoever has most gives one up."""
ENDED = "The code has expired, or was used already. Ask for a new one."


def create_request(client: str, request: HttpRequest) -> tuple[SignInRequest, str]:
    """Return a request for a token, and the secret by which the program takes it.

    Raises UserError where too many wait.
    """
    address = throttle.find_client_ip(request)
    network = throttle.client_address(request)
    secret = secrets.token_urlsafe(32)
    with transaction.atomic():
        SignInRequest.objects.filter(created_at__lt=timezone.now() - LIFETIME).delete()
        _require_room(network)
        row = SignInRequest.objects.create(
            secret_digest=_compute_digest(secret),
            code=_generate_code(),
            client=_clean_client(client),
            address=None if address is None else str(address),
            network=network,
        )
    return row, secret


def _require_room(network: str) -> None:
    """Make room for one more request of a network. Raises UserError where there is none.

    Somebody who asks from many networks fills all places, so the oldest request of those who have
    most gives way: as a rule that is one of their own.
    """
    requests = SignInRequest.objects.order_by()
    # Bounded, so that what is counted is too.
    own = requests.filter(network=network, user=None).values_list("pk")[:MOST_OF_NETWORK]
    has_room = len(own) < MOST_OF_NETWORK
    if has_room and len(requests.values_list("pk")[:MOST_REQUESTS]) == MOST_REQUESTS:
        has_room = _drop_oldest_of_busiest()
    if not has_room:
        raise UserError(
            "Too many codes wait to be confirmed. Confirm one of them, or wait ten minutes.",
            status=429,
        )


def _drop_oldest_of_busiest() -> bool:
    """Delete the oldest undecided request of the site with most; tell whether it has several."""
    by_site: dict[str, list[int]] = defaultdict(list)
    waiting = SignInRequest.objects.filter(user=None).order_by("created_at", "pk")
    for key, network in waiting.values_list("pk", "network"):
        by_site[_find_site(network)].append(key)
    requests = max(by_site.values(), key=len, default=[])
    if len(requests) < 2:
        return False
    SignInRequest.objects.filter(pk=requests[0], user=None).delete()
    return True


def _find_site(network: str) -> str:
    """Return the wider network of which one customer of a provider has all."""
    try:
        parsed_network = ipaddress.ip_network(network)
    except ValueError:
        return network
    return str(parsed_network.supernet(new_prefix=48 if parsed_network.version == 6 else 24))


def find_waiting(code: str, user: User, request: HttpRequest) -> SignInRequest | None:
    """Return the request that a code is of, while it waits to be decided.

    Wrong codes are counted: raises TooManyAttempts.
    """
    name, address = f"sign-in-request:{user.pk}", throttle.client_address(request)
    attempt = throttle.record_attempt(name, address)
    row = SignInRequest.objects.filter(
        code=_normalize_code(code),
        user=None,
        created_at__gte=timezone.now() - LIFETIME,
    ).first()
    if row is not None:
        throttle.record_success(attempt)
    return row


def decide(row: SignInRequest, user: User, *, is_confirmed: bool) -> None:
    """Confirm or deny a request that waits. Raises UserError where somebody else was first."""
    with transaction.atomic():
        waiting = SignInRequest.objects.filter(
            pk=row.pk, user=None, created_at__gte=timezone.now() - LIFETIME
        )
        if waiting.update(user=user, is_denied=not is_confirmed) != 1:
            raise UserError(ENDED)
        audit.record(
            Event.TOKEN,
            "user",
            by=user,
            id=user.pk,
            name=user.username,
            succeeded=is_confirmed,
            text=f"{'Confirmed' if is_confirmed else 'Denied'} the code of {row}.",
        )


def claim_token_owner(secret: str) -> User | None:
    """Return who confirmed the request of a secret, once; None while nobody has decided.

    Raises NotAllowed where it was denied, and UserError where it has ended.
    """
    with transaction.atomic():
        row = (
            SignInRequest.objects.select_for_update(of=("self",))
            .select_related("user")
            .filter(
                secret_digest=_compute_digest(secret),
                created_at__gte=timezone.now() - LIFETIME,
            )
            .first()
        )
        if row is None:
            raise UserError(ENDED)
        if row.user is None:
            return None
        row.delete()
    if row.is_denied:
        raise NotAllowed(f"{row.user.username} denied the code.")
    if not row.user.is_active:
        raise NotAllowed(f"{row.user.username} cannot sign in any more.")
    if row.user.must_change_password:
        raise NotAllowed(f"{row.user.username} has to choose a new password first, on a page.")
    owner: User = row.user
    return owner


def _generate_code() -> str:
    """Return eight letters out of twenty, which is 34 bits, in two groups."""
    groups = ("".join(secrets.choice(LETTERS) for _ in range(GROUP_LETTERS)) for _ in range(2))
    return "-".join(groups)


def _normalize_code(text: str) -> str:
    """Return a code as it is stored, however it was typed."""
    letters = "".join(each for each in text[:40].upper() if each.isalnum())
    return f"{letters[:GROUP_LETTERS]}-{letters[GROUP_LETTERS:]}"


def _clean_client(text: str) -> str:
    """Return what a program says of itself in one bounded line: a person will read it."""
    return "".join(each for each in text[:60] if each.isprintable()).strip() or "A program"


def _compute_digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
