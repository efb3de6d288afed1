"""The addresses of assets: the same for every kind."""

from django.urls import URLPattern, path

from environments.kinds import KINDS, AssetKind
from environments.views import details, editing, tables


def _addresses(kind: AssetKind) -> list[URLPattern]:
    given = {"kind": kind}
    below = f"{kind.path}/<uuid:key>"
    found = [
        path(kind.path, tables.table, given, name=kind.name),
        path(f"{kind.path}/new", editing.new, given, name=f"{kind.url}-new"),
        path(below, details.details, given, name=kind.url),
        path(f"{below}/edit", editing.edit, given, name=f"{kind.url}-edit"),
        path(f"{below}/copy", editing.copy, given, name=f"{kind.url}-copy"),
        path(f"{below}/delete", editing.delete, given, name=f"{kind.url}-delete"),
    ]
    if kind.has_subtypes:
        found.append(
            path(f"{kind.path}/new/<slug:subtype>", editing.new, given, name=f"{kind.url}-new-of")
        )
    return found


urlpatterns = [address for kind in KINDS for address in _addresses(kind)]
