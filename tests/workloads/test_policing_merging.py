"""All policies of a project as one: what holds for any of them, and what is told of those that
contradict each other.
"""

import random
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.policies import merge_policies_of, policies, policy, spec, specs
from workloads.policing import PolicyRules, complete_spec, find_issues, merge_policies
from workloads.policing.limits import FieldLimits
from workloads.specs import Spec

FEW = settings(max_examples=60, deadline=None, derandomize=True)


def _passes(submitted: Spec, those: Sequence[PolicyRules]) -> bool:
    return not find_issues(submitted, merge_policies(those))


@FEW
@given(policies(), specs(), st.randoms(use_true_random=False))
def test_the_order_in_which_policies_come_does_not_matter(
    those: list[PolicyRules], submitted: Spec, chance: random.Random
) -> None:
    others = list(those)
    chance.shuffle(others)
    one, other = merge_policies(those), merge_policies(others)
    assert one == other
    assert complete_spec(submitted, one) == complete_spec(submitted, other)


@FEW
@given(policies(), policies(1), specs())
def test_a_policy_more_below_the_others_never_permits_more(
    those: list[PolicyRules], more: list[PolicyRules], submitted: Spec
) -> None:
    below = [
        PolicyRules(each.source.__class__(9, each.source.name, "x", "below"), each.rules)
        for each in more
    ]
    if _passes(submitted, [*those, *below]):
        assert _passes(submitted, those)


@FEW
@given(policies(), specs())
def test_a_policy_more_that_contradicts_nothing_never_permits_more(
    those: list[PolicyRules], submitted: Spec
) -> None:
    if any(each.is_set_aside for each in merge_policies(those).idle):
        return
    if _passes(submitted, those):
        assert all(
            _passes(submitted, those[:number] + those[number + 1 :]) for number in range(len(those))
        )


@FEW
@given(policies(), specs())
def test_what_passes_all_passes_each_rule_that_holds(
    those: list[PolicyRules], submitted: Spec
) -> None:
    found = merge_policies(those)
    aside = {(each.source, each.field) for each in found.idle if each.is_set_aside}
    if not find_issues(submitted, found):
        for each in those:
            holding = {
                name: rule for name, rule in each.rules.items() if (each.source, name) not in aside
            }
            assert _passes(submitted, [PolicyRules(each.source, holding)])


@FEW
@given(policies(), specs())
def test_what_policies_set_is_as_they_want_it_and_setting_it_again_changes_nothing(
    those: list[PolicyRules], submitted: Spec
) -> None:
    found = merge_policies(those)
    once = complete_spec(submitted, found, given_fields=frozenset())
    assert complete_spec(once, found) == once
    broken_rules = {issue.rule.rpartition(".")[0] for issue in find_issues(once, found)}
    silent = {
        limits.field.name
        for limits in found.limits.values()
        if limits.fallback and limits.field.policy.is_implied
    }
    assert not broken_rules & (silent - {"host_network"})


def test_the_strictest_of_all_levels_holds_with_the_policy_that_says_so() -> None:
    found = merge_policies_of(
        policy("base", workers={"max": 8, "min": 2}),
        policy("small", 2, workers={"max": 4}),
        policy("own", 3, workers={"min": 1}),
    )
    limits = found.find_limits("workers")
    assert isinstance(limits, FieldLimits)
    assert limits.range_words == "2 to 4"
    assert [issue.text for issue in find_issues(spec(workers=5), found)] == [
        "Workers must be at most 4 (policy small of department research)."
    ]
    assert [issue.text for issue in find_issues(spec(workers=1), found)] == [
        "Workers must be at least 2 (policy base of everybody)."
    ]
    assert not find_issues(spec(workers=3), found)


def test_of_defaults_the_nearest_stands_unless_a_rule_forbids_it() -> None:
    near = policy("own", 3, backoff_limit={"default": 9})
    wide = policy("base", backoff_limit={"default": 1})
    assert (
        complete_spec(
            spec(), merge_policies_of(wide, near), given_fields=()
        ).lifecycle.backoff_limit
        == 9
    )
    strict = policy("strict", 1, backoff_limit={"max": 5})
    assert (
        complete_spec(
            spec(), merge_policies_of(wide, near, strict), given_fields=()
        ).lifecycle.backoff_limit
        == 1
    )


def test_the_widest_lock_holds_and_the_others_are_told_of() -> None:
    found = merge_policies_of(
        policy("own", 3, priority={"default": "high", "locked": True}),
        policy("base", priority={"default": "low", "locked": True}),
    )
    assert complete_spec(spec(), found).lifecycle.priority == "low"
    conflict = (
        "Priority: the rule of policy own of project team-a does not hold, for it contradicts "
        "policy base of everybody. Change one of them."
    )
    assert found.conflicts == {"priority": [conflict]}


def test_a_narrower_rule_that_nothing_could_keep_is_set_aside() -> None:
    found = merge_policies_of(
        policy("base", workers={"max": 4}), policy("own", 3, workers={"min": 8})
    )
    assert [each.is_set_aside for each in found.idle] == [True]
    assert not find_issues(spec(workers=4), found)


def test_a_rule_that_widens_is_told_to_have_no_effect() -> None:
    found = merge_policies_of(
        policy("base", workers={"max": 4}, image={"options": ["a/*"]}),
        policy("own", 3, workers={"max": 9}, image={"options": ["a/b", "c"]}),
    )
    assert [each.text for each in found.idle] == [
        "Workers: at most 9 has no effect, for policy base of everybody says at most 4.",
        "Image: c cannot be chosen, for policy base of everybody does not allow it.",
    ]


def test_amounts_are_compared_and_not_texts() -> None:
    found = merge_policies_of(
        policy("base", memory_request={"max": "1Gi"}),
        policy("own", 3, memory_request={"max": "1024Mi"}),
    )
    limits = found.find_limits("memory_request")
    assert isinstance(limits, FieldLimits)
    assert limits.most is not None
    assert limits.most.value == "1Gi"


def test_options_that_overlap_leave_what_both_allow() -> None:
    one = policy("a", image={"options": ["registry.example.com/*", "python:3.12"]})
    found = merge_policies_of(
        one, policy("b", 2, image={"options": ["registry.example.com/team/*", "python:*"]})
    )
    limits = found.find_limits("image")
    assert isinstance(limits, FieldLimits)
    assert limits.options is not None
    assert set(limits.options.value) == {"python:3.12", "registry.example.com/team/*"}
