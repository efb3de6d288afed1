"""The recipe of tables: what stands in the address is what is shown, and what it cannot do it
leaves out.
"""

import re
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.http import HttpRequest, HttpResponse, QueryDict
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from console.table_filters import Filter
from console.tables import Column, Listing, Table, parse_selection, render_table
from environments.models import Environment
from tests.cast import Cast
from tests.workloads.table_rows import a_workload

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


def render_list(request: HttpRequest, rows: Any, table: Table) -> HttpResponse:
    """Return the page, or the CSV, of rows that are few enough to come at once."""
    answer = render_table(request, rows, table, "parts/list.html", {"heading": "x"}, file="x")
    assert isinstance(answer, HttpResponse)
    return answer


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
    page = listing(cast, rows, query, monkeypatch)
    assert (page.rows[0].name, len(page.rows)) == (first, how_many)


def test_pages_follow_one_another_without_a_gap(
    cast: Cast, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, cursor = [], ""
    while True:
        page = listing(
            cast, rows, QueryDict(mutable=True).urlencode() + f"cursor={cursor}", monkeypatch
        )
        names += [row.name for row in page.rows]
        if not (cursor := page.next):
            break
    assert names == [f"env-{number:03}" for number in range(120)]


def test_chosen_columns_are_shown_and_the_first_always(
    cast: Cast, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_columns(query: str) -> list[str]:
        return [column.name for column in listing(cast, rows, query, monkeypatch).columns]

    assert find_columns("") == ["name", "image"]
    assert find_columns("column=created&column=nonsense") == ["name", "created"]
    assert find_columns("cols=created,nonsense") == ["name", "created"]


@pytest.mark.parametrize(
    ("query", "expected_heads"),
    [
        ("", [("name", "ascending", "-name"), ("image", "", "")]),
        ("sort=-name", [("name", "descending", "name"), ("image", "", "")]),
        (
            "sort=-name&column=created",
            [("name", "descending", "name"), ("created", "", "created")],
        ),
    ],
)
def test_a_head_turns_its_order(
    cast: Cast, rows: Any, monkeypatch: pytest.MonkeyPatch, query: str, expected_heads: list[Any]
) -> None:
    heads = listing(cast, rows, query, monkeypatch).heads
    assert [(column.name, *order) for column, *order in heads] == expected_heads


def test_the_column_of_the_default_order_is_sorted_that_way_first() -> None:
    table = replace(TABLE, sort="-created")
    listed = [Listing(table, (), TABLE.columns, sort) for sort in ("name", "-created", "created")]
    assert [each.heads[2][2] for each in listed] == ["-created", "created", "-created"]


def test_chosen_columns_are_remembered_in_the_cookie_of_the_table(cast: Cast, rows: Any) -> None:
    table = replace(TABLE, cookie="chosen")

    def render(query: str) -> HttpResponse:
        request = build_request(cast, query)
        request.COOKIES["chosen"] = "created"
        return render_list(request, rows, table)

    assert render("column=image").cookies["chosen"].value == "name,image"
    remembered = render("")
    assert "chosen" not in remembered.cookies
    assert b'data-column="created"' in remembered.content
    assert b'data-column="image"' not in remembered.content


SEVERAL = replace(
    TABLE,
    filters=(
        Filter(
            "architecture",
            "Architecture",
            lambda _: [("Standard", "One pod"), ("Distributed", "Several")],
            lambda rows, values: rows.filter(architecture__in=values),
            kind="choices",
        ),
        Filter(
            "odd",
            "Odd",
            lambda _: (),
            lambda rows, value: rows.filter(name__endswith=value or "1"),
            kind="view",
            check=str.isdigit,
        ),
    ),
)


@pytest.mark.parametrize(
    ("query", "parameters", "expected_count"),
    [
        ("", [], 12),
        ("architecture=Standard", [("architecture", "Standard")], 12),
        ("architecture=Distributed&architecture=x", [("architecture", "Distributed")], 0),
        (
            "odd=2&architecture=Standard&architecture=Distributed",
            [("architecture", "Distributed"), ("architecture", "Standard"), ("odd", "2")],
            12,
        ),
        ("odd=x&q=env-00", [("q", "env-00")], 1),
    ],
)
def test_several_values_of_a_filter_and_a_view_of_the_rows(
    cast: Cast, rows: Any, query: str, parameters: list[tuple[str, str]], expected_count: int
) -> None:
    selection = parse_selection(build_request(cast, query), SEVERAL)
    assert selection.list_parameters() == parameters
    assert SEVERAL.select_rows(rows, selection).count() == expected_count
    page = render_list(build_request(cast, query), rows, SEVERAL).content.decode()
    checked = re.findall(r'name="architecture" value="(.*?)"\s+checked', page)
    assert sorted(checked) == [value for name, value in parameters if name == "architecture"]


@pytest.mark.parametrize(
    ("query", "refused"),
    [
        ("architecture=Standard", []),
        ("architecture=", []),
        ("architecture=Standard&architecture=<b>", ["Architecture “&lt;b&gt;”"]),
        ("architecture=x&architecture=x&architecture=y", ["Architecture “x”", "Architecture “y”"]),
        ("odd=x", []),
    ],
)
def test_what_of_an_address_is_no_filter_is_told(
    cast: Cast, rows: Any, query: str, refused: list[str]
) -> None:
    page = render_list(build_request(cast, query), rows, SEVERAL).content.decode()
    match = re.search(r"data-unused-filters>.*?mu-alert__text\">(.*?)cannot be", page, re.DOTALL)
    words = " ".join(match[1].split()) if match else ""
    assert words == ", ".join(refused)
    # And the rows are there, as far as the rest narrows them.
    assert "env-001" in page


def test_the_table_of_workloads_tells_what_of_its_address_is_no_filter(
    cast: Cast, client: Client
) -> None:
    a_workload(cast.team_a, name="train-1")
    client.force_login(cast.alice)
    page = client.get("/workloads?status=Nonsense&status=Pending&gpus_from=x").content.decode()
    assert "Status “Nonsense”" in page
    assert "“x”" in page
    assert "“Pending”" not in page
    assert "data-unused-filters" not in client.get("/workloads?status=Pending").content.decode()


def test_csv_has_every_column_and_no_formula(cast: Cast, rows: Any) -> None:
    request = build_request(cast, "format=csv&q=env-00")
    given = render_list(request, rows, TABLE).content.decode()
    lines = given.splitlines()
    assert (lines[0], len(lines)) == ("Environment,Image,Created", 11)
    assert lines[1].startswith("env-000,'=image-0,")


def test_numbers_have_their_thousands_apart_on_the_page_and_not_in_csv(
    cast: Cast, rows: Any
) -> None:
    wide = Column("size", "Size", lambda row: "12800.5", is_number=True)
    table = replace(TABLE, columns=(TABLE.columns[0], wide))
    assert ">12,800.5</td>" in render_list(build_request(cast, ""), rows, table).content.decode()
    sheet = render_list(build_request(cast, "format=csv&q=env-000"), rows, table)
    assert sheet.content.decode().splitlines()[1] == "env-000,12800.5"


def test_csv_has_the_columns_that_the_address_chooses(cast: Cast, rows: Any) -> None:
    request = build_request(cast, "format=csv&q=env-00&column=created")
    given = render_list(request, rows, TABLE).content.decode()
    assert given.splitlines()[0] == "Environment,Created"


def test_a_page_takes_the_same_queries_however_many_rows_there_are(cast: Cast, rows: Any) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as query_log:
            assert b"env-000" in render_list(build_request(cast, ""), rows, TABLE).content
        return len(query_log)

    before = queries()
    Environment.objects.bulk_create(
        Environment(name=f"more-{number}", image="x") for number in range(1000)
    )
    assert queries() == before


def test_columns_that_there_are_not_and_a_nameless_cookie_hide_nothing(
    cast: Cast, client: Client
) -> None:
    client.force_login(cast.bob)
    usual = len(re.findall("<th ", client.get("/projects").content.decode()))
    for cookie, query in (("seen", ""), ("", "?column=nope")):
        client.cookies.clear()
        client.force_login(cast.bob)
        [session] = client.cookies.values()
        answer = client.get(
            f"/projects{query}",
            headers={"Cookie": f"{session.key}={session.value}; {cookie}"},
        )
        assert len(re.findall("<th ", answer.content.decode())) == usual


def test_a_typed_filter_that_is_too_long_is_cut_and_not_left_out(
    cast: Cast, client: Client
) -> None:
    a_workload(cast.team_a, by=cast.bob)
    client.force_login(cast.bob)
    for who, rows in (("bob", 2), ("nobody", 1), ("n" * 1000, 1), ("bob\x00", 2)):
        csv_file = client.get("/workloads.csv", {"by": who}).content.decode()
        assert len(csv_file.strip().splitlines()) == rows
