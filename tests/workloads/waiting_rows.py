"""Rows of a cluster in which work runs and waits, and a simulator with given answers."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from clusters.models import Node
from projects.models import Project, User
from scheduling import ClusterState
from simulation import Outlook, Past, RunLengths, StartForecast
from tests.cast import Cast
from tests.workloads.table_rows import NOON, a_workload
from workloads.models import Attempt, ForecastRecord, Horizon, Pod, Workload

HOUR = 3600.0


def add_node(cast: Cast, name: str = "node-1", gpus: int = 4) -> None:
    """Create a node that takes pods."""
    fields = {"is_ready": True, "gpus": gpus, "cpu": 64, "memory": 1 << 38, "pods": 110}
    Node.objects.create(cluster=cast.cluster, name=name, **fields)


def add_workload(project: Project, name: str, node: str = "", **fields: Any) -> Workload:
    """Create a workload of one pod with a GPU: it runs on the node, or waits for one."""
    given: dict[str, Any] = {"requested_pods": 1, "gpus_requested": Decimal(1)}
    if node:
        given |= {"status": "Running", "started_at": NOON}
    else:
        given |= {"status": "Pending"}
    workload = a_workload(project, name, **(given | fields))
    Pod.objects.create(
        workload=workload,
        attempt=workload.attempt,
        uid=f"{name}-0",
        name=f"{name}-0",
        role="worker",
        rank=0,
        phase="Running" if node else "Pending",
        standing="ready" if node else "unplaced",
        node=node,
        gpus=Decimal(1),
        cpu=Decimal("0.5"),
        memory=1 << 20,
        started_at=NOON if node else None,
        data={"spec": {}},
    )
    return workload


def add_ended_run(
    project: Project, name: str, hours: float, *, by: User | None = None, **fields: Any
) -> Workload:
    """Create a workload whose attempt ran for so long."""
    began = NOON - timedelta(days=1)
    ended = began + timedelta(hours=hours)
    given: dict[str, Any] = {"status": "Completed", "started_at": began, "ended_at": ended}
    workload = a_workload(project, name, by=by, **(given | fields))
    Attempt.objects.filter(workload=workload).update(started_at=began, ended_at=ended)
    return workload


def add_record(project: Project, likely: float, start: float | None, **fields: Any) -> None:
    """Create a record made at NOON: 8 of 10 starts between half and double of what was likely."""
    at = fields.pop("made_at", NOON)
    earliest, latest = at + timedelta(seconds=likely / 2), at + timedelta(seconds=likely * 2)
    started_at = None if start is None else at + timedelta(seconds=start)
    given = {
        "workload": "00000000-0000-4000-8000-000000000001",
        "attempt": 1,
        "project": project,
        "cluster_id": project.cluster_id,
        "made_at": at,
        "horizon": Horizon.HOUR.value,
        "drawn_earliest_at": earliest,
        "drawn_latest_at": latest,
        "quantiles": [(0.1, likely / 2), (0.5, likely), (0.9, likely * 2)],
        "likely_at": at + timedelta(seconds=likely),
        "earliest_at": earliest,
        "latest_at": latest,
        "closed_at": started_at,
        "started_at": started_at,
        "is_right": None if started_at is None else earliest <= started_at <= latest,
    }
    ForecastRecord.objects.create(**(given | fields))


class FixedSimulator:
    """Answers with given forecasts, by the names of workloads, and keeps what it was asked."""

    def __init__(self, **answers: StartForecast) -> None:
        self.answers = answers
        self.lengths: Mapping[str, RunLengths] = {}
        self.past = Past()
        self.calls = 0

    def __call__(
        self,
        state: ClusterState,
        lengths: Mapping[str, RunLengths],
        *,
        seed: int,
        horizon: float,
        past: Past,
    ) -> Mapping[str, StartForecast]:
        self.calls += 1
        self.lengths = lengths
        self.past = past
        ids = dict(Workload.objects.values_list("name", "pk"))
        keys = {gang.key for gang in state.gangs}
        answers = {str(ids[name]): each for name, each in self.answers.items()}
        return {key: each for key, each in answers.items() if key in keys}


def starts_in(likely: float, **fields: Any) -> StartForecast:
    """Forecast a start in so many seconds, between half and double of that."""
    given: dict[str, Any] = {
        "position": 1,
        "draws": 200,
        "earliest": likely / 2,
        "latest": likely * 2,
    }
    given["quantiles"] = [likely * 2 ** (step / 4) for step in range(-4, 5)]
    return StartForecast(Outlook.STARTS, likely=likely, **(given | fields))
