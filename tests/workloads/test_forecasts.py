"""A forecast of a start is made, shown, kept, widened by past errors, and closed by its outcome."""

import math
import uuid
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.models import Cluster
from simulation import Outlook, StartForecast
from tests.cast import Cast, a_spec
from tests.workloads.blocked_workloads import waiting
from tests.workloads.cluster_objects import ClusterObjects, jobs, pods
from tests.workloads.ledger_rows import build_moment
from tests.workloads.table_rows import NOON
from tests.workloads.waiting_rows import (
    HOUR,
    FixedSimulator,
    add_ended_run,
    add_node,
    add_record,
    add_workload,
    starts_in,
)
from workloads import journal
from workloads.alternatives import CannotAsk, ask_for_draft, ask_for_workload
from workloads.elastic import cluster_state
from workloads.elastic.cluster_state import load_cluster_state
from workloads.forecasting import forecast_cluster
from workloads.forecasting.gang_sizes import require_whole_gangs
from workloads.forecasting.margins import load_margins
from workloads.forecasting.played_state import LEFT_OUT
from workloads.journal.forecast_records import record_starts
from workloads.judgement import judge_submission
from workloads.models import (
    NO_LIKELY_START,
    Attempt,
    ClusterForecast,
    Event,
    ForecastRecord,
    Horizon,
    Pod,
    Workload,
    WorkloadForecast,
)
from workloads.queries import view_forecast
from workloads.specs import ExtendedResource, Spec, encode_spec
from workloads.states import HELD_BY_KUEUE
from workloads.tasks.retaining import retain

__all__ = ["waiting"]


def test_what_is_forecast_is_shown_and_kept(cast: Cast, waiting: Workload) -> None:
    holder = Workload.objects.get(name="holder")
    simulate = FixedSimulator(waits=starts_in(HOUR + 10, blockers=[str(holder.pk), "strange"]))
    assert forecast_cluster(cast.cluster, build_moment(0), simulate)
    row = WorkloadForecast.objects.get()
    assert (row.outlook, row.horizon, row.blockers) == ("starts", "6h", [str(holder.pk)])
    assert row.likely_at == NOON + timedelta(seconds=HOUR + 10)
    assert (row.earliest_at, row.latest_at) == (build_moment(30), build_moment(121)), (
        "whole minutes"
    )
    record = ForecastRecord.objects.get()
    assert record.drawn_earliest_at == NOON + timedelta(seconds=HOUR / 2 + 5)
    assert record.latest_at == build_moment(121)
    assert record.quantiles[::4] == [[0.1, 1805.0], [0.5, 3610.0], [0.9, 7220.0]]
    before, waiting.changed = waiting.changed, -1
    waiting.refresh_from_db()
    assert waiting.likely_start_at == row.likely_at
    assert waiting.changed > before, "open pages are told"


def test_a_forecast_is_kept_again_once_it_moves_or_an_hour_passes(
    cast: Cast, waiting: Workload
) -> None:
    def forecast_at(minutes: float, likely: float) -> int:
        ClusterForecast.objects.update(fingerprint="other")
        forecast_cluster(
            cast.cluster, build_moment(minutes), FixedSimulator(waits=starts_in(likely * 60))
        )
        return ForecastRecord.objects.count()

    assert forecast_at(0, 100) == 1
    assert forecast_at(1, 300) == 1, "too soon after the last one"
    assert forecast_at(6, 99) == 1, "it has moved by 5 of 100 minutes"
    assert forecast_at(10, 101) == 2, "it has moved by 11"
    assert forecast_at(71, 40) == 3, "an hour has passed, it is of another class"
    for number in range(40):
        forecast_at(80 + 60 * number, 300)
    assert ForecastRecord.objects.count() == 24


def test_what_cannot_be_played_forward_says_so(cast: Cast, waiting: Workload) -> None:
    add_workload(cast.team_a, "prepares", status="Preparing")
    add_workload(cast.team_a, "held", reason=HELD_BY_KUEUE)
    add_workload(cast.team_a, "no-pods")
    Pod.objects.filter(workload__name__in=("held", "no-pods")).delete()
    answer = StartForecast(Outlook.NO_END, position=1, draws=10, blockers=())
    forecast_cluster(cast.cluster, build_moment(0), FixedSimulator(waits=answer))
    outlooks = dict(WorkloadForecast.objects.values_list("workload__name", "outlook"))
    assert outlooks == {
        "waits": "no-end",
        "prepares": "preparing",
        "held": "held",
        "no-pods": "no-pods",
    }
    assert not ForecastRecord.objects.exists()


def test_those_that_wait_longest_have_a_forecast(
    cast: Cast, waiting: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workloads.forecasting.cluster_forecast.MOST_FORECASTS", 1)
    forecast_cluster(cast.cluster, build_moment(0), FixedSimulator())
    assert not ClusterForecast.objects.get().has_more
    add_workload(cast.team_a, "later", minutes=1)
    forecast_cluster(cast.cluster, build_moment(5), FixedSimulator())
    assert ClusterForecast.objects.get().has_more
    assert WorkloadForecast.objects.get().workload_id == waiting.pk


def start(workload: Workload, minutes: float, placed: float | None = None) -> None:
    """Let a workload start as the journal observes it."""
    if placed is not None:
        Pod.objects.filter(workload=workload).update(node="node-1", started_at=build_moment(placed))
    event = Event(
        workload=workload,
        attempt=workload.attempt,
        kind=Event.Kind.STATUS,
        old="Pending",
        new="Initializing",
    )
    Workload.objects.filter(pk=workload.pk).update(status="Initializing")
    record_starts([event], build_moment(minutes))


@pytest.mark.parametrize(("placed", "is_right"), [(61, True), (29, False), (121, False)])
def test_a_start_closes_its_records(
    cast: Cast, waiting: Workload, placed: float, is_right: bool
) -> None:
    forecast_cluster(cast.cluster, build_moment(0), FixedSimulator(waits=starts_in(HOUR)))
    start(waiting, placed + 1, placed)
    record = ForecastRecord.objects.get()
    assert (record.started_at, record.is_right) == (build_moment(placed), is_right)
    assert not WorkloadForecast.objects.exists()
    waiting.refresh_from_db()
    assert waiting.likely_start_at == NO_LIKELY_START


def test_the_journal_sees_the_start(cast: Cast) -> None:
    spec = a_spec(cast.team_a)
    kube = ClusterObjects(journal.create_workload(spec, project=cast.team_a, user=cast.bob))
    roles = [("master", 0), ("worker", 0), ("worker", 1)]
    made_at = timezone.now() - timedelta(minutes=50)
    wait = {"workload": kube.workload.pk, "made_at": made_at}
    journal.record_observations(cast.cluster.pk, [*jobs(kube.job()), *pods(kube.queued(*roles[0]))])
    assert Workload.objects.get().status == "Pending"
    add_record(cast.team_a, 3600, None, **wait)
    add_record(cast.team_a, 60, None, is_right=False, **wait)
    journal.record_observations(cast.cluster.pk, [*pods(*(kube.starting(*role) for role in roles))])
    assert Workload.objects.get().status == "Initializing"
    records = ForecastRecord.objects.order_by("-likely_at")
    assert [each.is_right for each in records] == [True, False]
    assert all(each.started_at is not None and each.closed_at is not None for each in records)


def test_what_is_stopped_before_does_not_count(cast: Cast, waiting: Workload) -> None:
    forecast_cluster(cast.cluster, build_moment(0), FixedSimulator(waits=starts_in(HOUR)))
    Workload.objects.filter(pk=waiting.pk).update(status="Stopping")
    forecast_cluster(cast.cluster, build_moment(5), FixedSimulator())
    record = ForecastRecord.objects.get()
    assert (record.closed_at, record.started_at, record.is_right) == (build_moment(5), None, None)
    assert not WorkloadForecast.objects.exists()


def stop(workload: Workload, minutes: float) -> None:
    """Let a person stop a workload that waits."""
    Workload.objects.filter(pk=workload.pk).update(status="Stopping")
    Event.objects.create(
        workload=workload,
        attempt=workload.attempt,
        at=build_moment(minutes),
        kind=Event.Kind.ACTION,
        old="Pending",
        new="Stopping",
    )


@pytest.mark.parametrize(("stopped", "is_right"), [(100, None), (150, False)])
def test_what_is_stopped_counts_up_to_then_however_late_that_is_seen(
    cast: Cast, waiting: Workload, stopped: float, is_right: bool | None
) -> None:
    """A cluster that rests, or does not answer, is not looked at for some time."""
    forecast_cluster(cast.cluster, build_moment(0), FixedSimulator(waits=starts_in(HOUR)))
    stop(waiting, stopped)
    forecast_cluster(cast.cluster, build_moment(200), FixedSimulator())
    record = ForecastRecord.objects.get()
    assert (record.is_right, record.started_at) == (is_right, None)
    assert record.closed_at == build_moment(stopped)


def test_what_is_overdue_is_wrong_before_it_starts(cast: Cast, waiting: Workload) -> None:
    forecast_cluster(cast.cluster, build_moment(0), FixedSimulator(waits=starts_in(HOUR)))
    forecast_cluster(cast.cluster, build_moment(125), FixedSimulator())
    assert ForecastRecord.objects.get().is_right is False


def test_intervals_are_widened_until_they_are_right_as_often_as_they_claim(cast: Cast) -> None:
    for number in range(30):
        # A third of them came three times later than the interval ends.
        start = 3600 if number % 3 == 0 else 700
        add_record(cast.team_a, 600, start, workload=uuid.UUID(int=number))
    margins = load_margins(cast.cluster.pk, build_moment(200))
    # Of thirty workloads a margin counts for half of what it is.
    assert margins[Horizon.HOUR] == pytest.approx(math.log((3600 + 30) / (1200 + 30)) / 2)
    assert margins[Horizon.DAY] == 0.0, "no outcomes of that class"
    add_node(cast)
    add_workload(cast.team_a, "waits")
    forecast_cluster(cast.cluster, build_moment(200), FixedSimulator(waits=starts_in(1200)))
    row = WorkloadForecast.objects.get()
    assert row.latest_at is not None
    assert row.latest_at > build_moment(200 + 65)
    assert ForecastRecord.objects.latest("pk").drawn_latest_at == build_moment(240)


def test_what_waits_in_vain_counts_as_late_as_it_waited(cast: Cast) -> None:
    for number in range(30):
        start = 700 if number % 3 else None
        add_record(cast.team_a, 600, start, workload=uuid.UUID(int=number))
    early = load_margins(cast.cluster.pk, build_moment(19))[Horizon.HOUR]
    assert early == 0.0, "no interval is over yet, and those that start late would not count"
    unstarted = ForecastRecord.objects.filter(started_at=None)
    unstarted.update(is_right=False)
    late = load_margins(cast.cluster.pk, build_moment(120))[Horizon.HOUR]
    assert late > 0.5
    # Who gives up when it is late makes the margin no better, and who does before no worse.
    unstarted.update(closed_at=build_moment(120))
    assert load_margins(cast.cluster.pk, build_moment(500))[Horizon.HOUR] == late
    unstarted.update(closed_at=build_moment(10), is_right=None)
    assert load_margins(cast.cluster.pk, build_moment(500))[Horizon.HOUR] < 0


def test_margins_aim_at_more_while_what_is_shown_is_right_too_seldom(cast: Cast) -> None:
    for number in range(30):
        start = 700 + 20 * number
        add_record(cast.team_a, 600, start, workload=uuid.UUID(int=number), is_right=number < 24)
    as_claimed = load_margins(cast.cluster.pk, build_moment(200))[Horizon.HOUR]
    ForecastRecord.objects.update(is_right=False)
    assert load_margins(cast.cluster.pk, build_moment(200))[Horizon.HOUR] > as_claimed
    ForecastRecord.objects.update(is_right=True)
    assert load_margins(cast.cluster.pk, build_moment(200))[Horizon.HOUR] < as_claimed


def test_what_is_run_again_waits_behind_those_who_wait(cast: Cast) -> None:
    again = add_workload(cast.team_a, "again", attempt=2, created_at=build_moment(-600))
    waiting = add_workload(cast.team_a, "waiting", created_at=build_moment(-30))
    Attempt.objects.filter(workload=waiting).update(requested_at=build_moment(-30))
    Attempt.objects.filter(workload=again).delete()
    Attempt.objects.create(workload=again, number=1, requested_at=build_moment(-600))
    Attempt.objects.create(workload=again, number=2, requested_at=build_moment(-10))
    gangs = load_cluster_state(cast.cluster, build_moment(0)).state.gangs
    ordered = sorted(gangs, key=lambda gang: gang.created_at)
    assert [gang.key for gang in ordered] == [str(waiting.pk), str(again.pk)]
    Attempt.objects.all().delete()
    gangs = load_cluster_state(cast.cluster, build_moment(0)).state.gangs
    assert {gang.created_at for gang in gangs} == {
        build_moment(-600).timestamp(),
        build_moment(-30).timestamp(),
    }


def test_a_workload_needs_all_its_pods_without_kai(cast: Cast, waiting: Workload) -> None:
    elastic = add_workload(cast.team_a, "elastic", requested_pods=3, min_pods=1, max_pods=3)
    Workload.objects.filter(pk=waiting.pk).update(requested_pods=2)
    for workload in (waiting, elastic):
        pod = Pod.objects.get(workload=workload)
        pod.pk, pod.uid, pod.name, pod.rank = None, f"{pod.uid}-1", f"{pod.name}-1", 1
        pod.save()
    cast.cluster.capabilities = {"served": []}
    state = load_cluster_state(cast.cluster, build_moment(0)).state
    gangs = {gang.key: gang for gang in require_whole_gangs(state, cast.cluster).gangs}
    assert gangs[str(waiting.pk)].min_member == 2
    assert gangs[str(elastic.pk)].min_member == 1


@pytest.mark.parametrize(("architecture", "minimum"), [("Standard", 1), ("Distributed", 2)])
def test_pods_of_a_standard_workload_work_before_all_have_a_node(
    cast: Cast, waiting: Workload, architecture: str, minimum: int
) -> None:
    Workload.objects.filter(pk=waiting.pk).update(requested_pods=2, architecture=architecture)
    cast.cluster.capabilities = {"served": []}
    state = load_cluster_state(cast.cluster, build_moment(0)).state
    [gang] = [each for each in state.gangs if each.key == str(waiting.pk)]
    [waits] = gang.pods
    pods = [replace(waits, uid="begun", node="n1"), waits]
    begun = replace(state, gangs=[replace(gang, pods=pods, min_member=1)])
    assert require_whole_gangs(begun, cast.cluster).gangs[0].min_member == minimum


def test_queries_do_not_grow_with_workloads(cast: Cast, waiting: Workload) -> None:
    def count(minutes: float) -> int:
        names = Workload.objects.filter(status="Pending").values_list("name", flat=True)
        answers = {name: starts_in(HOUR) for name in names}
        with CaptureQueriesContext(connection) as captured:
            assert forecast_cluster(cast.cluster, build_moment(minutes), FixedSimulator(**answers))
        return len(captured)

    few = [count(0), count(10)][-1]
    for number in range(30):
        add_workload(cast.team_a, f"w{number}")
        add_ended_run(cast.team_a, f"e{number}", 1)
    assert count(20) <= few + 3
    assert few <= 50


def test_records_are_kept_as_long_as_the_settings_say(cast: Cast) -> None:
    now = timezone.now()
    for days in (10, 100):
        add_record(cast.team_a, 600, 700, made_at=now - timedelta(days=days))
    retain()
    assert ForecastRecord.objects.count() == 1


def test_what_waits_starts_when_what_runs_is_likely_to_end(cast: Cast) -> None:
    add_node(cast, gpus=1)
    for number in range(5):
        add_ended_run(cast.team_b, f"e{number}", 2)
    holder = add_workload(cast.team_b, "holder", node="node-1")
    add_workload(cast.team_a, "waits", minutes=1)
    forecast_cluster(cast.cluster, build_moment(30))
    row = WorkloadForecast.objects.get()
    assert row.outlook == "starts"
    assert row.likely_at is not None
    assert abs(row.likely_at - build_moment(120)) < timedelta(minutes=2)
    assert row.blockers == [str(holder.pk)]


@pytest.mark.parametrize(("has_kai", "outlook"), [(True, "never"), (False, "starts")])
def test_a_limit_holds_nobody_back_without_kai(cast: Cast, has_kai: bool, outlook: str) -> None:
    type(cast.team_a).objects.filter(pk=cast.team_a.pk).update(gpu_quota=0, gpu_limit=0)
    if not has_kai:
        cast.cluster.capabilities = {"served": []}
    add_node(cast, gpus=1)
    add_workload(cast.team_b, "holder", node="node-1", time_limit_seconds=3600)
    add_workload(cast.team_a, "waits", minutes=1)
    forecast_cluster(cast.cluster, build_moment(30))
    assert WorkloadForecast.objects.get().outlook == outlook


def test_nothing_is_forecast_of_devices_that_are_not_played(cast: Cast) -> None:
    """A part of a GPU (MIG) is not known to be free; a share of a network adapter is there."""
    add_node(cast, gpus=4)
    for name, resource in (("mig", "nvidia.com/mig-1g.5gb"), ("rdma", "rdma/hca")):
        add_workload(cast.team_a, name, spec=encode_spec(build_spec_with(cast, name, resource)))
    simulator = FixedSimulator(mig=starts_in(HOUR), rdma=starts_in(HOUR))
    forecast_cluster(cast.cluster, timezone.now(), simulator)
    outlooks = dict(WorkloadForecast.objects.values_list("workload__name", "outlook"))
    assert outlooks == {"mig": "unknown", "rdma": "starts"}
    workload = Workload.objects.select_related("project", "cluster").get(name="mig")
    view = view_forecast(workload, cast.bob)
    assert view is not None
    assert view.sentence.startswith("No forecast. It asks for nvidia.com/mig-1g.5gb, and Muster")
    with pytest.raises(CannotAsk, match=r"It asks for nvidia\.com/mig-1g\.5gb"):
        ask_for_workload(workload, cast.bob)


def add_network_user(cast: Cast, name: str, node: str = "", pods: int = 1) -> Workload:
    """Create a PyTorchJob on the network of its hosts, which runs on a node or waits."""
    spec = a_spec(cast.team_a, name)
    security = replace(spec.setup.security, host_network=True)
    spec = replace(spec, setup=replace(spec.setup, security=security))
    kind = {"framework": "PyTorch", "job_kind": PYTORCHJOBS.job_kind}
    workload = add_workload(
        cast.team_a, name, node, spec=encode_spec(spec), requested_pods=pods, **kind
    )
    [pod] = workload.pods.all()
    for rank in range(1, pods):
        pod.pk, pod.uid, pod.name, pod.rank = None, f"{name}-{rank}", f"{name}-{rank}", rank
        pod.save(force_insert=True)
    return workload


def test_ports_of_nodes_are_played_forward(cast: Cast) -> None:
    add_node(cast, gpus=8)
    add_network_user(cast, "runs", "node-1")
    add_network_user(cast, "one")
    add_network_user(cast, "two", pods=2)
    add_workload(cast.team_a, "other")
    forecast_cluster(cast.cluster, timezone.now())
    outlooks = dict(WorkloadForecast.objects.values_list("workload__name", "outlook"))
    assert outlooks == {"one": "no-end", "two": "never", "other": "starts"}
    [forecast] = WorkloadForecast.objects.filter(workload__name="one")
    assert forecast.blockers == [str(Workload.objects.get(name="runs").pk)]


def test_too_many_waiting_pods_of_one_project_leave_the_others_their_forecasts(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_state, "MOST_PODS", 3)
    add_node(cast, gpus=1)
    add_workload(cast.team_b, "holder", node="node-1", time_limit_seconds=3600)
    for number, name in enumerate(("first", "second", "third")):
        add_workload(cast.team_a, name, minutes=number)
    add_workload(cast.team_b, "other", minutes=4)
    Cluster.objects.update(last_seen_at=timezone.now())
    waits = ("first", "second", "third", "other")
    simulator = FixedSimulator(**dict.fromkeys(waits, starts_in(HOUR)))
    forecast_cluster(cast.cluster, timezone.now(), simulator)
    outlooks = dict(WorkloadForecast.objects.values_list("workload__name", "outlook"))
    starts, unknown = "starts", "unknown"
    assert outlooks == {"first": starts, "second": unknown, "third": unknown, "other": starts}
    assert not ClusterForecast.objects.get().trouble
    workload = Workload.objects.select_related("project", "cluster").get(name="second")
    view = view_forecast(workload, cast.bob)
    assert view is not None
    assert view.sentence == f"No forecast. {LEFT_OUT}"
    with pytest.raises(CannotAsk, match="and too many of its project wait"):
        ask_for_workload(workload, cast.bob)
    draft = judge_submission(a_spec(cast.team_a, "draft"), workload.project)
    with pytest.raises(CannotAsk, match="and too many of its project wait"):
        ask_for_draft(draft, cast.bob)


def test_a_first_in_line_that_is_larger_than_its_share_has_a_forecast(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_state, "MOST_PODS", 3)
    add_node(cast, gpus=1)
    add_workload(cast.team_b, "holder", node="node-1", time_limit_seconds=3600)
    add_workload(cast.team_a, "old")
    add_workload(cast.team_b, "other", minutes=1)
    gang = add_workload(cast.team_a, "urgent", minutes=2, priority="high")
    pod = Pod.objects.get(workload=gang)
    pod.pk, pod.uid, pod.name, pod.rank = None, "urgent-1", "urgent-1", 1
    pod.save()
    simulator = FixedSimulator(**dict.fromkeys(("old", "other", "urgent"), starts_in(HOUR)))
    forecast_cluster(cast.cluster, timezone.now(), simulator)
    outlooks = dict(WorkloadForecast.objects.values_list("workload__name", "outlook"))
    assert outlooks == {"old": "unknown", "other": "starts", "urgent": "starts"}


def build_spec_with(cast: Cast, name: str, resource: str) -> Spec:
    spec = a_spec(cast.team_a, name)
    compute = replace(spec.setup.compute, extended=(ExtendedResource(resource, "1"),))
    return replace(spec, setup=replace(spec.setup, compute=compute))


def test_nobody_knows_when_work_without_past_ends(cast: Cast) -> None:
    add_node(cast, gpus=1)
    holder = add_workload(cast.team_b, "holder", node="node-1")
    add_workload(cast.team_a, "waits", minutes=1)
    forecast_cluster(cast.cluster, build_moment(30))
    row = WorkloadForecast.objects.get()
    assert (row.outlook, row.blockers) == ("no-end", [str(holder.pk)])
    Workload.objects.filter(pk=holder.pk).update(time_limit_seconds=3600)
    forecast_cluster(cast.cluster, build_moment(31))
    assert WorkloadForecast.objects.get().outlook == "starts"
