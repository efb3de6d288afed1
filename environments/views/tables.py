"""The tables of assets."""

from functools import cache

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from console import tables
from environments import actions
from environments.choosing import creating, prepare
from environments.kinds import BY_KEY, Kind
from environments.kinds.columns import table as table_of
from projects.http import Request
from projects.why import may_not


@require_GET
def table(request: Request, kind: Kind) -> HttpResponse:
    """Those that the reader may see: searched, filtered, sorted, a page at a time, or as CSV."""
    create = creating(kind)
    may_create = request.user.rights.anywhere(create)
    context = {
        "kind": kind,
        "heading": kind.title,
        "about": kind.about,
        "new": reverse(f"{kind.url}-new") if may_create else "",
        "new_words": f"New {kind.noun}",
        "may_not": may_not(
            request.user,
            create.verb,
            create.entity,
            words=f"New {kind.noun}",
            icon="plus",
            anywhere=True,
        ),
        "may_create": may_create,
        "empty": "environments/_nothing.html",
    }
    rows = actions.seen(kind.model, request.user)
    return tables.answer(
        request,
        rows,
        _table(kind.key),
        "parts/list.html",
        context,
        file=kind.path,
        prepare=lambda shown: prepare(kind, shown, request.user),
    )


@cache
def _table(key: str) -> tables.Table:
    return table_of(BY_KEY[key])
