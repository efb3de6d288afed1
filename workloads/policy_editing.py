"""The fields that the policy form offers, the problems of a policy, and its rules without effect.

The form itself is in `environments`, which must not import this app.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from environments import policy_fields
from environments.models import Asset, ComputeResource, Environment, Policy
from environments.policy_fields import (
    CHECKBOX,
    CHOICE,
    LINES,
    MULTIPLE_CHOICE,
    NAMES,
    PAIRS,
    TEXT,
    YES_NO,
    ComplianceJudge,
    PolicyDefinitions,
    PolicyFormField,
    RuleInput,
)
from projects.models import Project
from workloads import asset_rules, policing
from workloads.policies import build_policy, load_for_project, load_for_scope
from workloads.policing import checking
from workloads.policing.fields import PolicyField
from workloads.policing.kinds import (
    ATTRIBUTES,
    DEFAULT,
    LEAST,
    LOCKED,
    MOST,
    OPTIONS,
    REQUIRED,
    STEP,
    Choice,
    Flag,
    Pairs,
    TextList,
    WholeNumber,
)
from workloads.specs import Architecture

ATTRIBUTE_LABELS = {
    DEFAULT: "default",
    REQUIRED: "must be given",
    LEAST: "at least",
    MOST: "at most",
    STEP: "multiples of",
    OPTIONS: "only these",
    LOCKED: "locked at the default",
}


def describe_catalogue() -> PolicyDefinitions:
    """Return all fields that policies can rule, with the functions that judge them."""
    return PolicyDefinitions(
        tuple(map(_build_form_field, policing.CATALOGUE.values())),
        list_idle_rules,
        build_asset_judge,
    )


def find_policy_problems(values: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Return the problems of a policy as (input of the form, sentence) pairs."""
    fields = {each.name: each for each in policy_fields.list_policy_fields()}
    problems = []
    for wrong in checking.find_rule_problems(values["rules"]):
        field = fields.get(wrong.field)
        problems.append(
            (
                field.build_input_name(wrong.attribute) if field and wrong.attribute else "",
                wrong.text,
            )
        )
    return problems


def list_idle_rules(policy: Policy) -> Sequence[str]:
    """Return sentences about rules that have no effect beside other policies of the scope."""
    rows = load_for_scope(policy.scope).rows
    same = ("", policy.architecture) if policy.architecture else ("", "Distributed", "Standard")
    merged = policing.merge_policies(build_policy(row) for row in rows if row.architecture in same)
    return [each.text for each in merged.idle if each.source.key == str(policy.pk)]


def build_asset_judge(project: Project, architecture: str) -> ComplianceJudge:
    """Return a function that judges environments and compute resources for a project.

    Other assets have no issues.
    """
    merged = load_for_project(project).merge(Architecture(architecture))

    def judge(asset: Asset) -> Sequence[tuple[str, str, str]]:
        issues: Sequence[policing.PolicyIssue] = ()
        if isinstance(asset, Environment):
            issues = policing.find_environment_issues(
                asset_rules.build_environment(vars(asset)), merged
            )
        elif isinstance(asset, ComputeResource):
            issues = policing.find_compute_issues(asset_rules.build_compute(vars(asset)), merged)
        return [(issue.field, issue.text, issue.rule) for issue in issues]

    return judge


def _build_form_field(field: PolicyField) -> PolicyFormField:
    inputs = tuple(
        _build_input(field, attribute) for attribute in ATTRIBUTES if attribute in field.attributes
    )
    return PolicyFormField(field.name, field.label, field.section, field.about, inputs)


def _build_input(field: PolicyField, attribute: str) -> RuleInput:
    kind = field.kind
    way, choices = _choose_widget(field, attribute)
    help_text = {
        (PAIRS, DEFAULT): "NAME=value, one a line.",
        (NAMES, DEFAULT): "Separated by spaces.",
        (NAMES, OPTIONS): "Separated by spaces.",
        (NAMES, REQUIRED): "Names, separated by spaces.",
        (LINES, OPTIONS): "One a line.",
    }.get((way, attribute), "")
    label = (
        "these must be there"
        if way == NAMES and attribute == REQUIRED
        else ATTRIBUTE_LABELS[attribute]
    )
    return RuleInput(attribute, label, way, choices, isinstance(kind, WholeNumber), help_text)


def _choose_widget(field: PolicyField, attribute: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    kind = field.kind
    if isinstance(kind, Pairs):
        return ({DEFAULT: PAIRS, REQUIRED: NAMES}.get(attribute, CHECKBOX)), ()
    if attribute in (REQUIRED, LOCKED):
        return CHECKBOX, ()
    if isinstance(kind, Flag):
        return YES_NO, ()
    if isinstance(kind, Choice):
        return (CHOICE if attribute == DEFAULT else MULTIPLE_CHOICE), kind.choices
    if isinstance(kind, TextList):
        return (MULTIPLE_CHOICE, kind.choices) if kind.choices else (NAMES, ())
    return (LINES if attribute == OPTIONS else TEXT), ()
