"""Watches: where they start, what they show and in which order, how they end, and how a lost
history is told.
"""

import re

import pytest

from tests.conformance.api import PARTIAL, TABLE, Api, Object
from tests.conformance.samples import (
    LEASES,
    NAMESPACES,
    PODS,
    PYTORCHJOBS,
    Kind,
    create,
    create_pod,
    frame_summary,
    lease,
    names,
    pod,
    sample,
)


@pytest.fixture(params=[LEASES, PYTORCHJOBS], ids=["leases", "pytorchjobs"])
def kind(request: pytest.FixtureRequest) -> Kind:
    """One built-in kind and one that a CRD defines."""
    chosen: Kind = request.param
    return chosen


def version_of(api: Api, path: str) -> str:
    version: str = api.get(path).ok()["metadata"]["resourceVersion"]
    return version


def relabel(api: Api, kind: Kind, namespace: str, name: str, **labels: str | None) -> Object:
    changed: Object = api.patch(kind.path(namespace, name), {"metadata": {"labels": labels}}).ok()
    return changed


def test_a_watch_from_a_lists_version_shows_every_later_change(
    api: Api, namespace: str, kind: Kind
) -> None:
    path = kind.path(namespace)
    create(api, kind, namespace, sample(kind, "before"))
    with api.watch(path, resourceVersion=version_of(api, path)) as watch:
        made = create(api, kind, namespace, sample(kind, "one"))
        changed = relabel(api, kind, namespace, "one", k="v")
        api.delete(kind.path(namespace, "one")).ok()
        added, modified, deleted = watch.next_frames(3)
    assert [frame_summary(f) for f in (added, modified, deleted)] == [
        ("ADDED", "one"),
        ("MODIFIED", "one"),
        ("DELETED", "one"),
    ]
    assert (added["object"], modified["object"]) == (made, changed)
    assert deleted["object"]["metadata"]["labels"] == {"k": "v"}
    assert int(deleted["object"]["metadata"]["resourceVersion"]) > int(
        changed["metadata"]["resourceVersion"]
    )


def test_a_watch_catches_up_with_what_happened_since_its_version(
    api: Api, namespace: str, kind: Kind
) -> None:
    path = kind.path(namespace)
    version = version_of(api, path)
    create(api, kind, namespace, sample(kind, "one"))
    relabel(api, kind, namespace, "one", k="v")
    with api.watch(path, resourceVersion=version) as watch:
        assert [frame_summary(frame) for frame in watch.next_frames(2)] == [
            ("ADDED", "one"),
            ("MODIFIED", "one"),
        ]


def test_a_watch_can_go_on_from_the_version_of_any_frame(
    api: Api, namespace: str, kind: Kind
) -> None:
    path = kind.path(namespace)
    with api.watch(path, resourceVersion=version_of(api, path)) as watch:
        for name in ("a", "b", "c"):
            create(api, kind, namespace, sample(kind, name))
        middle = watch.next_frames(2)[1]["object"]["metadata"]["resourceVersion"]
    with api.watch(path, resourceVersion=middle) as watch:
        assert frame_summary(watch.next_frame()) == ("ADDED", "c")


@pytest.mark.parametrize("version", [None, "0"], ids=["unset", "zero"])
def test_a_watch_from_anywhere_first_adds_what_is_there(
    api: Api, namespace: str, kind: Kind, version: str | None
) -> None:
    path = kind.path(namespace)
    for name in ("a", "b"):
        create(api, kind, namespace, sample(kind, name))
    api.get(path, resourceVersion=version_of(api, path)).ok()
    with api.watch(path, resourceVersion=version) as watch:
        assert sorted(frame_summary(frame) for frame in watch.next_frames(2)) == [
            ("ADDED", "a"),
            ("ADDED", "b"),
        ]
        relabel(api, kind, namespace, "a", k="v")
        assert frame_summary(watch.next_frame()) == ("MODIFIED", "a")


def test_with_a_label_selector_objects_come_and_go(api: Api, namespace: str, kind: Kind) -> None:
    path = kind.path(namespace)
    create(api, kind, namespace, sample(kind, "one"))
    with api.watch(path, resourceVersion=version_of(api, path), labelSelector="k=v") as watch:
        entered = relabel(api, kind, namespace, "one", k="v")
        left = relabel(api, kind, namespace, "one", k=None)
        added, deleted = watch.next_frames(2)
    assert (added["type"], added["object"]) == ("ADDED", entered)
    assert frame_summary(deleted) == ("DELETED", "one")
    assert deleted["object"]["metadata"]["labels"]["k"] == "v"
    assert deleted["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]


def test_what_does_not_match_is_never_shown(api: Api, namespace: str, kind: Kind) -> None:
    path = kind.path(namespace)
    with api.watch(path, resourceVersion=version_of(api, path), labelSelector="k=v") as watch:
        create(api, kind, namespace, sample(kind, "other"))
        api.delete(kind.path(namespace, "other")).ok()
        create(api, kind, namespace, sample(kind, "mine"))
        relabel(api, kind, namespace, "mine", k="v")
        assert frame_summary(watch.next_frame()) == ("ADDED", "mine")


def test_one_object_is_watched_by_its_name(api: Api, namespace: str, kind: Kind) -> None:
    path = kind.path(namespace)
    with api.watch(
        path, resourceVersion=version_of(api, path), fieldSelector="metadata.name=b"
    ) as watch:
        for name in ("a", "b", "c"):
            create(api, kind, namespace, sample(kind, name))
        api.delete(kind.path(namespace, "b")).ok()
        assert [frame_summary(frame) for frame in watch.next_frames(2)] == [
            ("ADDED", "b"),
            ("DELETED", "b"),
        ]


def test_fields_of_pods_come_and_go_too(api: Api, namespace: str) -> None:
    path = PODS.path(namespace)
    create_pod(api, namespace, pod("one"))
    with api.watch(
        path, resourceVersion=version_of(api, path), fieldSelector="status.phase=Failed"
    ) as watch:
        api.patch(f"{path}/one/status", {"status": {"phase": "Failed"}}).ok()
        assert frame_summary(watch.next_frame()) == ("ADDED", "one")


def test_a_watch_over_all_namespaces_sees_this_one(
    api: Api, namespace: str, unique: str, kind: Kind
) -> None:
    obj = sample(kind, "one")
    obj["metadata"]["labels"] = {"run": unique}
    with api.watch(
        kind.path(), resourceVersion=version_of(api, kind.path()), labelSelector=f"run={unique}"
    ) as watch:
        create(api, kind, namespace, obj)
        frame = watch.next_frame()
    assert (frame_summary(frame), frame["object"]["metadata"]["namespace"]) == (
        ("ADDED", "one"),
        namespace,
    )


def test_another_namespace_is_not_shown(api: Api, namespace: str) -> None:
    path = LEASES.path(namespace)
    with api.watch(path, resourceVersion=version_of(api, path)) as watch:
        create(api, LEASES, "default", lease(namespace))
        api.delete(LEASES.path("default", namespace)).ok()
        create(api, LEASES, namespace, lease("mine"))
        assert frame_summary(watch.next_frame()) == ("ADDED", "mine")


def test_namespaces_can_be_watched(api: Api, unique: str) -> None:
    path = NAMESPACES.path()
    with api.watch(
        path, resourceVersion=version_of(api, path), fieldSelector=f"metadata.name={unique}"
    ) as watch:
        api.post(path, {"metadata": {"name": unique}}).ok(201)
        api.delete(NAMESPACES.path(name=unique)).ok()
        assert frame_summary(watch.next_frame()) == ("ADDED", unique)
        terminating = watch.next_matching(
            lambda frame: frame["object"]["metadata"].get("deletionTimestamp")
        )
    assert terminating["type"] in ("MODIFIED", "DELETED")


def test_a_status_change_is_a_modification(api: Api, namespace: str) -> None:
    path = PYTORCHJOBS.path(namespace)
    create(api, PYTORCHJOBS, namespace, sample(PYTORCHJOBS, "one"))
    with api.watch(path, resourceVersion=version_of(api, path)) as watch:
        changed = api.patch(
            f"{path}/one/status", {"status": {"startTime": "2026-01-01T00:00:00Z"}}
        ).ok()
        assert watch.next_frame() == {"type": "MODIFIED", "object": changed}


def test_a_write_that_changes_nothing_is_not_shown(api: Api, namespace: str, kind: Kind) -> None:
    path = kind.path(namespace)
    made = create(api, kind, namespace, sample(kind, "one"))
    with api.watch(path, resourceVersion=version_of(api, path)) as watch:
        same = api.patch(kind.path(namespace, "one"), {}).ok()
        create(api, kind, namespace, sample(kind, "two"))
        assert frame_summary(watch.next_frame()) == ("ADDED", "two")
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_an_object_held_by_a_finalizer_is_modified_before_it_goes(
    api: Api, namespace: str, kind: Kind
) -> None:
    path = kind.path(namespace)
    obj = sample(kind, "one")
    obj["metadata"]["finalizers"] = ["example.com/hold"]
    create(api, kind, namespace, obj)
    with api.watch(path, resourceVersion=version_of(api, path)) as watch:
        api.delete(f"{path}/one").ok()
        api.patch(f"{path}/one", {"metadata": {"finalizers": None}}).ok()
        first = watch.next_frame()
        assert frame_summary(first) == ("MODIFIED", "one")
        assert first["object"]["metadata"]["deletionTimestamp"]
        assert (
            watch.next_matching(lambda frame: frame["type"] == "DELETED")["object"]["metadata"][
                "name"
            ]
            == "one"
        )


def test_several_watches_see_the_same_in_the_same_order(
    api: Api, namespace: str, kind: Kind
) -> None:
    path = kind.path(namespace)
    version = version_of(api, path)
    with (
        api.watch(path, resourceVersion=version) as one,
        api.watch(path, resourceVersion=version) as two,
    ):
        for number in range(5):
            create(api, kind, namespace, sample(kind, f"n{number}"))
            relabel(api, kind, namespace, f"n{number}", k="v")
            api.delete(kind.path(namespace, f"n{number}")).ok()
        frames = one.next_frames(15)
        assert two.next_frames(15) == frames
    versions = [int(frame["object"]["metadata"]["resourceVersion"]) for frame in frames]
    assert versions == sorted(set(versions))


def test_a_list_and_the_watch_from_its_version_make_the_state(
    api: Api, namespace: str, kind: Kind
) -> None:
    path = kind.path(namespace)
    for name in ("a", "b"):
        create(api, kind, namespace, sample(kind, name))
    listing = api.get(path).ok()
    known = {
        item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in listing["items"]
    }
    relabel(api, kind, namespace, "a", k="v")
    api.delete(kind.path(namespace, "b")).ok()
    create(api, kind, namespace, sample(kind, "c"))
    with api.watch(path, resourceVersion=listing["metadata"]["resourceVersion"]) as watch:
        for frame in watch.next_frames(3):
            if frame["type"] == "DELETED":
                del known[frame["object"]["metadata"]["name"]]
            else:
                known[frame["object"]["metadata"]["name"]] = frame["object"]["metadata"][
                    "resourceVersion"
                ]
    now = api.get(path).ok()
    assert known == {
        item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in now["items"]
    }
    assert names(now) == ["a", "c"]


def test_a_watch_ends_quietly_when_its_time_is_over(api: Api, namespace: str, kind: Kind) -> None:
    path = kind.path(namespace)
    with api.watch(path, resourceVersion=version_of(api, path), timeoutSeconds=1) as watch:
        assert watch.remaining_frames() == []


def test_a_bookmark_comes_before_the_time_is_over(api: Api, namespace: str, kind: Kind) -> None:
    path = kind.path(namespace)
    with api.watch(
        path, resourceVersion=version_of(api, path), allowWatchBookmarks="true", timeoutSeconds=5
    ) as watch:
        made = create(api, kind, namespace, sample(kind, "one"))
        frames = watch.remaining_frames()
    assert frame_summary(frames[0]) == ("ADDED", "one")
    bookmark = frames[-1]
    assert (bookmark["type"], bookmark["object"]["kind"], bookmark["object"]["apiVersion"]) == (
        "BOOKMARK",
        kind.kind,
        kind.api_version,
    )
    assert int(bookmark["object"]["metadata"]["resourceVersion"]) >= int(
        made["metadata"]["resourceVersion"]
    )
    with api.watch(
        path, resourceVersion=bookmark["object"]["metadata"]["resourceVersion"]
    ) as watch:
        create(api, kind, namespace, sample(kind, "two"))
        assert frame_summary(watch.next_frame()) == ("ADDED", "two")


def test_bookmarks_are_not_sent_unasked(api: Api, namespace: str) -> None:
    path = LEASES.path(namespace)
    with api.watch(path, resourceVersion=version_of(api, path), timeoutSeconds=4) as watch:
        create(api, LEASES, namespace, lease("one"))
        assert [frame_summary(frame) for frame in watch.remaining_frames()] == [("ADDED", "one")]


def test_a_version_that_is_too_old_is_told_in_the_stream(api: Api, namespace: str) -> None:
    with api.watch(PYTORCHJOBS.path(namespace), resourceVersion="1", timeoutSeconds=3) as watch:
        (frame,) = watch.remaining_frames()
    status = frame["object"]
    assert frame["type"] == "ERROR"
    assert (status["kind"], status["status"], status["code"], status["reason"]) == (
        "Status",
        "Failure",
        410,
        "Expired",
    )
    assert re.fullmatch(r"too old resource version: 1 \(\d+\)", status["message"])


def test_a_version_in_the_future_is_waited_for(api: Api, namespace: str, kind: Kind) -> None:
    with api.watch(kind.path(namespace), resourceVersion="999999999", timeoutSeconds=2) as watch:
        assert watch.remaining_frames() == []


def test_a_version_that_is_none_is_refused(api: Api, namespace: str, kind: Kind) -> None:
    answer = api.get(kind.path(namespace), watch="1", resourceVersion="yesterday", timeoutSeconds=2)
    assert answer.status in (400, 500)
    assert answer.json()["kind"] == "Status"


def test_a_watch_can_begin_with_the_whole_list(api: Api, namespace: str, kind: Kind) -> None:
    path = kind.path(namespace)
    for name in ("a", "b"):
        create(api, kind, namespace, sample(kind, name))
    initial = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    with api.watch(path, **initial) as watch:
        assert sorted(frame_summary(frame) for frame in watch.next_frames(2)) == [
            ("ADDED", "a"),
            ("ADDED", "b"),
        ]
        end = watch.next_frame()
        assert end["type"] == "BOOKMARK"
        assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        create(api, kind, namespace, sample(kind, "c"))
        assert frame_summary(watch.next_matching(lambda frame: frame["type"] != "BOOKMARK")) == (
            "ADDED",
            "c",
        )


def test_the_whole_list_needs_to_know_how_new_it_must_be(api: Api, namespace: str) -> None:
    answer = api.get(LEASES.path(namespace), watch="1", sendInitialEvents="true", timeoutSeconds=2)
    causes = answer.expect_refusal(422, "Invalid")["details"]["causes"]
    assert [cause["field"] for cause in causes] == ["resourceVersionMatch"]


def test_a_watch_can_show_metadata_alone(api: Api, namespace: str, kind: Kind) -> None:
    path = kind.path(namespace)
    with api.watch(path, resourceVersion=version_of(api, path), accept=PARTIAL) as watch:
        made = create(api, kind, namespace, sample(kind, "one"))
        frame = watch.next_frame()
    assert (frame["type"], frame["object"]["kind"], frame["object"]["apiVersion"]) == (
        "ADDED",
        "PartialObjectMetadata",
        "meta.k8s.io/v1",
    )
    assert set(frame["object"]) == {"kind", "apiVersion", "metadata"}
    assert frame["object"]["metadata"]["uid"] == made["metadata"]["uid"]


def test_a_watch_can_show_rows_of_a_table(api: Api, namespace: str, kind: Kind) -> None:
    path = kind.path(namespace)
    with api.watch(path, resourceVersion=version_of(api, path), accept=TABLE) as watch:
        create(api, kind, namespace, sample(kind, "one"))
        api.delete(kind.path(namespace, "one")).ok()
        added, deleted = watch.next_frames(2)
    assert added["object"]["columnDefinitions"][0]["name"] == "Name"
    for frame, change in ((added, "ADDED"), (deleted, "DELETED")):
        (row,) = frame["object"]["rows"]
        assert (frame["type"], frame["object"]["kind"], row["cells"][0]) == (change, "Table", "one")
        assert row["object"]["metadata"]["name"] == "one"
