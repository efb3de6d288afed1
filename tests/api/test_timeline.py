"""A workload's past, as REST tells it."""

import pytest

from tests.api.calling import Caller
from tests.cast import Cast
from tests.workloads.radar_rows import HOSTILE
from tests.workloads.table_rows import a_workload, an_event
from tests.workloads.timeline_rows import EventfulWorkload
from tests.workloads.wide_workloads import MOST_BYTES, a_wide_workload
from workloads.models import Workload


@pytest.fixture
def workload(cast: Cast) -> Workload:
    return EventfulWorkload(cast.team_a, cast.team_b, cast.bob).workload


def test_the_timeline_has_lanes_of_segments_and_marks(cast: Cast, workload: Workload) -> None:
    answer = Caller(cast.vera)("GET", f"/workloads/{workload.pk}/timeline")
    assert (answer["name"], answer["isOver"], answer["notes"]) == ("llama", False, [])
    lanes = {each["key"]: each for each in answer["lanes"]}
    assert list(lanes) == [
        *("status", "attempts", "pod-count", "pod-changes", "finding-hang", "finding-straggler"),
        *("training", *(f"rank-{rank}" for rank in range(6))),
    ]
    first, *_, last = lanes["status"]["segments"]
    assert (first["state"], first["message"]) == (
        "Creating",
        "Creating, asked for by bob. It was submitted.",
    )
    assert first["beganAt"] == answer["beganAt"]
    assert (last["state"], last["endedAt"]) == ("Running", None)
    taken, grown = lanes["pod-changes"]["marks"]
    assert (taken["kind"], grown["kind"]) == ("taken", "grown")
    assert taken["message"].startswith("Gave 2 GPUs to another project at ")
    assert [each["name"] for each in lanes["pod-count"]["bounds"]] == ["least", "most", "quota"]
    rank = lanes["rank-4"]
    assert (rank["firstRank"], rank["lastRank"], rank["note"]) == (4, 4, "worker 3")
    assert [each["kind"] for each in rank["marks"]] == ["removed", "taken"]


def test_of_very_many_ranks_some_are_chosen(cast: Cast) -> None:
    workload = a_wide_workload(cast.team_a)
    caller = Caller(cast.bob)
    address = f"/workloads/{workload.pk}/timeline"
    answer = caller("GET", address)
    assert len(str(answer)) < MOST_BYTES
    groups = [each for each in answer["lanes"] if each["kind"] == "group"]
    assert [each["firstRank"] for each in groups][:1] == [1]
    answer = caller("GET", f"{address}?ranks=5,1776-1777")
    ranks = [each["firstRank"] for each in answer["lanes"] if each["kind"] == "rank"]
    assert ranks == [5, 1776, 1777]
    refused = caller("GET", f"{address}?ranks=many", status=400)
    assert "ranks" in str(refused)


def test_texts_of_a_cluster_are_bounded(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    an_event(workload, HOSTILE * 100, old="Pending")
    answer = Caller(cast.vera)("GET", f"/workloads/{workload.pk}/timeline")
    texts = [each["message"] for each in answer["lanes"][0]["segments"]]
    assert max(map(len, texts)) == 160


def test_who_may_not_see_the_workload_sees_no_timeline(cast: Cast) -> None:
    other = a_workload(cast.team_b, "other")
    Caller(cast.vera)("GET", f"/workloads/{other.pk}/timeline", status=404)
