"""Filters and tags of every template.

Icons, times, durations, counts of GPUs, form fields, badges, addresses.
"""

import datetime
import math
import uuid
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from django import template
from django.forms import (
    BoundField,
    CheckboxInput,
    CheckboxSelectMultiple,
    RadioSelect,
    Select,
    Textarea,
)
from django.http import HttpRequest
from django.template import Context, Node
from django.template.base import FilterExpression, Parser, TextNode, Token
from django.templatetags.static import static
from django.urls import get_script_prefix, reverse
from django.utils import timezone
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from console import tracing
from console.texts import group_thousands

register = template.Library()
register.filter("grouped", group_thousands)

NO_VALUE = "–"
"""What stands where there is no value."""
TYPE_AGAIN = "Type it again: for its safety it does not come back."
_PALETTE = {"cyan": "teal", "grey": "grey", "gray": "grey"}
"""Our names of colours that the style sheet calls otherwise."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_PLACEHOLDER_KEY = 7_310_944_186_052
"""A key that no address has in it otherwise."""


@register.tag(name="icon")
def icon_tag(parser: Parser, token: Token) -> Node:
    """Compile `{% icon name [css] %}`: see `icon`.

    An icon whose name is written out is rendered when its template is compiled: a table shows
    hundreds.
    """
    arguments = [parser.compile_filter(each) for each in token.split_contents()[1:]]
    if any(each.is_var or each.filters for each in arguments):
        return _IconNode(arguments)
    return TextNode(icon(*(each.var for each in arguments)))


class _IconNode(Node):
    def __init__(self, expressions: Sequence[FilterExpression]) -> None:
        self._given = expressions

    def render(self, context: Context) -> SafeString:
        return icon(*(each.resolve(context) for each in self._given))


@lru_cache(maxsize=1024)
def icon(name: str, css: str = "") -> SafeString:
    """Return a Lucide icon of the sprite, 16 px, hidden from screen readers.

    The text beside it, or an aria-label, says what it means. The result is cached: where the sprite
    is does not change while a process runs.
    """
    return format_html(
        (
            '<svg class="mu-icon{}" width="16" height="16" aria-hidden="true" '
            'focusable="false"><use href="{}#{}"></use></svg>'
        ),
        f" {css}" if css else "",
        static("icons/icons.svg"),
        name,
    )


@register.simple_tag
def status(subject: Any, age: bool = True) -> SafeString:
    """Return the badge of a workload, an attempt, or a Status: colour, icon, word.

    Its age is added where `status_at` is known.
    """
    state = getattr(subject, "state", subject)
    label = format_html(
        '<span class="pf-v6-c-label mu-status pf-m-compact pf-m-{}" title="{}"><span '
        'class="pf-v6-c-label__content">'
        '<span class="pf-v6-c-label__icon">{}</span><span '
        'class="pf-v6-c-label__text">{}</span></span></span>',
        _PALETTE.get(state.colour, state.colour),
        state.meaning,
        icon(state.icon),
        state.label,
    )
    moment = getattr(subject, "status_at", None)
    if not age or moment is None:
        return label
    return format_html(
        '<span class="mu-status-aged">{} <span class="mu-age">{}</span></span>',
        label,
        render_time_distance(moment),
    )


@register.simple_tag(name="label")
def render_label(words: str, colour: str = "", icon_name: str = "") -> SafeString:
    """Return a label: words on a colour, perhaps after an icon."""
    return format_html(
        '<span class="pf-v6-c-label pf-m-compact{}"><span class="pf-v6-c-label__content">{}'
        '<span class="pf-v6-c-label__text">{}</span></span></span>',
        f" pf-m-{colour}" if colour else "",
        format_html('<span class="pf-v6-c-label__icon">{}</span>', icon(icon_name))
        if icon_name
        else "",
        words,
    )


@register.filter(name="when")
def render_time_distance(moment: datetime.datetime | None) -> SafeString | str:
    """Return a time as its distance from now, exact on hover.

    The page's script keeps it fresh and in the reader's time zone.
    """
    if moment is None:
        return NO_VALUE
    return _render_time(
        moment.astimezone(datetime.UTC), "when", _describe_distance(moment, timezone.now())
    )


@register.filter(name="at")
def render_clock_time(moment: datetime.datetime | None) -> SafeString | str:
    """Return a time as the clock showed it, to the minute.

    The page's script puts it into the reader's time zone.
    """
    if moment is None:
        return NO_VALUE
    utc = moment.astimezone(datetime.UTC)
    return _render_time(utc, "at", _format_minute(utc))


@register.filter(name="clock")
def render_time_of_day(moment: datetime.datetime | None) -> SafeString | str:
    """Return a time of today to the minute, another day's with its date.

    The page's script puts it into the reader's time zone.
    """
    if moment is None:
        return NO_VALUE
    utc = moment.astimezone(datetime.UTC)
    is_today = utc.date() == timezone.now().date()
    words = utc.strftime("%H:%M UTC") if is_today else _format_minute(utc)
    return _render_time(utc, "clock", words)


def _format_minute(utc: datetime.datetime) -> str:
    is_this_year = utc.year == timezone.now().year
    return utc.strftime("%-d %b, %H:%M UTC" if is_this_year else "%-d %b %Y, %H:%M UTC")


def _render_time(moment: datetime.datetime, kind: str, words: str) -> SafeString:
    """Render a time in UTC.

    A table has two in each row: nothing in it has to be escaped, which would take as long as the
    rest.
    """
    exact, title = (
        moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        moment.strftime("%-d %b %Y, %H:%M:%S UTC"),
    )
    return mark_safe(f'<time datetime="{exact}" title="{title}" data-{kind}>{words}</time>')  # noqa: S308


def _describe_distance(moment: datetime.datetime, now: datetime.datetime) -> str:
    seconds = (now - moment).total_seconds()
    if abs(seconds) < 1:
        return "just now"
    words = _describe_duration(abs(seconds))
    if not words:
        return moment.astimezone(datetime.UTC).strftime("%-d %b %Y")
    return f"{words} ago" if seconds > 0 else f"in {words}"


def _describe_duration(seconds: float) -> str:
    """Say seconds in one unit, enough for a distance; "" after 30 days, where a date says more."""
    for bound, unit, word in ((_MINUTE, 1, "s"), (_HOUR, _MINUTE, "min"), (_DAY, _HOUR, "h")):
        if seconds < bound:
            return f"{int(seconds // unit)} {word}"
    days = int(seconds // _DAY)
    if days > 30:
        return ""
    return f"{days} day" if days == 1 else f"{days} days"


@register.filter
def duration(seconds: float | None) -> str:
    """Return seconds in the two units that matter: "45 s", "3 min 12 s", "2 h 5 min", "3 d 4 h"."""
    if seconds is None or not math.isfinite(seconds):
        return NO_VALUE
    total_seconds = max(0, int(seconds))
    if total_seconds < _MINUTE:
        return f"{total_seconds} s"
    if total_seconds < _HOUR:
        return f"{total_seconds // _MINUTE} min {total_seconds % _MINUTE} s"
    if total_seconds < _DAY:
        return f"{total_seconds // _HOUR} h {total_seconds % _HOUR // _MINUTE} min"
    return f"{total_seconds // _DAY} d {total_seconds % _DAY // _HOUR} h"


@register.filter(name="code")
def mark_code(text: str) -> SafeString:
    """Return a text as HTML in which what stands between backticks is code."""
    parts = conditional_escape(text).split("`")
    if len(parts) % 2 == 0:
        # One of them has no partner: which of them that is, nobody knows.
        return conditional_escape(text)
    for at in range(1, len(parts), 2):
        parts[at] = f"<code>{parts[at]}</code>"
    return mark_safe("".join(parts))  # noqa: S308 - escaped above


@register.filter(name="gpus")
def render_gpus(number: Decimal | float | str | None) -> str:
    """Return a count of GPUs for a page, as `gpus` does, with its thousands apart."""
    return group_thousands(gpus(number))


def gpus(number: Decimal | float | str | None) -> str:
    """Return a count of GPUs without trailing zeros: 0.1, 1, 2.5; a dash for none at all."""
    if number is None or number == "":
        return NO_VALUE
    try:
        exact = Decimal(str(number)).quantize(Decimal("0.001"))
    except InvalidOperation:
        return NO_VALUE
    return f"{exact.normalize():f}" if exact else "0"


@register.filter(name="bytes")
def bytes_(number: int | None) -> str:
    """Return a size in the unit in which it reads best: 512 B, 1.5 GiB."""
    if number is None:
        return NO_VALUE
    size = float(number)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 1024 or unit == "TiB":
            return (
                f"{size:.0f} {unit}"
                if unit == "B" or size >= 100 or size == int(size)
                else f"{size:.1f} {unit}"
            )
        size /= 1024
    return NO_VALUE


@register.filter
def mebibytes(number: int) -> str:
    """Return the memory of a device, which clusters tell in MiB, as `bytes` does: 140 GiB."""
    return bytes_(number << 20)


@register.simple_tag
def query(request: HttpRequest, **changes: Any) -> str:
    """Return the current query string with changes; it always starts with "?".

    None or "" removes a key, a list sets all its values.
    """
    parameters = request.GET.copy()
    for key, value in changes.items():
        if value is None or value == "":
            parameters.pop(key, None)
        elif isinstance(value, list | tuple):
            parameters.setlist(key, [str(each) for each in value])
        else:
            parameters[key] = str(value)
    return f"?{parameters.urlencode()}"


@register.inclusion_tag("parts/_field.html")
def field(bound: BoundField) -> dict[str, Any]:
    """Render a form's field with its label, help and errors, tied together for screen readers.

    The attributes `template_note` and `policy_note` of a field say what a template or a policy has
    decided about it; `is_never_shown` of a widget, that it is not rendered with what was typed.
    """
    widget = bound.field.widget
    notes = [
        note
        for name in ("template_note", "policy_note")
        if (note := getattr(bound.field, name, ""))
    ]
    if getattr(widget, "is_never_shown", False) and bound.data:
        notes.append(TYPE_AGAIN)
    described_by = [
        (f"{bound.auto_id}_error", bool(bound.errors)),
        (f"{bound.auto_id}_note", bool(notes)),
        (f"{bound.auto_id}_helptext", bool(bound.help_text)),
    ]
    attributes = {
        "aria-describedby": " ".join(name for name, is_present in described_by if is_present)
    }
    if bound.errors:
        attributes["aria-invalid"] = "true"
    if isinstance(widget, CheckboxInput):
        attributes["class"] = "pf-v6-c-check__input"
    kind = _get_control_kind(bound)
    control = (
        bound.as_widget()
        if kind in ("group", "hidden")
        else bound.as_widget(attrs={k: v for k, v in attributes.items() if v})
    )
    return {
        "field": bound,
        "kind": kind,
        "control": control,
        "described": attributes["aria-describedby"],
        "notes": notes,
    }


def _get_control_kind(bound: BoundField) -> str:
    """Return how parts/_field.html arranges the control."""
    if bound.is_hidden:
        return "hidden"
    match bound.field.widget:
        case RadioSelect() | CheckboxSelectMultiple():
            return "group"
        case CheckboxInput():
            return "check"
        case Select():
            return "select"
        case Textarea():
            return "area"
    return "text"


@register.filter(name="may")
def has_permission(user: Any, permission: str) -> bool:
    """Return whether the user may do this ("clusters:edit") anywhere, to offer a button.

    The view checks again, and where.
    """
    rights = getattr(user, "rights", None)
    return rights is not None and permission in rights.written


@register.simple_tag
def address(name: str, key: int | uuid.UUID) -> str:
    """Return what `url` returns with one key, faster: a table asks for it hundreds of times.

    The address is resolved once, and the key put in.
    """
    before, after = _split_around_key(name, isinstance(key, uuid.UUID), get_script_prefix())
    return f"{before}{key}{after}"


def render_link(name: str, key: int | uuid.UUID, words: str) -> SafeString:
    """Return a link to the page of a row, for a column of a table."""
    return format_html('<a href="{}">{}</a>', address(name, key), words)


@lru_cache(maxsize=1024)
def _split_around_key(name: str, is_uuid: bool, _prefix: str) -> tuple[str, str]:
    """Return what stands in an address before its key and after it."""
    key = uuid.UUID(int=_PLACEHOLDER_KEY) if is_uuid else _PLACEHOLDER_KEY
    before, _, after = reverse(name, args=[key]).partition(str(key))
    return before, after


@register.simple_tag
def request_id() -> str:
    """Return the id of the request that is being answered, by which its log lines are found."""
    return tracing.request_id.get()
