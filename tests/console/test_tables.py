"""The recipe of tables: what stands in the address is what is shown, and what it cannot do it
leaves out.
"""

from typing import Any

import pytest
from django.db import connection
from django.http import HttpRequest, QueryDict
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from console.tables import Column, Filter, Listing, Table, render_table
from environments.models import Environment
from tests.cast import Cast

TABLE = Table(
    "Environments",
    (
        Column("name", "Environment", lambda row: row.name, order=("name",)),
        Column("image", "Image", lambda row: row.image),
        Column(
            "created",
            "Created",
            lambda row: row.created_at.isoformat(),
            order=("created_at",),
            is_extra=True,
        ),
    ),
    search=("name__icontains", "image__icontains"),
    filters=(
        Filter(
            "architecture",
            "Architecture",
            lambda _: [("Standard", "Standard")],
            lambda rows, value: rows.filter(architecture=value),
        ),
    ),
)


@pytest.fixture
def rows(cast: Cast) -> Any:
    for number in range(120):
        kind = "Standard" if number % 2 else "Distributed"
        Environment.objects.create(
            name=f"env-{number:03}", image=f"=image-{number}", architecture=kind
        )
    return Environment.objects.all()


def build_request(cast: Cast, query: str) -> HttpRequest:
    request = RequestFactory().get(f"/environments?{query}")
    request.user = cast.alice
    return request


def listing(cast: Cast, rows: Any, query: str, monkeypatch: pytest.MonkeyPatch) -> Listing:
    found: list[Listing] = []
    monkeypatch.setattr(
        "console.tables.render_page",
        lambda request, template, part, context: found.append(context["listing"]),
    )
    render_table(
        build_request(cast, query),
        rows,
        TABLE,
        "parts/list.html",
        {"heading": "x"},
        file="environments",
    )
    return found[0]


@pytest.mark.parametrize(
    ("query", "first", "how_many"),
    [
        ("", "env-000", 50),
        ("sort=-name", "env-119", 50),
        ("sort=image", "env-000", 50),
        ("sort=--name", "env-000", 50),
        ("q=image-11", "env-011", 11),
        ("architecture=Standard", "env-001", 50),
        ("architecture=Nonsense", "env-000", 50),
        ("cursor=nonsense", "env-000", 50),
        ("q=%00", "env-000", 50),
    ],
)
def test_the_address_says_what_is_shown(
    cast: Cast, rows: Any, monkeypatch: pytest.MonkeyPatch, query: str, first: str, how_many: int
) -> None:
    shown = listing(cast, rows, query, monkeypatch)
    assert (shown.rows[0].name, len(shown.rows)) == (first, how_many)


def test_pages_follow_one_another_without_a_gap(
    cast: Cast, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, cursor = [], ""
    while True:
        shown = listing(
            cast, rows, QueryDict(mutable=True).urlencode() + f"cursor={cursor}", monkeypatch
        )
        names += [row.name for row in shown.rows]
        if not (cursor := shown.next):
            break
    assert names == [f"env-{number:03}" for number in range(120)]


def test_chosen_columns_are_shown_and_the_first_always(
    cast: Cast, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert listing(cast, rows, "", monkeypatch).column_names == {"name", "image"}
    assert listing(cast, rows, "column=created&column=nonsense", monkeypatch).column_names == {
        "name",
        "created",
    }


def test_csv_has_every_column_and_no_formula(cast: Cast, rows: Any) -> None:
    given = render_table(
        build_request(cast, "format=csv&q=env-00"),
        rows,
        TABLE,
        "parts/list.html",
        {},
        file="environments",
    ).content.decode()
    lines = given.splitlines()
    assert (lines[0], len(lines)) == ("Environment,Image,Created", 11)
    assert lines[1].startswith("env-000,'=image-0,")


def test_a_page_takes_the_same_queries_however_many_rows_there_are(cast: Cast, rows: Any) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as seen:
            assert (
                b"env-000"
                in render_table(
                    build_request(cast, ""),
                    rows,
                    TABLE,
                    "parts/list.html",
                    {"heading": "x"},
                    file="x",
                ).content
            )
        return len(seen)

    before = queries()
    Environment.objects.bulk_create(
        Environment(name=f"more-{number}", image="x") for number in range(1000)
    )
    assert queries() == before
