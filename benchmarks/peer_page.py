"""The least that a table's page can cost: the same frame, session and middleware around fifty rows
of one query. An ASGI server.
"""

import django

django.setup()

from django.conf import settings  # noqa: E402 - settings come first
from django.core.handlers.asgi import ASGIHandler  # noqa: E402
from django.http import HttpRequest, HttpResponse  # noqa: E402
from django.template import engines  # noqa: E402
from django.urls import include, path  # noqa: E402

from benchmarks.processor_time import add_processor_header  # noqa: E402
from projects.models import User  # noqa: E402

ROWS = 50
PAGE = """{% extends "base.html" %}
{% block content %}<div class="mu-card"><table class="mu-table">
{% for row in rows %}<tr><th scope="row">{{ row.username }}</th><td>{{ row.email }}</td>
<td>{{ row.last_login }}</td>
<td>{{ row.date_joined }}</td><td>{{ row.is_active }}</td><td>{{ row.pk }}</td></tr>{% endfor %}
</table></div>{% endblock %}"""


def page(request: HttpRequest) -> HttpResponse:
    """Render the first fifty users, without search, filters or columns."""
    template = engines["django"].from_string(PAGE)
    return HttpResponse(
        template.render({"rows": User.objects.order_by("username")[:ROWS]}, request)
    )


urlpatterns = [path("peer", page, name="peer"), path("", include("console.urls"))]
settings.ROOT_URLCONF = __name__
application = add_processor_header(ASGIHandler())
