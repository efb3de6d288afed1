"""What holds of server-side apply whatever is applied."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.localkube.applying import (
    apply_as,
    build_object,
    change_spec,
    find_owned_fields,
    update_as,
)

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
            st.fixed_dictionaries({"name": NAMES}, optional={"image": NAMES}),
            max_size=3,
            unique_by=lambda part: part["name"],
        ),
    },
)


@given(SPECS, SPECS)
def test_applying_the_same_twice_changes_nothing(
    first: dict[str, Any], spec: dict[str, Any]
) -> None:
    once = apply_as(update_as(None, build_object(**first)), build_object(**spec), force=True)
    assert apply_as(once, build_object(**spec)) == once


@given(SPECS.filter(lambda spec: [] not in (spec.get("tags"), spec.get("parts"))))
def test_applying_nothing_removes_exactly_what_was_applied(spec: dict[str, Any]) -> None:
    """Nobody owns a list of owned items for its own sake, so an empty one is left over, on a real
    server too.
    """
    live = update_as(None, build_object({"keep": "me"}, mode="m"), "other")
    empty = {key: value for key, value in build_object().items() if key != "spec"}
    assert apply_as(apply_as(live, build_object({"mine": "1"}, **spec)), empty) == live


@given(
    st.lists(st.tuples(SPECS, st.sampled_from(["one", "two", "three"]), st.booleans()), max_size=5)
)
def test_every_path_that_is_owned_exists(history: list[tuple[dict[str, Any], str, bool]]) -> None:
    obj = update_as(None, build_object())
    for spec, manager, update in history:
        obj = (
            update_as(obj, change_spec(obj, **spec), manager)
            if update
            else apply_as(obj, build_object(**spec), manager, force=True)
        )
    whole = find_owned_fields(update_as(None, obj | {"metadata": {"name": "x"}}), "user") or {}
    for entry in obj["metadata"].get("managedFields", []):
        assert_within(entry["fieldsV1"], whole)


def assert_within(fields: dict[str, Any], whole: dict[str, Any]) -> None:
    for key, below in fields.items():
        assert key in whole or (key == "." and not whole)
        assert_within(below, whole.get(key, {}))


@given(SPECS, SPECS)
def test_the_inputs_stay_as_they_are_and_are_not_shared(
    first: dict[str, Any], spec: dict[str, Any]
) -> None:
    live, config = update_as(None, build_object(**first)), build_object(**spec)
    before = copy.deepcopy((live, config))
    result = apply_as(live, config, force=True)
    result["spec"].setdefault("table", {})["new"] = "x"
    result["spec"].setdefault("parts", []).append({})
    assert (live, config) == before
