"""`/healthz`: this process answers. `/readyz`: it can do its work, and what is degraded."""

import logging
import time

import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe

from console.metrics.shared import find_beat_age

log = logging.getLogger(__name__)

BEAT_SILENT_SECONDS = 60.0
"""Seconds without a sign of life after which beat counts as silent.

It looks at its clock every five seconds, and stores that every ten.
"""

_migrated_databases: set[str] = set()
"""Names of the databases that were seen up to date.

Migrations stay applied, and looking costs a tenth of a second.
"""


class _Readiness:
    """What `readyz` answered last, and since when beat has had all it needs."""

    trouble = ""
    _complete_since: float | None = None
    """By the monotonic clock; None while the database or the broker is away."""

    def record_completeness(self, is_complete: bool) -> float:
        """Note whether database and broker are there; return for how many seconds they were."""
        now = time.monotonic()
        since = (self._complete_since or now) if is_complete else None
        self._complete_since = since
        return 0.0 if since is None else now - since

    def log_change(self, trouble: str) -> None:
        """Log the trouble, or its end, unless it was so before."""
        if trouble == self.trouble:
            return
        self.trouble = trouble
        if trouble:
            log.warning("not ready: %s", trouble)
        else:
            log.info("ready")


_readiness = _Readiness()


@login_not_required
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200 while the process lives."""
    return HttpResponse("ok\n", content_type="text/plain")


@login_not_required
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 when the database answers and has this release's tables; 503 otherwise.

    A missing broker or a silent beat is named in the text and does not change the status.
    """
    trouble = _check_database()
    _readiness.log_change(trouble)
    degradation = "" if trouble else _check_broker()
    complete_seconds = _readiness.record_completeness(not trouble and not degradation)
    # While everything starts, beat has had no time yet, and what is stored is of the one before. It
    # stands still while the broker is away, which alone is then to be mended.
    if complete_seconds > BEAT_SILENT_SECONDS:
        degradation = _check_beat()
    lines = [trouble or "ready", degradation]
    return HttpResponse(
        "".join(f"{line}\n" for line in lines if line),
        content_type="text/plain",
        status=503 if trouble else 200,
    )


def _check_database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return "" if _is_migrated() else "the database waits for its migrations"
    except (DatabaseError, ImproperlyConfigured):
        return "the database does not answer"


def _is_migrated() -> bool:
    name = str(connection.settings_dict["NAME"])
    if name not in _migrated_databases:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return False
        _migrated_databases.add(name)
    return True


def _check_broker() -> str:
    client = redis.Redis.from_url(
        settings.REDIS_URL, socket_connect_timeout=0.5, socket_timeout=0.5
    )
    try:
        client.ping()
    except redis.RedisError:
        return (
            "degraded: Redis does not answer; pages look for news less often, and steps wait until "
            "it does: the sweep, which then finds them, comes through Redis, too. Start Redis again"
        )
    finally:
        client.close()
    return ""


def _check_beat() -> str:
    try:
        age = find_beat_age()
    except (DatabaseError, InterfaceError):
        # It answered a moment ago; the next request says what is.
        return ""
    if age is not None and age <= BEAT_SILENT_SECONDS:
        return ""
    return (
        "degraded: beat has given no sign of life for more than a minute; nothing periodic "
        "happens, and steps that were lost are not found. Read the log of beat, and start it again"
    )


urlpatterns = [path("healthz", healthz, name="healthz"), path("readyz", readyz, name="readyz")]
