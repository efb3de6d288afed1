"""A person's named views of the workload table. Nobody else sees or changes them.

What of it is passed on is an address: whoever opens it sees the rows that they may see.
"""

from collections.abc import Sequence

from django.db import IntegrityError, transaction

from console.errors import Clash, UserError
from projects.models import User
from workloads.models import SavedView

MAX_VIEWS = 30
"""Views of one person."""
MAX_QUERY_CHARS = 2000
"""Of an address: a redirect leads there, and proxies have 4 KiB for its headers."""


def list_views(user: User) -> Sequence[SavedView]:
    """List a person's views by name."""
    return list(SavedView.objects.filter(user=user).order_by("name")[:MAX_VIEWS])


def create_view(user: User, *, name: str, query: str, is_default: bool) -> SavedView:
    """Create a view. Raises Clash for a name that is taken, and UserError for too many."""
    _require_short_query(query)
    try:
        with transaction.atomic():
            # Under the lock of the person's row, so that two at once are counted one by one.
            User.objects.select_for_update().get(pk=user.pk)
            if len(SavedView.objects.filter(user=user).values_list("pk")[:MAX_VIEWS]) >= MAX_VIEWS:
                raise UserError(
                    f"You have {MAX_VIEWS} views, and there can be no more. Delete one that you "
                    "no longer use, or replace what it shows."
                )
            if is_default:
                _clear_default(user)
            return SavedView.objects.create(
                user=user, name=name, query=query, is_default=is_default
            )
    except IntegrityError:
        raise _build_name_clash(name) from None


def change_view(view: SavedView, *, name: str, is_default: bool, query: str = "") -> None:
    """Rename a view, make it the default or not, and with a query replace what it shows.

    Raises Clash for a name that is taken.
    """
    _require_short_query(query)
    try:
        with transaction.atomic():
            User.objects.select_for_update().get(pk=view.user_id)
            if is_default:
                _clear_default(view.user)
            view.name, view.is_default, view.query = name, is_default, query or view.query
            # An update and no save: a view that was deleted meanwhile stays so.
            SavedView.objects.filter(pk=view.pk).update(
                name=view.name, is_default=view.is_default, query=view.query
            )
    except IntegrityError:
        raise _build_name_clash(name) from None


def delete_view(view: SavedView) -> None:
    """Delete a view; the workloads that it showed stay as they are."""
    SavedView.objects.filter(pk=view.pk).delete()


def _clear_default(user: User) -> None:
    SavedView.objects.filter(user=user, is_default=True).update(is_default=False)


def _require_short_query(query: str) -> None:
    if len(query) > MAX_QUERY_CHARS:
        raise UserError(
            "The filters are too long to be kept in a view. Choose fewer values, and save it again."
        )


def _build_name_clash(name: str) -> Clash:
    return Clash(
        f"You have a view {name} already. Choose another name, or edit that view.", field="name"
    )
