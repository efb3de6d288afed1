"""The addresses of assets: the same for every kind."""

from django.urls import URLPattern, path

from environments.kinds import KINDS, AssetKind
from environments.views import details, editing, tables


def _addresses(kind: AssetKind) -> list[URLPattern]:
    arguments = {"kind": kind}
    below = f"{kind.path}/<uuid:key>"
    patterns = [
        path(kind.path, tables.table, arguments, name=kind.name),
        path(f"{kind.path}/new", editing.new, arguments, name=f"{kind.url}-new"),
        path(below, details.details, arguments, name=kind.url),
        path(f"{below}/edit", editing.edit, arguments, name=f"{kind.url}-edit"),
        path(f"{below}/copy", editing.copy, arguments, name=f"{kind.url}-copy"),
        path(f"{below}/delete", editing.delete, arguments, name=f"{kind.url}-delete"),
    ]
    if kind.has_subtypes:
        patterns.append(
            path(
                f"{kind.path}/new/<slug:subtype>", editing.new, arguments, name=f"{kind.url}-new-of"
            )
        )
    return patterns


urlpatterns = [address for kind in KINDS for address in _addresses(kind)]
