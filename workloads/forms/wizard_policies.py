"""Policies in the wizard: defaults, locks, limits beside the fields, and forbidden cards."""

from collections.abc import Iterable, Sequence
from typing import Any

from console.typed_forms import TypedForm, TypedValues, build_row_values
from environments.models import ComputeResource
from environments.models import Environment as EnvironmentAsset
from workloads import asset_rules, policing
from workloads.forms.row_forms import build_pair_texts, build_variable_texts
from workloads.forms.setup_form import NOT_CHOSEN, OVERRIDABLE_FIELDS, SetupForm
from workloads.policing.catalogue import ENVIRONMENT
from workloads.policing.fields import PolicyField
from workloads.policing.kinds import CommandLine, Flag, Pairs, TextList
from workloads.policing.limits import FieldLimits
from workloads.policing.merging import AnyLimits, MergedPolicies
from workloads.specs import Pair, Spec, Variable, join_command_line

CHECKBOX_FLAGS = ("large_shm", "read_only_root", "host_ipc", "host_network")
"""Flags that are a checkbox; other flags are a choice of yes and no."""
_ENVIRONMENT_PREFIX = "setup.environment."


def build_policy_defaults(merged: MergedPolicies) -> TypedValues:
    """Return what policies preset in a setup into which nothing was typed.

    Values of the environment are left to the chosen environment.
    """
    defaults: TypedValues = {}
    for limits in merged.limits.values():
        if limits.fallback is not None and limits.field.section != ENVIRONMENT:
            defaults |= _build_field_values(limits.field, limits.fallback.value)
    return defaults


def apply_policy_locks(step_values: TypedValues, merged: MergedPolicies) -> TypedValues:
    """Return the values of the setup step, with the policies' values of what is locked."""
    for limits in merged.limits.values():
        if isinstance(limits, FieldLimits) and limits.locked is not None:
            step_values = step_values | _build_field_values(limits.field, limits.locked.value)
    return step_values


def mark_policy_limits(
    form: TypedForm, merged: MergedPolicies, *, disable_locked: bool = True
) -> None:
    """Add a note to each field with what policies require of it.

    With `disable_locked`, locked fields are disabled.
    """
    rows = getattr(form, "rows", {})
    for name, limits in merged.limits.items():
        note = " ".join([*_describe_limits(limits), *merged.conflicts.get(name, ())])
        if name in rows:
            rows[name].policy_note = note
        for each in limits.field.form:
            if each in form.fields:
                field = form.fields[each]
                field.policy_note = note  # type: ignore[attr-defined]
                if disable_locked and isinstance(limits, FieldLimits) and limits.locked is not None:
                    field.widget.attrs["disabled"] = True


def mark_forbidden_cards(
    environments: Iterable[EnvironmentAsset],
    resources: Iterable[ComputeResource],
    merged: MergedPolicies,
) -> None:
    """Set `forbidden` on each asset: why policies forbid it, or ""."""
    for environment in environments:
        issues = policing.find_environment_issues(
            asset_rules.build_environment(vars(environment)), merged
        )
        environment.forbidden = " ".join(each.text for each in issues)  # type: ignore[attr-defined]
    for resource in resources:
        issues = policing.find_compute_issues(asset_rules.build_compute(vars(resource)), merged)
        resource.forbidden = " ".join(each.text for each in issues)  # type: ignore[attr-defined]


def find_policy_issues(
    spec: Spec, merged: MergedPolicies, form: SetupForm | None
) -> Sequence[tuple[str, str]]:
    """Return what policies do not allow, as (field, sentence) pairs.

    A value that a chosen environment gives is an issue of the field "environment_choice".
    """
    spec = policing.complete_spec(spec, merged)
    policy_issues = policing.find_issues(spec, merged)
    if spec.setup.environment.image == NOT_CHOSEN:
        policy_issues = [
            issue for issue in policy_issues if not issue.field.startswith(_ENVIRONMENT_PREFIX)
        ]
    return [(_find_form_field(issue.field, form), issue.text) for issue in policy_issues]


def _find_form_field(field: str, form: SetupForm | None) -> str:
    name = field.removeprefix(_ENVIRONMENT_PREFIX)
    if (
        form is None
        or name == field
        or name not in OVERRIDABLE_FIELDS
        or form.read("environment_choice") not in form.environments
    ):
        return field
    return field if form.read(name) else "environment_choice"


def _describe_limits(limits: AnyLimits) -> list[str]:
    sources = policing.describe_sources(limits.sources, short=True)
    if isinstance(limits, FieldLimits) and limits.locked is not None:
        return [f"Locked at {limits.field.kind.describe(limits.locked.value)} by {sources}."]
    notes = []
    if words := limits.range_words:
        notes.append(f"{words[0].upper()}{words[1:]} by {sources}.")
    if isinstance(limits, FieldLimits) and limits.required:
        notes.append(f"Must be given, by {policing.describe_sources(limits.required, short=True)}.")
    if limits.fallback is not None:
        fallback_sources = policing.describe_sources(limits.fallback.sources, short=True)
        notes.append(
            f"Default {limits.field.kind.describe(limits.fallback.value)} by {fallback_sources}."
        )
    return notes


def _build_field_values(field: PolicyField, value: Any) -> TypedValues:
    """Return a value as it would be typed into the form fields of the policy's field."""
    kind = field.kind
    if isinstance(kind, Pairs):
        if field.name == "variables":
            return build_row_values(
                field.name,
                [build_variable_texts(Variable(name, text)) for name, text in value.items()],
            )
        return build_row_values(
            field.name, [build_pair_texts(Pair(name, text)) for name, text in value.items()]
        )
    if field.name == "gpus.portion":
        return {"gpu_share": ["portion"], "gpu_percent": [f"{(value * 100).normalize():f}"]}
    if field.name == "gpus.memory":
        return {"gpu_share": ["memory"], "gpu_memory": [value]}
    [name] = field.form
    if isinstance(kind, Flag):
        if name in CHECKBOX_FLAGS:
            return {name: ["on"] if value else []}
        return {name: ["yes" if value else "no"]}
    if isinstance(kind, TextList):
        return {name: [" ".join(value)]}
    return {name: [join_command_line(value) if isinstance(kind, CommandLine) else str(value)]}
