"""Each field of each list sorts and filters, and so do the columns of its page."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from clusters.models import Cluster, Node
from projects.models import Project
from tests.api.calling import Caller
from tests.api.described import list_operations
from tests.cast import Cast, a_spec
from workloads import journal
from workloads.filter_catalogue import CATALOGUE
from workloads.models import Workload
from workloads.workload_table import TABLE

VALUES = (
    *("1", "true", "2026-01-01", "127.0.0.1", "Distributed", "Running", "PyTorch", "medium"),
    *("create", "user", "viewer", "0" * 32, "a"),
)
"""One of these is a value of any field."""


def list_fields() -> Iterator[tuple[str, str, list[str]]]:
    """The address of each list, a field of it, and the field's operators."""
    for method, path, operation in list_operations():
        parameters = {each["name"]: each for each in operation.get("parameters", ())}
        is_asset = "/asset/" in path and not path.endswith("/environment")
        if method != "GET" or "{" in path or "sortBy" not in parameters or is_asset:
            continue
        described = parameters["filterBy"]["description"].partition("Fields: ")[2]
        for name, operators in re.findall(r"(\w+) \(([^)]*)\)", described):
            yield path, name, operators.split()


def list_orders(path: str) -> list[str]:
    """Return what a list sorts by: its fields, or of sums what its document names."""
    operation = next(
        each for method, at, each in list_operations() if (method, at) == ("GET", path)
    )
    order = next(each for each in operation["parameters"] if each["name"] == "sortBy")
    named: list[str] = order["schema"].get("enum", [])
    return named or [name for found, name, _ in list_fields() if found == path]


LISTS = sorted({path for path, _, _ in list_fields()})


@pytest.mark.parametrize("path", LISTS)
def test_each_field_sorts_and_filters(cast: Cast, path: str) -> None:
    alice = Caller(cast.alice)
    for name in list_orders(path):
        for order in ("asc", "desc"):
            answer = alice.raw("GET", f"{path}?sortBy={name}&sortOrder={order}")
            assert answer.status_code == 200, (name, answer.content)
    for found, name, operators in list_fields():
        if found != path:
            continue
        good = next((value for value in VALUES if is_taken(alice, path, f"{name}=={value}")), None)
        assert good is not None, name
        for operator in operators:
            assert is_taken(alice, path, f"{name}{operator}{good}"), (name, operator)


def is_taken(caller: Caller, path: str, condition: str) -> bool:
    status = caller.raw("GET", f"{path}?filterBy={quote(condition)}").status_code
    assert status in (200, 400), condition
    return status == 200


def test_every_column_of_workloads_has_a_field() -> None:
    """That of the runtime follows from two others, which have one each.

    Progress and use are those of the moment.
    """
    fields = {name for name, column in CATALOGUE.items() if column.rest}
    of_the_moment = {"gpu_use", "idle_since", "progress", "runtime"}
    assert {column.name for column in TABLE.columns} - fields == of_the_moment


def names(caller: Caller, path: str, condition: str, key: str) -> list[str]:
    return [each["name"] for each in caller("GET", f"{path}?filterBy={quote(condition)}")[key]]


def test_new_fields_select_what_they_say(cast: Cast) -> None:
    alice = Caller(cast.alice)
    made = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    Workload.objects.filter(pk=made.pk).update(running_pods=2, attempt=3)
    Project.objects.filter(pk=cast.team_b.pk).update(gpu_quota=None, description="for b")
    Node.objects.create(cluster=cast.cluster, name="big", memory=1 << 40, is_ready=True, cpu=64)
    Node.objects.create(cluster=cast.cluster, name="down", memory=1 << 30)
    cases: list[tuple[str, str, str, list[str]]] = [
        ("/workloads", "runningPods>=2,requestedPods==3,attempt==3", "workloads", ["train1"]),
        ("/workloads", "runningPods>=3", "workloads", []),
        ("/workloads", "requestedGPU<=0.3,startedAt<=2100-01-01", "workloads", []),
        ("/workloads", "requestedGPU<=0.3", "workloads", ["train1"]),
        ("/org-unit/projects", "gpuQuota>=1,clusterName==here", "projects", ["team-a"]),
        ("/org-unit/projects", "description=@for", "projects", ["team-b"]),
        ("/nodes", f"memoryBytesTotal>={1 << 40}", "nodes", ["big"]),
        ("/nodes", "isReady==false", "nodes", ["down"]),
    ]
    for path, condition, key, expected in cases:
        assert names(alice, path, condition, key) == expected, condition
    alice("GET", "/nodes?filterBy=memoryBytesTotal%3E=1e30", status=400)
    assert Cluster.objects.count() == 1


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/workloads", "attempt"),
        ("/workloads", "runningPods"),
        ("/workloads", "requestedPods"),
        ("/workloads", "requestedGPUMemoryMib"),
        ("/workloads/pods", "attempt"),
        ("/nodes", "gpuMemoryMib"),
    ],
)
def test_a_field_of_whole_numbers_takes_no_others(cast: Cast, path: str, field: str) -> None:
    alice = Caller(cast.alice)
    for value in ("1.5", "0.0000001", "1e-3"):
        refused = alice("GET", f"{path}?filterBy={field}{quote('>=')}{value}", status=400)
        assert "a whole number" in refused["message"]
    for value in ("-1", "1.0", "1e3"):
        alice("GET", f"{path}?filterBy={field}{quote('>=')}{value}")


def test_rows_without_a_value_come_last(cast: Cast) -> None:
    Project.objects.filter(pk=cast.team_a.pk).update(gpu_quota=None)
    for order in ("asc", "desc"):
        answer: Any = Caller(cast.alice)(
            "GET", f"/org-unit/projects?sortBy=gpuQuota&sortOrder={order}"
        )
        assert [each["name"] for each in answer["projects"]] == ["team-b", "team-a"]
