"""Forecasts of starts over REST."""

from django.utils import timezone

from clusters.models import Cluster
from tests.api.calling import Caller, a_body
from tests.cast import Cast, a_spec
from tests.workloads.test_forecast_pages import add_forecast
from tests.workloads.waiting_rows import add_node, add_record, add_workload
from workloads.models import Workload
from workloads.specs import encode_spec


def test_a_forecast_names_what_the_reader_sees(cast: Cast) -> None:
    waits = add_workload(cast.team_a, "waits")
    secret = add_workload(cast.team_b, "secret", node="node-1")
    address = f"/workloads/{waits.pk}/forecast"
    assert Caller(cast.bob)("GET", address)["outlook"] == "unknown"
    row = add_forecast(waits, blockers=[str(secret.pk)])
    assert row.likely_at is not None
    answer = Caller(cast.bob)("GET", address)
    likely = row.likely_at.isoformat().replace("+00:00", "Z")
    assert (answer["outlook"], answer["likelyAt"]) == ("starts", likely)
    assert answer["queue"] == {"position": 1, "length": 1}
    hidden = {"workloadId": None, "name": "", "projectName": "another project"}
    assert answer["waitsFor"] == [hidden]
    assert answer["record"]["share"] is None
    listed = Caller(cast.bob)("GET", "/workloads")["workloads"]
    assert [each["likelyStartAt"] for each in listed] == [likely]
    Caller(cast.mallory)("GET", address, status=404)
    running = Caller(cast.mallory)("GET", f"/workloads/{secret.pk}/forecast")
    assert running["outlook"] == "not-waiting"


def test_calibration_is_of_the_projects_that_one_sees(cast: Cast) -> None:
    for number in range(20):
        for project in (cast.team_a, cast.team_b):
            add_record(project, 600, 700 if number < 15 else 1300, made_at=timezone.now())
    bob = Caller(cast.bob)
    answer = bob("GET", "/forecasts/calibration?horizon=1h")
    assert answer["total"] == {"decided": 20, "right": 15, "share": 0.75}
    assert [each["projectName"] for each in answer["groups"]] == ["team-a"]
    assert [each["observed"] for each in answer["shown"]] == [0.0, 0.0, 0.75]
    own = bob("GET", f"/forecasts/calibration?projectId={cast.team_a.pk}")
    assert own["total"]["decided"] == 20
    bob("GET", f"/forecasts/calibration?projectId={cast.team_b.pk}", status=400)
    bob("GET", "/forecasts/calibration?horizon=2h", status=400)


def test_only_what_waits_is_found_by_its_likely_start(cast: Cast) -> None:
    add_forecast(add_workload(cast.team_a, "waits"))
    add_workload(cast.team_a, "unknown")
    running = add_workload(cast.team_a, "running", node="node-1")
    Workload.objects.filter(pk=running.pk).update(likely_start_at=timezone.now())
    for condition in ("likelyStartAt>=2026-01-01T00:00:00Z", "likelyStartAt!=2026-01-01T00:00:00Z"):
        found = Caller(cast.bob)("GET", f"/workloads?filterBy={condition}")["workloads"]
        assert [each["name"] for each in found] == ["waits"]


def test_alternatives_are_played_for_what_waits_and_what_is_not_made_yet(cast: Cast) -> None:
    waits = add_workload(cast.team_a, "waits")
    bob = Caller(cast.bob)
    address = f"/workloads/{waits.pk}/alternatives"
    answer = bob("GET", address)
    assert answer == {
        "message": "Its cluster does not answer.",
        "asItIs": None,
        "alternatives": [],
    }
    Cluster.objects.filter(pk=cast.cluster.pk).update(last_seen_at=timezone.now())
    add_node(cast, gpus=1)
    running = add_workload(cast.team_a, "running", node="node-1")
    spec = a_spec(cast.team_a, "waits", workers=1)
    Workload.objects.filter(pk=waits.pk).update(spec=encode_spec(spec))
    answer = bob("GET", address)
    assert answer["asItIs"]["outlook"] == "no-end"
    ended = next(each for each in answer["alternatives"] if each["workloadId"])
    assert (ended["workloadId"], ended["atOnce"]) == (str(running.pk), True)
    assert bob("GET", f"/workloads/{running.pk}/alternatives")["message"] == "It does not wait."
    Caller(cast.mallory)("GET", address, status=404)
    planned = bob("POST", "/workloads/distributed/alternatives", a_body(cast))
    assert planned["message"] == ""
    assert planned["asItIs"] is not None
