"""What one policy can say: read from JSON, written back as it was, and refused with the field and
the attribute named.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.policies import policies
from workloads.policing import (
    CATALOGUE,
    BadRules,
    PolicyRules,
    RuleProblem,
    parse_known_rules,
    parse_rules,
    serialize_rules,
)
from workloads.policing.checking import find_rule_problems
from workloads.policing.kinds import MOST_OPTIONS
from workloads.policing.rules import MOST_RULES

FEW = settings(max_examples=60, deadline=None, derandomize=True)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@FEW
@given(policies())
def test_rules_are_read_as_they_were_written(those: list[PolicyRules]) -> None:
    for each in those:
        assert parse_rules(serialize_rules(each.rules)) == each.rules
        assert parse_known_rules(serialize_rules(each.rules)) == each.rules


@FEW
@given(
    st.sampled_from(sorted(CATALOGUE)),
    st.dictionaries(
        st.sampled_from(("default", "required", "min", "max", "step", "options", "locked")), JSON
    ),
)
def test_whatever_is_sent_is_right_or_told_to_be_wrong(name: str, rule: dict[str, Any]) -> None:
    problems: Sequence[RuleProblem] = ()
    try:
        found = parse_rules({name: rule})
    except BadRules as bad:
        found, problems = {}, bad.problems
    assert all(
        each.field == name and each.text.startswith(CATALOGUE[name].label) for each in problems
    )
    assert parse_rules(serialize_rules(found)) == found


@pytest.mark.parametrize(
    "given_rules", [None, [], "x", {"workers": 3}, {"nope": {}}, {"workers": {"nope": 1}}, {3: {}}]
)
def test_what_is_no_rules_is_refused(given_rules: object) -> None:
    assert find_rule_problems(given_rules)


@pytest.mark.parametrize(
    ("name", "rule", "attribute", "words"),
    [
        ("workers", {"min": True}, "min", "must be a whole number"),
        ("workers", {"min": -1}, "min", "must be a whole number"),
        ("workers", {"required": True}, "required", "makes no sense"),
        ("image", {"min": 3}, "min", "makes no sense"),
        ("image", {"min": 0}, "min", "makes no sense"),
        ("image", {"options": []}, "options", "list of 1 to 200"),
        ("image", {"options": ["x"] * (MOST_OPTIONS + 1)}, "options", "list of 1 to 200"),
        ("image", {"options": ["x" * 600]}, "options", "at most 512"),
        ("image", {"default": "b", "options": ["a*"]}, "default", "by this very rule"),
        ("gpus.portion", {"max": 1.5}, "max", "above 0 and at most 1"),
        ("cpu_limit", {"min": "2", "max": "1500m"}, "min", "must not be above the maximum, 1500m"),
        ("priority", {"options": ["urgent"]}, "options", "must be one of very-low"),
        ("host_network", {"locked": True}, "default", "the value that is locked"),
        ("variables", {"locked": True}, "default", "the value that is locked"),
        ("variables", {"default": {"A": 1}}, "default", "texts as values"),
        ("volumes", {"options": ["floppy"]}, "options", "must be of emptyDir"),
        (
            "node_pools",
            {"locked": True, "required": True},
            "locked",
            "required and locked at nothing",
        ),
        ("workers", {"step": 0}, "step", "whole number from 1"),
    ],
)
def test_a_rule_that_cannot_be_is_told_with_its_attribute(
    name: str, rule: dict[str, Any], attribute: str, words: str
) -> None:
    found = find_rule_problems({name: rule})
    assert [(each.field, each.attribute) for each in found] == [(name, attribute)]
    assert words in found[0].text


def test_so_many_rules_are_too_many() -> None:
    assert (
        "at most 100 rules"
        in find_rule_problems({f"f{number}": {} for number in range(MOST_RULES + 1)})[0].text
    )


def test_a_stored_rule_of_another_version_is_left_out() -> None:
    assert parse_known_rules(
        {"of-tomorrow": {"min": 1}, "workers": {"max": 3, "of-tomorrow": 1}, "image": 7}
    ).keys() == {"workers"}


def test_every_field_can_be_spoken_of_and_has_a_place() -> None:
    for name, field in CATALOGUE.items():
        assert field.name == name
        assert field.attributes
        assert field.label
        assert field.path


STORED_NAMES = """
architecture framework workers elastic.max_pods parameter_servers runs parallelism
image pull_policy command args working_dir variables
gpus.devices gpus.portion gpus.memory cpu_request cpu_limit memory_request memory_limit large_shm
node_type node_pools volumes annotations labels
priority preemptibility backoff_limit grace_seconds auto_delete_seconds restart_policy
clean_pod_policy
radar.is_on radar.hang_seconds radar.straggler_percent radar.stop_after_hang_seconds
radar.restarts_without_faulty_node
uid gid capabilities non_root read_only_root privilege_escalation host_ipc host_network
"""


def test_rules_in_the_database_keep_the_names_of_their_fields() -> None:
    assert set(STORED_NAMES.split()) <= set(CATALOGUE)


@pytest.mark.parametrize(
    ("name", "default", "words"),
    [
        ("image", "two words", "image"),
        ("working_dir", "not/absolute", "working directory"),
        ("labels", {"a b": "c"}, "label 1"),
        ("annotations", {"a/b/c": "d"}, "annotation 1"),
        ("variables", {"1 a": "b"}, "variable 1"),
    ],
)
def test_a_default_that_no_workload_could_have_is_refused(
    name: str, default: Any, words: str
) -> None:
    [problem] = find_rule_problems({name: {"default": default}})
    assert (problem.field, problem.attribute, words in problem.text.lower()) == (
        name,
        "default",
        True,
    ), problem.text


@pytest.mark.parametrize(
    ("name", "default"),
    [("image", "muster/allreduce"), ("working_dir", "/code"), ("labels", {"team": "a"})],
)
def test_a_default_that_a_workload_could_have_is_taken(name: str, default: Any) -> None:
    assert not find_rule_problems({name: {"default": default}})
