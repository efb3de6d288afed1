"""A submission against what holds for its project: completed with what policies set, and judged as
the object that it then is. Pure.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workloads.policing.catalogue import CATALOGUE, COMPUTE, ENVIRONMENT
from workloads.policing.fields import Field
from workloads.policing.kinds import LEAST, LOCKED, MOST, OPTIONS, STEP, Pairs
from workloads.policing.limits import Breach, Limits, Sources, by_words
from workloads.policing.merging import AnyLimits, Merged
from workloads.specs import UNCHANGED, Compute, Environment, MasterChanges, Setup, Spec, names_gpus

WORKERS, MASTER = "setup.", "master."
_GPUS = ("gpus.devices", "gpus.portion", "gpus.memory")


@dataclass(frozen=True, slots=True)
class Issue:
    """A rule that a submission breaks: `field` as `specs.problems` names it, a sentence, and the
    rule's name, as "workers.max".
    """

    field: str
    text: str
    rule: str


def completed(spec: Spec, merged: Merged, said: Container[str] | None = None) -> Spec:
    """The submission with what policies set where it says nothing.

    `said` are the paths of what it gave; None where everything that has a value was given, as by a
    form.
    """
    given = [
        (limits.field, limits.given.value)
        for limits in merged.limits.values()
        if limits.given is not None
    ]
    whole = spec
    for field, value in given:
        if not field.of_pods and field.applies(spec):
            whole = _set(field, whole, value, silent=field.is_silent(spec, "", said))
    setup = _completed_setup(spec.setup, WORKERS, given, said)
    if spec.has_master and spec.master != UNCHANGED:
        master = _completed_setup(spec.master_setup, MASTER, given, said)
        whole = replace(whole, master=MasterChanges.between(setup, master))
    return whole if setup == spec.setup else replace(whole, setup=setup)


def issues(spec: Spec, merged: Merged) -> Sequence[Issue]:
    """Everything in which a completed submission is not as the policies want it."""
    return tuple(dict.fromkeys(_issues(spec, merged)))


def set_by(spec: Spec, merged: Merged) -> Sequence[tuple[str, str, str]]:
    """What is as policies set it: (label, value, policies) in words."""
    return [
        (limits.field.label, limits.field.kind.words(value), by_words(by))
        for limits, value, by in _set_by(spec, merged)
    ]


def setters(spec: Spec, merged: Merged) -> Sequence[str]:
    """The ids of the policies that have set something."""
    return tuple(dict.fromkeys(source.key for _, _, by in _set_by(spec, merged) for source in by))


def about_environment(environment: Environment, merged: Merged) -> Sequence[Issue]:
    """Why an environment cannot be chosen as it is."""
    return _about(Setup(environment), ENVIRONMENT, merged)


def about_compute(compute: Compute, merged: Merged) -> Sequence[Issue]:
    """Why a compute resource cannot be chosen as it is."""
    return _about(Setup(Environment("none"), compute), COMPUTE, merged)


def _set_by(spec: Spec, merged: Merged) -> Iterator[tuple[AnyLimits, Any, Sources]]:
    for limits in merged.limits.values():
        field, given = limits.field, limits.given
        if given is None or not field.applies(spec):
            continue
        value = field.value(spec.setup if field.of_pods else spec)
        kind = field.kind
        same = (
            _has(value, given.value)
            if isinstance(kind, Pairs)
            else value is not None and kind.amount(value) == kind.amount(given.value)
        )
        if same:
            yield limits, given.value, given.by


def _about(setup: Setup, section: str, merged: Merged) -> Sequence[Issue]:
    """Only what it says itself counts: what it leaves open is typed besides, or set by a policy."""
    found: list[Issue] = []
    for limits in merged.limits.values():
        field = limits.field
        if (
            field.section == section
            and not isinstance(field.kind, Pairs)
            and field.raw(setup) is not None
        ):
            found += _judged(limits, setup, "", field.label)
    return found


def _issues(spec: Spec, merged: Merged) -> Iterator[Issue]:
    for limits in merged.limits.values():
        field = limits.field
        if not field.applies(spec):
            continue
        if not field.of_pods:
            yield from _judged(limits, spec, "", field.label)
            continue
        wrong = list(_judged(limits, spec.setup, WORKERS, field.label))
        yield from wrong
        if spec.has_master and spec.master != UNCHANGED:
            told = {(issue.text, issue.rule) for issue in wrong}
            for issue in _judged(limits, spec.master_setup, MASTER, field.label):
                if (issue.text, issue.rule) not in told:
                    yield replace(issue, text=f"For the master: {_within(issue.text)}")
    yield from _of_vendors(spec, merged)
    workers = merged.of("workers")
    if spec.elastic is not None and isinstance(workers, Limits):
        yield from _grown(spec.elastic.max_workers, workers)


def _of_vendors(spec: Spec, merged: Merged) -> Iterator[Issue]:
    """GPUs that are asked for by the names of a cluster's resources, where a policy has a rule of
    GPUs.
    """
    rule = next(filter(None, (_ruled(merged.limits.get(name)) for name in _GPUS)), None)
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
            if names_gpus(each.resource):
                told = (
                    f"{lead}{each.resource} cannot be asked for here: it stands for GPUs, and "
                    "what is ruled of GPUs cannot be held "
                    f"against its quantity ({by_words(by)}). Ask for GPU devices instead, or ask "
                    "who set the policy."
                )
                yield Issue(f"{prefix}compute.extended.{index}.resource", told, name)


def _ruled(limits: AnyLimits | None) -> tuple[str, Sources] | None:
    """The first thing that is ruled about a field, more than what stands where nothing is said: the
    rule's name, and whose it is.
    """
    if not isinstance(limits, Limits):
        return None
    said = (
        (LOCKED, limits.locked),
        (MOST, limits.most),
        (LEAST, limits.least),
        (OPTIONS, limits.options),
        (STEP, next(iter(limits.steps), None)),
    )
    found = next(((attribute, each.by) for attribute, each in said if each is not None), None)
    return (f"{limits.field.name}.{found[0]}", found[1]) if found else None


def _grown(most: int, workers: Limits) -> Iterator[Issue]:
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
        yield Issue(path, f"{label} {told} ({by_words(locked.by)}).", f"workers.{LOCKED}")
        return
    for breach in workers.wrong(most):
        if breach.attribute == MOST:
            yield Issue(path, f"{label} {breach.text} ({by_words(breach.by)}).", f"workers.{MOST}")


def _within(sentence: str) -> str:
    """A sentence as it goes on after other words: "CPU" stays."""
    return sentence if sentence[1:2].isupper() else sentence[0].lower() + sentence[1:]


def _judged(limits: AnyLimits, part: Any, prefix: str, label: str) -> Iterator[Issue]:
    field = limits.field
    value, silent = field.value(part), field.raw(part) is None
    try:
        breaches = list(limits.judge(value, silent=silent))
    except ValueError:
        # It is no quantity: that is told of already, and by who knows more about it.
        return
    for breach in breaches:
        path = f"{prefix}{field.path}{_place(field, breach, part)}"
        yield Issue(
            path,
            f"{label} {breach.text} ({by_words(breach.by)}).",
            f"{field.name}.{breach.attribute}",
        )


def _place(field: Field, breach: Breach, part: Any) -> str:
    """Where in a list it is."""
    if not breach.at:
        return ""
    if field.name == "volumes":
        return next(
            (
                f".{number}.kind"
                for number, each in enumerate(part.volumes)
                if each.kind == breach.at
            ),
            "",
        )
    if field.name == "variables":
        names = [each.name for each in part.environment.variables]
    elif isinstance(field.kind, Pairs):
        names = [each.key for each in getattr(part, field.path)]
    else:
        return ""
    return f".{names.index(breach.at)}.value" if breach.at in names else ""


def _completed_setup(
    setup: Setup, prefix: str, given: Sequence[tuple[Field, Any]], said: Container[str] | None
) -> Setup:
    found = setup
    for field, value in given:
        if field.of_pods:
            found = _set(field, found, value, silent=field.is_silent(setup, prefix, said))
    return found


def _set(field: Field, part: Any, value: Any, *, silent: bool) -> Any:
    """A part of a Spec with a value where nothing was said; of pairs with those whose names are
    missing.
    """
    if field.set is None:
        return part
    if isinstance(field.kind, Pairs):
        there = field.value(part) or {}
        missing = {name: text for name, text in value.items() if name not in there}
        return field.set(part, missing) if missing else part
    return field.set(part, value) if silent and value != field.kind.empty else part


def _has(there: Mapping[str, Any] | None, wanted: Mapping[str, str]) -> bool:
    return there is not None and all(there.get(name) == value for name, value in wanted.items())
