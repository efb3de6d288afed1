"""MPIJobs of mpi-operator (v2beta1): their names, defaults and validation."""

from collections.abc import Iterator, Mapping

from localkube.controllers.framework import CLEAN_POD_POLICIES, DNS_1035, TrainingJob
from localkube.resources import MPIJOBS
from localkube.resources.resource import Resource

LAUNCHER, WORKER = "Launcher", "Worker"
MANAGER = "kubeflow.org/mpi-operator"
AT_STARTUP, WHEN_READY = "AtStartup", "WaitForWorkersReady"
RESTART_POLICIES = ("Never", "OnFailure")
MAX_WORKERS = 10_000
"""How many workers the hostfile may name: a ConfigMap holds 1 MiB."""


class Mpi:
    """The names and defaults of MPIJob."""

    resource: Resource = MPIJOBS
    replicas_field = "mpiReplicaSpecs"
    replica_types: Mapping[str, str] = {LAUNCHER: "OnFailure", WORKER: "Never"}


def count_workers(job: TrainingJob) -> int:
    return job.replicas[WORKER].count if WORKER in job.replicas else 0


def slots_per_worker(job: TrainingJob) -> int:
    return int(job.spec.get("slotsPerWorker") or 1)


def runs_launcher_as_worker(job: TrainingJob) -> bool:
    """Return whether ranks also run in the launcher's pod."""
    return bool(job.spec.get("runLauncherAsWorker"))


def creation_policy(job: TrainingJob) -> str:
    """Return when the launcher is created: AT_STARTUP or WHEN_READY."""
    return job.spec.get("launcherCreationPolicy") or AT_STARTUP


def implementation(job: TrainingJob) -> str:
    return job.spec.get("mpiImplementation") or "OpenMPI"


def find_problems(job: TrainingJob) -> Iterator[str]:
    """Yield why the operator does nothing for the job (ValidateMPIJob of the real operator).

    The controller reports all of them in one event.
    """
    longest = f"{job.name}-worker-{max(count_workers(job) - 1, 0)}"
    if len(longest) > 63 or not DNS_1035.fullmatch(longest):
        yield (
            f"metadata.name: {longest!r}, which it makes, must be a name of at most 63 small "
            "letters, digits and '-', letter first"
        )
    if LAUNCHER not in job.replicas:
        yield f"spec.mpiReplicaSpecs[{LAUNCHER}]: must have Launcher replica spec"
    elif job.replicas[LAUNCHER].count != 1:
        count = job.replicas[LAUNCHER].count
        yield f"spec.mpiReplicaSpecs[{LAUNCHER}].replicas: must be 1, not {count}"
    if count_workers(job) > MAX_WORKERS:
        yield (
            f"spec.mpiReplicaSpecs[{WORKER}].replicas: must be at most {MAX_WORKERS} here, not "
            f"{count_workers(job)}: the hostfile names each of them"
        )
    if WORKER in job.replicas and count_workers(job) < 1:
        yield (
            f"spec.mpiReplicaSpecs[{WORKER}].replicas: must be greater than or equal to 1, not "
            f"{count_workers(job)}"
        )
    slots = slots_per_worker(job)
    if slots < 1:
        yield f"spec.slotsPerWorker: must be greater than or equal to 1, not {slots}"
    if job.clean_pod_policy not in CLEAN_POD_POLICIES:
        yield (
            f"spec.runPolicy.cleanPodPolicy: {job.clean_pod_policy!r} must be one of "
            f"{', '.join(CLEAN_POD_POLICIES)}"
        )
    if creation_policy(job) not in (AT_STARTUP, WHEN_READY):
        yield (
            f"spec.launcherCreationPolicy: {creation_policy(job)!r} must be one of "
            f"{AT_STARTUP}, {WHEN_READY}"
        )
    # The real operator ignores entries of other types.
    for type, role in job.replicas.items():
        if type not in Mpi.replica_types:
            continue
        if role.restart_policy not in RESTART_POLICIES:
            yield (
                f"spec.mpiReplicaSpecs[{type}].restartPolicy: {role.restart_policy!r} must be one "
                f"of {', '.join(RESTART_POLICIES)}"
            )
        if not (role.template.get("spec") or {}).get("containers"):
            yield (
                f"spec.mpiReplicaSpecs[{type}].template.spec.containers: must define at least one "
                "container"
            )
