"""The card that shows, on pages of other rooms, what was used over time."""

from typing import Any

from django import template

from workloads.views.metric_ranges import DEFAULT_RANGE, list_ranges

register = template.Library()


@register.inclusion_tag("metrics/_card.html")
def metrics_card(frames_url: str, noun: str, title: str, nothing: str) -> dict[str, Any]:
    """Build the card of the figures at an address; `nothing` is said where there are none."""
    return {
        "frames_url": frames_url,
        "noun": noun,
        "title": title,
        "none": nothing,
        "strip_title": f"Each {noun}",
        "ranges": list_ranges(with_all=False),
        "range": DEFAULT_RANGE,
    }
