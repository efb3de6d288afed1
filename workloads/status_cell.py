"""The cell of a workload's status in the table of workloads."""

from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from console.templatetags.muster import icon, status


def render_status(row: Any) -> SafeString:
    """Render the status of a row, with why it is so, and a mark where it needs a look."""
    badge = status(row)
    if row.finding is not None:
        # Before the badge: a narrow screen has no room for what comes after it.
        badge = format_html("{}{}", _render_finding(row.finding), badge)
    if row.preparation is not None and row.preparation.wanted:
        return _render_preparation(badge, row)
    if not row.reason:
        return badge
    return format_html(
        '{0} <span class="wl-why" title="{1}">{2}'
        '<span class="pf-v6-screen-reader">{1}</span></span>',
        badge,
        row.reason,
        icon("info"),
    )


def _render_finding(finding: Any) -> SafeString:
    """Render the icon of a workload that needs a look, with the sentence of its gravest finding."""
    more = f" (and {finding.count - 1} more)" if finding.count > 1 else ""
    return format_html(
        '<span class="wl-look" title="{0}">{1}<span class="pf-v6-screen-reader">{0}</span></span>',
        f"{finding.title}: {finding.sentence}{more}",
        icon("radar"),
    )


def _render_preparation(badge: SafeString, row: Any) -> SafeString:
    """Render the badge above a bar of what is prepared; the reason has the numbers."""
    return format_html(
        '{0}<span class="wl-prepared" title="{1}"><progress class="mu-bar" max="{2}" value="{3}" '
        'aria-label="Prepared data of {4}: {1}"></progress>{5} %</span>',
        badge,
        row.reason,
        row.preparation.wanted,
        row.preparation.prepared,
        row.name,
        row.preparation.percent,
    )
