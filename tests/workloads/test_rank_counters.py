"""How long ranks waited for data, out of their logs, and what pages ask of it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.cast import Cast, a_spec
from tests.workloads.cluster_objects import jobs, observe_gone, pods
from tests.workloads.data_workers import (
    DataKube,
    preparing,
    start_preparing,
    write_lines,
    write_log,
)
from tests.workloads.objects import condition
from workloads import journal, queries
from workloads.logbook import log_paths
from workloads.models import DataPreparation, Pod, RankDelivery
from workloads.tasks import data_progress, follow_preparations

CREATED, RUNNING = condition("Created"), condition("Running")


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, settings: Any) -> None:
    settings.LOGS = tmp_path


@pytest.fixture
def kube(cast: Cast) -> DataKube:
    return start_preparing(cast)


def rank(number: int, waited: float, computed: float, **more: Any) -> dict[str, Any]:
    spent = {"rank": number, "waited": waited, "computed": computed, "span": 600.0}
    return {
        "event": "rank",
        **spent,
        "depth": 4,
        "rate": 512.0,
        "delivered": 51_200,
        "epoch": 2,
        **more,
    }


def run_all(cast: Cast, kube: DataKube) -> None:
    up = [kube.pod("master"), kube.pod("worker", 0), kube.pod("worker", 1)]
    journal.record_observations(
        cast.cluster.pk, [*jobs(kube.resumed_job(CREATED, RUNNING)), *pods(*up)]
    )
    follow_preparations()


def test_counters_go_on_when_data_workers_have_failed(cast: Cast, kube: DataKube) -> None:
    run_all(cast, kube)
    failed = condition("Failed", reason="BackoffLimitExceeded", message="too many")
    journal.record_observations(cast.cluster.pk, jobs(kube.data_job(failed)))
    follow_preparations()
    DataPreparation.objects.update(sampled_at=None, failed_at=timezone.now() - timedelta(minutes=1))
    pod = Pod.objects.exclude(role="data-worker").get(rank=0)
    write_lines(pod, rank(0, 10, 590))
    follow_preparations()
    assert RankDelivery.objects.get().waited == 10
    DataPreparation.objects.update(sampled_at=None)
    write_lines(pod, rank(0, 20, 590))
    follow_preparations()
    assert (DataPreparation.objects.get().failure, RankDelivery.objects.get().waited) == (
        "Its data workers failed: too many",
        20,
    )


def test_the_counters_of_ranks_are_kept_and_say_what_would_have_covered_the_waiting(
    cast: Cast, kube: DataKube
) -> None:
    run_all(cast, kube)
    DataPreparation.objects.update(sampled_at=None)
    by_rank = {pod.rank: pod for pod in Pod.objects.exclude(role="data-worker")}
    write_lines(by_rank[0], rank(0, 10, 590), b"step 1", rank(0, 400, 200, delivered=7))
    write_lines(by_rank[1], rank(1, 300, 300), b"x", rank(9, 1e13, 1))
    follow_preparations()
    assert list(RankDelivery.objects.values_list("rank", "waited", "delivered")) == [
        (0, 400, 7),
        (1, 300, 51_200),
    ]
    with CaptureQueriesContext(connection) as captured:
        view = queries.load_delivery(kube.row())
    assert len(captured) == 5, "one is of the row itself"
    assert view is not None
    assert [each.rank for each in view.ranks] == [0, 1]
    assert (view.suggested_workers, round(view.waited_share or 0, 2)) == (5, 0.58)
    assert view.sentence == (
        "GPUs waited 58 % of the last 10 min for data; five data workers would have covered it."
    )
    assert (view.rank_count, view.elements_per_second, view.is_recent) == (2, 1024, True)
    assert [each.pod for each in view.workers] == ["train1-data-0-pods0", "train1-data-1-pods0"]


def test_the_counters_that_were_read_the_longest_ago_come_first(cast: Cast, kube: DataKube) -> None:
    kubes = [kube, start_preparing(cast, name="other")]
    for each in kubes:
        run_all(cast, each)
    for minutes, each in enumerate(kubes, 1):
        sampled_at = timezone.now() - timedelta(minutes=minutes)
        each.workload.data_preparations.update(sampled_at=sampled_at)
        pod = Pod.objects.get(workload=each.workload, rank=0)
        write_lines(pod, rank(0, 10, 590))
    follow_preparations()
    order = RankDelivery.objects.order_by("pk").values_list("workload", flat=True)
    assert list(order) == [kubes[1].workload.pk, kubes[0].workload.pk]


def test_a_log_that_cannot_be_read_holds_up_no_other_rank(cast: Cast, kube: DataKube) -> None:
    run_all(cast, kube)
    DataPreparation.objects.update(sampled_at=None)
    by_rank = {pod.rank: pod for pod in Pod.objects.exclude(role="data-worker")}
    path = log_paths.local_path(write_lines(by_rank[0], rank(0, 10, 590)).path)
    path.unlink()
    path.mkdir()
    write_lines(by_rank[1], rank(1, 300, 300))
    follow_preparations()
    assert list(RankDelivery.objects.values_list("rank", flat=True)) == [1]


def test_a_list_asks_once_for_those_that_prepare_and_else_not_at_all(
    cast: Cast, kube: DataKube
) -> None:
    other = journal.create_workload(a_spec(cast.team_a, "plain"), project=cast.team_a, user=None)
    with CaptureQueriesContext(connection) as captured:
        assert queries.load_preparations([other]) == {}
        assert queries.load_delivery(other) is None
    assert len(captured) == 0
    write_log(kube, preparing(0, 25))
    follow_preparations()
    rows = [kube.row(), other]
    with CaptureQueriesContext(connection) as captured:
        found = queries.load_preparations(rows)
    assert len(captured) == 1
    assert (found[rows[0].pk].prepared, found[rows[0].pk].percent) == (25, 25)


def test_data_workers_that_vanished_long_ago_crowd_nobody_out(
    cast: Cast, kube: DataKube, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(kube, preparing(0, 25))
    evicting = start_preparing(cast, name="evicting")
    vanished_pods = [evicting.data_pod(0, tries=each) for each in range(1, 5)]
    for each in vanished_pods:
        each["metadata"]["creationTimestamp"] = "2026-11-21T01:00:00Z"
    journal.record_observations(
        cast.cluster.pk, [*pods(*vanished_pods), *observe_gone("pod", *vanished_pods)]
    )
    gone_rows = Pod.objects.exclude(vanished_at=None)
    assert gone_rows.update(vanished_at=timezone.now() - timedelta(hours=1)) == 4
    monkeypatch.setattr(data_progress, "MOST_PODS", 4)
    follow_preparations()
    assert kube.preparation().prepared == 25
