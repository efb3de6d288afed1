"""Waiting times as the pages of quota trials show them."""

from django import template

from projects.durations import describe_duration

register = template.Library()

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


@register.filter(name="wait")
def describe_wait(seconds: float) -> str:
    """Describe a wait as closely as it matters: "36 s", "42 min", "2 h 18 min", "1 d 17 h"."""
    step = 1 if seconds < _MINUTE else _MINUTE if seconds < _DAY else _HOUR
    return describe_duration(round(seconds / step) * step)
