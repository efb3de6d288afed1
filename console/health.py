"""`/healthz`: this process answers. `/readyz`: it can do its work, and what is degraded."""

import logging

import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe

log = logging.getLogger(__name__)

_migrated_databases: set[str] = set()
"""Names of the databases that were seen up to date.

Migrations stay applied, and looking costs a tenth of a second.
"""


class _Readiness:
    """What `readyz` answered last, so that only changes are logged."""

    trouble = ""

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

    A missing broker is named in the text and does not change the status.
    """
    trouble = _check_database()
    _readiness.log_change(trouble)
    lines = [trouble or "ready", "" if trouble else _check_broker()]
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
            "degraded: Redis does not answer; pages look for news less often, and steps wait for "
            "the sweep"
        )
    finally:
        client.close()
    return ""


urlpatterns = [path("healthz", healthz, name="healthz"), path("readyz", readyz, name="readyz")]
