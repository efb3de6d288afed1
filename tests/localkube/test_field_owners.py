"""Who owns which field of an object, against what a real API server recorded and by the rules."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from localkube import clock, field_ownership
from tests.localkube.applying import (
    apply_as,
    build_object,
    change_spec,
    find_owned_fields,
    load_schema_of,
    strip_times,
    update_as,
)
from tests.localkube.recorded import load_exchange


@pytest.fixture
def frozen_clock(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(clock, "current_time", lambda: datetime(2050, 1, 1, tzinfo=UTC))
    return "2050-01-01T00:00:00Z"


@pytest.mark.parametrize("name", ["pytorchjob/create", "event/create-for-pytorchjob", "node/lease"])
def test_the_fields_of_a_created_object_are_owned_as_recorded(name: str) -> None:
    _, new = load_exchange(name)
    expected = new["metadata"].pop("managedFields")
    field_ownership.track_ownership(
        None,
        new,
        manager=expected[0]["manager"],
        api_version=new["apiVersion"],
        schema=load_schema_of(new),
    )
    assert strip_times(new["metadata"]["managedFields"]) == strip_times(expected)


def test_the_fields_of_a_created_pod_are_owned_as_recorded() -> None:
    _, new = load_exchange("pod/create")
    expected = new["metadata"].pop("managedFields")
    for added in (
        "volumes",
        "tolerations",
        "priority",
        "preemptionPolicy",
        "serviceAccount",
        "serviceAccountName",
    ):
        del new["spec"][added]
    del new["spec"]["containers"][0]["volumeMounts"]
    field_ownership.track_ownership(
        None, new, manager="console-recorder", api_version="v1", schema=load_schema_of(new)
    )
    assert strip_times(new["metadata"]["managedFields"]) == strip_times(expected)


@pytest.mark.parametrize(
    ("before", "after", "manager"),
    [
        ("pytorchjob/create", "pytorchjob/status-merge-patch", "console-recorder"),
        ("pod/create", "pod/pending-unschedulable", "kube-scheduler"),
    ],
)
def test_a_status_is_owned_apart_as_recorded(before: str, after: str, manager: str) -> None:
    (_, old), (_, result) = load_exchange(before), load_exchange(after)
    new = old | {"status": result["status"]}
    field_ownership.track_ownership(
        old,
        new,
        manager=manager,
        subresource="status",
        api_version=old["apiVersion"],
        schema=load_schema_of(old),
    )
    assert strip_times(new["metadata"]["managedFields"]) == strip_times(
        result["metadata"]["managedFields"]
    )


def test_a_changed_field_moves_to_who_changed_it() -> None:
    made = update_as(None, build_object(size=1, mode="a"), "one")
    result = update_as(made, change_spec(made, size=2), "two")
    assert find_owned_fields(result, "one") == {"f:spec": {".": {}, "f:mode": {}}}
    assert find_owned_fields(result, "two") == {"f:spec": {"f:size": {}}}


def test_a_removed_field_is_nobodys() -> None:
    made = update_as(None, build_object(size=1, mode="a"), "one")
    new = copy.deepcopy(made)
    del new["spec"]["size"]
    result = update_as(made, new, "two")
    assert find_owned_fields(result, "one") == {"f:spec": {".": {}, "f:mode": {}}}
    assert find_owned_fields(result, "two") is None


def test_a_manager_has_one_entry_per_operation_and_subresource() -> None:
    made = apply_as(None, build_object(mode="a"), "one")
    result = update_as(made, change_spec(made, size=1), "one")
    result = update_as(result, change_spec(result, size=2), "one")
    result = update_as(result, result | {"status": {"phase": "x"}}, "one", "status")
    assert find_owned_fields(result, "one", "Apply") == {"f:spec": {"f:mode": {}}}
    assert find_owned_fields(result, "one") == {"f:spec": {"f:size": {}}}
    assert find_owned_fields(result, "one", subresource="status") == {
        "f:status": {".": {}, "f:phase": {}}
    }


def test_writing_the_same_again_changes_no_entry(frozen_clock: str) -> None:
    made = update_as(None, build_object(size=1))
    made["metadata"]["managedFields"][0]["time"] = "2020-01-01T00:00:00Z"
    assert update_as(made, made)["metadata"]["managedFields"] == made["metadata"]["managedFields"]
    assert (
        update_as(made, change_spec(made, size=2))["metadata"]["managedFields"][0]["time"]
        == frozen_clock
    )


def test_what_only_the_server_writes_is_not_tracked() -> None:
    new = build_object(size=1)
    new["metadata"] |= {
        "uid": "u",
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": clock.format_time(),
    }
    assert find_owned_fields(update_as(None, new), "user") == {"f:spec": {".": {}, "f:size": {}}}


def test_the_items_of_lists_and_maps_are_owned_as_their_schema_says() -> None:
    made = build_object(
        parts=[{"name": "a"}],
        tags=["t"],
        plain=["p"],
        table={"k": "v"},
        whole={"k": "v"},
        ports=[{"port": 1}],
        free={"a": {"b": []}},
    )
    assert find_owned_fields(update_as(None, made), "user")["f:spec"] == {
        ".": {},
        "f:parts": {".": {}, 'k:{"name":"a"}': {".": {}, "f:name": {}}},
        "f:tags": {".": {}, 'v:"t"': {}},
        "f:plain": {},
        "f:table": {".": {}, "f:k": {}},
        "f:whole": {},
        "f:ports": {".": {}, 'k:{"port":1,"protocol":"TCP"}': {".": {}, "f:port": {}}},
        "f:free": {".": {}, "f:a": {".": {}, "f:b": {}}},
    }


def test_an_object_that_nobody_is_known_to_own_stays_so() -> None:
    assert "managedFields" not in update_as(build_object(size=1), build_object(size=2))["metadata"]


def test_a_client_may_rewrite_or_forget_ownership_but_not_with_a_subresource() -> None:
    made = update_as(None, build_object(size=1), "one")
    sent = copy.deepcopy(made)
    sent["metadata"]["managedFields"][0]["manager"] = "two"
    assert find_owned_fields(update_as(made, sent), "two")
    assert not find_owned_fields(update_as(made, sent), "one")
    assert find_owned_fields(update_as(made, sent, subresource="status"), "one")
    sent["metadata"]["managedFields"] = [{}]
    assert "managedFields" not in update_as(made, sent)["metadata"]


@pytest.mark.parametrize(
    "entry",
    [
        "x",
        {"manager": "m"},
        {"manager": "m", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"x": 1}},
    ],
)
def test_entries_that_make_no_sense_are_replaced_by_the_stored_ones(entry: Any) -> None:
    made = update_as(None, build_object(size=1), "one")
    sent = copy.deepcopy(made)
    sent["metadata"]["managedFields"] = [entry]
    assert find_owned_fields(update_as(made, sent), "one")


def test_the_oldest_of_many_updaters_become_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    obj = update_as(None, build_object(table={}), "m0")
    for number in range(1, 40):
        monkeypatch.setattr(
            clock,
            "current_time",
            lambda second=number: datetime(2050, 1, 1, 0, 0, second, tzinfo=UTC),
        )
        obj = update_as(
            obj, change_spec(obj, table=obj["spec"]["table"] | {f"k{number}": "v"}), f"m{number}"
        )
    managers = [entry["manager"] for entry in obj["metadata"]["managedFields"]]
    assert managers == ["ancient-changes", *(f"m{number}" for number in range(31, 40))]
    assert len(find_owned_fields(obj, "ancient-changes")["f:spec"]["f:table"]) == 31
