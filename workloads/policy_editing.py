"""What policies can speak of, for the form that makes them a floor below; what is wrong with one,
and what of one has no effect.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from environments import policy_fields
from environments.models import Asset, ComputeResource, Environment, Policy
from environments.policy_fields import (
    CHECK,
    CHOICE,
    LINES,
    NAMES,
    PAIRS,
    SEVERAL,
    TEXT,
    YES_NO,
    Input,
    Judge,
    Speakable,
    Speech,
)
from projects.models import Project
from workloads import asset_rules, policing
from workloads.policies import as_policy, in_force, in_scope
from workloads.policing import checking
from workloads.policing.fields import Field
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
    Members,
    Pairs,
    Whole,
)
from workloads.specs import Architecture

LABELS = {
    DEFAULT: "default",
    REQUIRED: "must be given",
    LEAST: "at least",
    MOST: "at most",
    STEP: "multiples of",
    OPTIONS: "only these",
    LOCKED: "locked at the default",
}


def speech() -> Speech:
    """All of the catalogue."""
    return Speech(tuple(map(_speakable, policing.CATALOGUE.values())), advice, complying)


def judge(values: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """What is wrong with a policy: (input of the form, sentence) pairs."""
    fields = {each.name: each for each in policy_fields.speakable()}
    found = []
    for wrong in checking.wrong(values["rules"]):
        field = fields.get(wrong.field)
        found.append(
            (field.typed_name(wrong.attribute) if field and wrong.attribute else "", wrong.text)
        )
    return found


def advice(policy: Policy) -> Sequence[str]:
    """What of a policy has no effect beside the others that hold in its scope: sentences."""
    rows = in_scope(policy.scope).rows
    same = ("", policy.architecture) if policy.architecture else ("", "Distributed", "Standard")
    merged = policing.merge(as_policy(row) for row in rows if row.architecture in same)
    return [each.text for each in merged.idle if each.source.key == str(policy.pk)]


def complying(project: Project, architecture: str) -> Judge:
    """Who judges environments and compute resources for a project; other assets nobody has anything
    against.
    """
    merged = in_force(project).merged(Architecture(architecture))

    def judge(asset: Asset) -> Sequence[tuple[str, str, str]]:
        found: Sequence[policing.Issue] = ()
        if isinstance(asset, Environment):
            found = policing.about_environment(asset_rules.environment_of(vars(asset)), merged)
        elif isinstance(asset, ComputeResource):
            found = policing.about_compute(asset_rules.compute_of(vars(asset)), merged)
        return [(issue.field, issue.text, issue.rule) for issue in found]

    return judge


def _speakable(field: Field) -> Speakable:
    inputs = tuple(_input(field, attribute) for attribute in ATTRIBUTES if attribute in field.has)
    return Speakable(field.name, field.label, field.section, field.about, inputs)


def _input(field: Field, attribute: str) -> Input:
    kind = field.kind
    way, choices = _way(field, attribute)
    help_text = {
        (PAIRS, DEFAULT): "NAME=value, one a line.",
        (NAMES, DEFAULT): "Separated by spaces.",
        (NAMES, OPTIONS): "Separated by spaces.",
        (NAMES, REQUIRED): "Names, separated by spaces.",
        (LINES, OPTIONS): "One a line.",
    }.get((way, attribute), "")
    label = "these must be there" if way == NAMES and attribute == REQUIRED else LABELS[attribute]
    return Input(attribute, label, way, choices, isinstance(kind, Whole), help_text)


def _way(field: Field, attribute: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    kind = field.kind
    if isinstance(kind, Pairs):
        return ({DEFAULT: PAIRS, REQUIRED: NAMES}.get(attribute, CHECK)), ()
    if attribute in (REQUIRED, LOCKED):
        return CHECK, ()
    if isinstance(kind, Flag):
        return YES_NO, ()
    if isinstance(kind, Choice):
        return (CHOICE if attribute == DEFAULT else SEVERAL), kind.choices
    if isinstance(kind, Members):
        return (SEVERAL, kind.choices) if kind.choices else (NAMES, ())
    return (LINES if attribute == OPTIONS else TEXT), ()
