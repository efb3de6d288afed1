"""A distributed MPI workload as an MPIJob of the MPI operator (v2beta1), else of the training
operator (v1).
"""

from workloads.kube_objects import Object
from workloads.manifests import training
from workloads.manifests.pod_templates import Identity
from workloads.specs import INHERITED, CleanPodPolicy, RestartPolicy, Spec

CONTAINER = "mpi"


def build_job(spec: Spec, identity: Identity) -> list[Object]:
    """Build an MPIJob, v2beta1.

    Its launcher runs mpirun and has no rank; the workers wait for it.
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
    """Build an MPIJob, v1.

    It reaches the workers by kubectl, so it has no SSH keys, and its launcher always waits for
    them.
    """
    replicas = _build_replicas(spec, identity, RestartPolicy.NEVER)
    # The v1 launcher reaches its workers through the API, with the operator's service account.
    del replicas["Launcher"]["template"]["spec"]["automountServiceAccountToken"]
    body: Object = {
        "slotsPerWorker": spec.mpi.slots,
        "runPolicy": _build_run_policy(spec),
        "mpiReplicaSpecs": replicas,
    }
    return [training.build_training_job(spec, identity, "MPIJob", body)]


def _build_replicas(spec: Spec, identity: Identity, launcher: RestartPolicy) -> Object:
    """Build the replica map that both versions share.

    A command for both kinds of pods goes to the launcher: the operator makes the workers wait.
    """
    replicas = {
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
    worker = replicas["Worker"]["template"]["spec"]["containers"][0]
    if spec.master.command is INHERITED and spec.setup.environment.command:
        worker.pop("command", None)
        worker.pop("args", None)
    elif spec.master.args is INHERITED:
        worker.pop("args", None)
    return replicas


def _build_run_policy(spec: Spec) -> Object:
    """Build the run policy.

    Workers never end by themselves, so by default they are removed when the launcher has ended.
    """
    return training.build_run_policy(spec, CleanPodPolicy.RUNNING)
