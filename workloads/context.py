"""The context processor of what users are told on their next page of their workloads."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, transaction
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from projects.models import User
from workloads import journal
from workloads.queries import Notice, load_notices

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Notices:
    """Sentences about workloads, and whether there are more in their histories."""

    shown: Sequence[Notice] = ()
    has_more: bool = False


def notices(request: HttpRequest) -> dict[str, Any]:
    """Return `notices`: what happened to the user's workloads, told once.

    It costs one small query, on whole pages; what was shown is noted by another.
    """
    return {"notices": SimpleLazyObject(lambda: _take_notices(request))}


def _take_notices(request: HttpRequest) -> Notices:
    user = getattr(request, "user", None)
    # Who looks at Muster as another reads nothing in their place.
    if not isinstance(user, User) or getattr(request, "looker", None) is not None:
        return Notices()
    user_notices, has_more = load_notices(user)
    if user_notices:
        try:
            with transaction.atomic():
                journal.dismiss_notices(user.pk, user_notices[0].event)
        except DatabaseError as error:
            # A full disk must not take their pages from whoever has a notice: it is shown again.
            log.warning("notices could not be dismissed: %s", error)
    return Notices(user_notices, has_more)
