"""What is wrong with a whole Spec, in words for the person, each with the field it belongs to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from workloads.specs import pod_problems, rules
from workloads.specs.choices import Access, CleanPodPolicy, Framework, RestartPolicy
from workloads.specs.spec import PLAIN_MPI, UNCHANGED, Spec

MOST_WORKERS = 10_000
MOST_RUNS = 10_000
LONGEST_GRACE = 3600
LONGEST_AUTO_DELETE = 365 * 24 * 3600
MOST_RETRIES = 100
MOST_RESTARTS = 100_000
MOST_SLOTS = 1_000

_PYTORCH = (
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
        (*_PYTORCH, "PET_NPROC_PER_NODE", "PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT")
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
"""Variables that the training operator writes after the person's own, which would so be lost."""
SET_FOR_ELASTIC = frozenset(("PET_MAX_RESTARTS", "PET_RDZV_CONF"))


@dataclass(frozen=True, slots=True)
class Problem:
    """`field` is a path such as "setup.environment.image" or "master.volumes.0.path"; `text` is a
    sentence that names it in words.
    """

    field: str
    text: str


def problems(spec: Spec) -> Sequence[Problem]:
    """Everything wrong with a submission; nothing when it can be built and the cluster's schemas
    will take it.
    """
    found = [Problem(field, f"{words} {wrong}.") for field, words, wrong in _all(spec)]
    return tuple(dict.fromkeys(found))


def _all(spec: Spec) -> Iterator[pod_problems.Wrong]:
    longest = rules.longest_name(spec.framework if spec.is_distributed else None, spec.workers)
    yield from _one("name", "The name", rules.name(spec.name, longest))
    yield from _one("project", "The project", rules.name(spec.project, rules.LONGEST_LABEL))
    yield from _one("namespace", "The namespace", rules.namespace(spec.namespace))
    yield from _one(
        "queue", "The queue", rules.object_name(spec.queue) or rules.label_value(spec.queue)
    )
    yield from _distributed(spec) if spec.is_distributed else _standard(spec)
    yield from _lifecycle(spec)
    wrong = list(pod_problems.of_setup(spec.setup))
    yield from (("setup." + field, words, text) for field, words, text in wrong)
    if spec.has_master and spec.master != UNCHANGED:
        for field, words, text in pod_problems.of_setup(spec.master_setup):
            if (field, words, text) not in wrong:
                yield "master." + field, f"For the master: {words[0].lower()}{words[1:]}", text


def _distributed(spec: Spec) -> Iterator[pod_problems.Wrong]:
    if spec.framework is None:
        yield "framework", "The framework", "must be chosen for a distributed workload"
    yield from _one("workers", "The number of workers", rules.count(spec.workers, 1, MOST_WORKERS))
    if not spec.has_master and spec.master != UNCHANGED:
        yield (
            "master",
            "The master's setup",
            "cannot be changed, for this configuration has no master",
        )
    if spec.runs != 1 or spec.parallelism != 1:
        yield "runs", "The number of runs", "is for standard workloads; a distributed one runs once"
    if spec.elastic is not None:
        yield from _elastic(spec)
    if spec.framework is not None:
        yield from _configuration(spec, spec.framework)
        yield from _of_one_framework(spec)
        yield from _operator_variables(
            spec,
            SET_BY_OPERATOR[spec.framework] | (SET_FOR_ELASTIC if spec.elastic else frozenset()),
        )


def _configuration(spec: Spec, framework: Framework) -> Iterator[pod_problems.Wrong]:
    usual = framework.configurations[0]
    if spec.configuration not in framework.configurations:
        why = (
            "its workers are all alike"
            if spec.has_master
            else f"it cannot do without a {framework.master}"
        )
        yield (
            "configuration",
            "The configuration",
            f"must be {usual.label} for {framework.label}: {why}",
        )
    if framework is Framework.MPI:
        why = "for MPI, whose ranks all run in the workers, which are alike"
    elif not spec.has_first:
        why = "without a master, for all workers are alike"
    else:
        return
    for index, volume in enumerate(spec.setup.volumes):
        if volume.access is Access.RANK_0_WRITES:
            yield (
                f"setup.volumes.{index}.access",
                f"The access of volume {index + 1}",
                f"cannot be for rank 0 only {why}",
            )


def _of_one_framework(spec: Spec) -> Iterator[pod_problems.Wrong]:
    """What only one of the frameworks has."""
    if spec.framework is Framework.TENSORFLOW:
        yield from _one(
            "parameter_servers",
            "The number of parameter servers",
            rules.count(spec.parameter_servers, 0, MOST_WORKERS),
        )
    elif spec.parameter_servers:
        yield "parameter_servers", "The number of parameter servers", "is for TensorFlow"
    if spec.framework is Framework.MPI:
        yield from _one(
            "mpi.slots", "The slots of a worker", rules.count(spec.mpi.slots, 1, MOST_SLOTS)
        )
        yield from _one(
            "mpi.ssh_path", "The path of the SSH keys", rules.mount_path(spec.mpi.ssh_path)
        )
        if spec.lifecycle.restart_policy in (RestartPolicy.ALWAYS, RestartPolicy.EXIT_CODE):
            yield (
                "lifecycle.restart_policy",
                "The restart policy",
                "must be OnFailure or Never for MPI",
            )
    elif spec.mpi != PLAIN_MPI:
        yield "mpi", "The setup of slots and launcher", "is for MPI"


def _operator_variables(spec: Spec, taken: frozenset[str]) -> Iterator[pod_problems.Wrong]:
    setups = [("setup", spec.setup)] + (
        [("master", spec.master_setup)] if spec.has_master and spec.master != UNCHANGED else []
    )
    seen = set()
    for prefix, setup in setups:
        for index, variable in enumerate(setup.environment.variables):
            if variable.name in taken and variable.name not in seen:
                seen.add(variable.name)
                field = f"{prefix}.environment.variables.{index}.name"
                yield (
                    field,
                    f"The environment variable {variable.name}",
                    "is set by the training operator and cannot be chosen",
                )


def _elastic(spec: Spec) -> Iterator[pod_problems.Wrong]:
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
    if not spec.workers <= elastic.max_workers <= MOST_WORKERS:
        yield (
            "elastic.max_workers",
            "The maximum of workers",
            f"must be from the number of workers, {spec.workers:,}, to {MOST_WORKERS:,}",
        )
    if elastic.max_restarts is not None:
        yield from _one(
            "elastic.max_restarts",
            "The maximum of restarts",
            rules.count(elastic.max_restarts, 0, MOST_RESTARTS),
        )


def _standard(spec: Spec) -> Iterator[pod_problems.Wrong]:
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
    yield from _one("runs", "The number of runs", rules.count(spec.runs, 1, MOST_RUNS))
    yield from _one(
        "parallelism", "The number of runs at once", rules.count(spec.parallelism, 1, MOST_RUNS)
    )
    if spec.parameter_servers:
        yield "parameter_servers", "The number of parameter servers", "is for TensorFlow"
    if spec.mpi != PLAIN_MPI:
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


def _lifecycle(spec: Spec) -> Iterator[pod_problems.Wrong]:
    chosen = spec.lifecycle
    yield from _one(
        "lifecycle.backoff_limit",
        "The backoff limit",
        rules.count(chosen.backoff_limit, 0, MOST_RETRIES),
    )
    if chosen.grace_seconds is not None:
        wrong = rules.count(chosen.grace_seconds, 0, LONGEST_GRACE)
        yield from _one("lifecycle.grace_seconds", "The grace period in seconds", wrong)
    if chosen.auto_delete_seconds is not None:
        wrong = rules.count(chosen.auto_delete_seconds, 0, LONGEST_AUTO_DELETE)
        yield from _one(
            "lifecycle.auto_delete_seconds", "The time until auto-deletion in seconds", wrong
        )


def _one(field: str, words: str, wrong: str) -> Iterator[pod_problems.Wrong]:
    if wrong:
        yield field, words, wrong
