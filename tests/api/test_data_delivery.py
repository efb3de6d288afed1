"""What REST says of a workload's data: how far it is, and how long ranks waited for it."""

from pathlib import Path
from typing import Any

import pytest

from tests.api.calling import Caller
from tests.cast import Cast
from tests.workloads.cluster_objects import jobs, pods
from tests.workloads.data_workers import DataKube, a_data_workload, get_data_pod, write_lines
from workloads import journal
from workloads.models import RankDelivery
from workloads.tasks import follow_preparations


@pytest.fixture
def kube(cast: Cast, tmp_path: Path, settings: Any) -> DataKube:
    """A workload that has 25 of the 100 units that it waits for."""
    settings.LOGS = tmp_path
    found = a_data_workload(cast)
    journal.record_observations(
        cast.cluster.pk,
        [*jobs(found.data_job(), found.held_job()), *pods(found.data_pod(0), found.data_pod(1))],
    )
    line = {"event": "preparing", "worker": 0, "units": 25, "of": 50, "rate": 5.0}
    write_lines(get_data_pod(found, 0), line)
    follow_preparations()
    return found


@pytest.fixture
def bob(cast: Cast) -> Caller:
    return Caller(cast.bob)


def test_what_prepares_is_initializing_to_clients_and_says_how_far_it_is(
    kube: DataKube, bob: Caller
) -> None:
    path = f"/workloads/{kube.workload.pk}"
    one = bob("GET", path)
    prepared = {"preparedUnits": 25, "units": 100, "percent": 25, "secondsLeft": 15}
    for each in (one, bob("GET", "/workloads")["workloads"][0]):
        assert (each["phase"], each["dataDelivery"]) == ("Initializing", prepared)
        assert each["phaseMessage"].startswith("25 of 100 units are prepared, 25 %, about 15 s.")
    assert one["attempts"][0]["phase"] == "Initializing"
    updates = [each["spec"].get("phaseUpdate") for each in bob("GET", f"{path}/history")["records"]]
    assert "Initializing" in [each["phase"] for each in updates if each]


def test_the_filter_and_the_telemetry_of_phases_know_it_as_initializing(
    kube: DataKube, bob: Caller
) -> None:
    found = bob("GET", "/workloads?filterBy=phase==Initializing")["workloads"]
    assert [each["id"] for each in found] == [str(kube.workload.pk)]
    assert bob("GET", "/workloads?filterBy=phase!=Initializing")["workloads"] == []
    telemetry = bob("GET", "/workloads/telemetry?telemetryType=WORKLOADS_COUNT&groupBy=Phase")
    assert "Preparing" not in str(telemetry)
    assert "Initializing" in str(telemetry)


def test_the_whole_of_the_delivery_has_its_own_address(kube: DataKube, bob: Caller) -> None:
    RankDelivery.objects.create(
        workload=kube.workload,
        attempt=1,
        rank=3,
        at=kube.workload.created_at,
        span=600,
        waited=300,
        computed=300,
        depth=4,
        rate=512,
        delivered=51_200,
        epoch=2,
    )
    delivery = bob("GET", f"/workloads/{kube.workload.pk}/data-delivery")
    assert (delivery["workers"], delivery["preparedUnits"], delivery["units"]) == (2, 25, 100)
    assert [each["pod"] for each in delivery["dataWorkers"]] == [
        "train1-data-0-pods0",
        "train1-data-1-pods0",
    ]
    assert (delivery["ranks"][0]["waitedShare"], delivery["suggestedWorkers"]) == (0.5, 4)
    assert delivery["waitingMessage"].startswith(
        "GPUs waited 50 % of the last 10 min for data; four"
    )


def test_data_workers_are_listed_with_their_role(kube: DataKube, bob: Caller) -> None:
    listed = bob("GET", f"/workloads/{kube.workload.pk}/pods")["pods"]
    assert [(each["role"], each["rank"]) for each in listed] == [("data-worker", None)] * 2


def test_others_learn_nothing_of_it(kube: DataKube, cast: Cast) -> None:
    Caller(cast.mallory)("GET", f"/workloads/{kube.workload.pk}/data-delivery", status=404)
