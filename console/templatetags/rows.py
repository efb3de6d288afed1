"""The cells and choices of a table of `console.tables`, rendered without a template's loops.

A table has hundreds of them, and most are one text.
"""

from collections.abc import Iterable
from functools import lru_cache
from html import escape
from typing import Any

from django import template
from django.template import Context, Template
from django.template.loader import render_to_string
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from console.table_filters import MAX_TEXT_CHARS, Choices, Filter
from console.tables import Column, Listing
from console.templatetags.muster import NO_VALUE
from console.texts import group_thousands

register = template.Library()


@register.simple_tag
def cell(column: Column, row: Any) -> str:
    """Return the text of a row in a column; a dash for nothing.

    Numbers have their thousands apart.
    """
    text = column.text(row)
    if text is None or text == "":
        return NO_VALUE
    if column.is_number:
        return group_thousands(text)
    return text if isinstance(text, str) else str(text)


@register.simple_tag(takes_context=True)
def rows(context: Context, listing: Listing) -> SafeString:
    """Render the body of the table.

    Templates of columns and of actions find `row` and the page's context; those of columns
    `column`, too.
    """
    columns = [
        (
            *_build_cell_tags(column.css, column.name, column is listing.columns[0]),
            column,
            _get_template(context, column.template),
        )
        for column in listing.columns
    ]
    actions = _get_template(context, listing.table.actions)
    parts: list[str] = []
    with context.push():
        for row in listing.rows:
            context["row"] = row
            parts.append("<tr>")
            for opening, closing, column, cell_template in columns:
                parts += (
                    opening,
                    _render_template(cell_template, context, column)
                    if cell_template
                    else conditional_escape(_render_content(column, row)),
                    closing,
                )
            if actions:
                parts += ('<td class="mu-end">', _render_template(actions, context), "</td>")
            parts.append("</tr>\n")
    # Texts are escaped above, and templates escape what they show.
    return mark_safe("".join(parts))  # noqa: S308


@register.simple_tag
def more_filters(listing: Listing) -> SafeString:
    """Render the panel of further filters: each field with its name above it."""
    parts = (
        '<label class="mu-more-filter">'
        f'<span class="mu-more-filter__name">{escape(each.title)}</span>'
        f'<span class="pf-v6-c-form-control">{_render_control(each, str(value), choices)}</span>'
        "</label>"
        for each, value, choices, _ in listing.filters
        if each.is_more
    )
    # There are dozens: an include for each takes a tenth of the page's time.
    return mark_safe("".join(parts))  # noqa: S308 - escaped above and below


_INPUTS = {
    "date": 'type="date"',
    "number": 'type="number" min="0" step="any"',
    "integer": 'type="number" min="0" step="1"',
    "text": f'type="text" maxlength="{MAX_TEXT_CHARS}" placeholder="Contains"'
    ' autocomplete="off" spellcheck="false"',
}


def _render_control(table_filter: Filter, value: str, choices: Choices) -> str:
    name = escape(table_filter.name)
    if table_filter.kind == "choice":
        any_option = '<option value="">Any</option>'
        chevron = render_to_string("parts/_chevron.html")
        return f'<select name="{name}">{any_option}{options(choices, value)}</select>{chevron}'
    return f'<input name="{name}" value="{escape(value)}" {_INPUTS[table_filter.kind]}>'


@register.simple_tag
def options(choices: Iterable[tuple[str, str]], chosen: str) -> SafeString:
    """Render the options of a select from (value, words) pairs."""
    # There may be hundreds: `format_html_join` takes five times as long.
    tags = (
        "<option "
        f'value="{escape(key)}"{" selected" if key == chosen else ""}>{escape(words)}</option>'
        for key, words in choices
    )
    return mark_safe("".join(tags))  # noqa: S308 - escaped above


def render_cell(column: Column, row: Any, *, is_first: bool = False) -> str:
    """Render a cell that needs nothing of its page, for a row that several pages share."""
    opening, closing = _build_cell_tags(column.css, column.name, is_first)
    return f"{opening}{conditional_escape(_render_content(column, row))}{closing}"


def _render_content(column: Column, row: Any) -> str:
    return column.render(row) if column.render else cell(column, row)


@lru_cache(maxsize=1024)
def _build_cell_tags(css: str, name: str, is_first: bool) -> tuple[str, str]:
    # By values and not by the column: some columns are made anew for each request.
    tag = '<th scope="row"' if is_first else "<td"
    classes = " ".join(each for each in ("mu-name" * is_first, css) if each)
    opening = format_html(f'{tag} class="{{}}" data-column="{{}}">', classes, name)
    return opening, "</th>" if is_first else "</td>"


def _get_template(context: Context, name: str) -> Template | None:
    assert context.template is not None
    return context.template.engine.get_template(name) if name else None


def _render_template(
    cell_template: Template, context: Context, column: Column | None = None
) -> str:
    """Render a template as `include` does: variables that it sets stay in it.

    It is rendered as a part of the page: no `cycle` or `block` stands in it.
    """
    with context.push(column=column):
        return cell_template.nodelist.render(context)
