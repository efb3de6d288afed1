"""Validation of a whole Spec: problems in words for the user, each with its field."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from workloads.specs import pod_problems, value_rules
from workloads.specs.choices import CleanPodPolicy, Framework, RestartPolicy, VolumeAccess
from workloads.specs.spec import DEFAULT_MPI, UNCHANGED, Spec

MAX_WORKERS = 10_000
MAX_RUNS = 10_000
MAX_GRACE_SECONDS = 3600
MAX_AUTO_DELETE_SECONDS = 365 * 24 * 3600
MAX_RETRIES = 100
MAX_RESTARTS = 100_000
MAX_SLOTS = 1_000

_PYTORCH_VARIABLES = (
    "MASTER_ADDR",
    "MASTER_PORT",
    "WORLD_SIZE",
    "RANK",
    "PET_MASTER_ADDR",
    "PET_MASTER_PORT",
    "PET_NODE_RANK",
    "PET_NNODES",
)
SET_BY_OPERATOR: Mapping[Framework, frozenset[str]] = {
    Framework.PYTORCH: frozenset(
        (*_PYTORCH_VARIABLES, "PET_NPROC_PER_NODE", "PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT")
    ),
    Framework.TENSORFLOW: frozenset(("TF_CONFIG",)),
    Framework.XGBOOST: frozenset(
        ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "WORKER_ADDRS", "WORKER_PORT")
    ),
    Framework.JAX: frozenset(
        ("COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID")
    ),
    Framework.MPI: frozenset(
        ("OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_default_hostfile", "K_MPI_JOB_ROLE")
    ),
}
"""Variables that the training operator writes after the user's own, which would be overwritten."""
SET_FOR_ELASTIC = frozenset(("PET_MAX_RESTARTS", "PET_RDZV_CONF"))
"""Variables that the training operator also writes for an elastic workload."""


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


def _check_spec(spec: Spec) -> Iterator[pod_problems.FieldProblem]:
    max_length = value_rules.max_name_length(
        spec.framework if spec.is_distributed else None, spec.workers
    )
    yield from _report_problem("name", "The name", value_rules.check_name(spec.name, max_length))
    yield from _report_problem(
        "project", "The project", value_rules.check_name(spec.project, value_rules.MAX_LABEL_LENGTH)
    )
    yield from _report_problem(
        "namespace", "The namespace", value_rules.check_namespace(spec.namespace)
    )
    yield from _report_problem(
        "queue",
        "The queue",
        value_rules.check_object_name(spec.queue) or value_rules.check_label_value(spec.queue),
    )
    yield from _check_distributed(spec) if spec.is_distributed else _check_standard(spec)
    yield from _check_lifecycle(spec)
    setup_problems = list(pod_problems.find_setup_problems(spec.setup))
    yield from (("setup." + field, title, text) for field, title, text in setup_problems)
    if spec.has_master and spec.master != UNCHANGED:
        for field, title, text in pod_problems.find_setup_problems(spec.master_setup):
            if (field, title, text) not in setup_problems:
                yield "master." + field, f"For the master: {title[0].lower()}{title[1:]}", text


def _check_distributed(spec: Spec) -> Iterator[pod_problems.FieldProblem]:
    if spec.framework is None:
        yield "framework", "The framework", "must be chosen for a distributed workload"
    yield from _report_problem(
        "workers", "The number of workers", value_rules.check_count(spec.workers, 1, MAX_WORKERS)
    )
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
        yield from _check_framework_fields(spec)
        yield from _check_operator_variables(
            spec,
            SET_BY_OPERATOR[spec.framework] | (SET_FOR_ELASTIC if spec.elastic else frozenset()),
        )


def _check_configuration(spec: Spec, framework: Framework) -> Iterator[pod_problems.FieldProblem]:
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
    if framework is Framework.MPI:
        why = "for MPI, whose ranks all run in the workers, which are alike"
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


def _check_framework_fields(spec: Spec) -> Iterator[pod_problems.FieldProblem]:
    """Check the fields that only one of the frameworks has."""
    if spec.framework is Framework.TENSORFLOW:
        yield from _report_problem(
            "parameter_servers",
            "The number of parameter servers",
            value_rules.check_count(spec.parameter_servers, 0, MAX_WORKERS),
        )
    elif spec.parameter_servers:
        yield "parameter_servers", "The number of parameter servers", "is for TensorFlow"
    if spec.framework is Framework.MPI:
        yield from _report_problem(
            "mpi.slots",
            "The slots of a worker",
            value_rules.check_count(spec.mpi.slots, 1, MAX_SLOTS),
        )
        yield from _report_problem(
            "mpi.ssh_path",
            "The path of the SSH keys",
            value_rules.check_mount_path(spec.mpi.ssh_path),
        )
        if spec.lifecycle.restart_policy in (RestartPolicy.ALWAYS, RestartPolicy.EXIT_CODE):
            yield (
                "lifecycle.restart_policy",
                "The restart policy",
                "must be OnFailure or Never for MPI",
            )
    elif spec.mpi != DEFAULT_MPI:
        yield "mpi", "The setup of slots and launcher", "is for MPI"


def _check_operator_variables(
    spec: Spec, reserved: frozenset[str]
) -> Iterator[pod_problems.FieldProblem]:
    """Refuse environment variables that the training operator would overwrite."""
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


def _check_elastic(spec: Spec) -> Iterator[pod_problems.FieldProblem]:
    elastic = spec.elastic
    assert elastic is not None
    if spec.framework is not Framework.PYTORCH:
        yield "elastic", "Elasticity", "is for distributed PyTorch workloads"
        return
    if not 1 <= elastic.min_workers <= spec.workers:
        yield (
            "elastic.min_workers",
            "The minimum of workers",
            f"must be from 1 to the number of workers, {spec.workers:,}",
        )
    if not spec.workers <= elastic.max_workers <= MAX_WORKERS:
        yield (
            "elastic.max_workers",
            "The maximum of workers",
            f"must be from the number of workers, {spec.workers:,}, to {MAX_WORKERS:,}",
        )
    if elastic.max_restarts is not None:
        yield from _report_problem(
            "elastic.max_restarts",
            "The maximum of restarts",
            value_rules.check_count(elastic.max_restarts, 0, MAX_RESTARTS),
        )


def _check_standard(spec: Spec) -> Iterator[pod_problems.FieldProblem]:
    if spec.framework is not None:
        yield "framework", "The framework", "is for distributed workloads; a standard one has none"
    if spec.elastic is not None:
        yield "elastic", "Elasticity", "is for distributed PyTorch workloads"
    if spec.master != UNCHANGED:
        yield "master", "The master's setup", "is for distributed workloads"
    if spec.workers != 1:
        yield (
            "workers",
            "The number of workers",
            "is for distributed workloads; a standard one has one pod a run",
        )
    yield from _report_problem(
        "runs", "The number of runs", value_rules.check_count(spec.runs, 1, MAX_RUNS)
    )
    yield from _report_problem(
        "parallelism",
        "The number of runs at once",
        value_rules.check_count(spec.parallelism, 1, MAX_RUNS),
    )
    if spec.parameter_servers:
        yield "parameter_servers", "The number of parameter servers", "is for TensorFlow"
    if spec.mpi != DEFAULT_MPI:
        yield "mpi", "The setup of slots and launcher", "is for MPI"
    if spec.setup.topology is not None and spec.parallelism == 1:
        yield "setup.topology", "The topology", "is for workloads of several pods at once"
    if spec.lifecycle.restart_policy in (RestartPolicy.ALWAYS, RestartPolicy.EXIT_CODE):
        yield (
            "lifecycle.restart_policy",
            "The restart policy",
            "must be OnFailure or Never for a standard workload",
        )
    if spec.lifecycle.clean_pod_policy not in (None, CleanPodPolicy.NONE):
        yield (
            "lifecycle.clean_pod_policy",
            "Pods to delete at the end",
            "can be chosen for distributed workloads only",
        )


def _check_lifecycle(spec: Spec) -> Iterator[pod_problems.FieldProblem]:
    lifecycle = spec.lifecycle
    yield from _report_problem(
        "lifecycle.backoff_limit",
        "The backoff limit",
        value_rules.check_count(lifecycle.backoff_limit, 0, MAX_RETRIES),
    )
    if lifecycle.grace_seconds is not None:
        problem = value_rules.check_count(lifecycle.grace_seconds, 0, MAX_GRACE_SECONDS)
        yield from _report_problem(
            "lifecycle.grace_seconds", "The grace period in seconds", problem
        )
    if lifecycle.auto_delete_seconds is not None:
        problem = value_rules.check_count(lifecycle.auto_delete_seconds, 0, MAX_AUTO_DELETE_SECONDS)
        yield from _report_problem(
            "lifecycle.auto_delete_seconds", "The time until auto-deletion in seconds", problem
        )


def _report_problem(field: str, title: str, problem: str) -> Iterator[pod_problems.FieldProblem]:
    if problem:
        yield field, title, problem
