"""Why a workload of 2,000 pods waits or failed: a few of its pods are read, and the sentence tells
of all of them.
"""

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.models import Node
from tests.cast import Cast
from tests.workloads import objects
from tests.workloads.table_rows import a_workload
from tests.workloads.wide_workloads import PODS, build_pod
from workloads import queries
from workloads.models import Pod, Workload

READ = 100
"""Pods whose objects may be read, of 2,000."""


@pytest.fixture(autouse=True)
def _clear_cache() -> None:
    cache.clear()


def create_wide(cast: Cast, status: str, build: Callable[[int], objects.Object]) -> Workload:
    job = objects.pytorch_job(workers=PODS, master=False)
    workload = a_workload(cast.team_a, "wide", status=status, requested_pods=PODS, job=job)
    pods = [build_pod(workload, rank, build(rank)) for rank in range(PODS)]
    for pod in pods:
        pod.status = "Error" if pod.phase == "Failed" else pod.status
    Pod.objects.bulk_create(pods, batch_size=500)
    return workload


def diagnose(cast: Cast, workload: Workload) -> queries.WorkloadDiagnosis:
    diagnosis = queries.diagnose_workload(workload, cast.bob)
    assert diagnosis is not None
    return diagnosis


def name(rank: int) -> str:
    return f"wide-worker-{rank}"


def test_what_it_needs_is_what_all_of_its_pods_need(cast: Cast) -> None:
    Node.objects.create(
        cluster=cast.cluster, name="n1", is_ready=True, gpus=8, cpu=64, memory=2**38
    )
    requests = {"requests": {"nvidia.com/gpu": "2"}}
    workload = create_wide(
        cast,
        "Pending",
        lambda rank: objects.queued_pod("worker", rank, name=name(rank), resources=requests),
    )
    assert "Needs 4000 GPUs; the cluster has 8" in diagnose(cast, workload).sentence.replace(
        ",", ""
    )


def test_how_many_are_ready_is_said_of_all_of_its_pods(cast: Cast) -> None:
    def build(rank: int) -> objects.Object:
        if rank < 1500:
            return objects.pod("worker", rank, name=name(rank))
        return objects.starting_pod("worker", rank, name=name(rank))

    workload = create_wide(cast, "Initializing", build)
    workload.pods.filter(rank__lt=1500).update(is_ready=True)
    assert "1500 of 2000 pods are ready" in diagnose(cast, workload).sentence


def test_one_of_many_that_cannot_start_is_found(cast: Cast) -> None:
    def build(rank: int) -> objects.Object:
        if rank == 1777:
            return objects.starting_pod("worker", rank, "ErrImagePull", "denied", name=name(rank))
        return objects.starting_pod("worker", rank, name=name(rank))

    workload = create_wide(cast, "Initializing", build)
    workload.pods.filter(rank=1777).update(status="ErrImagePull")
    assert "worker 1777 cannot be pulled (ErrImagePull)" in diagnose(cast, workload).sentence


def test_of_very_many_failed_ranks_the_first_is_named_and_how_all_of_them_ended(
    cast: Cast,
) -> None:
    def build(rank: int) -> objects.Object:
        at = f"2026-11-21T00:{(rank + 1) % 60:02}:00Z" if rank != 1777 else "2026-11-20T23:00:00Z"
        return objects.ended_pod("worker", rank, 1, at=at, name=name(rank))

    workload = create_wide(cast, "Failed", build)
    workload.pods.filter(rank=1777).update(ended_at=workload.created_at)
    workload.pods.filter(rank__in=(5, 6)).update(status="OOMKilled")
    diagnosis = diagnose(cast, workload)
    assert diagnosis.sentence.startswith(
        "Worker 1777 (rank 1777) failed first of 2000 pods that failed:"
    )
    assert "1998 Error (the first is rank 0), 2 OOMKilled (the first is rank 5)" in diagnosis.help
    assert "The logs of the first 16 were searched" in diagnosis.help


@pytest.mark.parametrize("status", ["Pending", "Failed"])
def test_few_of_its_objects_are_read(cast: Cast, status: str) -> None:
    make = objects.queued_pod if status == "Pending" else objects.ended_pod
    more: dict[str, Any] = {} if status == "Pending" else {"code": 1}
    workload = create_wide(cast, status, lambda rank: make("worker", rank, name=name(rank), **more))
    with CaptureQueriesContext(connection) as query_log:
        diagnose(cast, workload)
    assert len(query_log) <= 10
    with connection.cursor() as cursor:
        for query in query_log:
            if '"workloads_pod"."data"' in query["sql"]:
                cursor.execute(query["sql"])
                assert len(cursor.fetchall()) <= READ


def test_each_pod_is_parsed_once(cast: Cast) -> None:
    pods = 80
    job = objects.pytorch_job(workers=pods, master=False)
    workload = a_workload(cast.team_a, "w", status="Pending", requested_pods=pods, job=job)
    Pod.objects.bulk_create(
        [build_pod(workload, rank, objects.queued_pod("worker", rank)) for rank in range(pods)]
    )
    calls: Counter[tuple[str, str]] = Counter()
    sys.setprofile(lambda frame, event, _: calls.update([(event, frame.f_code.co_name)]))
    try:
        diagnose(cast, workload)
    finally:
        sys.setprofile(None)
    assert calls["call", "_parse_pod"] == pods
