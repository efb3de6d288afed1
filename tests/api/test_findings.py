"""What the radar found, as REST tells it."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.api.calling import Caller
from tests.cast import Cast
from tests.workloads.radar_rows import HOSTILE, build_finding, record_findings
from tests.workloads.table_rows import a_pod, a_workload, touch_workload
from workloads.models import Workload
from workloads.radar import Certainty, Kind, Proof
from workloads.specs import decode_spec, encode_spec


@pytest.fixture
def workload(cast: Cast) -> Workload:
    made = a_workload(cast.team_a)
    pod = a_pod(made, "worker", 1, node="node-0")
    record_findings(
        made,
        build_finding(Kind.IDLE, sentence="4 GPUs are unused for 3 h.", rank=None, proofs=()),
        at=timezone.now() - timedelta(minutes=2),
    )
    record_findings(made, over=["idle/"], at=timezone.now() - timedelta(minutes=1))
    record_findings(made, build_finding(pod=pod.pk, node="node-0", certainty=Certainty.CERTAIN))
    return made


def test_findings_of_a_workload_come_newest_first(cast: Cast, workload: Workload) -> None:
    answer = Caller(cast.vera)("GET", f"/workloads/{workload.pk}/findings")
    hang, idle = answer["findings"]
    for name in ("id", "beganAt", "foundAt", "seenAt"):
        assert hang.pop(name)
    assert hang == {
        "kind": "hang",
        "title": "Hangs",
        "rank": 2,
        "podName": "train1-worker-1",
        "nodeName": "node-0",
        "certainty": "certain",
        "message": "Rank 2 has said nothing for 6 min, while the 2 others wait at step 410.",
        "help": "Stop it to free what it holds.",
        "evidence": [
            {"text": "Rank 2 printed last: step 410", "metric": ""},
            {"text": "Rank 2: 0.01 cores in use.", "metric": "cpu"},
        ],
        "endedAt": None,
    }
    assert idle["title"] == "Idle GPUs"
    assert (idle["rank"], idle["podName"], idle["evidence"]) == (None, "", [])
    assert idle["endedAt"].endswith("Z")


def test_the_details_have_the_open_ones_and_when_the_radar_looked(
    cast: Cast, workload: Workload
) -> None:
    details = Caller(cast.vera)("GET", f"/workloads/{workload.pk}")
    assert [each["kind"] for each in details["findings"]] == ["hang"]
    assert details["needsALook"] is True
    assert details["radar"]["isOn"] is True
    assert details["radar"]["lookedAt"].endswith("Z")


def test_a_list_says_which_need_a_look(cast: Cast, workload: Workload) -> None:
    a_workload(cast.team_a, "healthy")
    listed = Caller(cast.vera)("GET", "/workloads")["workloads"]
    assert {each["name"]: each["needsALook"] for each in listed} == {
        "train1": True,
        "healthy": False,
    }


def test_another_attempt_begins_anew(cast: Cast, workload: Workload) -> None:
    touch_workload(workload, attempt=2)
    vera = Caller(cast.vera)
    assert vera("GET", f"/workloads/{workload.pk}/findings")["findings"] == []
    details = vera("GET", f"/workloads/{workload.pk}")
    assert (details["findings"], details["needsALook"]) == ([], False)
    assert details["radar"] == {"isOn": True, "lookedAt": None}


def test_a_workload_may_ask_not_to_be_watched(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    spec = decode_spec(workload.spec)
    spec = replace(spec, radar=replace(spec.radar, is_on=False))
    Workload.objects.update(spec=encode_spec(spec))
    details = Caller(cast.vera)("GET", f"/workloads/{workload.pk}")
    assert details["radar"] == {"isOn": False, "lookedAt": None}


def test_texts_of_a_log_are_bounded(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    proofs = [Proof(f"{HOSTILE}{'x' * 10_000}")] * 20
    record_findings(workload, build_finding(sentence=HOSTILE * 100, proofs=proofs))
    (found,) = Caller(cast.vera)("GET", f"/workloads/{workload.pk}/findings")["findings"]
    assert found["message"].startswith(HOSTILE)
    assert len(found["message"]) == 1000
    assert [len(each["text"]) for each in found["evidence"]] == [500] * 8


def test_who_may_not_see_the_workload_sees_no_findings(cast: Cast, workload: Workload) -> None:
    other = a_workload(cast.team_b, "other")
    record_findings(other, build_finding())
    Caller(cast.vera)("GET", f"/workloads/{other.pk}/findings", status=404)
