"""Events: both forms, counted when they repeat, never in the way of what they tell of; and how they
expire.
"""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from localkube.controllers.expiry import EventExpiry
from localkube.event_recorder import EventRecorder
from localkube.metadata import Object
from localkube.resources import EVENTS, NAMESPACES, NODES, SECRETS
from tests.localkube.stage import SPACE, Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(
        tmp_path / "state.db", monkeypatch, lambda objects: [EventExpiry(objects, max_events=5)]
    )
    yield made
    made.close()


@pytest.fixture
def secret(stage: Stage) -> Object:
    return stage.create(SECRETS, {"metadata": {"name": "s"}})


def list_events(stage: Stage, namespace: str = SPACE) -> list[Object]:
    return stage.objects.list(EVENTS, namespace)


def test_an_event_names_what_it_is_about(stage: Stage, secret: Object) -> None:
    EventRecorder(stage.objects, "tester", host="here").record_event(
        secret, "Warning", "Bad", "It went wrong", field_path="spec.part"
    )
    (event,) = list_events(stage)
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Secret",
        "namespace": SPACE,
        "name": "s",
        "uid": secret["metadata"]["uid"],
        "resourceVersion": secret["metadata"]["resourceVersion"],
        "fieldPath": "spec.part",
    }
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "Bad", "It went wrong")
    assert event["source"] == {"component": "tester", "host": "here"}
    assert (event["count"], event["firstTimestamp"], event["lastTimestamp"]) == (
        1,
        "2026-11-21T03:00:00Z",
        "2026-11-21T03:00:00Z",
    )


def test_the_same_within_an_hour_raises_the_count(stage: Stage, secret: Object) -> None:
    recorder = EventRecorder(stage.objects, "tester")
    for _ in range(3):
        recorder.record_event(secret, "Normal", "Tick", "again")
        stage.settle(60)
    recorder.record_event(secret, "Normal", "Tick", "something else")
    counts = {
        event["message"]: (event["count"], event["lastTimestamp"]) for event in list_events(stage)
    }
    assert counts == {
        "again": (3, "2026-11-21T03:02:00Z"),
        "something else": (1, "2026-11-21T03:03:00Z"),
    }


def test_after_an_hour_it_is_told_anew(stage: Stage, secret: Object) -> None:
    recorder = EventRecorder(stage.objects, "tester")
    recorder.record_event(secret, "Normal", "Tick", "again")
    stage.settle(3601)
    recorder.record_event(secret, "Normal", "Tick", "again")
    assert [event["count"] for event in list_events(stage)] == [1]


def test_the_modern_form_has_an_event_time_and_a_series(stage: Stage, secret: Object) -> None:
    recorder = EventRecorder(stage.objects, "default-scheduler", modern=True)
    for _ in range(3):
        recorder.record_event(secret, "Warning", "FailedScheduling", "no room", action="Scheduling")
    (event,) = list_events(stage)
    assert (event["eventTime"], event["action"]) == ("2026-11-21T03:00:00.000000Z", "Scheduling")
    assert event["reportingComponent"] == "default-scheduler"
    assert event["series"] == {"count": 3, "lastObservedTime": "2026-11-21T03:00:00.000000Z"}
    assert not {"count", "firstTimestamp", "lastTimestamp"} & {
        key for key, value in event.items() if value
    }


def test_a_long_message_is_cut_to_1024_bytes(stage: Stage, secret: Object) -> None:
    EventRecorder(stage.objects, "tester").record_event(secret, "Normal", "Long", "ü" * 2000)
    message = list_events(stage)[0]["message"]
    assert len(message.encode()) in (1023, 1024)
    assert message.endswith("ü...")


def test_events_about_cluster_objects_are_in_default(stage: Stage) -> None:
    node = stage.create(NODES, {"metadata": {"name": "n"}})
    EventRecorder(stage.objects, "tester").record_event(node, "Normal", "Starting", "hello")
    assert [event["involvedObject"]["name"] for event in list_events(stage, "default")] == ["n"]


def test_a_namespace_on_its_way_out_loses_events_quietly(stage: Stage, secret: Object) -> None:
    stage.objects.delete(NAMESPACES, "", SPACE)
    EventRecorder(stage.objects, "tester").record_event(secret, "Normal", "Late", "too late")
    assert list_events(stage) == []


def test_events_go_an_hour_after_they_were_last_told(stage: Stage, secret: Object) -> None:
    recorder = EventRecorder(stage.objects, "tester")
    recorder.record_event(secret, "Normal", "Old", "once")
    recorder.record_event(secret, "Normal", "Kept", "twice")
    stage.settle(3000)
    recorder.record_event(secret, "Normal", "Kept", "twice")
    stage.settle(601)
    assert [event["reason"] for event in list_events(stage)] == ["Kept"]
    stage.settle(3000)
    assert list_events(stage) == []


def test_above_the_bound_the_oldest_go_also_after_a_restart(stage: Stage, secret: Object) -> None:
    for number in range(8):
        EventRecorder(stage.objects, "tester").record_event(secret, "Normal", f"R{number}", "told")
        stage.settle(1)
    assert {event["reason"] for event in list_events(stage)} == {"R3", "R4", "R5", "R6", "R7"}
    stage.close()
    stage.open()
    EventRecorder(stage.objects, "tester").record_event(secret, "Normal", "R8", "told")
    stage.settle()
    assert {event["reason"] for event in list_events(stage)} == {"R4", "R5", "R6", "R7", "R8"}


def test_age_and_bound_are_options(stage: Stage, secret: Object) -> None:
    stage.loop.add_controller(EventExpiry(stage.objects, max_age=timedelta(seconds=20)))
    EventRecorder(stage.objects, "tester").record_event(secret, "Normal", "Short", "lived")
    stage.settle()
    stage.settle(20)
    assert list_events(stage) == []
