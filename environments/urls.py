"""The addresses of assets."""

from django.urls import URLPattern, path

from environments import views
from environments.views import COMPUTE, ENVIRONMENTS, Kind


def _addresses(kind: Kind) -> list[URLPattern]:
    given = {"kind": kind}
    below = f"{kind.path}/<uuid:key>"
    return [
        path(kind.path, views.table, given, name=kind.name),
        path(f"{kind.path}/new", views.new, given, name=f"{kind.url}-new"),
        path(f"{below}/edit", views.edit, given, name=f"{kind.url}-edit"),
        path(f"{below}/copy", views.copy, given, name=f"{kind.url}-copy"),
        path(f"{below}/delete", views.delete, given, name=f"{kind.url}-delete"),
    ]


urlpatterns = [*_addresses(ENVIRONMENTS), *_addresses(COMPUTE)]
