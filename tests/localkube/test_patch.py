"""The three kinds of patch: what they make of an object, and what is refused."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube import patch, strategic_merge
from localkube.errors import ApiError

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3)
KEYS = st.sampled_from(["a", "b", "a/b", "m~n", ""])
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
)
MAPS = st.dictionaries(KEYS, VALUES, max_size=4)


def without_nulls(value: Any) -> Any:
    return (
        {key: without_nulls(item) for key, item in value.items() if item is not None}
        if isinstance(value, dict)
        else value
    )


def build_merge_patch(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The merge patch that turns `old` into `new`, which has no nulls."""
    made: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old or type(old[key]) is not type(value) or old[key] != value:
            both = isinstance(value, dict) and isinstance(old.get(key), dict)
            made[key] = build_merge_patch(old[key], value) if both else value
    return made


def apply_operations(target: Any, *operations: dict[str, Any]) -> Any:
    return patch.apply_json_patch(target, list(operations))


def expect_refusal(target: Any, *operations: dict[str, Any]) -> ApiError:
    with pytest.raises(ApiError) as error:
        apply_operations(target, *operations)
    return error.value


# Merge patch


@pytest.mark.parametrize(
    ("target", "change", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a"], ["c"], ["c"]),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_merge_patch_does_what_rfc_7386_shows(target: Any, change: Any, result: Any) -> None:
    assert patch.apply_merge_patch(target, change) == result


@given(MAPS, MAPS.map(without_nulls))
def test_the_merge_patch_of_a_difference_gives_the_target(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    before = copy.deepcopy(old)
    assert patch.apply_merge_patch(old, build_merge_patch(old, new)) == new
    assert old == before


def test_a_merged_object_shares_nothing_with_what_it_came_from() -> None:
    target, change = {"a": {"b": [1]}}, {"c": {"d": [1]}}
    merged = patch.apply_merge_patch(target, change)
    merged["a"]["b"].append(2)
    merged["c"]["d"].append(2)
    assert (target, change) == ({"a": {"b": [1]}}, {"c": {"d": [1]}})


# JSON patch


@pytest.mark.parametrize(
    ("target", "operation", "result"),
    [
        ({"a": 1}, {"op": "add", "path": "/b", "value": 2}, {"a": 1, "b": 2}),
        ({"a": [1, 3]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2, 3]}),
        ({"a": [1]}, {"op": "add", "path": "/a/-", "value": 2}, {"a": [1, 2]}),
        ({"a": [1]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2]}),
        ({"a": [1, 2]}, {"op": "add", "path": "/a/-1", "value": 3}, {"a": [1, 2, 3]}),
        ({"a": [1, 2]}, {"op": "add", "path": "/a/-3", "value": 3}, {"a": [3, 1, 2]}),
        ({"a": [1, 2]}, {"op": "remove", "path": "/a/-2"}, {"a": [2]}),
        ({"a": [1, 2]}, {"op": "replace", "path": "/a/-1", "value": 3}, {"a": [1, 3]}),
        ({"a": [{}, {}]}, {"op": "add", "path": "/a/-1/b", "value": 3}, {"a": [{}, {"b": 3}]}),
        ({"a": 1}, {"op": "add", "path": "", "value": 2}, 2),
        ({"a": 1, "b": 2}, {"op": "remove", "path": "/a"}, {"b": 2}),
        ({"a": [1, 2]}, {"op": "remove", "path": "/a/0"}, {"a": [2]}),
        ({"a": 1}, {"op": "replace", "path": "/a", "value": None}, {"a": None}),
        (
            {"a": {"b": 1}, "c": {}},
            {"op": "move", "from": "/a/b", "path": "/c/d"},
            {"a": {}, "c": {"d": 1}},
        ),
        (
            {"a": {"b": 1}},
            {"op": "copy", "from": "/a", "path": "/c"},
            {"a": {"b": 1}, "c": {"b": 1}},
        ),
        ({"a/b": 1, "m~n": 2}, {"op": "remove", "path": "/a~1b"}, {"m~n": 2}),
        ({"m~n": 2, "": 1}, {"op": "remove", "path": "/m~0n"}, {"": 1}),
        ({"": 1}, {"op": "remove", "path": "/"}, {}),
        ({"~1": 1}, {"op": "remove", "path": "/~01"}, {}),
        ({"a": 1.0}, {"op": "test", "path": "/a", "value": 1}, {"a": 1}),
        ({}, {"op": "test", "path": "/a", "value": None}, {}),
        ({"a": {}}, {"op": "replace", "path": "/a/b", "value": 1}, {"a": {"b": 1}}),
    ],
)
def test_an_operation_does_what_a_real_server_does(
    target: Any, operation: dict[str, Any], result: Any
) -> None:
    assert apply_operations(target, operation) == result


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": True},
        {"op": "test", "path": "/b", "value": 1},
        {"op": "remove", "path": "/b"},
        {"op": "remove", "path": ""},
        {"op": "replace", "path": "/b/c", "value": 1},
        {"op": "replace", "path": "/list/1", "value": 1},
        {"op": "add", "path": "/b/c", "value": 1},
        {"op": "add", "path": "/a/c", "value": 1},
        {"op": "add", "path": "/list/2", "value": 1},
        {"op": "add", "path": "/list/01", "value": 1},
        {"op": "add", "path": "/list/-3", "value": 1},
        {"op": "replace", "path": "/list/-2", "value": 1},
        {"op": "remove", "path": "/list/-0"},
        {"op": "add", "path": "/list/x", "value": 1},
        {"op": "remove", "path": "/list/-"},
        {"op": "move", "from": "/list", "path": "/list/0"},
        {"op": "copy", "from": "/b", "path": "/c"},
        {"op": "add", "path": "b", "value": 1},
        {"op": "add", "path": "/~2", "value": 1},
        {"op": "add", "path": "/b"},
        {"op": "add", "value": 1},
        {"op": "merge", "path": "/b", "value": 1},
        {"path": "/b"},
        {"op": "move", "path": "/b"},
    ],
)
def test_an_operation_that_does_not_apply_is_422(operation: dict[str, Any]) -> None:
    error = expect_refusal({"a": 1, "list": [0]}, operation)
    assert (error.code, error.reason) == (422, "Invalid")
    assert error.message == "the server rejected our request due to an error in our request"


@pytest.mark.parametrize("operations", [{}, None, "x", [1], [{"op": "remove", "path": "/a"}, "x"]])
def test_what_is_no_list_of_operations_is_400(operations: Any) -> None:
    with pytest.raises(ApiError) as error:
        patch.apply_json_patch({}, operations)
    assert error.value.code == 400


def test_a_failing_operation_leaves_the_target_as_it_was() -> None:
    target = {"a": [1]}
    assert (
        expect_refusal(
            target, {"op": "add", "path": "/a/-", "value": 2}, {"op": "remove", "path": "/b"}
        ).code
        == 422
    )
    assert target == {"a": [1]}


def test_too_many_operations_are_refused() -> None:
    add = {"op": "add", "path": "/a", "value": 1}
    assert expect_refusal({}, *[add] * 10_001).code == 413


def test_copies_that_double_each_time_end_at_a_bound() -> None:
    grow = {"op": "copy", "from": "/a", "path": "/a/-"}
    assert expect_refusal({"a": ["x" * 1000]}, *[grow] * 40).code == 413


def test_copies_that_deepen_each_time_end_at_a_bound() -> None:
    assert (
        expect_refusal({"a": {}}, *[{"op": "copy", "from": "/a", "path": "/a/a"}] * 300).code == 422
    )


def test_moves_that_deepen_each_time_end_at_a_bound() -> None:
    deepen: list[dict[str, Any]] = [
        {"op": "add", "path": "/b", "value": {}},
        {"op": "move", "from": "/a", "path": "/b/a"},
        {"op": "move", "from": "/b", "path": "/a"},
    ]
    assert expect_refusal({"a": {}}, *deepen * 1000).code == 422


@given(MAPS, VALUES)
def test_what_was_added_is_there_and_can_be_taken_back(target: dict[str, Any], value: Any) -> None:
    path = "/new~1one"
    there = [
        {"op": "add", "path": path, "value": value},
        {"op": "test", "path": path, "value": value},
    ]
    assert apply_operations(target, *there, {"op": "remove", "path": path}) == target


# Strategic merge patch


def pod(**spec: Any) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def merge_spec(target: dict[str, Any], **spec: Any) -> Any:
    return strategic_merge.apply_strategic_merge_patch(target, {"spec": spec})["spec"]


def test_containers_merge_by_name_and_their_ports_by_number() -> None:
    target = pod(
        containers=[
            {"name": "a", "image": "1", "ports": [{"containerPort": 1}]},
            {"name": "b", "args": ["x"]},
        ]
    )
    spec = merge_spec(
        target,
        containers=[
            {"name": "a", "image": "2", "ports": [{"containerPort": 2}]},
            {"name": "b", "args": ["y"]},
        ],
    )
    a, b = spec["containers"]
    assert a == {"name": "a", "image": "2", "ports": [{"containerPort": 2}, {"containerPort": 1}]}
    assert b == {"name": "b", "args": ["y"]}


def test_tolerations_are_replaced_and_finalizers_are_joined() -> None:
    target = pod(tolerations=[{"key": "a"}]) | {"metadata": {"finalizers": ["x/a"]}}
    result = strategic_merge.apply_strategic_merge_patch(
        target, {"metadata": {"finalizers": ["x/b"]}, "spec": {"tolerations": [{"key": "b"}]}}
    )
    assert result["spec"]["tolerations"] == [{"key": "b"}]
    assert sorted(result["metadata"]["finalizers"]) == ["x/a", "x/b"]


def test_service_ports_merge_by_port() -> None:
    service = {"kind": "Service", "spec": {"ports": [{"port": 1, "name": "a"}]}}
    result = strategic_merge.apply_strategic_merge_patch(
        service, {"spec": {"ports": [{"port": 1, "name": "b"}, {"port": 2}]}}
    )
    assert result["spec"]["ports"] == [{"port": 1, "name": "b"}, {"port": 2}]


def test_conditions_merge_by_type_and_null_removes_a_field() -> None:
    target = {
        "kind": "Pod",
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "x"}],
            "phase": "Running",
        },
    }
    change = {
        "status": {
            "conditions": [{"type": "Ready", "status": "False", "reason": None}],
            "phase": None,
        }
    }
    assert strategic_merge.apply_strategic_merge_patch(target, change)["status"] == {
        "conditions": [{"type": "Ready", "status": "False"}]
    }


def test_an_item_marked_for_deletion_goes() -> None:
    target = pod(containers=[{"name": "a"}, {"name": "b"}])
    assert merge_spec(target, containers=[{"name": "a", "$patch": "delete"}])["containers"] == [
        {"name": "b"}
    ]


def test_a_list_or_map_marked_for_replacement_is_replaced() -> None:
    target = pod(containers=[{"name": "a"}], securityContext={"runAsUser": 1})
    spec = merge_spec(
        target,
        containers=[{"name": "b"}, {"$patch": "replace"}],
        securityContext={"$patch": "replace", "fsGroup": 2},
    )
    assert spec == {"containers": [{"name": "b"}], "securityContext": {"fsGroup": 2}}


def test_a_map_marked_for_deletion_is_emptied() -> None:
    assert merge_spec(
        pod(securityContext={"runAsUser": 1}), securityContext={"$patch": "delete"}
    ) == {"securityContext": {}}


def test_named_scalars_are_deleted_from_a_list() -> None:
    target = {"kind": "Pod", "metadata": {"finalizers": ["x/a", "x/b"]}}
    result = strategic_merge.apply_strategic_merge_patch(
        target, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/a"]}}
    )
    assert result["metadata"] == {"finalizers": ["x/b"]}


def test_the_order_of_elements_is_set_and_others_keep_their_place() -> None:
    target = pod(containers=[{"name": name} for name in "abcd"])
    spec = merge_spec(
        target,
        **{
            "$setElementOrder/containers": [{"name": "d"}, {"name": "b"}],
            "containers": [{"name": "b", "image": "2"}],
        },
    )
    assert [item["name"] for item in spec["containers"]] == ["a", "c", "d", "b"]
    assert spec["containers"][3]["image"] == "2"


def test_a_volume_changes_its_kind_when_its_keys_are_named() -> None:
    target = pod(volumes=[{"name": "v", "emptyDir": {}}])
    change = {"$retainKeys": ["name", "hostPath"], "name": "v", "hostPath": {"path": "/x"}}
    assert merge_spec(target, volumes=[change])["volumes"] == [
        {"name": "v", "hostPath": {"path": "/x"}}
    ]


def test_what_was_not_there_comes_without_directives_and_nulls() -> None:
    change = {
        "containers": [{"name": "a", "image": None, "$setElementOrder/env": []}],
        "x": {"$patch": "delete"},
        "y": {"z": None},
    }
    assert merge_spec(pod(), **change) == {"containers": [{"name": "a"}], "y": {}}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"containers": [{"image": "x"}]}, 400),
        ({"containers": ["x"]}, 400),
        ({"$patch": "explode"}, 400),
        ({"$retainKeys": 1}, 400),
        ({"$retainKeys": ["a"], "b": 1}, 422),
        ({"$setElementOrder/containers": [1]}, 400),
        ({"$setElementOrder/tolerations": []}, 400),
        ({"$deleteFromPrimitiveList/tolerations": [{}]}, 400),
    ],
)
def test_a_wrong_directive_is_refused(change: dict[str, Any], code: int) -> None:
    target = pod(containers=[{"name": "a"}], tolerations=[])
    with pytest.raises(ApiError) as error:
        strategic_merge.apply_strategic_merge_patch(target, {"spec": change})
    assert error.value.code == code


@given(MAPS, MAPS)
def test_a_strategic_merge_patch_leaves_its_inputs_alone(
    target: dict[str, Any], change: dict[str, Any]
) -> None:
    before = copy.deepcopy((target, change))
    strategic_merge.apply_strategic_merge_patch(target, change)
    assert (target, change) == before
