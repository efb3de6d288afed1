"""Pages by key, and CSV that no spreadsheet runs."""

import base64
import csv
import io
import json
import uuid

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console import pagination
from projects.models import Department
from tests.cast import Cast

BY_NAME = pagination.SortOrder("name", ("name", "id"))
BY_TIME = pagination.SortOrder("-created", ("-created_at", "-id"))


@pytest.fixture
def departments(db: None) -> list[str]:
    names = [f"department-{number:02}" for number in range(7)]
    same = Department.objects.create(name=names[0]).created_at
    for name in names[1:]:
        Department.objects.create(name=name, created_at=same)
    return names


def walk_pages(
    order: pagination.SortOrder, way: str, cursor: str = "", size: int = 3
) -> tuple[list[list[str]], str]:
    """The names on every page from a cursor on, and the last page's own cursors."""
    found = []
    while True:
        page = pagination.load_page(Department.objects.all(), order, cursor, size)
        found.append([each.name for each in page.rows])
        if not (following := getattr(page, way)):
            return found, page.previous
        cursor = following


@pytest.mark.parametrize("order", [BY_NAME, BY_TIME], ids=lambda order: order.name)
def test_pages_forwards_and_backwards_show_every_row_once_with_equal_values(
    departments: list[str], order: pagination.SortOrder
) -> None:
    forwards, back = walk_pages(order, "next")
    assert [len(page) for page in forwards] == [3, 3, 1]
    assert sorted(name for page in forwards for name in page) == departments
    backwards, _ = walk_pages(order, "previous", back)
    assert backwards == [forwards[1], forwards[0]]


def test_a_page_is_two_queries_without_count_or_offset(departments: list[str]) -> None:
    cursor = pagination.load_page(Department.objects.all(), BY_NAME, "", 3).next
    with CaptureQueriesContext(connection) as queries:
        pagination.load_page(Department.objects.all(), BY_NAME, cursor, 3)
    assert len(queries) == 2
    assert not [each for each in queries if "COUNT" in each["sql"] or "OFFSET" in each["sql"]]


def test_rows_that_come_and_go_between_two_pages_shift_nothing(departments: list[str]) -> None:
    cursor = pagination.load_page(Department.objects.all(), BY_NAME, "", 3).next
    Department.objects.create(name="department-00b")
    Department.objects.filter(name="department-02").delete()
    page = pagination.load_page(Department.objects.all(), BY_NAME, cursor, 3)
    assert [each.name for each in page.rows] == departments[3:6]


@pytest.mark.parametrize(
    "cursor",
    ["%", "bm9uc2Vuc2U", "W10", "eyJhIjogMX0", "x" * 5000, "WyJuYW1lIiwibmV4dCIsMSwyXQ", "Ww"],
)
def test_a_cursor_that_means_nothing_gives_the_first_page(
    departments: list[str], cursor: str
) -> None:
    assert [
        each.name
        for each in pagination.load_page(Department.objects.all(), BY_NAME, cursor, 3).rows
    ] == departments[:3]


def test_a_cursor_of_another_order_gives_the_first_page(departments: list[str]) -> None:
    cursor = pagination.load_page(Department.objects.all(), BY_TIME, "", 3).next
    assert [
        each.name
        for each in pagination.load_page(Department.objects.all(), BY_NAME, cursor, 3).rows
    ] == departments[:3]


def test_going_back_from_what_became_the_beginning_shows_the_first_page(
    departments: list[str],
) -> None:
    second = pagination.load_page(
        Department.objects.all(),
        BY_NAME,
        pagination.load_page(Department.objects.all(), BY_NAME, "", 3).next,
        3,
    )
    Department.objects.filter(name__in=departments[:3]).delete()
    assert [
        each.name
        for each in pagination.load_page(Department.objects.all(), BY_NAME, second.previous, 3).rows
    ] == departments[3:6]


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("train1", "train1"),
        (None, ""),
        (3, "3"),
        ('=HYPERLINK("http://evil")', '\'=HYPERLINK("http://evil")'),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@sum", "'@sum"),
        ("\tx", "'\tx"),
        ("  =1", "'  =1"),
        ('a "b", c\nd', 'a "b", c\nd'),
    ],
)
def test_a_cell_is_text_and_never_a_formula(cell: object, written: str) -> None:
    assert next(csv.reader(io.StringIO(pagination.format_csv_line([cell, "x"]), newline=""))) == [
        written,
        "x",
    ]


@pytest.mark.parametrize(
    ("sort", "value"),
    [
        ("name", "\ud800"),
        ("name", "a\x00"),
        ("-created", "0001-01-01T00:00:00+14:00"),
        ("-created", "9999-12-31T23:59:59-14:00"),
        ("-created", "2026-01-01"),
        ("-created", "2026-01-01T00:00:00"),
    ],
)
def test_no_cursor_that_somebody_makes_up_breaks_a_list(
    cast: Cast, client: Client, sort: str, value: str
) -> None:
    client.force_login(cast.bob)
    texts = json.dumps([sort, "next", value, str(uuid.uuid4())])
    cursor = base64.urlsafe_b64encode(texts.encode()).decode()
    for name in ("cursor", "page"):
        answer = client.get("/workloads", {"sort": sort, name: cursor})
        assert answer.status_code == 200
