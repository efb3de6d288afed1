"""The pods of one workload over REST: every pod of an attempt, also those that are gone."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.calling import Caller
from tests.api.their_client import models
from tests.cast import Cast
from tests.workloads import objects
from tests.workloads.table_rows import a_pod, a_workload
from workloads.models import Pod, Workload

GONE_AT = datetime(2026, 11, 20, 13, tzinfo=UTC)


@pytest.fixture
def ended_workload(cast: Cast) -> Workload:
    """A workload that ended twice. Its operator removed the workers at the end, as is the default
    of some, and the pods of the first attempt are gone as well.
    """
    workload = a_workload(cast.team_a, attempt=2, status="Completed", ended="3 succeeded")
    for attempt in (1, 2):
        for rank, role in enumerate(("master", "worker", "worker")):
            is_gone = attempt == 1 or role == "worker"
            a_pod(
                workload,
                role,
                max(0, rank - 1),
                attempt=attempt,
                rank=rank,
                phase="Succeeded",
                vanished_at=GONE_AT if is_gone else None,
                data=objects.ended_pod(role, max(0, rank - 1)),
            )
    return workload


def list_ranks(cast: Cast, workload: Workload, query: str = "") -> Sequence[tuple[int, int, bool]]:
    """Attempt, rank and whether it is gone, of the pods that are listed."""
    pods = Caller(cast.bob)("GET", f"/workloads/{workload.pk}/pods?{query}")["pods"]
    for each in pods:
        assert models.Pod1.from_dict(each).id == each["id"]
    return [(each["attempt"], each["rank"], each["deletedAt"] is not None) for each in pods]


LISTED: Sequence[tuple[str, Sequence[tuple[int, int, bool]]]] = [
    ("", [(2, 0, False), (2, 1, True), (2, 2, True)]),
    ("deleted=true", [(2, 1, True), (2, 2, True)]),
    ("deleted=false", [(2, 0, False)]),
    ("attempt=1", [(1, 0, True), (1, 1, True), (1, 2, True)]),
    ("attempt=1&deleted=false", []),
    ("attempt=all&limit=4", [(2, 0, False), (2, 1, True), (2, 2, True), (1, 0, True)]),
    ("attempt=7", []),
    ("search=WORKER-1", [(2, 2, True)]),
    ("filterBy=k8sPhase==Succeeded,name=$master-0", [(2, 0, False)]),
    ("offset=1&limit=1", [(2, 1, True)]),
]


@pytest.mark.parametrize(("query", "pods"), LISTED)
def test_every_pod_of_the_attempt_is_listed(
    cast: Cast, ended_workload: Workload, query: str, pods: Sequence[tuple[int, int, bool]]
) -> None:
    assert list_ranks(cast, ended_workload, query) == pods


@pytest.mark.parametrize("query", ["attempt=x", "attempt=-1", "attempt=1234567", "deleted=yes"])
def test_what_is_no_attempt_is_refused(cast: Cast, ended_workload: Workload, query: str) -> None:
    name = query.partition("=")[0]
    refused = Caller(cast.bob)("GET", f"/workloads/{ended_workload.pk}/pods?{query}", status=400)
    assert refused["message"].startswith(name)


def test_a_pod_says_what_the_page_says_of_it(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    a_pod(workload, status="ErrImagePull", reason="<b>not found</b>", restarts=3)
    (pod,) = Caller(cast.bob)("GET", f"/workloads/{workload.pk}/pods")["pods"]
    assert (pod["status"], pod["message"], pod["restarts"], pod["role"], pod["rank"]) == (
        "ErrImagePull",
        "<b>not found</b>",
        3,
        "worker",
        1,
    )


def create_pods(workload: Workload, count: int, **fields: Any) -> None:
    data = objects.ended_pod("worker", 0)
    Pod.objects.bulk_create(
        Pod(
            workload=workload,
            attempt=1,
            uid=f"{workload.name}-{rank}",
            name=f"{workload.name}-worker-{rank}",
            rank=rank,
            phase="Running",
            data=data,
            **fields,
        )
        for rank in range(count)
    )


def test_two_thousand_pods_come_in_pages_each_of_as_many_queries(cast: Cast) -> None:
    small, large = (a_workload(cast.team_a, name) for name in ("small", "large"))
    create_pods(small, 2)
    create_pods(large, 2000)
    bob, counts = Caller(cast.bob), []
    bob("GET", f"/workloads/{small.pk}/pods")
    for workload in (small, large):
        with CaptureQueriesContext(connection) as queries:
            bob("GET", f"/workloads/{workload.pk}/pods?limit=500")
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 5
    ranks: list[int] = []
    offset: int | None = 0
    while offset is not None:
        page = bob("GET", f"/workloads/{large.pk}/pods?limit=500&offset={offset}")
        assert len(page["pods"]) == 500
        ranks += [each["rank"] for each in page["pods"]]
        offset = page.get("next")
    assert ranks == list(range(2000))
    assert len(bob("GET", f"/workloads/{large.pk}/pods")["pods"]) == 50
