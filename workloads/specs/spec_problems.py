"""Validation of a whole Spec: problems in words for the user, each with its field."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from workloads.specs import pod_problems, value_rules
from workloads.specs.choices import CleanPodPolicy, Framework, RestartPolicy, VolumeAccess
from workloads.specs.delivery_problems import check_data_delivery
from workloads.specs.fields import FIELDS, get_value
from workloads.specs.fields.numbers import MAX_RUNS, MAX_TOTAL_GPUS, MAX_WORKERS
from workloads.specs.fields.types import Number
from workloads.specs.problem_reports import FieldProblem, report_problem
from workloads.specs.spec import DEFAULT_MPI, UNCHANGED, Spec

MAX_RESTARTS = 100_000
MAX_SLOTS = 1_000


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one field of a Spec.

    `field` is a path such as "setup.environment.image" or "master.volumes.0.path"; `text` is a
    sentence that names the field in words.
    """

    field: str
    text: str


def find_problems(spec: Spec) -> Sequence[Problem]:
    """Return everything that is wrong with a spec.

    Empty when the spec can be built and the cluster's schemas will accept it.
    """
    problems = [Problem(field, f"{title} {text}.") for field, title, text in _check_spec(spec)]
    return tuple(dict.fromkeys(problems))


def _check_spec(spec: Spec) -> Iterator[FieldProblem]:
    max_length = value_rules.max_name_length(
        spec.framework if spec.is_distributed else None, spec.workers
    )
    yield from report_problem("name", "The name", value_rules.check_name(spec.name, max_length))
    yield from report_problem(
        "project", "The project", value_rules.check_name(spec.project, value_rules.MAX_LABEL_LENGTH)
    )
    yield from report_problem(
        "namespace", "The namespace", value_rules.check_namespace(spec.namespace)
    )
    yield from report_problem(
        "queue",
        "The queue",
        value_rules.check_object_name(spec.queue) or value_rules.check_label_value(spec.queue),
    )
    yield from _check_distributed(spec) if spec.is_distributed else _check_standard(spec)
    yield from check_data_delivery(spec)
    yield from _check_number_ranges(spec)
    setup_problems = list(pod_problems.find_setup_problems(spec.setup))
    yield from (("setup." + field, title, text) for field, title, text in setup_problems)
    if spec.has_master and spec.master != UNCHANGED:
        for field, title, text in pod_problems.find_setup_problems(spec.master_setup):
            if (field, title, text) not in setup_problems:
                yield "master." + field, f"For the master: {title[0].lower()}{title[1:]}", text


def _check_distributed(spec: Spec) -> Iterator[FieldProblem]:
    if spec.framework is None:
        yield "framework", "The framework", "must be chosen for a distributed workload"
    fewest = 0 if spec.can_master_be_alone else 1
    count = value_rules.check_count(spec.workers, fewest, MAX_WORKERS)
    yield from report_problem("workers", "The number of workers", count)
    if spec.total_gpus is not None:
        yield from _check_total(spec, spec.total_gpus)
    if not spec.has_master and spec.master != UNCHANGED:
        yield (
            "master",
            "The master's setup",
            "cannot be changed, for this configuration has no master",
        )
    if spec.runs != 1 or spec.parallelism != 1:
        yield "runs", "The number of runs", "is for standard workloads; a distributed one runs once"
    if spec.elastic is not None:
        yield from _check_elastic(spec)
    if spec.framework is not None:
        yield from _check_configuration(spec, spec.framework)
        yield from _check_options(spec, spec.framework.options)
        if spec.framework.adapter.has_pod_restarts_only:
            yield from _check_pod_restarts(spec, spec.framework.label)
        yield from _check_operator_variables(spec, spec.framework)


def _check_total(spec: Spec, total: int) -> Iterator[FieldProblem]:
    title = FIELDS["total_gpus"].subject
    yield from report_problem(
        "total_gpus", title, value_rules.check_count(total, 1, MAX_TOTAL_GPUS)
    )
    setups = (spec.setup, spec.master_setup) if spec.has_master else (spec.setup,)
    if any(setup.compute.gpus.memory for setup in setups):
        yield (
            "total_gpus",
            title,
            "cannot be given where GPUs are asked for by their memory, which is no number of them; "
            "give the number of workers",
        )


def _check_configuration(spec: Spec, framework: Framework) -> Iterator[FieldProblem]:
    default_configuration = framework.configurations[0]
    if spec.configuration not in framework.configurations:
        why = (
            "its workers are all alike"
            if spec.has_master
            else f"it cannot do without a {framework.master_name}"
        )
        yield (
            "configuration",
            "The configuration",
            f"must be {default_configuration.label} for {framework.label}: {why}",
        )
    if not framework.adapter.is_leader_ranked:
        why = f"for {framework.label}, whose ranks all run in the workers, which are alike"
    elif not spec.has_distinct_first_pod:
        why = "without a master, for all workers are alike"
    else:
        return
    for index, volume in enumerate(spec.setup.volumes):
        if volume.access is VolumeAccess.RANK_0_WRITES:
            yield (
                f"setup.volumes.{index}.access",
                f"The access of volume {index + 1}",
                f"cannot be for rank 0 only {why}",
            )


def _check_options(spec: Spec, options: Sequence[str] = ()) -> Iterator[FieldProblem]:
    """Check the fields that not every framework has; without `options` none may be given."""
    if "parameter_servers" in options:
        yield from report_problem(
            "parameter_servers",
            "The number of parameter servers",
            value_rules.check_count(spec.parameter_servers, 0, MAX_WORKERS),
        )
    elif spec.parameter_servers:
        owners = _name_frameworks_with("parameter_servers")
        yield "parameter_servers", "The number of parameter servers", f"is for {owners}"
    if "slots" in options:
        yield from report_problem(
            "mpi.slots",
            "The slots of a worker",
            value_rules.check_count(spec.mpi.slots, 1, MAX_SLOTS),
        )
        yield from report_problem(
            "mpi.ssh_path",
            "The path of the SSH keys",
            value_rules.check_mount_path(spec.mpi.ssh_path),
        )
    elif spec.mpi != DEFAULT_MPI:
        yield "mpi", "The setup of slots and launcher", f"is for {_name_frameworks_with('slots')}"


def _check_pod_restarts(spec: Spec, kind: str) -> Iterator[FieldProblem]:
    """Refuse the restart policies that only the training operator knows."""
    if spec.lifecycle.restart_policy in (RestartPolicy.ALWAYS, RestartPolicy.EXIT_CODE):
        yield (
            "lifecycle.restart_policy",
            "The restart policy",
            f"must be OnFailure or Never for {kind}",
        )


def _describe_elastic_owners() -> str:
    return f"is for distributed {_name_frameworks_with('min_pods')} workloads"


def _name_frameworks_with(option: str) -> str:
    return " or ".join(each.label for each in Framework if option in each.options)


def _check_operator_variables(spec: Spec, framework: Framework) -> Iterator[FieldProblem]:
    """Refuse environment variables that the training operator would overwrite."""
    reserved = framework.adapter.operator_variables
    if spec.elastic:
        reserved |= framework.adapter.elastic_variables
    setups = [("setup", spec.setup)] + (
        [("master", spec.master_setup)] if spec.has_master and spec.master != UNCHANGED else []
    )
    reported = set()
    for prefix, setup in setups:
        for index, variable in enumerate(setup.environment.variables):
            if variable.name in reserved and variable.name not in reported:
                reported.add(variable.name)
                field = f"{prefix}.environment.variables.{index}.name"
                yield (
                    field,
                    f"The environment variable {variable.name}",
                    "is set by the training operator and cannot be chosen",
                )


def _check_elastic(spec: Spec) -> Iterator[FieldProblem]:
    elastic = spec.elastic
    assert elastic is not None
    if spec.framework is None or "min_pods" not in spec.framework.options:
        yield "elastic", "Elasticity", _describe_elastic_owners()
        return
    # The rule of Run:ai, and what KAI reads as the whole gang: pods are counted, not workers.
    master = int(spec.has_master)
    pods = spec.workers + master
    words = f"{pods:,}{f' (the workers and the {spec.framework.master_name})' if master else ''}"
    if not 1 <= elastic.min_pods <= pods:
        yield (
            "elastic.min_pods",
            "The minimum of pods",
            f"must be from 1 to the number of pods, {words}",
        )
    if not pods <= elastic.max_pods <= MAX_WORKERS + master:
        yield (
            "elastic.max_pods",
            "The maximum of pods",
            f"must be from the number of pods, {words}, to {MAX_WORKERS + master:,}",
        )
    if elastic.max_restarts is not None:
        yield from report_problem(
            "elastic.max_restarts",
            "The maximum of restarts",
            value_rules.check_count(elastic.max_restarts, 0, MAX_RESTARTS),
        )


def _check_standard(spec: Spec) -> Iterator[FieldProblem]:
    if spec.framework is not None:
        yield "framework", "The framework", "is for distributed workloads; a standard one has none"
    if spec.elastic is not None:
        yield "elastic", "Elasticity", _describe_elastic_owners()
    if spec.master != UNCHANGED:
        yield "master", "The master's setup", "is for distributed workloads"
    if spec.workers != 1:
        yield (
            "workers",
            "The number of workers",
            "is for distributed workloads; a standard one has one pod a run",
        )
    if spec.total_gpus is not None:
        yield (
            "total_gpus",
            FIELDS["total_gpus"].subject,
            "is for distributed workloads; a standard one says the GPUs of a pod",
        )
    yield from report_problem(
        "runs", "The number of runs", value_rules.check_count(spec.runs, 1, MAX_RUNS)
    )
    yield from report_problem(
        "parallelism",
        "The number of runs at once",
        value_rules.check_count(spec.parallelism, 1, MAX_RUNS),
    )
    yield from _check_options(spec)
    if spec.setup.topology is not None and spec.parallelism == 1:
        yield "setup.topology", "The topology", "is for workloads of several pods at once"
    yield from _check_pod_restarts(spec, "a standard workload")
    if spec.lifecycle.clean_pod_policy not in (None, CleanPodPolicy.NONE):
        yield (
            "lifecycle.clean_pod_policy",
            "Pods to delete at the end",
            "can be chosen for distributed workloads only",
        )


def _check_number_ranges(spec: Spec) -> Iterator[FieldProblem]:
    """Check the numbers of the lifecycle and the radar, which have no rules but their range."""
    for field in FIELDS.values():
        has_range_only = field.path.startswith(("lifecycle.", "radar."))
        value = get_value(spec, field.path) if has_range_only else None
        if value is not None and isinstance(field.type, Number):
            yield from report_problem(
                field.path,
                field.subject,
                value_rules.check_count(value, field.type.least, field.type.most),
            )
