"""Many rows written by few statements are as the same rows written one by one by the framework."""

import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.cast import Cast, a_spec
from workloads import journal
from workloads.journal import bulk_sql
from workloads.models import Attempt, Event, Pod, Workload
from workloads.states import Status

TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=12)
MOMENT = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)).map(
    lambda at: at.replace(tzinfo=UTC)
)
WHOLE = st.integers(0, 2**31 - 1)
AMOUNT = st.integers(0, 10**11 - 1).map(lambda number: Decimal(number) / 1000)
JSON = st.dictionaries(
    TEXT,
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT | st.lists(TEXT, max_size=2),
    max_size=3,
)
PODS = st.lists(
    st.fixed_dictionaries(
        {
            "attempt": st.integers(1, 9),
            "name": TEXT,
            "status": TEXT,
            "is_ready": st.booleans(),
            "rank": st.none() | WHOLE,
            "gpus": st.none() | AMOUNT,
            "restarts": WHOLE,
            "created_at": st.none() | MOMENT,
            "vanished_at": st.none() | MOMENT,
            "data": JSON,
        }
    ),
    min_size=1,
    max_size=6,
)
FIELDS = [field.attname for field in Pod._meta.concrete_fields if field.name not in ("id", "uid")]


SPECIAL_TEXTS = ("", "NULL", "null", '"', "\\", '\\"', "'", "{}", "a,b", "%s", " a\n", "\x85")
"""Texts that mean something in an array or a statement of some database."""


def build_pod(text: str) -> dict[str, Any]:
    return {
        "attempt": 1,
        "name": text,
        "status": text,
        "is_ready": True,
        "rank": None,
        "gpus": None,
        "restarts": 0,
        "created_at": None,
        "vanished_at": None,
        "data": {text: text, "list": [text]},
    }


@pytest.fixture
def workload(cast: Cast) -> Workload:
    return journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)


def values(prefix: str) -> list[dict[str, Any]]:
    return list(Pod.objects.filter(uid__startswith=prefix).order_by("uid").values(*FIELDS))


@given(PODS)
@example([build_pod(text) for text in SPECIAL_TEXTS])
@settings(max_examples=60)
def test_rows_are_inserted_as_they_would_be_saved(
    workload: Workload, given: list[dict[str, Any]]
) -> None:
    Pod.objects.all().delete()
    for number, each in enumerate(given):
        Pod.objects.create(workload=workload, uid=f"one-{number}", **each)
    bulk_sql.insert_rows(
        Pod,
        [Pod(workload=workload, uid=f"all-{number}", **each) for number, each in enumerate(given)],
    )
    assert values("all") == values("one")


@given(PODS)
@settings(max_examples=30)
def test_rows_are_found_as_django_would_read_them(
    workload: Workload, given: list[dict[str, Any]]
) -> None:
    Pod.objects.all().delete()
    for number, each in enumerate(given):
        Pod.objects.create(workload=workload, uid=f"one-{number}", **each)
    names = [field.name for field in Pod._meta.concrete_fields]
    keys = [(workload.pk, f"one-{number}") for number in range(len(given) + 1)]
    found = bulk_sql.find_rows(Pod, [*names, "workload__cluster"], ("workload", "uid"), keys)
    assert sorted(found) == sorted(Pod.objects.values_list(*names, "workload__cluster"))


@given(PODS, PODS)
@settings(max_examples=30)
def test_a_row_that_is_there_gets_the_new_values_and_keeps_the_others(
    workload: Workload, first: Any, second: Any
) -> None:
    Pod.objects.all().delete()
    bulk_sql.insert_rows(
        Pod,
        [
            Pod(workload=workload, uid=f"all-{number}", logs_kept=True, **each)
            for number, each in enumerate(first)
        ],
    )
    again = [
        Pod(workload=workload, uid=f"all-{number}", **each) for number, each in enumerate(second)
    ]
    bulk_sql.insert_rows(
        Pod,
        again,
        conflict_fields=("workload", "uid"),
        update_fields=("name", "data", "created_at"),
    )
    found = Pod.objects.order_by("uid").values(
        "name", "data", "created_at", "restarts", "logs_kept"
    )
    for row, (number, kept) in zip(found, enumerate([*first, *second[len(first) :]]), strict=True):
        newest = second[number] if number < len(second) else kept
        wanted = {name: newest[name] for name in ("name", "data", "created_at")}
        assert row == wanted | {"restarts": kept["restarts"], "logs_kept": number < len(first)}


def test_rows_that_change_differently_each_get_their_own(cast: Cast) -> None:
    made = [
        journal.create_workload(a_spec(cast.team_a, f"w{number}"), project=cast.team_a, user=None)
        for number in range(6)
    ]
    at = datetime(2026, 11, 21, tzinfo=UTC)
    changes: list[dict[str, Any]] = [
        {"status": Status.RUNNING, "running_pods": 3},
        {"running_pods": 2, "status": Status.DEGRADED},
        {"job": {"kind": "Job"}, "started_at": at},
        {"job": None, "started_at": at + timedelta(microseconds=7)},
        {"gpus_allocated": Decimal("0.125"), "reason": "% %s ' \" \\ \n ünï"},
        {},
    ]
    was = {"status": "Creating", "attempt": 1}
    with CaptureQueriesContext(connection) as captured:
        bulk_sql.update_rows(
            Workload,
            "id",
            [bulk_sql.RowChange(row.pk, was, to) for row, to in zip(made, changes, strict=True)],
        )
    assert len(captured) == 3
    names = {name for change in changes for name in change}
    for row, change in zip(made, changes, strict=True):
        found = Workload.objects.get(pk=row.pk)
        assert {name: getattr(found, name) for name in names} == {
            name: getattr(row, name) for name in names
        } | change


def test_however_many_rows_change_alike_it_is_one_statement(workload: Workload) -> None:
    bulk_sql.insert_rows(
        Event,
        [
            Event(
                workload=workload,
                attempt=1,
                kind="cluster",
                uid=str(number),
                at=workload.created_at,
            )
            for number in range(700)
        ],
    )
    keys = list(Event.objects.exclude(uid="").values_list("pk", flat=True))
    with CaptureQueriesContext(connection) as captured:
        bulk_sql.update_rows(
            Event,
            "id",
            [
                bulk_sql.RowChange(key, new_values={"count": number, "text": str(number)})
                for number, key in enumerate(keys)
            ],
        )
    assert len(captured) == 1
    assert list(Event.objects.filter(pk__in=keys).order_by("pk").values_list("count", "text")) == [
        (n, str(n)) for n in range(700)
    ]


def test_one_row_that_was_not_as_it_was_read_keeps_all_from_being_taken_for_written(
    workload: Workload,
) -> None:
    changes = [
        bulk_sql.RowChange(workload.pk, {"number": 1}, {"status": "Running"}),
        bulk_sql.RowChange(uuid.uuid4(), {"number": 1}, {"status": "Running"}),
    ]
    with pytest.raises(bulk_sql.ConcurrentChange):
        bulk_sql.update_rows(Attempt, "workload", changes)


def test_nothing_to_write_is_no_statement(workload: Workload) -> None:
    with CaptureQueriesContext(connection) as captured:
        bulk_sql.insert_rows(Pod, [])
        bulk_sql.update_rows(
            Workload, "id", [bulk_sql.RowChange(workload.pk, {"status": "Creating"})]
        )
    assert len(captured) == 0
