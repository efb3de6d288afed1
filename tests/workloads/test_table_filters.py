"""The columns and filters of the workload table: each column can be filtered by, on the page and
by REST.
"""

import importlib
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client
from django.utils.http import urlencode

from console.pagination import SortOrder, load_page
from console.table_filters import parse_decimal
from projects.models import User
from tests.api.calling import Caller
from tests.cast import Cast, a_spec
from tests.migrated import run_python
from tests.workloads.table_rows import NOON, a_pod, a_workload
from workloads import journal
from workloads.filter_catalogue import CATALOGUE, PAGE_FILTERS
from workloads.models import Pod, Workload
from workloads.specs import encode_spec
from workloads.specs.pod_setup import Pair
from workloads.specs.spec_summary import MAX_LINE_CHARS, summarize_spec
from workloads.workload_table import TABLE

GIB = 1 << 30
EXTRA = ",".join(column.name for column in TABLE.columns)


def list_names(user: User, query: str) -> list[str]:
    client = Client()
    client.force_login(user)
    content = client.get(f"/workloads.csv?column=name&sort=name&{query}").content.decode()
    return [line.split(",")[0] for line in content.splitlines()[1:]]


def list_rest_names(user: User, query: str) -> list[str]:
    call = Caller(user)
    answer = call("GET", f"/workloads?{urlencode({'filterBy': query, 'sortBy': 'name'})}")
    return [each["name"] for each in answer["workloads"]]


@pytest.fixture
def two(cast: Cast) -> None:
    a_workload(
        cast.team_a,
        "big",
        architecture="Standard",
        framework="",
        priority="high",
        preemptible=False,
        image="registry.example.com/vision:2",
        command="python train.py --lr 0.1",
        node_pools="a100, default",
        labels="team=vision, tier=gold",
        requested_pods=8,
        gpus_requested=8,
        gpus_allocated=4,
        cpu_requested="16.5",
        cpu_allocated=8,
        memory_requested=64 * GIB,
        memory_allocated=32 * GIB,
        started_at=NOON,
        ended_at=NOON + timedelta(days=2),
        attempt=3,
    )
    a_workload(
        cast.team_a, "small", minutes=60 * 48, image="busybox", requested_pods=1, cpu_requested=1
    )


@pytest.mark.parametrize(
    ("query", "rest"),
    [
        ("architecture=Standard", "type==Training"),
        ("cluster=HER&image=vision", "clusterName==here,image=@vision"),
        ("department=research&command=--lr", "departmentName==research,command=@--lr"),
        ("node_pool=a100", "nodepool=@a100"),
        ("priority=high", "priorityClassName==high"),
        ("preemptible=no", "preemptible==false"),
        ("image=registry.example", "image=^registry.example"),
        ("command=train.py", "command=@train.py"),
        ("label=tier=gold", "labels=@tier=gold"),
        ("pods_from=2", "requestedPods>=2"),
        ("gpus_from=8&gpus_to=8", "requestedGPU==8"),
        ("gpus_allocated_from=0.5", "allocatedGPU>=0.5"),
        ("cpu_from=16.5&cpu_to=16.5", "requestedCPU==16.5"),
        ("cpu_allocated_from=8", "allocatedCPU>=8"),
        ("memory_from=64&memory_to=64", "requestedMemory==64Gi"),
        ("memory_allocated_from=1.5", "allocatedMemory>=1536Mi"),
        ("created_to=2026-11-20", "createdAt<=2026-11-20T23:59:59Z"),
        ("started_from=2026-11-20&started_to=2026-11-20", "startedAt>=2026-11-20"),
        ("ended_from=2026-11-22&ended_to=2026-11-22", "completedAt>=2026-11-22"),
        ("attempt_from=2&attempt_to=3", "attempt==3"),
    ],
)
def test_page_and_rest_filter_alike(cast: Cast, two: None, query: str, rest: str) -> None:
    assert list_names(cast.vera, query) == ["big"]
    assert list_rest_names(cast.vera, rest) == ["big"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("pods_from=1.5", ["big"]),
        ("pods_to=1.5", ["small"]),
        ("attempt_from=2.000001", ["big"]),
        ("memory_from=63.9999999&memory_to=64.0000001", ["big"]),
        ("created_to=9999-12-31", ["big", "small"]),
        ("ended_from=9999-12-31", []),
    ],
)
def test_bounds_between_integers_and_at_the_calendars_end(
    cast: Cast, two: None, query: str, names: list[str]
) -> None:
    assert list_names(cast.vera, query) == names


@pytest.mark.parametrize("text", ["-1", "-1Gi", "1e-99", "9e99", "1E999999999", "1" * 40])
def test_rest_refuses_amounts_of_memory_that_no_row_has(cast: Cast, text: str) -> None:
    query = urlencode({"filterBy": f"requestedMemory>={text}"})
    Caller(cast.vera)("GET", f"/workloads?{query}", status=400)


def test_pages_by_long_images_follow_each_other(cast: Cast) -> None:
    for number in range(51):
        a_workload(cast.team_a, f"w-{number}", image="\U0001f433" * 500 + f"{number:02}")
    order = SortOrder("image", ("image", "-created_at", "-id"))
    first = load_page(Workload.objects.all(), order)
    second = load_page(Workload.objects.all(), order, first.next)
    assert [row.image[-2:] for row in second.rows] == ["50"]
    assert [row.pk for row in load_page(Workload.objects.all(), order, second.previous).rows] == [
        row.pk for row in first.rows
    ]


@pytest.mark.parametrize(
    "query",
    [
        *("cpu_from=many", "cpu_from=-1", "cpu_from=1e99", "cpu_from=nan", "cpu_from=sNaN"),
        *("started_from=2026-13-01", "priority=urgent", "preemptible=perhaps"),
    ],
)
def test_what_no_filter_can_be_is_left_out(cast: Cast, two: None, query: str) -> None:
    """The page says so, a file is not made."""
    client = Client()
    client.force_login(cast.vera)
    page = client.get(f"/workloads?{query}").content.decode()
    assert all(f">{name}<" in page for name in ("big", "small"))
    assert client.get(f"/workloads.csv?{query}").status_code == 400


def test_a_filter_that_is_empty_is_none(cast: Cast, two: None) -> None:
    assert list_names(cast.vera, "cpu_from=") == ["big", "small"]


def test_the_last_day_of_the_calendar_is_a_day(cast: Cast, two: None) -> None:
    assert list_names(cast.vera, "created_to=9999-12-31") == ["big", "small"]
    assert list_names(cast.vera, "created_from=9999-12-31") == []


def test_every_column_can_be_filtered_by() -> None:
    # The page searches by name; running times, progress and use are those of the moment.
    of_the_moment = {"gpu_use", "idle_since", "progress", "runtime"}
    assert {column.name for column in TABLE.columns} - of_the_moment == CATALOGUE.keys()
    assert [name for name, each in CATALOGUE.items() if not each.rest] == []
    assert [name for name, each in CATALOGUE.items() if not each.page] == ["name"]
    names = [each.name for each in PAGE_FILTERS]
    assert len(set(names)) == len(names)


def test_every_filter_of_the_panel_is_on_the_page_and_set_ones_can_be_taken_away(
    cast: Cast, two: None
) -> None:
    client = Client()
    client.force_login(cast.vera)
    page = client.get("/workloads?image=VISION&cpu_from=2&priority=high").content.decode()
    for each in PAGE_FILTERS:
        assert each.kind == "view" or f'name="{each.name}"' in page, each.name
    assert 'value="VISION"' in page
    for words, address in (
        ("Image: VISION", "cpu_from=2&amp;priority=high|priority=high&amp;cpu_from=2"),
        ("Priority: High", "image=VISION&amp;cpu_from=2"),
    ):
        before = page.split(words)[0].rpartition('href="')[2]
        assert any(part in before for part in address.split("|")), before


def test_every_column_can_be_shown_and_tells_the_row(cast: Cast, two: None) -> None:
    client = Client()
    client.force_login(cast.vera)
    page = client.get(f"/workloads?column={EXTRA}").content.decode()
    for text in (
        *(">here<", ">research<", "a100, default", ">High<", ">registry.example.com/vision:2<"),
        *("python train.py --lr 0.1", ">16.5<", ">64 GiB<", ">32 GiB<", "team=vision, tier=gold"),
    ):
        assert text in page, text


def test_a_submission_keeps_what_lists_show_of_it(cast: Cast) -> None:
    spec = a_spec(cast.team_a, "train1")
    compute = replace(spec.setup.compute, cpu_request="500m", memory_request="", memory_limit="1Gi")
    environment = replace(spec.setup.environment, command=("python",), args=("a b.py", "x" * 600))
    setup = replace(
        spec.setup,
        compute=compute,
        environment=environment,
        labels=(Pair("team", "vision"),),
        node_pools=("a100", "default"),
    )
    spec = replace(spec, setup=setup)
    made = journal.create_workload(spec, project=cast.team_a, user=cast.bob)
    row = Workload.objects.get(pk=made.pk)
    pods = spec.totals.pods
    assert row.image == spec.setup.environment.image_reference
    assert row.command.startswith("python 'a b.py' xxx")
    assert len(row.command) == MAX_LINE_CHARS
    assert (row.labels, row.node_pools) == ("team=vision", "a100, default")
    assert (row.cpu_requested * 2, row.memory_requested) == (pods, pods * GIB)


def test_an_enormous_request_fits_into_its_columns(cast: Cast) -> None:
    spec = a_spec(cast.team_a, "train1")
    compute = replace(spec.setup.compute, cpu_request="9E", memory_request="9E")
    spec = replace(spec, setup=replace(spec.setup, compute=compute))
    a_workload(cast.team_a, spec=encode_spec(spec), **summarize_spec(spec))
    assert list_names(cast.vera, "memory_from=1000") == ["train1"]


@pytest.mark.parametrize(
    ("text", "number"), [("1.5", "1.5"), (" 2 ", "2"), ("1e3", "1000"), ("inf", None), ("", None)]
)
def test_numbers_are_read_as_people_type_them(text: str, number: str | None) -> None:
    parsed = parse_decimal(text)
    assert parsed is None if number is None else parsed == parse_decimal(number)


def test_workloads_of_an_earlier_release_are_summarized(cast: Cast) -> None:
    fill = importlib.import_module("workloads.migrations.0006_fill_lists_of_workloads")
    old = a_workload(cast.team_a, "old")
    unreadable = a_workload(cast.team_a, "unreadable", spec={"version": 99})
    for node, phase in (("node-0", "Running"), ("node-0", "Succeeded"), ("", "Pending")):
        requests = {"cpu": "1500m", "memory": "1Gi"}
        data = {"spec": {"containers": [{"resources": {"requests": requests}}]}}
        a_pod(old, index=Pod.objects.count(), node=node, phase=phase, data=data)
    odd_spec = encode_spec(a_spec(cast.team_a, "odd"))
    # PostgreSQL stores no half of a pair of UTF-16.
    odd_spec["setup"]["environment"]["image"] = "\ud800" if connection.vendor == "sqlite" else 7
    odd = a_workload(cast.team_a, "odd", spec=odd_spec)
    not_an_object = a_workload(cast.team_a, "not-an-object", spec=["?"])
    a_pod(old, index=9, node="node-0", phase="Running", data=["?"])
    # A row that a migration has filled before it was interrupted is filled again.
    for _ in range(2):
        fill.fill_summaries(apps, None)
        fill.fill_allocations(apps, None)
    old.refresh_from_db()
    assert old.image == a_spec(cast.team_a, "old").setup.environment.image_reference
    assert old.memory_requested > 0
    assert (str(old.cpu_allocated), old.memory_allocated) == ("1.500", GIB)
    for each in (unreadable, odd, not_an_object):
        each.refresh_from_db()
        assert each.image == ""


def test_a_column_is_added_without_copying_the_table(tmp_path: Path) -> None:
    """Django copies it on SQLite for each column that is not nullable."""
    script = """
import django
django.setup()
from django.core.management import call_command
for app, name in [("workloads", "0002"), ("workloads", "0005"), ("projects", "0003"),
                  ("projects", "0006"), ("clusters", "0003")]:
    call_command("sqlmigrate", app, name)
"""
    statements = run_python(tmp_path, "-c", script)
    assert statements.count("ADD COLUMN") == 4 + 10 + 1 + 1 + 2
    assert "CREATE TABLE" not in statements
    assert "DEFAULT (" not in statements, "SQLite adds no column with an expression"
