"""Policies in the wizard: their defaults filled in, their locks kept, their limits beside the
fields, and the cards that they forbid.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from console.typed import Typed, TypedForm, as_rows
from environments.models import ComputeResource
from environments.models import Environment as EnvironmentAsset
from workloads import asset_rules, policing
from workloads.forms.rows import typed_pair, typed_variable
from workloads.forms.setup import NOT_CHOSEN, OWN, SetupForm
from workloads.policing.catalogue import ENVIRONMENT
from workloads.policing.fields import Field
from workloads.policing.kinds import Flag, Line, Members, Pairs
from workloads.policing.limits import Limits
from workloads.policing.merging import AnyLimits, Merged
from workloads.specs import Pair, Spec, Variable, join_words

BOXES = ("large_shm", "read_only_root", "host_ipc", "host_network")
"""Flags that are a box to tick; others are a choice of yes and no."""
_OF_CARD = "setup.environment."


def prefilled(merged: Merged) -> Typed:
    """What policies set of a setup into which nothing was typed; what an environment says is left
    to the chosen one.
    """
    found: Typed = {}
    for limits in merged.limits.values():
        if limits.given is not None and limits.field.section != ENVIRONMENT:
            found |= _typed(limits.field, limits.given.value)
    return found


def kept(typed: Typed, merged: Merged) -> Typed:
    """What was typed into a setup, with the values of what is locked."""
    for limits in merged.limits.values():
        if isinstance(limits, Limits) and limits.locked is not None:
            typed = typed | _typed(limits.field, limits.locked.value)
    return typed


def mark(form: TypedForm, merged: Merged, *, locks: bool = True) -> None:
    """Say beside each field what policies want of it; with `locks`, what is locked cannot be typed
    into.
    """
    rows = getattr(form, "rows", {})
    for name, limits in merged.limits.items():
        note = " ".join([*_notes(limits), *merged.conflicts.get(name, ())])
        if name in rows:
            rows[name].policy_note = note
        for each in limits.field.form:
            if each in form.fields:
                field = form.fields[each]
                field.policy_note = note  # type: ignore[attr-defined]
                if locks and isinstance(limits, Limits) and limits.locked is not None:
                    field.widget.attrs["disabled"] = True


def judge_cards(
    environments: Iterable[EnvironmentAsset], resources: Iterable[ComputeResource], merged: Merged
) -> None:
    """Put on each asset why it is `forbidden`, "" where it is not."""
    for environment in environments:
        found = policing.about_environment(asset_rules.environment_of(vars(environment)), merged)
        environment.forbidden = " ".join(each.text for each in found)  # type: ignore[attr-defined]
    for resource in resources:
        about = policing.about_compute(asset_rules.compute_of(vars(resource)), merged)
        resource.forbidden = " ".join(each.text for each in about)  # type: ignore[attr-defined]


def issues(spec: Spec, merged: Merged, form: SetupForm | None) -> Sequence[tuple[str, str]]:
    """What policies do not allow: (field, sentence) pairs. What a chosen card says is the card's to
    answer for: "environment_choice".
    """
    spec = policing.completed(spec, merged)
    found = policing.issues(spec, merged)
    if spec.setup.environment.image == NOT_CHOSEN:
        found = [issue for issue in found if not issue.field.startswith(_OF_CARD)]
    return [(_place(issue.field, form), issue.text) for issue in found]


def _place(field: str, form: SetupForm | None) -> str:
    name = field.removeprefix(_OF_CARD)
    if (
        form is None
        or name == field
        or name not in OWN
        or form.read("environment_choice") not in form.environments
    ):
        return field
    return field if form.read(name) else "environment_choice"


def _notes(limits: AnyLimits) -> list[str]:
    by = policing.by_words(limits.sources, short=True)
    if isinstance(limits, Limits) and limits.locked is not None:
        return [f"Locked at {limits.field.kind.words(limits.locked.value)} by {by}."]
    found = []
    if words := limits.range_words:
        found.append(f"{words[0].upper()}{words[1:]} by {by}.")
    if isinstance(limits, Limits) and limits.required:
        found.append(f"Must be given, by {policing.by_words(limits.required, short=True)}.")
    if limits.given is not None:
        theirs = policing.by_words(limits.given.by, short=True)
        found.append(f"Default {limits.field.kind.words(limits.given.value)} by {theirs}.")
    return found


def _typed(field: Field, value: Any) -> Typed:
    """A value as it would be typed into the fields that the policy's field stands beside."""
    kind = field.kind
    if isinstance(kind, Pairs):
        if field.name == "variables":
            return as_rows(
                field.name, [typed_variable(Variable(name, text)) for name, text in value.items()]
            )
        return as_rows(field.name, [typed_pair(Pair(name, text)) for name, text in value.items()])
    if field.name == "gpus.portion":
        return {"gpu_share": ["portion"], "gpu_percent": [f"{(value * 100).normalize():f}"]}
    if field.name == "gpus.memory":
        return {"gpu_share": ["memory"], "gpu_memory": [value]}
    [name] = field.form
    if isinstance(kind, Flag):
        if name in BOXES:
            return {name: ["on"] if value else []}
        return {name: ["yes" if value else "no"]}
    if isinstance(kind, Members):
        return {name: [" ".join(value)]}
    return {name: [join_words(value) if isinstance(kind, Line) else str(value)]}
