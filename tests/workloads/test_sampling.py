"""What every project held is written down each minute, and kept thinner as it ages."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.cast import Cast
from tests.workloads.table_rows import a_workload
from workloads.models import Sample
from workloads.tasks.sampling import round_to_sample_time, sample, thin

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)


@pytest.fixture
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timezone, "now", lambda: NOW)


def load_sample(cast: Cast) -> Sample:
    return Sample.objects.get(project=cast.team_a)


def test_a_sample_has_what_the_workloads_hold(cast: Cast) -> None:
    a_workload(cast.team_a, "one", gpus_allocated="2.5")
    a_workload(cast.team_a, "two", status="Degraded", gpus_allocated="1")
    a_workload(cast.team_a, "three", status="Pending")
    a_workload(cast.team_a, "four", status="Stopping", gpus_allocated="1")
    a_workload(cast.team_a, "five", status="Completed")
    sample()
    found = load_sample(cast)
    assert (found.gpus_quota, found.gpus_allocated, found.running, found.waiting) == (
        Decimal(2),
        Decimal("4.5"),
        2,
        1,
    )
    assert found.gpus_idle is None, "no Prometheus: nobody knows"


def test_a_project_that_holds_nothing_has_nothing_idle(cast: Cast) -> None:
    sample()
    assert [(each.gpus_allocated, each.gpus_idle) for each in Sample.objects.all()] == [
        (0, 0),
        (0, 0),
    ]


def test_absurd_numbers_of_one_project_stop_no_sample(cast: Cast) -> None:
    for number in range(11):
        a_workload(cast.team_a, f"absurd-{number}", gpus_allocated="100000000")
    a_workload(cast.team_b, "modest", gpus_allocated="1")
    sample()
    assert load_sample(cast).gpus_allocated == 100_000_000
    assert Sample.objects.get(project=cast.team_b).gpus_allocated == 1


def test_a_moment_is_written_down_once(cast: Cast, at_noon: None) -> None:
    sample()
    a_workload(cast.team_a, gpus_allocated="2")
    sample()
    assert load_sample(cast).gpus_allocated == 0
    assert load_sample(cast).at == datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_what_was_deleted_is_not_sampled(cast: Cast) -> None:
    cast.team_b.deleted_at = timezone.now()
    cast.team_b.save()
    sample()
    assert Sample.objects.get().project == cast.team_a


def test_the_queries_do_not_grow_with_the_workloads(cast: Cast) -> None:
    def queries() -> int:
        Sample.objects.all().delete()
        with CaptureQueriesContext(connection) as captured:
            sample()
        return len(captured)

    few = queries()
    for number in range(50):
        a_workload(cast.team_a, f"w-{number}", gpus_allocated="1")
    assert queries() == few <= 9


@pytest.mark.parametrize(("seconds", "second"), [(60, 0), (10, 30), (3600, -1)])
def test_a_moment_stands_for_all_of_its_seconds(seconds: int, second: int) -> None:
    assert round_to_sample_time(NOW, seconds).second == max(second, 0)
    assert (
        round_to_sample_time(NOW, seconds)
        <= NOW
        < round_to_sample_time(NOW, seconds) + timedelta(seconds=seconds)
    )


def create_samples(cast: Cast, first: datetime, count: int, step: timedelta) -> None:
    Sample.objects.bulk_create(
        Sample(project=cast.team_a, at=first + number * step) for number in range(count)
    )


def test_of_yesterday_one_in_ten_minutes_stays(cast: Cast, at_noon: None) -> None:
    create_samples(cast, datetime(2026, 11, 20, 6, tzinfo=UTC), 60, timedelta(minutes=1))
    create_samples(cast, datetime(2026, 11, 21, 11, tzinfo=UTC), 30, timedelta(minutes=1))
    thin()
    left = list(Sample.objects.order_by("at").values_list("at", flat=True))
    assert [each.minute for each in left[:6]] == [0, 10, 20, 30, 40, 50]
    assert len(left) == 6 + 30, "today's all stay"


def test_of_last_week_one_an_hour_stays_and_what_is_too_old_goes(cast: Cast, at_noon: None) -> None:
    create_samples(cast, datetime(2026, 11, 10, 6, 3, tzinfo=UTC), 18, timedelta(minutes=10))
    create_samples(cast, datetime(2026, 6, 1, tzinfo=UTC), 40, timedelta(hours=12))
    thin()
    left = list(Sample.objects.order_by("at").values_list("at", flat=True))
    assert [(each.hour, each.minute) for each in left] == [(6, 3), (7, 3), (8, 3)]


def test_thinning_again_changes_nothing(cast: Cast, at_noon: None) -> None:
    create_samples(cast, datetime(2026, 11, 19, 6, tzinfo=UTC), 200, timedelta(minutes=1))
    thin()
    before = set(Sample.objects.values_list("pk", flat=True))
    thin()
    assert set(Sample.objects.values_list("pk", flat=True)) == before
