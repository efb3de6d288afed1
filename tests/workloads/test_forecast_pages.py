"""What one reader is told of a start, and of how right forecasts were."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.models import Cluster
from projects.models import User
from tests.cast import Cast
from tests.workloads.waiting_rows import add_record, add_workload
from workloads.models import ClusterForecast, ForecastRecord, Workload, WorkloadForecast
from workloads.pod_counts import PodCounts, Standing
from workloads.queries import view_forecast
from workloads.queries.calibration import load_calibration
from workloads.states import Status

SignIn = Callable[[User], Client]


@pytest.fixture
def sign_in() -> SignIn:
    def make_client(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return make_client


def read_page(client: Client, address: str) -> str:
    answer: Any = client.get(address)
    assert answer.status_code == 200
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return " ".join(content.decode().split())


def add_forecast(workload: Workload, minutes: float = 90, **fields: Any) -> WorkloadForecast:
    """Forecast a start in so many minutes, a half of an hour more or less."""
    now = timezone.now()
    likely = now + timedelta(minutes=minutes)
    given: dict[str, Any] = {
        "attempt": workload.attempt,
        "made_at": now,
        "outlook": "starts",
        "horizon": "6h",
        "likely_at": likely,
        "earliest_at": likely - timedelta(minutes=30),
        "latest_at": likely + timedelta(minutes=30),
    }
    if fields.get("outlook", "starts") != "starts":
        given |= {"horizon": "", "likely_at": None, "earliest_at": None, "latest_at": None}
    else:
        Workload.objects.filter(pk=workload.pk).update(likely_start_at=likely)
    return WorkloadForecast.objects.create(workload=workload, **(given | fields))


def describe_start(workload: Workload, user: User) -> str:
    found = Workload.objects.select_related("project", "cluster").get(pk=workload.pk)
    view = view_forecast(found, user)
    return "" if view is None else view.sentence


def test_the_page_of_what_waits_says_when_it_starts(cast: Cast, sign_in: SignIn) -> None:
    add_workload(cast.team_a, "first")
    waits = add_workload(cast.team_a, "waits", minutes=1)
    running = add_workload(cast.team_a, "llama", node="node-1")
    secret = add_workload(cast.team_b, "secret", node="node-1")
    add_forecast(waits, blockers=[str(running.pk), str(secret.pk)])
    for number in range(25):
        add_record(
            cast.team_a, 3600, 4000 if number else 9000, horizon="6h", made_at=timezone.now()
        )
    page = read_page(sign_in(cast.bob), f"/workloads/{waits.pk}")
    assert "2nd in line; likely <strong><time" in page
    assert "8 of 10 times between" in page
    assert ">llama</a> (team-a) and work of another project." in page
    assert "were right 96 % of the time (n = 25)" in page
    assert f'href="/forecasts?project={cast.team_a.pk}"' in page
    assert "secret" not in page
    assert "team-b" not in page
    assert "secret</a> (team-b)" in read_page(sign_in(cast.alice), f"/workloads/{waits.pk}")
    assert "wl-forecast" not in read_page(sign_in(cast.bob), f"/workloads/{running.pk}")


@pytest.mark.parametrize(
    ("outlook", "words"),
    [
        ("no-end", "nobody knows when work of another project ends"),
        ("no-end", "or 3 runs like it that lasted longer and ended."),
        ("too-late", "not likely to start within 24 hours."),
        ("never", "no room for it on the nodes that take pods now"),
        ("held", "Kueue holds it"),
        ("no-pods", "none of its pods waits"),
    ],
)
def test_without_a_likely_start_it_says_why(cast: Cast, outlook: str, words: str) -> None:
    waits = add_workload(cast.team_a, "waits")
    hidden = add_workload(cast.team_b, "hidden", node="node-1")
    add_forecast(waits, outlook=outlook, blockers=[str(hidden.pk)])
    assert words in describe_start(waits, cast.bob)


def test_an_old_forecast_is_not_shown(cast: Cast) -> None:
    waits = add_workload(cast.team_a, "waits")
    assert "No forecast yet" in describe_start(waits, cast.bob)
    row = add_forecast(waits)
    assert "likely 20" in describe_start(waits, cast.bob)
    WorkloadForecast.objects.update(made_at=row.made_at - timedelta(minutes=40))
    assert "the last one is 40 minutes old" in describe_start(waits, cast.bob)
    Cluster.objects.update(unreachable_since=timezone.now())
    assert describe_start(waits, cast.bob) == "No forecast: its cluster does not answer."
    Workload.objects.filter(pk=waits.pk).update(status=Status.RUNNING)
    assert describe_start(waits, cast.bob) == ""


def test_a_start_that_is_past_is_not_said_to_come(cast: Cast, sign_in: SignIn) -> None:
    waits = add_workload(cast.team_a, "waits")
    row = add_forecast(waits, minutes=-10)
    assert "likely any moment (8 of 10 times by" in describe_start(waits, cast.bob)
    WorkloadForecast.objects.update(latest_at=row.made_at)
    assert "1st in line; it should have started by 20" in describe_start(waits, cast.bob)
    page = read_page(sign_in(cast.bob), f"/workloads/{waits.pk}")
    assert "1st in line; it should have started by <strong>" in page
    assert "any moment" not in page
    waits.refresh_from_db()
    assert waits.likely_start is not None
    waits.likely_start_at = row.made_at - timedelta(minutes=16)
    assert waits.likely_start is None, "such a forecast is not shown any more"


def test_lists_say_that_a_likely_start_is_past(cast: Cast, sign_in: SignIn) -> None:
    """No worker has to write that first."""
    waits = add_workload(cast.team_a, "waits")
    add_forecast(waits, minutes=-10)
    bob = sign_in(cast.bob)
    address = "/workloads?column=name,likely_start"
    assert "due since <time" in read_page(bob, address)
    assert "It was likely to start by <time" in read_page(bob, "/overview")
    Workload.objects.update(likely_start_at=timezone.now() + timedelta(minutes=10))
    assert "due since" not in read_page(bob, address)
    assert "Likely start <time" in read_page(bob, "/overview")
    Workload.objects.update(likely_start_at=timezone.now() - timedelta(minutes=16))
    assert "<time" not in read_page(bob, address).partition('likely_start">')[2]


def test_what_waits_beyond_its_latest_start_counts_as_wrong_at_once(cast: Cast) -> None:
    """The worker that marks it may be late, or down."""
    now = timezone.now()
    waits, runs = add_workload(cast.team_a, "waits"), add_workload(cast.team_a, "runs")
    Workload.objects.filter(pk=runs.pk).update(status=Status.RUNNING)
    made_at = now - timedelta(minutes=30)
    for workload in (waits, runs):
        # It was to start within 20 minutes at most.
        add_record(cast.team_a, 600, None, made_at=made_at, workload=workload.pk)
    add_record(cast.team_a, 1800, None, made_at=made_at, workload=waits.pk)
    calibration = load_calibration(ForecastRecord.objects.all(), now)
    assert (calibration.total.count, calibration.total.right, calibration.open) == (1, 0, 2)
    assert [each.count for each in calibration.shown] == [1] * len(calibration.shown)
    add_forecast(waits, horizon="1h")
    row = Workload.objects.select_related("project", "cluster").get(pk=waits.pk)
    view = view_forecast(row, cast.bob)
    assert view is not None
    assert view.record is not None
    assert (view.record.count, view.record.right) == (1, 0)


def test_a_missing_forecast_says_what_it_waits_for(cast: Cast) -> None:
    waits = add_workload(cast.team_a, "waits")
    known = ClusterForecast(cluster=cast.cluster, computed_at=timezone.now(), fingerprint="")
    known.took_seconds = 42
    known.save()
    assert "took 42 s, and the next one follows after" in describe_start(waits, cast.bob)
    ClusterForecast.objects.update(has_more=True)
    assert "only the 2,000 workloads" in describe_start(waits, cast.bob)


def test_a_part_that_has_nodes_is_named(cast: Cast) -> None:
    counts = PodCounts(existing=8, standings={Standing.STARTING: 1, Standing.UNPLACED: 7})
    waits = add_workload(cast.team_a, "waits", requested_pods=8)
    Workload.objects.filter(pk=waits.pk).update(pod_counts=msgspec.to_builtins(counts))
    add_forecast(waits, outlook="no-pods")
    assert "1 of 8 pods has a node; the others start as" in describe_start(waits, cast.bob)


def test_the_table_sorts_and_filters_by_the_likely_start(cast: Cast, sign_in: SignIn) -> None:
    for name, minutes in (("later", 300), ("sooner", 30)):
        add_forecast(add_workload(cast.team_a, name), minutes)
    add_workload(cast.team_a, "unknown")
    bob = sign_in(cast.bob)
    address = "/workloads.csv?column=name,likely_start"
    lines = read_page(bob, f"{address}&sort=likely_start").split(" ")
    names = [line.partition(",")[0] for line in lines]
    assert [name for name in names if name in ("later", "sooner", "unknown")] == [
        "sooner",
        "later",
        "unknown",
    ]
    assert "9000" not in "".join(lines)
    near = read_page(bob, f"{address}&starts=1h")
    assert "sooner" in near
    assert "later" not in near


def test_the_record_is_of_the_projects_that_one_sees(cast: Cast, sign_in: SignIn) -> None:
    now = timezone.now()
    for number in range(20):
        add_record(cast.team_a, 600, 700 if number < 15 else 1300, made_at=now)
        add_record(cast.team_b, 600, 2000, made_at=now)
    add_record(cast.team_a, 600, None, made_at=now)
    add_record(cast.team_a, 600, None, made_at=now, closed_at=now)
    page = read_page(sign_in(cast.bob), "/forecasts")
    assert "team-b" not in page
    assert '75 % <span class="fc-count">20</span>' in page
    assert "As shown: said 90 %, had started 75 % of 20" in page
    assert '>1</span> <span class="ch-tile__more">not decided yet' in page
    assert "No forecast has been decided yet" in read_page(
        sign_in(cast.bob), "/forecasts?horizon=24h"
    )
    for wrong in (cast.team_b.pk, "abc"):
        assert sign_in(cast.bob).get(f"/forecasts?project={wrong}").status_code == 404
    assert read_page(sign_in(cast.bob), "/forecasts.csv").endswith("team-a,1h,20,15,0.7500")
    assert "team-b,1h,20,0,0.0000" in read_page(sign_in(cast.alice), "/forecasts.csv")
    assert "/forecasts" in read_page(sign_in(cast.bob), "/overview")


def test_a_few_forecasts_draw_no_curve(cast: Cast, sign_in: SignIn) -> None:
    for _ in range(19):
        add_record(cast.team_a, 600, 700, made_at=timezone.now())
    page = read_page(sign_in(cast.bob), "/forecasts")
    assert "It is drawn when 20 forecasts are decided" in page
    assert "fc-picture" not in page


def test_the_diagram_counts_what_waited_in_vain(cast: Cast) -> None:
    now = timezone.now()
    made_at = now - timedelta(minutes=30)
    add_record(cast.team_a, 600, 700, made_at=made_at)
    for closed_at, is_right in ((None, None), (now, None), (now, False)):
        # It was drawn to start within 20 minutes.
        add_record(cast.team_a, 600, None, made_at=made_at, closed_at=closed_at, is_right=is_right)
    early = made_at + timedelta(minutes=5)
    add_record(cast.team_a, 600, None, made_at=made_at, closed_at=early)
    calibration = load_calibration(ForecastRecord.objects.all(), now)
    assert (calibration.drawn[-1].count, calibration.drawn[-1].observed) == (4, 0.25)
    assert (calibration.shown[-1].count, calibration.shown[-1].observed) == (2, 0.5)
    assert calibration.total.count == 2, "the shares count what the line of what was shown counts"


def test_queries_of_the_record_do_not_grow(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.alice)

    def count() -> int:
        with CaptureQueriesContext(connection) as captured:
            read_page(client, "/forecasts")
        return len(captured)

    add_record(cast.team_a, 600, 700, made_at=timezone.now())
    few = count()
    for _ in range(40):
        add_record(cast.team_b, 600, 700, made_at=timezone.now())
    assert count() == few
    assert ForecastRecord.objects.count() == 41
