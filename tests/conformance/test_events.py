"""Events: one store behind two groups, each group with its own words."""

import pytest

from tests.conformance.api import STRATEGIC, TABLE, Api, Object
from tests.conformance.samples import (
    EVENTS,
    NEW_EVENTS,
    PODS,
    create_pod,
    frame_summary,
    names,
    pod,
)

STAMP = "2026-01-01T00:00:10Z"
MICRO = "2026-01-01T00:00:10.000123Z"


def old_event(namespace: str, name: str = "job", **fields: object) -> Object:
    """An event as the training operator writes it, without kind and version, as its client sends
    it.
    """
    about = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "name": name,
        "namespace": namespace,
        "uid": f"uid-of-{name}",
    }
    return {
        "metadata": {"generateName": f"{name}.", "namespace": namespace},
        "involvedObject": about,
        "type": "Normal",
        "reason": "SuccessfulCreatePod",
        "message": "Created pod: job-worker-0",
        "source": {"component": "pytorchjob-controller"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": STAMP,
        "count": 3,
        **fields,
    }


def new_event(namespace: str) -> Object:
    """An event as the scheduler writes it."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "pend.1", "namespace": namespace},
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "pend", "namespace": namespace},
        "type": "Warning",
        "reason": "FailedScheduling",
        "note": "0/1 nodes are available",
        "action": "Scheduling",
        "eventTime": MICRO,
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-1",
    }


def test_an_event_of_the_old_form_is_taken(api: Api, namespace: str) -> None:
    made = api.post(EVENTS.path(namespace), old_event(namespace)).ok(201)
    assert (made["kind"], made["apiVersion"]) == ("Event", "v1")
    assert made["metadata"]["name"].startswith("job.")
    sent = {key: value for key, value in old_event(namespace).items() if key != "metadata"}
    assert {key: made[key] for key in sent} == sent
    assert (made["eventTime"], made["reportingComponent"], made["reportingInstance"]) == (
        None,
        "",
        "",
    )


def test_an_event_of_the_old_form_is_read_in_the_new_words(api: Api, namespace: str) -> None:
    made = api.post(EVENTS.path(namespace), old_event(namespace)).ok(201)
    (read,) = api.get(NEW_EVENTS.path(namespace)).ok()["items"]
    assert read["metadata"]["uid"] == made["metadata"]["uid"]
    assert (read["regarding"], read["note"], read["reason"]) == (
        made["involvedObject"],
        made["message"],
        made["reason"],
    )
    assert read["deprecatedSource"] == made["source"]
    assert (read["deprecatedFirstTimestamp"], read["deprecatedLastTimestamp"]) == (
        made["firstTimestamp"],
        made["lastTimestamp"],
    )
    assert (read["deprecatedCount"], read["eventTime"]) == (3, None)


def test_an_event_of_the_new_form_is_read_in_the_old_words(api: Api, namespace: str) -> None:
    made = api.post(NEW_EVENTS.path(namespace), new_event(namespace)).ok(201)
    assert (made["apiVersion"], made["note"]) == ("events.k8s.io/v1", "0/1 nodes are available")
    (read,) = api.get(EVENTS.path(namespace)).ok()["items"]
    assert (read["involvedObject"], read["message"]) == (made["regarding"], made["note"])
    assert (read["eventTime"], read["action"], read["type"]) == (MICRO, "Scheduling", "Warning")
    assert (read["reportingComponent"], read["reportingInstance"]) == (
        "default-scheduler",
        "default-scheduler-1",
    )
    assert (read["source"], read["firstTimestamp"], read["lastTimestamp"]) == ({}, None, None)
    assert "count" not in read


def test_one_event_is_got_deleted_and_gone_in_both_groups(api: Api, namespace: str) -> None:
    api.post(NEW_EVENTS.path(namespace), new_event(namespace)).ok(201)
    assert api.get(EVENTS.path(namespace, "pend.1")).ok()["apiVersion"] == "v1"
    assert api.get(NEW_EVENTS.path(namespace, "pend.1")).ok()["apiVersion"] == "events.k8s.io/v1"
    api.delete(EVENTS.path(namespace, "pend.1")).ok()
    refusal = api.get(NEW_EVENTS.path(namespace, "pend.1")).expect_refusal(404, "NotFound")
    assert refusal["message"] in (
        'events.events.k8s.io "pend.1" not found',
        'events "pend.1" not found',
    )


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("involvedObject.name=a", ["a.1"]),
        ("involvedObject.name=a,involvedObject.kind=PyTorchJob", ["a.1"]),
        ("involvedObject.kind=Pod", []),
        ("involvedObject.uid=uid-of-b", ["b.1"]),
        ("reason=Other", ["b.1"]),
        ("reason!=Other", ["a.1"]),
        ("type=Warning", ["b.1"]),
        ("source=pytorchjob-controller", ["a.1", "b.1"]),
        ("metadata.name=a.1", ["a.1"]),
    ],
)
def test_events_are_found_by_what_they_are_about(
    api: Api, namespace: str, selector: str, selected: list[str]
) -> None:
    for name, fields in (("a", {}), ("b", {"reason": "Other", "type": "Warning"})):
        obj = old_event(namespace, name, **fields) | {
            "metadata": {"name": f"{name}.1", "namespace": namespace}
        }
        api.post(EVENTS.path(namespace), obj).ok(201)
    assert names(api.get(EVENTS.path(namespace), fieldSelector=selector).ok()) == selected


def test_an_event_belongs_to_the_namespace_of_what_it_is_about(api: Api, namespace: str) -> None:
    refusal = api.post(
        EVENTS.path(namespace), old_event("elsewhere") | {"metadata": {"name": "a.1"}}
    ).expect_refusal(422, "Invalid")
    assert "involvedObject.namespace" in [cause["field"] for cause in refusal["details"]["causes"]]


def test_an_event_that_comes_again_is_counted(api: Api, namespace: str) -> None:
    made = api.post(EVENTS.path(namespace), old_event(namespace)).ok(201)
    path = EVENTS.path(namespace, made["metadata"]["name"])
    counted = api.patch(path, {"count": 4, "lastTimestamp": "2026-01-01T00:01:00Z"}, STRATEGIC).ok()
    assert (counted["count"], counted["lastTimestamp"], counted["firstTimestamp"]) == (
        4,
        "2026-01-01T00:01:00Z",
        made["firstTimestamp"],
    )


def test_both_groups_are_watched(api: Api, namespace: str) -> None:
    version = api.get(EVENTS.path(namespace)).ok()["metadata"]["resourceVersion"]
    with (
        api.watch(EVENTS.path(namespace), resourceVersion=version) as old,
        api.watch(NEW_EVENTS.path(namespace), resourceVersion=version) as new,
    ):
        api.post(EVENTS.path(namespace), old_event(namespace) | {"metadata": {"name": "a.1"}}).ok(
            201
        )
        first, second = old.next_frame(), new.next_frame()
    assert frame_summary(first) == frame_summary(second) == ("ADDED", "a.1")
    assert (first["object"]["apiVersion"], second["object"]["apiVersion"]) == (
        "v1",
        "events.k8s.io/v1",
    )
    assert first["object"]["message"] == second["object"]["note"]


def test_events_are_watched_by_what_they_are_about(api: Api, namespace: str) -> None:
    version = api.get(EVENTS.path(namespace)).ok()["metadata"]["resourceVersion"]
    with api.watch(
        EVENTS.path(namespace), resourceVersion=version, fieldSelector="involvedObject.name=b"
    ) as watch:
        for name in ("a", "b"):
            api.post(
                EVENTS.path(namespace),
                old_event(namespace, name) | {"metadata": {"name": f"{name}.1"}},
            ).ok(201)
        assert frame_summary(watch.next_frame()) == ("ADDED", "b.1")


def test_a_table_of_events_reads_as_kubectl_prints_it(api: Api, namespace: str) -> None:
    api.post(EVENTS.path(namespace), old_event(namespace) | {"metadata": {"name": "a.1"}}).ok(201)
    table = api.get(EVENTS.path(namespace), accept=TABLE).ok()
    expected = [
        "Last Seen",
        "Type",
        "Reason",
        "Object",
        "Subobject",
        "Source",
        "Message",
        "First Seen",
        "Count",
        "Name",
    ]
    assert [column["name"] for column in table["columnDefinitions"]] == expected
    cells = table["rows"][0]["cells"]
    assert cells[1:4] == ["Normal", "SuccessfulCreatePod", "pytorchjob/job"]
    assert (cells[5], cells[6], cells[8], cells[9]) == (
        "pytorchjob-controller",
        "Created pod: job-worker-0",
        3,
        "a.1",
    )


def test_events_may_be_about_a_pod_of_this_cluster(api: Api, namespace: str) -> None:
    uid = create_pod(api, namespace, pod())["metadata"]["uid"]
    about = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "pod",
        "namespace": namespace,
        "uid": uid,
        "fieldPath": "spec.containers{main}",
    }
    api.post(
        EVENTS.path(namespace),
        old_event(namespace, involvedObject=about) | {"metadata": {"name": "a.1"}},
    ).ok(201)
    listing = api.get(EVENTS.path(namespace), fieldSelector=f"involvedObject.uid={uid}").ok()
    assert [
        item["involvedObject"]["fieldPath"]
        for item in listing["items"]
        if item["metadata"]["name"] == "a.1"
    ] == ["spec.containers{main}"]
    api.delete(PODS.path(namespace, "pod")).ok()
    assert "a.1" in names(api.get(EVENTS.path(namespace)).ok())
