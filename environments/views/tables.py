"""The tables of assets."""

from functools import cache

from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_GET

from console import tables
from console.http import build_empty_state
from environments import actions
from environments.kinds import BY_KEY, AssetKind
from environments.kinds.columns import build_table as table_of
from environments.scope_choices import annotate_rows, get_create_permission
from projects.http import Request
from projects.permission_explanations import find_disabled_button


@require_GET
def table(request: Request, kind: AssetKind) -> HttpResponseBase:
    """List the assets that the user may see: searched, filtered, sorted, a page at a time, or as
    CSV.
    """
    create = get_create_permission(kind)
    may_create = request.user.rights.may_anywhere(create)
    context = {
        "kind": kind,
        "heading": kind.title,
        "about": kind.about,
        "new": reverse(f"{kind.url}-new") if may_create else "",
        "new_words": f"New {kind.noun}",
        "may_not": find_disabled_button(
            request.user,
            create.verb,
            create.entity,
            words=f"New {kind.noun}",
            icon="plus",
            anywhere=True,
        ),
        "may_create": may_create,
    }
    if may_create:
        context |= build_empty_state(
            kind.icon,
            "Nothing here yet",
            "Make the first one; whoever is in its scope can then use it.",
            action="Make one",
            url=reverse(f"{kind.url}-new"),
        )
    else:
        context |= build_empty_state(
            kind.icon, "Nothing here yet", "Somebody whose role has it can make one."
        )
    rows = actions.list_visible(kind.model, request.user)
    return tables.render_table(
        request,
        rows,
        _build_table(kind.key),
        "parts/list.html",
        context,
        file=kind.path,
        prepare=lambda page_rows: annotate_rows(kind, page_rows, request.user),
    )


@cache
def _build_table(key: str) -> tables.Table:
    return table_of(BY_KEY[key])
