"""`/metrics`: the figures of all processes, for Prometheus and nobody else."""

import hmac
import ipaddress
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe

from console.metrics.publishing import Publisher
from console.metrics.shared import SharedFigures, load_process_families
from console.metrics.snapshots import CONTENT_TYPE, join_families, render_families

FORWARDING_HEADERS = (
    "Forwarded",
    "Via",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Real-Ip",
)
"""Any of them says that the request comes by way of a proxy, which is not who asks."""
UNAUTHORIZED_TEXT = (
    "Metrics are given to who shows the token. Send the header Authorization: Bearer TOKEN, with "
    "the value of MUSTER_METRICS_TOKEN.\n"
)
FORBIDDEN_TEXT = (
    "Metrics are not given to this address. Without a token only programs on the machine of the "
    "web process get them, without a proxy between, and not in production. Set "
    "MUSTER_METRICS_TOKEN, and send the header Authorization: Bearer TOKEN.\n"
)


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer with the figures of all processes, as text that Prometheus reads."""
    token = settings.OPTIONS.metrics_token
    if token and not _has_token(request, token):
        refusal = HttpResponse(UNAUTHORIZED_TEXT, content_type="text/plain", status=401)
        refusal["WWW-Authenticate"] = 'Bearer realm="Muster metrics"'
        return refusal
    if not token and not is_from_this_machine(request):
        return HttpResponse(FORBIDDEN_TEXT, content_type="text/plain", status=403)
    return HttpResponse(render_metrics(), content_type=CONTENT_TYPE)


def render_metrics() -> str:
    """Render the figures of all processes, and those that belong to none."""
    publisher = Publisher("web")
    try:
        # Stored as they are answered: another web process, asked a moment later, must not answer
        # with less than this one, which would look like a restart.
        snapshots = [publisher.publish(), *load_process_families(but=publisher.process_id)]
    except (DatabaseError, InterfaceError):
        snapshots = [publisher.render()]
    return join_families([*snapshots, render_families(SharedFigures())])


def is_from_this_machine(request: HttpRequest) -> bool:
    """Return whether a program on this machine asks, and certainly not through a proxy.

    A proxy on this machine has a loopback address, too. In production there is one, even if it
    says nothing of itself; behind a trusted one the address is what the proxy was told.
    """
    options = settings.OPTIONS
    if options.production or options.behind_proxy:
        return False
    if any(name in request.headers for name in FORWARDING_HEADERS):
        return False
    host = urlsplit(f"//{request.headers.get('Host', '')}").hostname or ""
    return _is_loopback(str(request.META.get("REMOTE_ADDR", ""))) and (
        host == "localhost" or _is_loopback(host)
    )


def _is_loopback(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    # A socket for both kinds shows IPv4 addresses so.
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def _has_token(request: HttpRequest, token: str) -> bool:
    kind, _, credentials = request.headers.get("Authorization", "").partition(" ")
    # As bytes: a header may have any characters. In constant time, so that nobody can measure how
    # much of a guess is right.
    return kind.lower() == "bearer" and hmac.compare_digest(
        credentials.strip().encode(), token.encode()
    )


urlpatterns = [path("metrics", metrics, name="metrics")]
