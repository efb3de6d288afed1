"""Policies in the wizard: defaults, locks, limits beside the fields, and forbidden cards."""

from collections.abc import Iterable, Sequence
from typing import Any

from console.typed_forms import TypedForm, TypedValues
from environments.models import ComputeResource
from environments.models import Environment as EnvironmentAsset
from workloads import asset_rules, policing
from workloads.forms.pod_form import GPU_SHARES
from workloads.forms.setup_form import NOT_CHOSEN, OVERRIDABLE_FIELDS, SetupForm
from workloads.forms.typed_fields import build_field_values
from workloads.policing import PolicyIssue
from workloads.policing.fields import PolicyField
from workloads.policing.limits import FieldLimits
from workloads.policing.merging import AnyLimits, MergedPolicies
from workloads.specs import Spec
from workloads.specs.fields import PolicySection
from workloads.specs.fields.types import Rows

_ENVIRONMENT_PREFIX = "setup.environment."


def build_policy_defaults(merged: MergedPolicies) -> TypedValues:
    """Return what policies preset in a setup into which nothing was typed.

    Values of the environment are left to the chosen environment.
    """
    defaults: TypedValues = {}
    for limits in merged.limits.values():
        if limits.fallback is not None and limits.field.section is not PolicySection.ENVIRONMENT:
            defaults |= _build_values(limits.field, limits.fallback.value)
    return defaults


def apply_policy_locks(step_values: TypedValues, merged: MergedPolicies) -> TypedValues:
    """Return the values of the setup step, with the policies' values of what is locked."""
    for limits in merged.limits.values():
        if isinstance(limits, FieldLimits) and limits.locked is not None:
            step_values = step_values | _build_values(limits.field, limits.locked.value)
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
        field = limits.field.field
        if field.name in rows:
            rows[field.name].policy_note = note
        elif (form_field := form.fields.get(field.form_names[0])) is not None:
            form_field.policy_note = note  # type: ignore[attr-defined]
            if disable_locked and isinstance(limits, FieldLimits) and limits.locked is not None:
                form_field.widget.attrs["disabled"] = True


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


def locate_policy_issues(
    spec: Spec, policy_issues: Sequence[PolicyIssue], form: SetupForm | None
) -> Sequence[tuple[str, str]]:
    """Return what policies do not allow of a completed spec, as (field, sentence) pairs.

    A value that a chosen environment gives is an issue of the field "environment_choice".
    """
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


def _build_values(policy_field: PolicyField, value: Any) -> TypedValues:
    """Return a policy's value as it would be typed into the form fields of the policy's field."""
    field = policy_field.field
    if isinstance(field.type, Rows):
        # Policies have the values of rows by their names.
        value = [field.type.part(name, text) for name, text in value.items()]
    shares = [share for share, path in GPU_SHARES.items() if path == field.path]
    return build_field_values(field, value) | ({"gpu_share": shares} if shares else {})
