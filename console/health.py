"""`/healthz`: this process answers. `/readyz`: it can do its work."""

from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import path


@login_not_required
def healthz(request: HttpRequest) -> HttpResponse:
    """200 while the process lives."""
    return HttpResponse("ok\n", content_type="text/plain")


@login_not_required
def readyz(request: HttpRequest) -> HttpResponse:
    """200 when the database answers; 503 otherwise."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Exception:  # noqa: BLE001 - whatever it is, it is not ready
        return HttpResponse("the database does not answer\n", content_type="text/plain", status=503)
    return HttpResponse("ready\n", content_type="text/plain")


urlpatterns = [path("healthz", healthz, name="healthz"), path("readyz", readyz, name="readyz")]
