"""Field ownership and server-side apply, against what a real API server recorded and by the rules."""

import copy
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube import apply, clock, schemas
from localkube.errors import ApiError
from tests.localkube.recorded import exchange

V1 = "test.dev/v1"
TEXT = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "mode": TEXT,
                "nested": {"type": "object", "properties": {"a": TEXT, "b": TEXT}},
                "table": {"type": "object", "additionalProperties": TEXT},
                "whole": {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"},
                "plain": {"type": "array", "items": TEXT},
                "tags": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
                "parts": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"name": TEXT, "image": TEXT, "rank": {"type": "integer"}}},
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                },
                "ports": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "note": TEXT},
                    },
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {"type": "object", "properties": {"phase": TEXT}},
    },
}


def thing(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "x", "namespace": "n"}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": V1, "kind": "Thing", "metadata": metadata, "spec": spec}


def applied(live: dict[str, Any] | None, config: dict[str, Any], manager: str = "one", *, force: bool = False) -> dict[str, Any]:
    return apply.apply(live, config, manager=manager, force=force, api_version=V1, schema=SCHEMA)


def written(old: dict[str, Any] | None, new: dict[str, Any], manager: str = "user", subresource: str = "") -> dict[str, Any]:
    new = copy.deepcopy(new)
    if old and "managedFields" in old["metadata"]:
        new["metadata"].setdefault("managedFields", old["metadata"]["managedFields"])
    apply.track(old, new, manager=manager, subresource=subresource, api_version=V1, schema=SCHEMA)
    return new


def changed(old: dict[str, Any], **spec: Any) -> dict[str, Any]:
    new = copy.deepcopy(old)
    new["spec"] |= spec
    return new


def owned(obj: dict[str, Any], manager: str, operation: str = "Update", subresource: str = "") -> Any:
    entries = obj["metadata"].get("managedFields", [])
    mine = [e for e in entries if (e["manager"], e["operation"], e.get("subresource", "")) == (manager, operation, subresource)]
    assert len(mine) <= 1
    return mine[0]["fieldsV1"] if mine else None


def conflict(live: dict[str, Any], config: dict[str, Any], manager: str = "two") -> ApiError:
    with pytest.raises(ApiError) as refused:
        applied(live, config, manager)
    assert (refused.value.code, refused.value.reason) == (409, "Conflict")
    return refused.value


def timeless(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if key != "time"} for entry in entries]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(clock, "now", lambda: datetime(2050, 1, 1, tzinfo=UTC))
    return "2050-01-01T00:00:00Z"


# As recorded


def schema_of(obj: dict[str, Any]) -> dict[str, Any]:
    return schemas.load({"PyTorchJob": "pytorchjobs", "Pod": "pods", "Event": "events", "Lease": "leases"}[obj["kind"]]).root


@pytest.mark.parametrize("name", ["pytorchjob/create", "event/create-for-pytorchjob", "node/lease"])
def test_the_fields_of_a_created_object_are_owned_as_recorded(name: str) -> None:
    _, new = exchange(name)
    expected = new["metadata"].pop("managedFields")
    apply.track(None, new, manager=expected[0]["manager"], api_version=new["apiVersion"], schema=schema_of(new))
    assert timeless(new["metadata"]["managedFields"]) == timeless(expected)


def test_the_fields_of_a_created_pod_are_owned_as_recorded() -> None:
    _, new = exchange("pod/create")
    expected = new["metadata"].pop("managedFields")
    for added in ("volumes", "tolerations", "priority", "preemptionPolicy", "serviceAccount", "serviceAccountName"):
        del new["spec"][added]
    del new["spec"]["containers"][0]["volumeMounts"]
    apply.track(None, new, manager="console-recorder", api_version="v1", schema=schema_of(new))
    assert timeless(new["metadata"]["managedFields"]) == timeless(expected)


@pytest.mark.parametrize(
    ("before", "after", "manager"),
    [
        ("pytorchjob/create", "pytorchjob/status-merge-patch", "console-recorder"),
        ("pod/create", "pod/pending-unschedulable", "kube-scheduler"),
    ],
)
def test_a_status_is_owned_apart_as_recorded(before: str, after: str, manager: str) -> None:
    (_, old), (_, result) = exchange(before), exchange(after)
    new = old | {"status": result["status"]}
    apply.track(old, new, manager=manager, subresource="status", api_version=old["apiVersion"], schema=schema_of(old))
    assert timeless(new["metadata"]["managedFields"]) == timeless(result["metadata"]["managedFields"])


def test_apply_creates_takes_over_by_force_and_refuses_as_recorded() -> None:
    (config, created), (other, forced), (_, refusal) = map(
        exchange, ("pytorchjob/apply-create", "pytorchjob/apply-force", "errors/409-apply-conflict")
    )
    job: dict[str, Any] = {"api_version": "kubeflow.org/v1", "schema": schema_of(created)}
    made = apply.apply(None, config, manager="console", force=False, **job)
    assert (made["spec"], timeless(made["metadata"]["managedFields"])) == (created["spec"], timeless(created["metadata"]["managedFields"]))
    with pytest.raises(ApiError) as refused:
        apply.apply(created, other, manager="other", force=False, **job)
    assert refused.value.status() == refusal
    taken = apply.apply(created, other, manager="other", force=True, **job)
    assert (taken["spec"], timeless(taken["metadata"]["managedFields"])) == (forced["spec"], timeless(forced["metadata"]["managedFields"]))


def test_apply_without_a_manager_is_refused_as_recorded() -> None:
    config, refusal = exchange("errors/422-apply-without-field-manager")
    with pytest.raises(ApiError) as refused:
        applied(None, config, manager="")
    assert refused.value.status() == refusal


# Updates


def test_a_changed_field_moves_to_who_changed_it() -> None:
    made = written(None, thing(size=1, mode="a"), "one")
    result = written(made, changed(made, size=2), "two")
    assert owned(result, "one") == {"f:spec": {".": {}, "f:mode": {}}}
    assert owned(result, "two") == {"f:spec": {"f:size": {}}}


def test_a_removed_field_is_nobodys() -> None:
    made = written(None, thing(size=1, mode="a"), "one")
    new = copy.deepcopy(made)
    del new["spec"]["size"]
    result = written(made, new, "two")
    assert owned(result, "one") == {"f:spec": {".": {}, "f:mode": {}}}
    assert owned(result, "two") is None


def test_a_manager_has_one_entry_per_operation_and_subresource() -> None:
    made = applied(None, thing(mode="a"), "one")
    result = written(made, changed(made, size=1), "one")
    result = written(result, changed(result, size=2), "one")
    result = written(result, result | {"status": {"phase": "x"}}, "one", "status")
    assert owned(result, "one", "Apply") == {"f:spec": {"f:mode": {}}}
    assert owned(result, "one") == {"f:spec": {"f:size": {}}}
    assert owned(result, "one", subresource="status") == {"f:status": {".": {}, "f:phase": {}}}


def test_writing_the_same_again_changes_no_entry(later: str) -> None:
    made = written(None, thing(size=1))
    made["metadata"]["managedFields"][0]["time"] = "2020-01-01T00:00:00Z"
    assert written(made, made)["metadata"]["managedFields"] == made["metadata"]["managedFields"]
    assert written(made, changed(made, size=2))["metadata"]["managedFields"][0]["time"] == later


def test_what_only_the_server_writes_is_not_tracked() -> None:
    new = thing(size=1)
    new["metadata"] |= {"uid": "u", "resourceVersion": "1", "generation": 1, "creationTimestamp": clock.stamp()}
    assert owned(written(None, new), "user") == {"f:spec": {".": {}, "f:size": {}}}


def test_the_items_of_lists_and_maps_are_owned_as_their_schema_says() -> None:
    made = thing(
        parts=[{"name": "a"}], tags=["t"], plain=["p"], table={"k": "v"}, whole={"k": "v"}, ports=[{"port": 1}], free={"a": {"b": []}}
    )
    assert owned(written(None, made), "user")["f:spec"] == {
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
    assert "managedFields" not in written(thing(size=1), thing(size=2))["metadata"]


def test_a_client_may_rewrite_or_forget_ownership_but_not_with_a_subresource() -> None:
    made = written(None, thing(size=1), "one")
    sent = copy.deepcopy(made)
    sent["metadata"]["managedFields"][0]["manager"] = "two"
    assert owned(written(made, sent), "two")
    assert not owned(written(made, sent), "one")
    assert owned(written(made, sent, subresource="status"), "one")
    sent["metadata"]["managedFields"] = [{}]
    assert "managedFields" not in written(made, sent)["metadata"]


@pytest.mark.parametrize(
    "entry", ["x", {"manager": "m"}, {"manager": "m", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"x": 1}}]
)
def test_entries_that_make_no_sense_are_replaced_by_the_stored_ones(entry: Any) -> None:
    made = written(None, thing(size=1), "one")
    sent = copy.deepcopy(made)
    sent["metadata"]["managedFields"] = [entry]
    assert owned(written(made, sent), "one")


def test_the_oldest_of_many_updaters_become_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    obj = written(None, thing(table={}), "m0")
    for number in range(1, 40):
        monkeypatch.setattr(clock, "now", lambda second=number: datetime(2050, 1, 1, 0, 0, second, tzinfo=UTC))
        obj = written(obj, changed(obj, table=obj["spec"]["table"] | {f"k{number}": "v"}), f"m{number}")
    managers = [entry["manager"] for entry in obj["metadata"]["managedFields"]]
    assert managers == ["ancient-changes", *(f"m{number}" for number in range(31, 40))]
    assert len(owned(obj, "ancient-changes")["f:spec"]["f:table"]) == 31


# Apply


def test_a_field_that_is_no_longer_applied_goes() -> None:
    live = applied(None, thing({"a": "1", "b": "2"}, size=1, mode="a", nested={"a": "x", "b": "y"}))
    result = applied(live, thing({"a": "1"}, mode="a", nested={"a": "x"}))
    assert (result["spec"], result["metadata"]["labels"]) == ({"mode": "a", "nested": {"a": "x"}}, {"a": "1"})


def test_a_field_that_another_applies_too_stays() -> None:
    live = applied(applied(None, thing(size=1, mode="a"), "one"), thing(size=1), "two")
    result = applied(live, thing(mode="a"), "one")
    assert result["spec"] == {"size": 1, "mode": "a"}
    assert owned(result, "two", "Apply") == {"f:spec": {"f:size": {}}}


def test_what_somebody_else_put_below_an_applied_field_stays() -> None:
    live = applied(None, thing(nested={"a": "x"}, parts=[{"name": "a"}]))
    live = written(live, changed(live, nested={"a": "x", "b": "y"}, parts=[{"name": "a"}, {"name": "b"}]))
    result = applied(live, thing(mode="m"))
    assert result["spec"] == {"mode": "m", "nested": {"b": "y"}, "parts": [{"name": "b"}]}


def test_list_items_merge_by_key_and_go_by_key() -> None:
    live = applied(None, thing(parts=[{"name": "a", "image": "1"}, {"name": "b"}], tags=["x", "y"]))
    live = applied(live, thing(parts=[{"name": "b", "rank": 2}, {"name": "c"}], tags=["z"]), "two")
    result = applied(live, thing(parts=[{"name": "b"}], tags=["y"]))
    assert result["spec"] == {"parts": [{"name": "b", "rank": 2}, {"name": "c"}], "tags": ["y", "z"]}


@pytest.mark.parametrize(
    ("live", "config", "result"),
    [("axb", "ba", "xba"), ("xa", "na", "xna"), ("abc", "", "abc"), ("ab", "cab", "cab"), ("xay", "an", "xayn")],
)
def test_applied_items_keep_their_order_and_others_their_place(live: str, config: str, result: str) -> None:
    obj = written(None, thing(parts=[{"name": name} for name in live]))
    merged = applied(obj, thing(parts=[{"name": name} for name in config]))
    assert "".join(part["name"] for part in merged["spec"]["parts"]) == result


def test_changing_what_an_updater_wrote_is_a_conflict_that_names_its_version() -> None:
    error = conflict(written(None, thing(size=1), "kubectl-create"), thing(size=2))
    assert error.message == f'Apply failed with 1 conflict: conflict with "kubectl-create" using {V1}: .spec.size'


def test_several_conflicts_are_listed_by_manager() -> None:
    live = written(None, thing(parts=[{"name": "a", "image": "1", "rank": 1}], mode="m"), "z")
    live = applied(live, thing(parts=[{"name": "a", "rank": 1}]), "a")
    error = conflict(live, thing(mode="n", parts=[{"name": "a", "image": "2", "rank": 2}]))
    assert error.message == (
        'Apply failed with 4 conflicts: conflicts with "a":\n- .spec.parts[name="a"].rank\n'
        f'conflicts with "z" using {V1}:\n- .spec.mode\n- .spec.parts[name="a"].image\n- .spec.parts[name="a"].rank'
    )
    assert {cause["reason"] for cause in (error.details or {})["causes"]} == {"FieldManagerConflict"}


def test_the_same_value_is_no_conflict_but_shared() -> None:
    result = applied(written(None, thing(size=1), "one"), thing(size=1), "two")
    assert owned(result, "one") == {"f:spec": {".": {}, "f:size": {}}}
    assert owned(result, "two", "Apply") == {"f:spec": {"f:size": {}}}


def test_the_owner_of_a_status_does_not_hinder_who_applies_the_spec() -> None:
    live = written(None, thing(size=1))
    live = written(live, live | {"status": {"phase": "x"}}, "kubelet", "status")
    result = applied(live, thing(size=1) | {"status": {"phase": "mine"}})
    assert result["status"] == {"phase": "x"}
    assert owned(result, "one", "Apply") == {"f:spec": {"f:size": {}}}


def test_a_status_can_be_applied() -> None:
    live = written(None, thing(size=1))
    config = thing(size=2) | {"status": {"phase": "x"}}
    result = apply.apply(live, config, manager="one", force=False, subresource="status", api_version=V1, schema=SCHEMA)
    assert (result["spec"], result["status"]) == ({"size": 1}, {"phase": "x"})
    assert owned(result, "one", "Apply", "status") == {"f:status": {"f:phase": {}}}


def test_an_atomic_map_or_list_is_replaced_as_a_whole() -> None:
    live = applied(None, thing(plain=["a"], whole={"a": "1"}))
    assert applied(live, thing(plain=["b"], whole={"b": "1"}))["spec"] == {"plain": ["b"], "whole": {"b": "1"}}
    assert ".spec.whole" in conflict(live, thing(whole={"a": "1", "b": "2"})).message


def test_the_first_apply_to_an_untracked_object_meets_its_unknown_owner() -> None:
    assert '"before-first-apply" using' in conflict(thing(size=1), thing(size=2)).message
    assert owned(applied(thing(size=1), thing(mode="a")), "before-first-apply") == {"f:spec": {".": {}, "f:size": {}}}


def test_a_configuration_with_managed_fields_is_refused() -> None:
    config = thing()
    config["metadata"]["managedFields"] = []
    with pytest.raises(ApiError) as refused:
        applied(None, config)
    assert (refused.value.code, refused.value.message) == (400, "metadata.managedFields must be nil")


@pytest.mark.parametrize("parts", [[{"image": "x"}], [{"name": "a"}, {"name": "a"}], ["a"]])
def test_items_that_cannot_be_told_apart_are_refused(parts: list[Any]) -> None:
    with pytest.raises(ApiError) as refused:
        applied(None, thing(parts=parts))
    assert refused.value.code == 400
    assert ".spec.parts" in refused.value.message


def test_nulls_of_a_written_out_configuration_remove_nothing_of_the_server() -> None:
    live = applied(None, thing(size=1))
    live["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", "uid": "u", "resourceVersion": "7"}
    config = thing(size=1)
    config["metadata"]["creationTimestamp"] = None
    assert applied(live, config) == live


def test_kubectl_takes_over_what_it_applied_on_the_client_side() -> None:
    note = json.dumps(thing(size=1))
    live = thing(size=1, mode="a")
    live["metadata"]["annotations"] = {apply.LAST_APPLIED: note}
    live = written(None, live, "kubectl-client-side-apply")
    result = applied(live, thing(size=2), "kubectl")
    assert json.loads(result["metadata"]["annotations"][apply.LAST_APPLIED])["spec"] == {"size": 2}
    with pytest.raises(ApiError):
        applied(live, thing(mode="b"), "kubectl")


NAMES = st.sampled_from("abcd")
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 2),
        "nested": st.dictionaries(st.sampled_from(["a", "b"]), NAMES),
        "table": st.dictionaries(NAMES, NAMES),
        "whole": st.dictionaries(NAMES, NAMES),
        "plain": st.lists(NAMES, max_size=3),
        "tags": st.lists(NAMES, max_size=3, unique=True),
        "parts": st.lists(
            st.fixed_dictionaries({"name": NAMES}, optional={"image": NAMES}), max_size=3, unique_by=lambda part: part["name"]
        ),
    },
)


@given(SPECS, SPECS)
def test_applying_the_same_twice_changes_nothing(first: dict[str, Any], spec: dict[str, Any]) -> None:
    once = applied(written(None, thing(**first)), thing(**spec), force=True)
    assert applied(once, thing(**spec)) == once


@given(SPECS.filter(lambda spec: [] not in (spec.get("tags"), spec.get("parts"))))
def test_applying_nothing_removes_exactly_what_was_applied(spec: dict[str, Any]) -> None:
    """Nobody owns a list of owned items for its own sake, so an empty one is left over, on a real server too."""
    live = written(None, thing({"keep": "me"}, mode="m"), "other")
    empty = {key: value for key, value in thing().items() if key != "spec"}
    assert applied(applied(live, thing({"mine": "1"}, **spec)), empty) == live


@given(st.lists(st.tuples(SPECS, st.sampled_from(["one", "two", "three"]), st.booleans()), max_size=5))
def test_every_path_that_is_owned_exists(history: list[tuple[dict[str, Any], str, bool]]) -> None:
    obj = written(None, thing())
    for spec, manager, update in history:
        obj = written(obj, changed(obj, **spec), manager) if update else applied(obj, thing(**spec), manager, force=True)
    whole = owned(written(None, obj | {"metadata": {"name": "x"}}), "user") or {}
    for entry in obj["metadata"].get("managedFields", []):
        assert_within(entry["fieldsV1"], whole)


def assert_within(fields: dict[str, Any], whole: dict[str, Any]) -> None:
    for key, below in fields.items():
        assert key in whole or (key == "." and not whole)
        assert_within(below, whole.get(key, {}))


@given(SPECS, SPECS)
def test_the_inputs_stay_as_they_are_and_are_not_shared(first: dict[str, Any], spec: dict[str, Any]) -> None:
    live, config = written(None, thing(**first)), thing(**spec)
    before = copy.deepcopy((live, config))
    result = applied(live, config, force=True)
    result["spec"].setdefault("table", {})["new"] = "x"
    result["spec"].setdefault("parts", []).append({})
    assert (live, config) == before
