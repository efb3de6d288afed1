"""The filters and tags of every template."""

import datetime
import re
import uuid
from collections.abc import Callable
from decimal import Decimal

import pytest
from django import forms
from django.template import Context, Template
from django.test import RequestFactory
from django.test.utils import override_script_prefix
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from console.tables import Column, Listing, Table
from console.templatetags import muster
from workloads.states import Status


def render_source(source: str, **context: object) -> str:
    return Template(source).render(Context(context))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "–"),
        (0, "0 s"),
        (59.9, "59 s"),
        (192, "3 min 12 s"),
        (7500, "2 h 5 min"),
        (3 * 86400 + 4 * 3600, "3 d 4 h"),
        (float("inf"), "–"),
    ],
)
def test_a_duration_has_the_two_units_that_matter(seconds: float | None, words: str) -> None:
    assert muster.duration(seconds) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (None, "–"),
        ("", "–"),
        (0, "0"),
        (Decimal("0.100"), "0.1"),
        (1, "1"),
        (Decimal("2.5"), "2.5"),
        (100, "100"),
        ("many", "–"),
    ],
)
def test_gpus_have_no_idle_zeros(number: object, words: str) -> None:
    assert muster.gpus(number) == words  # type: ignore[arg-type]
    assert render_source("{{ number|gpus }}", number=number) == words


def test_a_page_has_the_thousands_of_numbers_apart() -> None:
    assert render_source("{{ n|gpus }} {{ n|grouped }}", n=Decimal(12800)) == "12,800 12,800"


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (None, "–"),
        (0, "0 B"),
        (512, "512 B"),
        (1536, "1.5 KiB"),
        (64 << 30, "64 GiB"),
        (1 << 60, "1048576 TiB"),
    ],
)
def test_a_size_is_in_the_unit_in_which_it_reads_best(size: int | None, words: str) -> None:
    assert muster.bytes_(size) == words


def test_the_memory_of_a_device_reads_as_other_sizes_do() -> None:
    assert muster.mebibytes(143_771) == "140 GiB"


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (0.2, "just now"),
        (5, "5 s ago"),
        (200, "3 min ago"),
        (7300, "2 h ago"),
        (86400, "1 day ago"),
        (3 * 86400, "3 days ago"),
        (-600, "in 10 min"),
    ],
)
def test_a_time_is_told_by_its_distance(ago: float, words: str) -> None:
    now = timezone.now()
    assert muster._describe_distance(now - datetime.timedelta(seconds=ago), now) == words


def test_a_time_long_ago_is_a_date_and_the_exact_one_is_on_hover() -> None:
    markup = muster.render_time_distance(
        datetime.datetime(2024, 2, 29, 12, 30, 5, tzinfo=datetime.UTC)
    )
    assert ">29 Feb 2024<" in markup
    assert 'datetime="2024-02-29T12:30:05.000Z" title="29 Feb 2024, 12:30:05 UTC"' in markup


@pytest.mark.parametrize("render", [muster.render_clock_time, muster.render_time_of_day])
def test_a_time_by_the_clock_names_its_year_unless_it_is_this_one(
    render: Callable[[datetime.datetime], str],
) -> None:
    assert ">29 Feb 2024, 12:30 UTC<" in render(
        datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.UTC)
    )
    year = timezone.now().year
    assert str(year) not in re.sub(
        "<[^>]*>", "", render(datetime.datetime(year, 1, 1, tzinfo=datetime.UTC))
    )


@pytest.mark.parametrize("status", list(Status))
def test_a_badge_has_colour_icon_and_word(status: Status) -> None:
    markup = muster.status(status)
    assert f"#{status.icon}" in markup
    assert f">{status.label}<" in markup
    assert "pf-m-cyan" not in markup


def test_the_address_keeps_what_is_not_changed() -> None:
    request = RequestFactory().get("/workloads?status=Running&page=3&project=a")
    assert (
        muster.query(request, page=None, sort="name", project=["b", "c"])
        == "?status=Running&project=b&project=c&sort=name"
    )
    assert muster.query(RequestFactory().get("/workloads?page=3"), page="") == "?"


class Sample(forms.Form):
    name = forms.CharField(help_text="Short.")
    size = forms.ChoiceField(choices=[("s", "S")], required=False)
    loud = forms.BooleanField(required=False)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("project", 1),
        ("project", 7310944186052),
        ("department-edit", 12),
        ("environment", uuid.uuid4()),
    ],
)
def test_an_address_with_a_key_is_the_one_that_is_looked_up(
    name: str, key: int | uuid.UUID
) -> None:
    assert render_source("{% address name key %}", name=name, key=key) == reverse(name, args=[key])
    with override_script_prefix("/console/"):
        assert render_source("{% address name key %}", name=name, key=key) == reverse(
            name, args=[key]
        )


def test_an_icon_is_the_same_whether_its_name_is_written_out_or_handed_over() -> None:
    assert (
        render_source('{% icon "cpu" %}')
        == render_source("{% icon name %}", name="cpu")
        == muster.icon("cpu")
    )
    assert render_source('{% icon "cpu" "big" %}') == render_source(
        "{% icon name css %}", name="cpu", css="big"
    )
    assert "<b>" not in render_source("{% icon name %}", name="<b>")


@pytest.mark.parametrize("words", ['<b>&"', "plain"])
def test_choices_and_cells_are_escaped(words: str) -> None:
    drawn = render_source(
        "{% options choices chosen %}", choices=[(words, words), ("two", "Two")], chosen="two"
    )
    assert drawn == (
        f'<option value="{escape(words)}">{escape(words)}</option><option value="two" '
        "selected>Two</option>"
    )
    column = Column("name", "Name", lambda row: row, render=lambda row: f"{row}!")
    listing = Listing(Table("Things", (column,)), [words], (column,), "name")
    assert f">{escape(words)}!</th>" in render_source("{% rows listing %}", listing=listing)


def test_a_field_ties_its_label_help_and_error_to_the_control() -> None:
    markup = render_source("{% field form.name %}", form=Sample({"name": ""}))
    assert '<label class="pf-v6-c-form__label mu-label" for="id_name">' in markup
    assert 'aria-describedby="id_name_error id_name_helptext"' in markup
    assert 'aria-invalid="true"' in markup
    assert 'id="id_name_error"' in markup
    assert 'id="id_name_helptext">Short.' in markup


@pytest.mark.parametrize(
    ("name", "mark"),
    [("size", "pf-v6-c-form-control__toggle-icon"), ("loud", "pf-v6-c-check__input")],
)
def test_every_kind_of_control_gets_its_own_dress(name: str, mark: str) -> None:
    assert mark in render_source("{% field bound %}", bound=Sample()[name])


def test_what_a_field_says_is_escaped() -> None:
    markup = render_source("{% field form.name %}", form=Sample({"name": '"><script>'}))
    assert "<script>" not in markup


def test_a_label_has_its_colour_and_its_icon_and_its_words_are_text() -> None:
    plain = render_source('{% label "Deactivated" %}')
    assert 'class="pf-v6-c-label pf-m-compact"' in plain
    assert "__icon" not in plain
    coloured = render_source('{% label words "red" "circle-x" %}', words="<b>")
    assert 'class="pf-v6-c-label pf-m-compact pf-m-red"' in coloured
    assert "#circle-x" in coloured
    assert "&lt;b&gt;" in coloured


def test_a_link_of_a_table_leads_to_the_row_and_its_words_are_text() -> None:
    assert muster.render_link("project", 7, "<b>") == '<a href="/projects/7">&lt;b&gt;</a>'


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("`make up` starts one.", "<code>make up</code> starts one."),
        ("`<b>` & `c`", "<code>&lt;b&gt;</code> &amp; <code>c</code>"),
        ("It`s <b>", "It`s &lt;b&gt;"),
        ("", ""),
    ],
)
def test_what_stands_between_backticks_is_code(text: str, markup: str) -> None:
    assert render_source("{% load muster %}{{ text|code }}", text=text) == markup
