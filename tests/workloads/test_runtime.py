"""The runtime is one figure, whoever tells it: what the time limit counts, without what was spent
preempted.
"""

import csv
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from projects.models import User
from tests.cast import PASSWORD, Cast
from tests.workloads.table_rows import a_workload
from workloads import runtime_limits
from workloads.models import Event, Workload
from workloads.views import rendering

HOUR = timedelta(hours=1)


def a_preempted_workload(
    cast: Cast, name: str = "train1", *, back: bool = True, **fields: Any
) -> Workload:
    """Began three hours ago with an hour of former attempts, ran for one, was preempted for one,
    and perhaps runs again.
    """
    now = timezone.now()
    status = "Running" if back else "Pending"
    given: dict[str, Any] = {
        "status": status,
        "started_at": now - 3 * HOUR,
        "ran_seconds": 3600.0,
    }
    given |= fields
    workload = a_workload(
        cast.team_a,
        name,
        **given,
    )
    for hours, new in ((3, "Running"), (2, "Pending"), *(((1, "Running"),) if back else ())):
        Event.objects.create(
            workload=workload, attempt=1, kind="status", new=new, at=now - hours * HOUR
        )
    return workload


def find_row(client: Client, workload: Workload) -> str:
    found = re.search(
        rf'<tr id="w-{workload.pk}".*?</tr>', client.get("/workloads").content.decode(), re.DOTALL
    )
    assert found is not None
    return found[0]


@pytest.fixture
def alice(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.alice)
    return client


def fetch_runtimes(user: User, workload: Workload) -> tuple[int, int]:
    """In the list, and of the workload itself."""
    client = Client()
    body = {"grantType": "password", "username": user.username, "password": PASSWORD}
    token = client.post("/api/v1/token", body, "application/json").json()["accessToken"]
    headers = {"Authorization": f"Bearer {token}"}
    (listed,) = client.get("/api/v1/workloads", headers=headers).json()["workloads"]
    one = client.get(f"/api/v1/workloads/{workload.pk}", headers=headers).json()
    return listed["totalRunningTimeSeconds"], one["totalRunningTimeSeconds"]


def test_what_runs_again_counts_on_from_when_it_went_on(cast: Cast, alice: Client) -> None:
    workload = a_preempted_workload(cast)
    row = find_row(alice, workload)
    since = re.search(r'data-since="([^"]*)" data-before="([^"]*)"', row)
    assert since is not None
    assert abs(datetime.fromisoformat(since[1]) - (timezone.now() - HOUR)) < timedelta(minutes=1)
    assert since[2] == "7200"
    assert rendering.load_runtime(workload).seconds == pytest.approx(3 * 3600, abs=60)


def test_what_waits_after_a_preemption_stands_still(cast: Cast, alice: Client) -> None:
    workload = a_preempted_workload(cast, back=False)
    assert "data-since" not in find_row(alice, workload)
    assert rendering.load_runtime(workload).seconds == pytest.approx(2 * 3600, abs=60)


@pytest.mark.parametrize(
    "fields", [{}, {"status": "Completed", "ended_at": timezone.now()}], ids=["runs", "ended"]
)
@pytest.mark.parametrize("back", [True, False])
def test_page_file_rest_and_limit_tell_the_same(
    cast: Cast, alice: Client, back: bool, fields: dict[str, Any]
) -> None:
    workload = a_preempted_workload(cast, back=back, **fields)
    counted = runtime_limits.load_running_seconds([workload], timezone.now())[workload.pk]
    assert rendering.load_runtime(workload).seconds == pytest.approx(counted, abs=60)
    lines = alice.get("/workloads.csv").content.decode().splitlines()
    (line,) = csv.DictReader(lines)
    assert float(line["Runtime (s)"]) == pytest.approx(counted, abs=60)
    assert fetch_runtimes(cast.alice, workload) == (
        pytest.approx(counted, abs=60),
        pytest.approx(counted, abs=60),
    )


def test_what_never_ran_has_no_runtime_and_is_not_asked_for(cast: Cast) -> None:
    workload = a_workload(cast.team_a, status="Pending", started_at=None)
    with CaptureQueriesContext(connection) as queries:
        assert rendering.load_runtimes([workload])[workload.pk] == rendering.Runtime(0.0, 0.0)
    assert len(queries) == 0


def test_the_runtimes_of_many_rows_are_one_query(cast: Cast) -> None:
    rows = [a_preempted_workload(cast, f"train{number}") for number in range(5)]
    with CaptureQueriesContext(connection) as queries:
        found = rendering.load_runtimes(rows)
    assert (len(found), len(queries)) == (5, 1)
