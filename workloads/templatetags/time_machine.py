"""The way from a page of the present to an earlier moment of the same."""

import math
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.conf import settings
from django.utils import timezone

from workloads.views.time_machine import NEXT_TURN, build_past_address, format_at

register = template.Library()


@register.inclusion_tag("time_machine/_look_back.html")
def look_back(name: str = "", *parts: Any) -> dict[str, Any]:
    """Build the button with the slider; `name` and `parts` say what is looked at, as the address.

    It asks no database: the slider goes as far back as states are kept.
    """
    now = timezone.now()
    days = settings.OPTIONS.time_machine_days
    fields = [(name, "/".join(map(str, parts)))] if name else []
    choice = build_slider(now, now - timedelta(days=days), now, fields)
    return {"is_on": bool(days), "choice": choice}


@register.simple_tag
def slider(at: datetime, begin: datetime, until: datetime, fields: Any) -> dict[str, Any]:
    """Return what the slider of a past moment's page needs."""
    return build_slider(at, begin, until, fields)


@register.simple_tag
def past_address(at: datetime | None, name: str = "", value: Any = "") -> str:
    """Return the address of a moment, without one of the last; "" where the time machine is off."""
    if not settings.OPTIONS.time_machine_days:
        return ""
    return build_past_address(at, [(name, str(value))] if name else [])


@register.simple_tag
def change_address(at: datetime, workload: Any) -> str:
    """Return the address of what a workload changed into; "" where the time machine is off."""
    if not settings.OPTIONS.time_machine_days:
        return ""
    return build_past_address(at, [("workload", str(workload)), ("turn", NEXT_TURN)])


def build_slider(at: datetime, begin: datetime, until: datetime, fields: Any) -> dict[str, Any]:
    """Return the fields and bounds of the form that chooses a moment, in minutes since 1970."""
    last, chosen = (int(each.timestamp() // 60) for each in (until, at))
    # The minute in which the record begins is there only from then on.
    first = min(last, math.ceil(begin.timestamp() / 60))
    return {
        "fields": fields,
        "field_at": format_at(at)[:16],
        "least": first,
        "most": last,
        "value": min(max(chosen, first), last),
    }
