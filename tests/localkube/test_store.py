"""The store: order, history, moments of the past, and that nothing is half written."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localkube import resource_table
from localkube import store as store_module
from localkube.errors import ApiError
from localkube.metadata import Object
from localkube.store import MIGRATIONS, Change, SchemaTooNew, Store

PODS = "pods"


def no_fields(key: str, obj: Object) -> dict[str, str]:
    return {}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "state.db", no_fields)
    yield opened
    opened.close()


def build_object(name: str, namespace: str = "a", **labels: str) -> Object:
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels},
    }


def names(records: object) -> list[str]:
    return [record.name for record in records]  # type: ignore[attr-defined]


def test_a_list_is_ordered_by_namespace_and_name(store: Store) -> None:
    for name, namespace in (("b", "z"), ("a", "z"), ("c", "a")):
        store.put_object(PODS, build_object(name, namespace))
    assert [(r.namespace, r.name) for r in store.list(PODS)] == [("a", "c"), ("z", "a"), ("z", "b")]
    assert names(store.list(PODS, "z")) == ["a", "b"]


def test_a_namespace_is_not_mixed_up_with_one_whose_name_it_begins(store: Store) -> None:
    store.put_object(PODS, build_object("one", "team"))
    store.put_object(PODS, build_object("two", "team-a"))
    assert names(store.list(PODS, "team")) == ["one"]


def test_every_write_raises_the_version_and_is_told_in_order(store: Store) -> None:
    changes: list[Change] = []
    store.subscribe(PODS, changes.append)
    start = store.rv
    store.put_object(PODS, build_object("x"))
    store.put_object(PODS, build_object("x", colour="red"))
    store.remove_object(PODS, build_object("x", colour="red"))
    assert [(c.type, c.record.rv - start) for c in changes] == [
        ("ADDED", 1),
        ("MODIFIED", 2),
        ("DELETED", 3),
    ]
    assert changes[1].previous is changes[0].record


def test_a_stored_object_has_neither_kind_nor_version_of_its_own(store: Store) -> None:
    assert set(store.put_object(PODS, build_object("x")).decode()) == {"metadata"}


def test_objects_and_version_survive_closing(tmp_path: Path) -> None:
    first = Store(tmp_path / "state.db", no_fields)
    first.put_object(PODS, build_object("x", colour="red"))
    first.remove_object(PODS, first.put_object(PODS, build_object("y")).decode())
    rv = first.rv
    first.close()
    second = Store(tmp_path / "state.db", no_fields)
    assert (second.rv, names(second.list(PODS)), second.list(PODS)[0].labels) == (
        rv,
        ["x"],
        {"colour": "red"},
    )
    second.close()


def test_a_version_from_before_the_restart_is_expired(tmp_path: Path) -> None:
    first = Store(tmp_path / "state.db", no_fields)
    old = first.rv
    first.put_object(PODS, build_object("x"))
    first.close()
    second = Store(tmp_path / "state.db", no_fields)
    with pytest.raises(ApiError) as refusal:
        second.list_changes_since(PODS, old)
    assert refusal.value.code == 410
    assert list(second.list_changes_since(PODS, second.rv)) == []
    second.close()


def test_a_failed_transaction_leaves_no_trace(store: Store) -> None:
    store.put_object(PODS, build_object("kept", colour="red"))
    changes: list[Change] = []
    store.subscribe(PODS, changes.append)
    before = (store.rv, store.object_count, store.total_bytes)
    with pytest.raises(RuntimeError), store.transaction():
        store.put_object(PODS, build_object("new"))
        store.put_object(PODS, build_object("kept", colour="blue"))
        store.remove_object(PODS, build_object("kept"))
        raise RuntimeError
    assert (store.rv, store.object_count, store.total_bytes) == before
    assert [r.labels for r in store.list(PODS)] == [{"colour": "red"}]
    assert changes == []


def test_a_full_disk_is_a_clean_refusal_and_the_store_goes_on(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db", no_fields)
    store.put_object(PODS, build_object("before"))
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    big = build_object("big") | {"data": "x" * 100_000}
    with pytest.raises(ApiError) as refusal:
        store.put_object(PODS, big)
    assert (refusal.value.code, names(store.list(PODS))) == (507, ["before"])
    store._db.execute("PRAGMA max_page_count = 1000000")
    store.put_object(PODS, big)
    assert names(store.list(PODS)) == ["before", "big"]
    store.close()


def test_the_number_of_objects_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MAX_OBJECTS", 1)
    store.put_object(PODS, build_object("one"))
    with pytest.raises(ApiError, match="its bound"):
        store.put_object(PODS, build_object("two"))
    store.put_object(PODS, build_object("one", colour="red"))


def test_history_is_bounded_and_says_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_table, "HISTORY_CHANGES", 3)
    start = store.rv
    for number in range(5):
        store.put_object(PODS, build_object(f"p{number}"))
    assert len(store.list_changes_since(PODS, start + 2)) == 3
    with pytest.raises(ApiError, match="too old resource version"):
        store.list_changes_since(PODS, start + 1)


def test_owners_find_what_they_own(store: Store) -> None:
    owned = build_object("x")
    owned["metadata"]["ownerReferences"] = [{"uid": "boss"}]
    store.put_object(PODS, owned)
    assert names(store.list_owned(PODS, "boss")) == ["x"]
    store.put_object(PODS, build_object("x"))
    assert store.list_owned(PODS, "boss") == []


def test_data_of_a_later_version_is_refused(tmp_path: Path) -> None:
    Store(tmp_path / "state.db", no_fields).close()
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    with pytest.raises(SchemaTooNew, match="newer localkube"):
        Store(tmp_path / "state.db", no_fields)


steps = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(["put", "remove"]), st.integers(0, 3)),
    max_size=30,
)


@settings(max_examples=60)
@given(steps=steps)
def test_every_moment_of_the_history_can_be_listed_again(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, int]]
) -> None:
    store = Store(tmp_path_factory.mktemp("store") / "state.db", no_fields)
    state: dict[str, int] = {}
    moments = {store.rv: dict(state)}
    store.list(PODS)
    for name, verb, value in steps:
        if verb == "put":
            store.put_object(PODS, build_object(name, value=str(value)))
            state[name] = value
        elif name in state:
            store.remove_object(PODS, build_object(name))
            del state[name]
        moments[store.rv] = dict(state)
    for rv, expected in moments.items():
        assert {r.name: int(r.labels["value"]) for r in store.list_at_version(PODS, rv)} == expected
    store.close()
