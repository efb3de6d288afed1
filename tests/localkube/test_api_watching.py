"""watch: what every watcher sees, in order, and what becomes of one that cannot keep up."""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from localkube.api import watching
from localkube.resources import PODS, PYTORCHJOBS
from tests.localkube.api_server import DEADLINE, ApiServer, job, pod

JOBS = "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"


def create(api: ApiServer, name: str, namespace: str = "team-a", **metadata: Any) -> str:
    """The resource version of a new job."""
    created = api.call(lambda: api.objects.create(PYTORCHJOBS, namespace, job(name, **metadata)))
    return str(created["metadata"]["resourceVersion"])


def label(api: ApiServer, name: str, value: str | None) -> str:
    patch = {"metadata": {"labels": {"k": value}}}
    answer = api.ask("PATCH", f"{JOBS}/{name}", patch, content_type="application/merge-patch+json")
    return str(answer.json["metadata"]["resourceVersion"])


def get_list_version(api: ApiServer) -> str:
    return str(api.get(JOBS).json["metadata"]["resourceVersion"])


def take_events(frames: Iterator[Any], count: int) -> list[tuple[str, str]]:
    """The next events, as type and name."""
    return [
        (frame["type"], frame["object"]["metadata"].get("name", ""))
        for frame in itertools.islice(frames, count)
    ]


def wait_until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_without_a_version_it_begins_with_what_is_there(api: ApiServer) -> None:
    create(api, "a")
    create(api, "b", namespace="default")
    frames = api.frames(f"{JOBS}?watch=1&timeoutSeconds=20")
    assert take_events(frames, 1) == [("ADDED", "a")]
    create(api, "c")
    assert take_events(frames, 1) == [("ADDED", "c")]


def test_from_a_version_it_tells_everything_since(api: ApiServer) -> None:
    start = get_list_version(api)
    create(api, "a")
    label(api, "a", "v")
    api.ask("DELETE", f"{JOBS}/a")
    frames = api.frames(f"{JOBS}?watch=1&resourceVersion={start}&timeoutSeconds=20")
    assert take_events(frames, 3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_a_deletion_carries_the_last_state_under_a_new_version(api: ApiServer) -> None:
    start = create(api, "a", labels={"k": "v"})
    api.ask("DELETE", f"{JOBS}/a")
    frame = next(api.frames(f"{JOBS}?watch=1&resourceVersion={start}&timeoutSeconds=20"))
    assert frame["object"]["metadata"]["labels"] == {"k": "v"}
    assert int(frame["object"]["metadata"]["resourceVersion"]) > int(start)


def test_an_object_that_leaves_the_selector_is_deleted_as_it_last_matched(api: ApiServer) -> None:
    start = create(api, "a")
    label(api, "a", "v")
    left = label(api, "a", None)
    frames = api.frames(
        f"{JOBS}?watch=1&resourceVersion={start}&labelSelector=k%3Dv&timeoutSeconds=20"
    )
    added, deleted = itertools.islice(frames, 2)
    assert (added["type"], deleted["type"]) == ("ADDED", "DELETED")
    assert deleted["object"]["metadata"]["labels"] == {"k": "v"}
    assert deleted["object"]["metadata"]["resourceVersion"] == left


def test_a_deleted_object_that_never_matched_is_not_told(api: ApiServer) -> None:
    start = create(api, "a")
    api.ask("DELETE", f"{JOBS}/a")
    create(api, "b", labels={"k": "v"})
    frames = api.frames(
        f"{JOBS}?watch=1&resourceVersion={start}&labelSelector=k%3Dv&timeoutSeconds=20"
    )
    assert take_events(frames, 1) == [("ADDED", "b")]


def test_one_object_may_be_watched_by_its_name(api: ApiServer) -> None:
    create(api, "a")
    frames = api.frames(f"{JOBS}?watch=1&fieldSelector=metadata.name%3Db&timeoutSeconds=20")
    create(api, "b")
    assert take_events(frames, 1) == [("ADDED", "b")]


def test_fields_of_pods_select_events(api: ApiServer) -> None:
    frames = api.frames("/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn2&timeoutSeconds=20")
    for name, node in (("p1", "n1"), ("p2", "n2")):
        api.call(partial(api.objects.create, PODS, "team-a", pod(name, node=node)))
    assert take_events(frames, 1) == [("ADDED", "p2")]


def test_a_version_that_is_too_old_is_told_in_the_stream(api: ApiServer) -> None:
    frames = list(api.frames(f"{JOBS}?watch=1&resourceVersion=1&timeoutSeconds=20"))
    assert [frame["type"] for frame in frames] == ["ERROR"]
    status = frames[0]["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"].startswith("too old resource version: 1 (")


def test_a_version_in_the_future_waits_for_it(api: ApiServer) -> None:
    start = int(get_list_version(api)) + 1
    frames = api.frames(f"{JOBS}?watch=1&resourceVersion={start}&timeoutSeconds=20")
    create(api, "reaches-it")
    create(api, "is-past-it")
    assert take_events(frames, 1) == [("ADDED", "is-past-it")]


def test_it_ends_quietly_at_its_time_with_a_bookmark_before(api: ApiServer) -> None:
    start = create(api, "a")
    frames = list(
        api.frames(
            f"{JOBS}?watch=1&resourceVersion={start}&timeoutSeconds=1&allowWatchBookmarks=true"
        )
    )
    assert [frame["type"] for frame in frames] == ["BOOKMARK"]
    bookmark = frames[0]["object"]
    assert bookmark == {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"resourceVersion": start},
    }


def test_initial_events_end_with_a_marked_bookmark(api: ApiServer) -> None:
    create(api, "a")
    query = (
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        "&allowWatchBookmarks=true&timeoutSeconds=20"
    )
    frames = api.frames(f"{JOBS}?{query}")
    added, end = itertools.islice(frames, 2)
    assert (added["type"], end["type"]) == ("ADDED", "BOOKMARK")
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    create(api, "b")
    assert take_events(frames, 1) == [("ADDED", "b")]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("sendInitialEvents=true", 422),
        ("resourceVersionMatch=NotOlderThan", 422),
        ("sendInitialEvents=true&resourceVersionMatch=Exact", 422),
        ("resourceVersion=abc", 400),
        ("timeoutSeconds=soon", 400),
        ("labelSelector=a%3D%3D%3Db", 400),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(api: ApiServer, query: str, code: int) -> None:
    assert api.get(f"{JOBS}?watch=1&{query}").status == code


def test_only_the_first_table_has_columns(api: ApiServer) -> None:
    create(api, "a")
    frames = api.frames(f"{JOBS}?watch=1&timeoutSeconds=20", accept=TABLE)
    create(api, "b")
    first, second = itertools.islice(frames, 2)
    assert first["object"]["columnDefinitions"][0]["name"] == "Name"
    assert second["object"]["columnDefinitions"] is None
    assert [frame["object"]["rows"][0]["cells"][0] for frame in (first, second)] == ["a", "b"]


def test_metadata_alone_may_be_watched(api: ApiServer) -> None:
    create(api, "a")
    frame = next(api.frames(f"{JOBS}?watch=1&timeoutSeconds=20", accept=PARTIAL))
    assert (frame["object"]["kind"], "spec" in frame["object"]) == ("PartialObjectMetadata", False)


def test_events_are_watched_in_both_shapes(api: ApiServer) -> None:
    event = {
        "metadata": {"name": "e", "namespace": "team-a"},
        "involvedObject": {"kind": "Pod", "namespace": "team-a", "name": "p"},
        "message": "hello",
        "reason": "Tried",
        "type": "Normal",
    }
    frames = api.frames("/apis/events.k8s.io/v1/namespaces/team-a/events?watch=1&timeoutSeconds=20")
    assert api.ask("POST", "/api/v1/namespaces/team-a/events", event).status == 201
    frame = next(frames)
    assert (frame["object"]["apiVersion"], frame["object"]["note"]) == ("events.k8s.io/v1", "hello")


def test_a_watcher_that_leaves_is_forgotten(api: ApiServer) -> None:
    create(api, "a")
    subscribers = api.objects.store._get_table(PYTORCHJOBS.key).subscribers
    frames = api.frames(f"{JOBS}?watch=1&timeoutSeconds=20")
    next(frames)
    assert len(subscribers) == 1
    frames.close()
    assert wait_until(lambda: not subscribers)


def test_many_watchers_share_one_subscription_and_all_see_all(api: ApiServer) -> None:
    watchers = [api.frames(f"{JOBS}?watch=1&timeoutSeconds=20") for _ in range(20)]
    create(api, "a")
    assert [take_events(frames, 1) for frames in watchers] == [[("ADDED", "a")]] * 20
    assert len(api.objects.store._get_table(PYTORCHJOBS.key).subscribers) == 1


def test_a_slow_watcher_is_ended_and_told_to_list_again(api: ApiServer) -> None:
    create(api, "a")
    connection = api.connect()
    response = api.send(connection, "GET", f"{JOBS}?watch=1&timeoutSeconds=60")
    assert json.loads(response.readline())["type"] == "ADDED"
    pad = "x" * 200_000
    for number in range(3 * watching.MAX_BACKLOG_BYTES // len(pad)):
        change = partial(annotate, value=f"{number}{pad}")
        api.call(partial(api.objects.modify, PYTORCHJOBS, "team-a", "a", change))
    frames = [json.loads(line) for line in response]
    connection.close()
    assert frames[-1]["type"] == "ERROR"
    assert (frames[-1]["object"]["code"], len(frames) < number) == (410, True)


def annotate(obj: Any, value: str) -> None:
    obj["metadata"]["annotations"] = {"pad": value}


def test_a_stopping_server_ends_watches_whole(api: ApiServer) -> None:
    create(api, "a")
    frames = api.frames(f"{JOBS}?watch=1&timeoutSeconds=60")
    next(frames)
    api.wait(api.listener.stop(5.0))
    assert list(frames) == []
