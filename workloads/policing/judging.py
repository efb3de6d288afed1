"""A submission against the merged policies of its project: completed, then judged. Pure."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from workloads.policing.catalogue import CATALOGUE
from workloads.policing.fields import PolicyField
from workloads.policing.kinds import LEAST, LOCKED, MOST, OPTIONS, STEP, Pairs
from workloads.policing.limits import FieldLimits, PolicySources, describe_sources
from workloads.policing.merging import AnyLimits, MergedPolicies
from workloads.specs import (
    UNCHANGED,
    Compute,
    DataDelivery,
    Environment,
    MasterChanges,
    Setup,
    Spec,
    gpu_totals,
    is_gpu_resource,
)
from workloads.specs.fields import PolicySection

WORKERS, MASTER = "setup.", "master."
DATA_WORKERS = "data_delivery."
_DATA_WORKER_FIELDS = ("image", "cpu_request", "cpu_limit", "memory_request", "memory_limit")
"""The fields of pods that data workers have of their own, by their names in rules."""
_GPUS = ("gpus.devices", "gpus.portion", "gpus.memory")


@dataclass(frozen=True, slots=True)
class PolicyIssue:
    """A rule that a submission breaks.

    `field` is named as by `specs.find_problems`, `text` is a sentence, and `rule` the rule's name,
    as "workers.max".
    """

    field: str
    text: str
    rule: str


def complete_spec(
    spec: Spec, merged: MergedPolicies, given_fields: Container[str] | None = None
) -> Spec:
    """Return the spec with the values that policies set where it gives none.

    `given_fields` are the paths that were given; None where everything with a value was given, as
    by a form.
    """
    fallbacks = [
        (limits.field, limits.fallback.value)
        for limits in merged.limits.values()
        if limits.fallback is not None
    ]
    completed = spec
    for field, value in fallbacks:
        if not field.is_of_pods and field.applies_to(spec):
            completed = _set_value(
                field, completed, value, is_omitted=field.is_omitted(spec, "", given_fields)
            )
    setup = _complete_setup(spec.setup, WORKERS, fallbacks, given_fields)
    completed = _complete_data_delivery(completed, fallbacks)
    if spec.has_master and spec.master != UNCHANGED:
        master = _complete_setup(spec.master_setup, MASTER, fallbacks, given_fields)
        completed = replace(completed, master=MasterChanges.from_setups(setup, master))
    return completed if setup == spec.setup else replace(completed, setup=setup)


def find_issues(spec: Spec, merged: MergedPolicies) -> Sequence[PolicyIssue]:
    """Return every rule that a completed spec breaks."""
    return tuple(dict.fromkeys(_iterate_issues(spec, merged)))


def list_set_values(spec: Spec, merged: MergedPolicies) -> Sequence[tuple[str, str, str]]:
    """Return what equals a value set by policies: (label, value, policies) in words."""
    return [
        (limits.field.label, limits.field.kind.describe(value), describe_sources(by))
        for limits, value, by in _list_set_limits(spec, merged)
    ]


def list_setting_policy_ids(spec: Spec, merged: MergedPolicies) -> Sequence[str]:
    """Return the ids of the policies that have set a value."""
    return tuple(
        dict.fromkeys(source.key for _, _, by in _list_set_limits(spec, merged) for source in by)
    )


def find_environment_issues(
    environment: Environment, merged: MergedPolicies
) -> Sequence[PolicyIssue]:
    """Return why an environment cannot be chosen as it is."""
    return _find_asset_issues(Setup(environment), PolicySection.ENVIRONMENT, merged)


def find_compute_issues(compute: Compute, merged: MergedPolicies) -> Sequence[PolicyIssue]:
    """Return why a compute resource cannot be chosen as it is."""
    setup = Setup(Environment("none"), compute)
    return _find_asset_issues(setup, PolicySection.COMPUTE, merged)


def _list_set_limits(
    spec: Spec, merged: MergedPolicies
) -> Iterator[tuple[AnyLimits, Any, PolicySources]]:
    for limits in merged.limits.values():
        field, fallback = limits.field, limits.fallback
        if fallback is None or not field.applies_to(spec):
            continue
        value = field.get_effective(spec.setup if field.is_of_pods else spec)
        kind = field.kind
        same = (
            _has_pairs(value, fallback.value)
            if isinstance(kind, Pairs)
            else value is not None and kind.comparable(value) == kind.comparable(fallback.value)
        )
        if same:
            yield limits, fallback.value, fallback.sources


def _find_asset_issues(
    setup: Setup, section: PolicySection, merged: MergedPolicies
) -> Sequence[PolicyIssue]:
    """Judge only the fields that the asset sets.

    The others are typed in the form, or set by a policy.
    """
    issues: list[PolicyIssue] = []
    for limits in merged.limits.values():
        field = limits.field
        if (
            field.section is section
            and not isinstance(field.kind, Pairs)
            and field.get_given(setup) is not None
        ):
            issues += _judge_field(limits, setup, "", field.label)
    return issues


def _iterate_issues(spec: Spec, merged: MergedPolicies) -> Iterator[PolicyIssue]:
    for limits in merged.limits.values():
        field = limits.field
        if not field.applies_to(spec):
            continue
        if not field.is_of_pods:
            yield from _judge_field(limits, spec, "", field.label)
            continue
        wrong = list(_judge_field(limits, spec.setup, WORKERS, field.label))
        yield from wrong
        if spec.has_master and spec.master != UNCHANGED:
            reported = {(issue.text, issue.rule) for issue in wrong}
            for issue in _judge_field(limits, spec.master_setup, MASTER, field.label):
                if (issue.text, issue.rule) not in reported:
                    yield replace(issue, text=f"For the master: {_lower_first(issue.text)}")
    yield from _find_vendor_gpu_issues(spec, merged)
    yield from _find_data_worker_issues(spec, merged)
    if spec.elastic is None:
        return
    most_workers = spec.elastic.max_pods - int(spec.has_master)
    workers, total = merged.find_limits("workers"), merged.find_limits("total_gpus")
    if isinstance(workers, FieldLimits):
        yield from _find_growth_issues(most_workers, workers, "workers")
    if isinstance(total, FieldLimits):
        most_gpus = gpu_totals.count_total(replace(spec, workers=most_workers))
        yield from _find_growth_issues(most_gpus, total, "GPUs")


def _find_vendor_gpu_issues(spec: Spec, merged: MergedPolicies) -> Iterator[PolicyIssue]:
    """Yield issues for GPUs requested by a cluster's resource names, where GPUs are ruled."""
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
                text = (
                    f"{lead}{each.resource} cannot be asked for here: it stands for GPUs, and what "
                    "is ruled of GPUs cannot be held against its quantity "
                    f"({describe_sources(by)}). Ask for GPU devices instead, or ask who set the "
                    "policy."
                )
                yield PolicyIssue(f"{prefix}compute.extended.{index}.resource", text, name)


def _find_data_worker_issues(spec: Spec, merged: MergedPolicies) -> Iterator[PolicyIssue]:
    """Yield issues with what data workers have of their own: what is ruled of each pod."""
    delivery = spec.data_delivery
    if delivery is None:
        return
    setup = _build_data_setup(delivery)
    for name in _DATA_WORKER_FIELDS:
        limits = merged.find_limits(name)
        # Without an image of their own they have that of the workers, which is judged there.
        if limits is None or (name == "image" and not delivery.image):
            continue
        for issue in _judge_field(limits, setup, "", limits.field.label):
            path = f"{DATA_WORKERS}{issue.field.removeprefix('environment.')}"
            yield PolicyIssue(path, f"For the data workers: {_lower_first(issue.text)}", issue.rule)


def _build_data_setup(delivery: DataDelivery) -> Setup:
    return Setup(Environment(delivery.image), delivery.compute)


def _find_first_rule(limits: AnyLimits | None) -> tuple[str, PolicySources] | None:
    """Return the name and the sources of the first rule of a field.

    Defaults do not count. None where the field has no rule.
    """
    if not isinstance(limits, FieldLimits):
        return None
    limits_by_attribute = (
        (LOCKED, limits.locked),
        (MOST, limits.most),
        (LEAST, limits.least),
        (OPTIONS, limits.options),
        (STEP, next(iter(limits.steps), None)),
    )
    first = next(
        ((attribute, each.sources) for attribute, each in limits_by_attribute if each is not None),
        None,
    )
    return (f"{limits.field.name}.{first[0]}", first[1]) if first else None


def _find_growth_issues(
    most: int | Fraction, limits: FieldLimits, noun: str
) -> Iterator[PolicyIssue]:
    """Yield issues with the workers, or GPUs, that an elastic workload may grow to.

    The limits are those without growing.
    """
    path, name, locked = "elastic.max_pods", limits.field.name, limits.locked
    number = gpu_totals.format_number(Fraction(most))
    grows = f"{CATALOGUE[path].label} lets it grow to {number} {noun},"
    if locked is not None and most > (locked.value or 0):
        words = f"which are locked at {locked.value or 0:,}"
        yield PolicyIssue(
            path, f"{grows} {words} ({describe_sources(locked.sources)}).", f"{name}.{LOCKED}"
        )
        return
    for breach in limits.find_value_breaches(most):
        if breach.attribute == MOST:
            yield PolicyIssue(
                path,
                f"{grows} and there {breach.text} ({describe_sources(breach.sources)}).",
                f"{name}.{MOST}",
            )


def _lower_first(sentence: str) -> str:
    """Return a sentence as it goes on after other words; "CPU" stays."""
    return sentence if sentence[1:2].isupper() else sentence[0].lower() + sentence[1:]


def _judge_field(limits: AnyLimits, part: Any, prefix: str, label: str) -> Iterator[PolicyIssue]:
    field = limits.field
    value, is_omitted = field.get_effective(part), field.get_given(part) is None
    try:
        breaches = list(limits.find_breaches(value, is_omitted=is_omitted))
    except ValueError:
        # The value is not a quantity: `specs` reports that, with a better message.
        return
    for breach in breaches:
        row = field.find_row(part, breach.position) if breach.position else ""
        path = f"{prefix}{field.path}{row}"
        yield PolicyIssue(
            path,
            f"{label} {breach.text} ({describe_sources(breach.sources)}).",
            f"{field.name}.{breach.attribute}",
        )


def _complete_setup(
    setup: Setup,
    prefix: str,
    fallbacks: Sequence[tuple[PolicyField, Any]],
    given_fields: Container[str] | None,
) -> Setup:
    completed = setup
    for field, value in fallbacks:
        if field.is_of_pods:
            completed = _set_value(
                field, completed, value, is_omitted=field.is_omitted(setup, prefix, given_fields)
            )
    return completed


def _complete_data_delivery(spec: Spec, fallbacks: Sequence[tuple[PolicyField, Any]]) -> Spec:
    """Return the spec with the CPU and memory that policies set where data workers have none."""
    delivery = spec.data_delivery
    if delivery is None:
        return spec
    setup = _build_data_setup(delivery)
    for field, value in fallbacks:
        if field.name in _DATA_WORKER_FIELDS and field.name != "image":
            is_omitted = field.get_given(setup) is None
            setup = _set_value(field, setup, value, is_omitted=is_omitted)
    return replace(spec, data_delivery=replace(delivery, compute=setup.compute))


def _set_value(field: PolicyField, part: Any, value: Any, *, is_omitted: bool) -> Any:
    """Return a part of a Spec with a value where none was given; pairs are always completed."""
    if isinstance(field.kind, Pairs) or (is_omitted and value != field.kind.empty):
        return field.set_value(part, value)
    return part


def _has_pairs(pairs: Mapping[str, Any] | None, expected: Mapping[str, str]) -> bool:
    return pairs is not None and all(pairs.get(name) == value for name, value in expected.items())
