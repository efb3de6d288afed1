"""The fields that the policy form offers, what is wrong with a policy, and what it judges."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from environments.models import Asset, ComputeResource, Environment, Policy
from environments.seams import ComplianceJudge, InputKind, PolicyFormField, Problems, RuleInput
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


@functools.cache
def list_policy_fields() -> Sequence[PolicyFormField]:
    """Return all fields that policies can rule."""
    return tuple(map(_build_form_field, policing.CATALOGUE.values()))


def find_policy_problems(values: Mapping[str, Any]) -> Problems:
    """Return the problems of a policy as (input of the form, sentence) pairs."""
    fields = {each.name: each for each in list_policy_fields()}
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


def describe_ineffective_rules(policy: Policy) -> Sequence[str]:
    """Return sentences about rules that have no effect beside other policies of the scope."""
    rows = load_for_scope(policy.scope).rows
    same = ("", policy.architecture) if policy.architecture else ("", "Distributed", "Standard")
    merged = policing.merge_policies(build_policy(row) for row in rows if row.architecture in same)
    return [each.text for each in merged.idle if each.source.key == str(policy.pk)]


def build_compliance_judge(project: Project, architecture: str) -> ComplianceJudge:
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
        (InputKind.PAIRS, DEFAULT): "NAME=value, one a line.",
        (InputKind.NAMES, DEFAULT): "Separated by spaces.",
        (InputKind.NAMES, OPTIONS): "Separated by spaces.",
        (InputKind.NAMES, REQUIRED): "Names, separated by spaces.",
        (InputKind.LINES, OPTIONS): "One a line.",
    }.get((way, attribute), "")
    label = (
        "these must be there"
        if way is InputKind.NAMES and attribute == REQUIRED
        else ATTRIBUTE_LABELS[attribute]
    )
    return RuleInput(attribute, label, way, choices, isinstance(kind, WholeNumber), help_text)


def _choose_widget(
    field: PolicyField, attribute: str
) -> tuple[InputKind, tuple[tuple[str, str], ...]]:
    kind = field.kind
    if isinstance(kind, Pairs):
        kinds = {DEFAULT: InputKind.PAIRS, REQUIRED: InputKind.NAMES}
        return kinds.get(attribute, InputKind.CHECKBOX), ()
    if attribute in (REQUIRED, LOCKED):
        return InputKind.CHECKBOX, ()
    if isinstance(kind, Flag):
        return InputKind.YES_NO, ()
    if isinstance(kind, Choice):
        way = InputKind.CHOICE if attribute == DEFAULT else InputKind.MULTIPLE_CHOICE
        return way, kind.choices
    if isinstance(kind, TextList):
        return (InputKind.MULTIPLE_CHOICE, kind.choices) if kind.choices else (InputKind.NAMES, ())
    return (InputKind.LINES if attribute == OPTIONS else InputKind.TEXT), ()
