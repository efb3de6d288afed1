"""Server-side apply, against what a real API server recorded and by the rules."""

import json
from typing import Any

import pytest

from localkube import field_ownership
from localkube.errors import ApiError
from tests.localkube.applying import (
    SCHEMA,
    V1,
    apply_as,
    build_object,
    change_spec,
    expect_conflict,
    find_owned_fields,
    load_schema_of,
    strip_times,
    update_as,
)
from tests.localkube.recorded import load_exchange


def test_apply_creates_takes_over_by_force_and_refuses_as_recorded() -> None:
    (config, created), (other, forced), (_, refusal) = map(
        load_exchange,
        ("pytorchjob/apply-create", "pytorchjob/apply-force", "errors/409-apply-conflict"),
    )
    job: dict[str, Any] = {"api_version": "kubeflow.org/v1", "schema": load_schema_of(created)}
    made = field_ownership.apply_configuration(None, config, manager="console", force=False, **job)
    assert (made["spec"], strip_times(made["metadata"]["managedFields"])) == (
        created["spec"],
        strip_times(created["metadata"]["managedFields"]),
    )
    with pytest.raises(ApiError) as refused:
        field_ownership.apply_configuration(created, other, manager="other", force=False, **job)
    assert refused.value.status() == refusal
    taken = field_ownership.apply_configuration(created, other, manager="other", force=True, **job)
    assert (taken["spec"], strip_times(taken["metadata"]["managedFields"])) == (
        forced["spec"],
        strip_times(forced["metadata"]["managedFields"]),
    )


def test_apply_without_a_manager_is_refused_as_recorded() -> None:
    config, refusal = load_exchange("errors/422-apply-without-field-manager")
    with pytest.raises(ApiError) as refused:
        apply_as(None, config, manager="")
    assert refused.value.status() == refusal


def test_a_field_that_is_no_longer_applied_goes() -> None:
    live = apply_as(
        None, build_object({"a": "1", "b": "2"}, size=1, mode="a", nested={"a": "x", "b": "y"})
    )
    result = apply_as(live, build_object({"a": "1"}, mode="a", nested={"a": "x"}))
    assert (result["spec"], result["metadata"]["labels"]) == (
        {"mode": "a", "nested": {"a": "x"}},
        {"a": "1"},
    )


def test_a_field_that_another_applies_too_stays() -> None:
    live = apply_as(
        apply_as(None, build_object(size=1, mode="a"), "one"), build_object(size=1), "two"
    )
    result = apply_as(live, build_object(mode="a"), "one")
    assert result["spec"] == {"size": 1, "mode": "a"}
    assert find_owned_fields(result, "two", "Apply") == {"f:spec": {"f:size": {}}}


def test_what_somebody_else_put_below_an_applied_field_stays() -> None:
    live = apply_as(None, build_object(nested={"a": "x"}, parts=[{"name": "a"}]))
    live = update_as(
        live, change_spec(live, nested={"a": "x", "b": "y"}, parts=[{"name": "a"}, {"name": "b"}])
    )
    result = apply_as(live, build_object(mode="m"))
    assert result["spec"] == {"mode": "m", "nested": {"b": "y"}, "parts": [{"name": "b"}]}


def test_list_items_merge_by_key_and_go_by_key() -> None:
    live = apply_as(
        None, build_object(parts=[{"name": "a", "image": "1"}, {"name": "b"}], tags=["x", "y"])
    )
    live = apply_as(
        live, build_object(parts=[{"name": "b", "rank": 2}, {"name": "c"}], tags=["z"]), "two"
    )
    result = apply_as(live, build_object(parts=[{"name": "b"}], tags=["y"]))
    assert result["spec"] == {
        "parts": [{"name": "b", "rank": 2}, {"name": "c"}],
        "tags": ["y", "z"],
    }


@pytest.mark.parametrize(
    ("live", "config", "result"),
    [
        ("axb", "ba", "xba"),
        ("xa", "na", "xna"),
        ("abc", "", "abc"),
        ("ab", "cab", "cab"),
        ("xay", "an", "xayn"),
    ],
)
def test_applied_items_keep_their_order_and_others_their_place(
    live: str, config: str, result: str
) -> None:
    obj = update_as(None, build_object(parts=[{"name": name} for name in live]))
    merged = apply_as(obj, build_object(parts=[{"name": name} for name in config]))
    assert "".join(part["name"] for part in merged["spec"]["parts"]) == result


def test_changing_what_an_updater_wrote_is_a_conflict_that_names_its_version() -> None:
    error = expect_conflict(
        update_as(None, build_object(size=1), "kubectl-create"), build_object(size=2)
    )
    assert (
        error.message
        == f'Apply failed with 1 conflict: conflict with "kubectl-create" using {V1}: .spec.size'
    )


def test_several_conflicts_are_listed_by_manager() -> None:
    live = update_as(
        None, build_object(parts=[{"name": "a", "image": "1", "rank": 1}], mode="m"), "z"
    )
    live = apply_as(live, build_object(parts=[{"name": "a", "rank": 1}]), "a")
    error = expect_conflict(
        live, build_object(mode="n", parts=[{"name": "a", "image": "2", "rank": 2}])
    )
    assert error.message == (
        'Apply failed with 4 conflicts: conflicts with "a":\n- .spec.parts[name="a"].rank\n'
        f'conflicts with "z" using {V1}:\n- .spec.mode\n- .spec.parts[name="a"].image\n- '
        '.spec.parts[name="a"].rank'
    )
    assert {cause["reason"] for cause in (error.details or {})["causes"]} == {
        "FieldManagerConflict"
    }


def test_of_many_conflicts_the_first_are_named() -> None:
    # To look for each manager's heading among the lines above would take minutes.
    table = {f"k{number}": "1" for number in range(60_000)}
    halves = [dict(list(table.items())[start : start + 30_000]) for start in (0, 30_000)]
    live = apply_as(None, build_object(table=halves[0]), "a")
    live = apply_as(live, build_object(table=halves[1]), "b")
    error = expect_conflict(live, build_object(table=dict.fromkeys(table, "2")))
    lines = error.message.splitlines()
    assert lines[0] == 'Apply failed with 60000 conflicts: conflicts with "a":'
    assert lines[-1] == "and more: the first 100 are shown"
    assert (len(lines), len((error.details or {})["causes"])) == (102, 100)


def test_the_same_value_is_no_conflict_but_shared() -> None:
    result = apply_as(update_as(None, build_object(size=1), "one"), build_object(size=1), "two")
    assert find_owned_fields(result, "one") == {"f:spec": {".": {}, "f:size": {}}}
    assert find_owned_fields(result, "two", "Apply") == {"f:spec": {"f:size": {}}}


def test_the_owner_of_a_status_does_not_hinder_who_applies_the_spec() -> None:
    live = update_as(None, build_object(size=1))
    live = update_as(live, live | {"status": {"phase": "x"}}, "kubelet", "status")
    result = apply_as(live, build_object(size=1) | {"status": {"phase": "mine"}})
    assert result["status"] == {"phase": "x"}
    assert find_owned_fields(result, "one", "Apply") == {"f:spec": {"f:size": {}}}


def test_a_status_can_be_applied() -> None:
    live = update_as(None, build_object(size=1))
    config = build_object(size=2) | {"status": {"phase": "x"}}
    result = field_ownership.apply_configuration(
        live,
        config,
        manager="one",
        force=False,
        subresource="status",
        api_version=V1,
        schema=SCHEMA,
    )
    assert (result["spec"], result["status"]) == ({"size": 1}, {"phase": "x"})
    assert find_owned_fields(result, "one", "Apply", "status") == {"f:status": {"f:phase": {}}}


def test_an_atomic_map_or_list_is_replaced_as_a_whole() -> None:
    live = apply_as(None, build_object(plain=["a"], whole={"a": "1"}))
    assert apply_as(live, build_object(plain=["b"], whole={"b": "1"}))["spec"] == {
        "plain": ["b"],
        "whole": {"b": "1"},
    }
    assert ".spec.whole" in expect_conflict(live, build_object(whole={"a": "1", "b": "2"})).message


def test_the_first_apply_to_an_untracked_object_meets_its_unknown_owner() -> None:
    assert (
        '"before-first-apply" using'
        in expect_conflict(build_object(size=1), build_object(size=2)).message
    )
    assert find_owned_fields(
        apply_as(build_object(size=1), build_object(mode="a")), "before-first-apply"
    ) == {"f:spec": {".": {}, "f:size": {}}}


def test_a_configuration_with_managed_fields_is_refused() -> None:
    config = build_object()
    config["metadata"]["managedFields"] = []
    with pytest.raises(ApiError) as refused:
        apply_as(None, config)
    assert (refused.value.code, refused.value.message) == (
        400,
        "metadata.managedFields must be nil",
    )


@pytest.mark.parametrize("parts", [[{"image": "x"}], [{"name": "a"}, {"name": "a"}], ["a"]])
def test_items_that_cannot_be_told_apart_are_refused(parts: list[Any]) -> None:
    with pytest.raises(ApiError) as refused:
        apply_as(None, build_object(parts=parts))
    assert refused.value.code == 400
    assert ".spec.parts" in refused.value.message


def test_nulls_of_a_written_out_configuration_remove_nothing_of_the_server() -> None:
    live = apply_as(None, build_object(size=1))
    live["metadata"] |= {
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "uid": "u",
        "resourceVersion": "7",
    }
    config = build_object(size=1)
    config["metadata"]["creationTimestamp"] = None
    assert apply_as(live, config) == live


def test_kubectl_takes_over_what_it_applied_on_the_client_side() -> None:
    note = json.dumps(build_object(size=1))
    live = build_object(size=1, mode="a")
    live["metadata"]["annotations"] = {field_ownership.LAST_APPLIED_ANNOTATION: note}
    live = update_as(None, live, "kubectl-client-side-apply")
    result = apply_as(live, build_object(size=2), "kubectl")
    assert json.loads(result["metadata"]["annotations"][field_ownership.LAST_APPLIED_ANNOTATION])[
        "spec"
    ] == {"size": 2}
    with pytest.raises(ApiError):
        apply_as(live, build_object(mode="b"), "kubectl")
