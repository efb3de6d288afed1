"""How many pods there are, and what only one of the frameworks has."""

from typing import Any

from workloads.specs.choices import Architecture, LauncherCreation
from workloads.specs.fields.field import FactSection, Field, Place, PolicyData, PolicySection
from workloads.specs.fields.types import Choice, FieldType, Number, Text

MAX_WORKERS = 10_000
MAX_PODS = MAX_WORKERS + 1
"""The workers of an elastic workload, and a master."""
MAX_RUNS = 10_000
MAX_TOTAL_GPUS = 1_000_000
_EXTENSION = "An extension of Muster"

_COUNTED = PolicyData(section=PolicySection.COUNT, is_implied=True)


def _build(path: str, label: str, type_: FieldType, rest: str, **more: Any) -> Field:
    values: dict[str, Any] = {
        "architecture": Architecture.DISTRIBUTED,
        "fact_section": FactSection.WORKLOAD,
    } | more
    return Field(path=path, label=label, type=type_, place=Place.NUMBERS, rest=rest, **values)


NUMBER_FIELDS = (
    _build(
        "workers",
        "Number of workers",
        Number(1, MAX_WORKERS, default=1, required="Say how many workers."),
        "numWorkers",
        rest_help="Of distributed workloads, beside the master.",
        subject="The number of workers",
        fact="Workers",
        policy=PolicyData(
            section=PolicySection.COUNT,
            label="Workers",
            is_implied=True,
            given=("workers", "total_gpus", "elastic.min_pods", "elastic.max_pods"),
        ),
    ),
    _build(
        "total_gpus",
        "GPUs in all",
        Number(1, MAX_TOTAL_GPUS),
        "totalGpus",
        help=(
            "Instead of the number of workers, which is worked out of it: machines of as many GPUs "
            "as the compute resource asks for or, where it asks for none, whole nodes."
        ),
        rest_help=(
            f"{_EXTENSION}, of distributed workloads: GPUs of all pods together, instead of "
            "numWorkers, which is worked out of them."
        ),
        subject="The number of GPUs in all",
        lock="workers",
        policy=PolicyData(
            section=PolicySection.COUNT,
            value="gpu_total",
            attributes=frozenset(("min", "max")),
            is_preset=False,
            about=(
                "Of all pods of a distributed workload together, however they are asked for; GPUs "
                "asked for by their memory are not counted."
            ),
        ),
    ),
    _build(
        "elastic.min_pods",
        "Minimum of pods",
        Number(1, MAX_PODS),
        "minReplicas",
        title="Elastic pods",
        help=(
            "Elastic: it starts and goes on with as few when GPUs are short. A master is one of "
            "them."
        ),
        rest_help="Of elastic PyTorch: pods, the master among them.",
        fact="Pods while it runs",
        fact_value="elastic_range",
    ),
    _build(
        "elastic.max_pods",
        "Maximum of pods",
        Number(1, MAX_PODS),
        "maxReplicas",
        help=(
            "Elastic: it grows up to as many while quota and nodes have room. A master is one of "
            "them."
        ),
        rest_help="Of elastic PyTorch: pods, the master among them.",
        lock="min_pods",
        fact_section=None,
        policy=PolicyData(
            section=PolicySection.COUNT,
            name="elastic.max_pods",
            attributes=frozenset(("min", "max")),
            is_preset=False,
        ),
    ),
    _build(
        "elastic.max_restarts",
        "Maximum of restarts",
        Number(0, 100_000),
        "maxRestarts",
        help="Elastic: each pod that leaves or joins costs one. Empty: as good as without limit.",
        rest_help=f"{_EXTENSION}, of elastic PyTorch: each pod that leaves or joins costs one.",
        subject="The maximum of restarts",
        lock="min_pods",
        fact="Restarts while pods come and go",
        phrase="at most {}",
    ),
    _build(
        "parameter_servers",
        "Parameter servers",
        Number(0, MAX_WORKERS, default=0),
        "parameterServers",
        help=(
            "Set up as the workers are, without GPUs. Empty or 0: none; the workers keep the model "
            "together themselves."
        ),
        rest_help=f"{_EXTENSION}, of TensorFlow: pods as the workers are, without GPUs.",
        subject="The number of parameter servers",
        policy=_COUNTED,
    ),
    _build(
        "mpi.slots",
        "Slots per worker",
        Number(1, 1_000, default=1),
        "slotsPerWorker",
        title="Slots, launcher and SSH path",
        help="How many processes mpirun starts in each worker, usually one for each GPU. Empty: 1.",
        rest_help="Of MPI: processes a worker takes.",
        subject="The slots of a worker",
    ),
    _build(
        "mpi.launcher",
        "The launcher is made",
        Choice(LauncherCreation),
        "mpiLauncherCreationPolicy",
        help="Made with the workers, it may start before they do, fail, and be tried again.",
        rest_help="Of MPI: when the launcher is made.",
        fact_value="mpi.launcher.description",
        lock="slots",
    ),
    _build(
        "mpi.ssh_path",
        "SSH path",
        Text(),
        "sshAuthMountPath",
        help=(
            "Where the keys go in the containers: the .ssh of the image's user. Empty: /root/.ssh."
        ),
        rest_help="Of MPI: where root's keys are in the image.",
        subject="The path of the SSH keys",
        lock="slots",
    ),
    _build(
        "runs",
        "Number of runs",
        Number(1, MAX_RUNS, default=1, required="Say how many runs."),
        "completions",
        title="Runs",
        help="So many pods must end well.",
        rest_help="Of standard workloads: how many runs.",
        subject="The number of runs",
        architecture=Architecture.STANDARD,
        fact="Runs",
        policy=_COUNTED,
    ),
    _build(
        "parallelism",
        "Runs at once",
        Number(1, MAX_RUNS, default=1, required="Say how many at once."),
        "parallelism",
        help="So many of them run at the same time.",
        rest_help="Of standard workloads: how many runs at once.",
        subject="The number of runs at once",
        lock="runs",
        architecture=Architecture.STANDARD,
        fact="Runs",
        phrase="{} at once",
        policy=_COUNTED,
    ),
)
