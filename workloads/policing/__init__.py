"""Policies: rules for the fields of a submission, merged from all scopes and checked. No Django.

`kinds` are the kinds of values, `fields` and `catalogue` the fields that rules can name, `rules`
the rules of one policy, `limits` and `pairs` what a field may be, `merging` all policies as one,
`judging` the check of a submission, and `checking` the check of a policy itself.
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
