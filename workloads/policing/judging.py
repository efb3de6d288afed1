"""A submission against what holds for its project: completed with what policies set, and judged as
the object that it then is. Pure.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workloads.policing.catalogue import CATALOGUE, COMPUTE, ENVIRONMENT
from workloads.policing.fields import PolicyField
from workloads.policing.kinds import LEAST, LOCKED, MOST, OPTIONS, STEP, Pairs
from workloads.policing.limits import Breach, FieldLimits, PolicySources, describe_sources
from workloads.policing.merging import AnyLimits, MergedPolicies
from workloads.specs import (
    UNCHANGED,
    Compute,
    Environment,
    MasterChanges,
    Setup,
    Spec,
    is_gpu_resource,
)

WORKERS, MASTER = "setup.", "master."
_GPUS = ("gpus.devices", "gpus.portion", "gpus.memory")


@dataclass(frozen=True, slots=True)
class PolicyIssue:
    """A rule that a submission breaks: `field` as `specs.problems` names it, a sentence, and the
    rule's name, as "workers.max".
    """

    field: str
    text: str
    rule: str


def complete_spec(
    spec: Spec, merged: MergedPolicies, given_fields: Container[str] | None = None
) -> Spec:
    """The submission with what policies set where it says nothing.

    `said` are the paths of what it gave; None where everything that has a value was given, as by a
    form.
    """
    given = [
        (limits.field, limits.fallback.value)
        for limits in merged.limits.values()
        if limits.fallback is not None
    ]
    whole = spec
    for field, value in given:
        if not field.of_pods and field.applies_to(spec):
            whole = _set_value(
                field, whole, value, is_omitted=field.is_omitted(spec, "", given_fields)
            )
    setup = _complete_setup(spec.setup, WORKERS, given, given_fields)
    if spec.has_master and spec.master != UNCHANGED:
        master = _complete_setup(spec.master_setup, MASTER, given, given_fields)
        whole = replace(whole, master=MasterChanges.from_setups(setup, master))
    return whole if setup == spec.setup else replace(whole, setup=setup)


def find_issues(spec: Spec, merged: MergedPolicies) -> Sequence[PolicyIssue]:
    """Everything in which a completed submission is not as the policies want it."""
    return tuple(dict.fromkeys(_iterate_issues(spec, merged)))


def list_set_values(spec: Spec, merged: MergedPolicies) -> Sequence[tuple[str, str, str]]:
    """What is as policies set it: (label, value, policies) in words."""
    return [
        (limits.field.label, limits.field.kind.describe(value), describe_sources(by))
        for limits, value, by in _list_set_limits(spec, merged)
    ]


def list_setting_policy_ids(spec: Spec, merged: MergedPolicies) -> Sequence[str]:
    """The ids of the policies that have set something."""
    return tuple(
        dict.fromkeys(source.key for _, _, by in _list_set_limits(spec, merged) for source in by)
    )


def find_environment_issues(
    environment: Environment, merged: MergedPolicies
) -> Sequence[PolicyIssue]:
    """Why an environment cannot be chosen as it is."""
    return _find_asset_issues(Setup(environment), ENVIRONMENT, merged)


def find_compute_issues(compute: Compute, merged: MergedPolicies) -> Sequence[PolicyIssue]:
    """Why a compute resource cannot be chosen as it is."""
    return _find_asset_issues(Setup(Environment("none"), compute), COMPUTE, merged)


def _list_set_limits(
    spec: Spec, merged: MergedPolicies
) -> Iterator[tuple[AnyLimits, Any, PolicySources]]:
    for limits in merged.limits.values():
        field, given = limits.field, limits.fallback
        if given is None or not field.applies_to(spec):
            continue
        value = field.value(spec.setup if field.of_pods else spec)
        kind = field.kind
        same = (
            _has_pairs(value, given.value)
            if isinstance(kind, Pairs)
            else value is not None and kind.comparable(value) == kind.comparable(given.value)
        )
        if same:
            yield limits, given.value, given.sources


def _find_asset_issues(setup: Setup, section: str, merged: MergedPolicies) -> Sequence[PolicyIssue]:
    """Only what it says itself counts: what it leaves open is typed besides, or set by a policy."""
    found: list[PolicyIssue] = []
    for limits in merged.limits.values():
        field = limits.field
        if (
            field.section == section
            and not isinstance(field.kind, Pairs)
            and field.raw(setup) is not None
        ):
            found += _judge_field(limits, setup, "", field.label)
    return found


def _iterate_issues(spec: Spec, merged: MergedPolicies) -> Iterator[PolicyIssue]:
    for limits in merged.limits.values():
        field = limits.field
        if not field.applies_to(spec):
            continue
        if not field.of_pods:
            yield from _judge_field(limits, spec, "", field.label)
            continue
        wrong = list(_judge_field(limits, spec.setup, WORKERS, field.label))
        yield from wrong
        if spec.has_master and spec.master != UNCHANGED:
            told = {(issue.text, issue.rule) for issue in wrong}
            for issue in _judge_field(limits, spec.master_setup, MASTER, field.label):
                if (issue.text, issue.rule) not in told:
                    yield replace(issue, text=f"For the master: {_lower_first(issue.text)}")
    yield from _find_vendor_gpu_issues(spec, merged)
    workers = merged.find_limits("workers")
    if spec.elastic is not None and isinstance(workers, FieldLimits):
        yield from _find_growth_issues(spec.elastic.max_workers, workers)


def _find_vendor_gpu_issues(spec: Spec, merged: MergedPolicies) -> Iterator[PolicyIssue]:
    """GPUs that are asked for by the names of a cluster's resources, where a policy has a rule of
    GPUs.
    """
    rule = next(filter(None, (_find_first_rule(merged.limits.get(name)) for name in _GPUS)), None)
    if rule is None:
        return
    setups = [("", WORKERS, spec.setup)]
    if (
        spec.has_master
        and spec.master != UNCHANGED
        and spec.master_setup.compute.extended != spec.setup.compute.extended
    ):
        setups.append(("For the master: ", MASTER, spec.master_setup))
    name, by = rule
    for lead, prefix, setup in setups:
        for index, each in enumerate(setup.compute.extended):
            if is_gpu_resource(each.resource):
                told = (
                    f"{lead}{each.resource} cannot be asked for here: it stands for GPUs, and what "
                    "is ruled of GPUs cannot be held against its quantity "
                    f"({describe_sources(by)}). Ask for GPU devices instead, or ask who set the "
                    "policy."
                )
                yield PolicyIssue(f"{prefix}compute.extended.{index}.resource", told, name)


def _find_first_rule(limits: AnyLimits | None) -> tuple[str, PolicySources] | None:
    """The first thing that is ruled about a field, more than what stands where nothing is said: the
    rule's name, and whose it is.
    """
    if not isinstance(limits, FieldLimits):
        return None
    said = (
        (LOCKED, limits.locked),
        (MOST, limits.most),
        (LEAST, limits.least),
        (OPTIONS, limits.options),
        (STEP, next(iter(limits.steps), None)),
    )
    found = next(((attribute, each.sources) for attribute, each in said if each is not None), None)
    return (f"{limits.field.name}.{found[0]}", found[1]) if found else None


def _find_growth_issues(most: int, workers: FieldLimits) -> Iterator[PolicyIssue]:
    """What is wrong with the workers that an elastic workload may grow to: no more than there may
    be without growing.
    """
    path, label, locked = (
        "elastic.max_workers",
        CATALOGUE["elastic.max_workers"].label,
        workers.locked,
    )
    if locked is not None and most > (locked.value or 0):
        told = f"must be at most {locked.value or 0:,}, at which the workers are locked"
        yield PolicyIssue(
            path, f"{label} {told} ({describe_sources(locked.sources)}).", f"workers.{LOCKED}"
        )
        return
    for breach in workers.find_value_breaches(most):
        if breach.attribute == MOST:
            yield PolicyIssue(
                path,
                f"{label} {breach.text} ({describe_sources(breach.sources)}).",
                f"workers.{MOST}",
            )


def _lower_first(sentence: str) -> str:
    """A sentence as it goes on after other words: "CPU" stays."""
    return sentence if sentence[1:2].isupper() else sentence[0].lower() + sentence[1:]


def _judge_field(limits: AnyLimits, part: Any, prefix: str, label: str) -> Iterator[PolicyIssue]:
    field = limits.field
    value, is_omitted = field.value(part), field.raw(part) is None
    try:
        breaches = list(limits.find_breaches(value, is_omitted=is_omitted))
    except ValueError:
        # It is no quantity: that is told of already, and by who knows more about it.
        return
    for breach in breaches:
        path = f"{prefix}{field.path}{_locate_breach(field, breach, part)}"
        yield PolicyIssue(
            path,
            f"{label} {breach.text} ({describe_sources(breach.sources)}).",
            f"{field.name}.{breach.attribute}",
        )


def _locate_breach(field: PolicyField, breach: Breach, part: Any) -> str:
    """Where in a list it is."""
    if not breach.position:
        return ""
    if field.name == "volumes":
        return next(
            (
                f".{number}.kind"
                for number, each in enumerate(part.volumes)
                if each.kind == breach.position
            ),
            "",
        )
    if field.name == "variables":
        names = [each.name for each in part.environment.variables]
    elif isinstance(field.kind, Pairs):
        names = [each.key for each in getattr(part, field.path)]
    else:
        return ""
    return f".{names.index(breach.position)}.value" if breach.position in names else ""


def _complete_setup(
    setup: Setup,
    prefix: str,
    given: Sequence[tuple[PolicyField, Any]],
    given_fields: Container[str] | None,
) -> Setup:
    found = setup
    for field, value in given:
        if field.of_pods:
            found = _set_value(
                field, found, value, is_omitted=field.is_omitted(setup, prefix, given_fields)
            )
    return found


def _set_value(field: PolicyField, part: Any, value: Any, *, is_omitted: bool) -> Any:
    """A part of a Spec with a value where nothing was said; of pairs with those whose names are
    missing.
    """
    if field.set is None:
        return part
    if isinstance(field.kind, Pairs):
        there = field.value(part) or {}
        missing = {name: text for name, text in value.items() if name not in there}
        return field.set(part, missing) if missing else part
    return field.set(part, value) if is_omitted and value != field.kind.empty else part


def _has_pairs(there: Mapping[str, Any] | None, wanted: Mapping[str, str]) -> bool:
    return there is not None and all(there.get(name) == value for name, value in wanted.items())
