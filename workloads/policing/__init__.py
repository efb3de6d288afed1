"""Policies: what the fields of a submission must be, merged from all levels, and judged on the
final object. No Django.

`kinds` are the values' kinds, `fields` and `catalogue` what can be spoken of, `rules` what one
policy says, `limits` and `pairs` what a field may be, `merging` all policies as one, `judging` a
submission, and `checking` what is wrong with a policy itself.
"""

from workloads.policing.catalogue import CATALOGUE
from workloads.policing.judging import (
    Issue,
    about_compute,
    about_environment,
    completed,
    issues,
    set_by,
    setters,
)
from workloads.policing.limits import Source, by_words
from workloads.policing.merging import NOTHING, Idle, Merged, Policy, as_rules, merge
from workloads.policing.rules import BadRules, Rule, Wrong, known, read, write

__all__ = [
    "CATALOGUE",
    "NOTHING",
    "BadRules",
    "Idle",
    "Issue",
    "Merged",
    "Policy",
    "Rule",
    "Source",
    "Wrong",
    "about_compute",
    "about_environment",
    "as_rules",
    "by_words",
    "completed",
    "issues",
    "known",
    "merge",
    "read",
    "set_by",
    "setters",
    "write",
]
