"""A distributed MPI workload as an MPIJob: of the MPI operator (v2beta1), or of the training
operator (v1) where that is what there is.
"""

from workloads.kube_objects import Object
from workloads.manifests import training
from workloads.manifests.pod_templates import Identity
from workloads.specs import INHERITED, CleanPodPolicy, RestartPolicy, Spec

CONTAINER = "mpi"


def build_job(spec: Spec, identity: Identity) -> list[Object]:
    """One MPIJob, v2beta1. Its launcher runs mpirun and counts as no rank; the workers wait to be
    told.
    """
    body: Object = {
        "slotsPerWorker": spec.mpi.slots,
        "sshAuthMountPath": spec.mpi.ssh_path,
        "launcherCreationPolicy": spec.mpi.launcher.value,
        "runPolicy": _build_run_policy(spec),
        "mpiReplicaSpecs": _build_replicas(spec, identity, RestartPolicy.ON_FAILURE),
    }
    return [training.build_training_job(spec, identity, "MPIJob", body, version="v2beta1")]


def build_job_v1(spec: Spec, identity: Identity) -> list[Object]:
    """One MPIJob, v1: it reaches the workers by kubectl, so it has no SSH keys, and its launcher
    always waits for them.
    """
    replicas = _build_replicas(spec, identity, RestartPolicy.NEVER)
    # The launcher asks the API for its workers, with a key that the operator gives it.
    del replicas["Launcher"]["template"]["spec"]["automountServiceAccountToken"]
    body: Object = {
        "slotsPerWorker": spec.mpi.slots,
        "runPolicy": _build_run_policy(spec),
        "mpiReplicaSpecs": replicas,
    }
    return [training.build_training_job(spec, identity, "MPIJob", body)]


def _build_replicas(spec: Spec, identity: Identity, launcher: RestartPolicy) -> Object:
    """What both versions call alike. A command that both would have is the launcher's: the workers
    wait as the operator says.
    """
    made = {
        "Launcher": training.build_replica(
            spec, spec.master_setup, identity, 1, container=CONTAINER, default=launcher
        ),
        "Worker": training.build_replica(
            spec,
            spec.setup,
            identity,
            spec.workers,
            container=CONTAINER,
            default=RestartPolicy.NEVER,
        ),
    }
    worker = made["Worker"]["template"]["spec"]["containers"][0]
    if spec.master.command is INHERITED and spec.setup.environment.command:
        worker.pop("command", None)
        worker.pop("args", None)
    elif spec.master.args is INHERITED:
        worker.pop("args", None)
    return made


def _build_run_policy(spec: Spec) -> Object:
    """Workers never end by themselves, so unless asked otherwise they are removed when the launcher
    has.
    """
    return training.build_run_policy(spec, CleanPodPolicy.RUNNING)
