"""Policies: what the fields of a submission must be, merged from all levels, and judged on the
final object. No Django.

`kinds` are the values' kinds, `fields` and `catalogue` what can be spoken of, `rules` what one
policy says, `limits` and `pairs` what a field may be, `merging` all policies as one, `judging` a
submission, and `checking` what is wrong with a policy itself.
"""

from workloads.policing.catalogue import CATALOGUE
from workloads.policing.judging import (
    PolicyIssue,
    complete_spec,
    find_compute_issues,
    find_environment_issues,
    find_issues,
    list_set_values,
    list_setting_policy_ids,
)
from workloads.policing.limits import PolicySource, describe_sources
from workloads.policing.merging import (
    NO_POLICIES,
    IdleRule,
    MergedPolicies,
    PolicyRules,
    build_rules,
    merge_policies,
)
from workloads.policing.rules import (
    BadRules,
    Rule,
    RuleProblem,
    parse_known_rules,
    parse_rules,
    serialize_rules,
)

__all__ = [
    "CATALOGUE",
    "NO_POLICIES",
    "BadRules",
    "IdleRule",
    "MergedPolicies",
    "PolicyIssue",
    "PolicyRules",
    "PolicySource",
    "Rule",
    "RuleProblem",
    "build_rules",
    "complete_spec",
    "describe_sources",
    "find_compute_issues",
    "find_environment_issues",
    "find_issues",
    "list_set_values",
    "list_setting_policy_ids",
    "merge_policies",
    "parse_known_rules",
    "parse_rules",
    "serialize_rules",
]
