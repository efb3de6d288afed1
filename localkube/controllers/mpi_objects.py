"""Builders of the objects that an MPIJob owns.

The kubelet adds what a pod needs to find the others on one machine.
"""

from collections.abc import Iterable

from localkube.controllers.framework import Replica, TrainingJob, add_variables
from localkube.controllers.mpi_spec import (
    LAUNCHER,
    count_workers,
    implementation,
    runs_launcher_as_worker,
    slots_per_worker,
)
from localkube.controllers.training_pods import JOB_NAME, JOB_ROLE, OPERATOR_NAME, REPLICA_INDEX
from localkube.metadata import Object, deep_copy, uid_of
from localkube.options import MPI_JOB_ANNOTATION, MPI_WORKER_COMMAND

OPERATOR = "mpi-operator"

CONFIG_PATH = "/etc/mpi"
HOSTFILE = "hostfile"
CONFIG_VOLUME = "mpi-job-config"

LAUNCHER_POLICY = ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit")
"""The fields of runPolicy that the launcher's Job gets."""

REMOTE_SHELL = "sshd"
"""The program by which workers wait for ranks on a real cluster.

It needs root, a port and keys, so localkube's own program replaces it.
"""


def launcher_name(job: TrainingJob) -> str:
    return f"{job.name}-launcher"


def worker_name(job: TrainingJob, index: int) -> str:
    return f"{job.name}-worker-{index}"


def config_map_name(job: TrainingJob) -> str:
    return f"{job.name}-config"


def build_labels(job: TrainingJob, role: str) -> dict[str, str]:
    return {OPERATOR_NAME: OPERATOR, JOB_NAME: job.name, JOB_ROLE: role}


def build_hostfile(job: TrainingJob) -> str:
    """Build the hostfile: a line for each pod that runs ranks, in the syntax of the job's MPI."""
    pods = [launcher_name(job)] if runs_launcher_as_worker(job) else []
    pods += [worker_name(job, index) for index in range(count_workers(job))]
    hosts = [f"{pod}.{job.name}.{job.namespace}.svc" for pod in pods]
    form = "{} slots={}\n" if implementation(job) == "OpenMPI" else "{}:{}\n"
    return "".join(form.format(host, slots_per_worker(job)) for host in hosts)


def build_config_map(job: TrainingJob) -> Object:
    return {
        "metadata": {"name": config_map_name(job), "labels": {"app": job.name}},
        "data": {HOSTFILE: build_hostfile(job)},
    }


def build_service(job: TrainingJob) -> Object:
    """Build the headless service that names the pods on a real cluster.

    Here these names appear only in the hostfile.
    """
    selector = {OPERATOR_NAME: OPERATOR, JOB_NAME: job.name}
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector}
    return {"metadata": {"name": job.name, "labels": {"app": job.name}}, "spec": spec}


def build_worker(job: TrainingJob, role: Replica, index: int) -> Object:
    """Build the pod of one worker.

    A worker without a command, or with sshd as its command, waits for ranks.
    """
    name = worker_name(job, index)
    pod = _build_pod(job, role, "worker", name)
    pod["metadata"]["name"] = name
    pod["metadata"]["labels"][REPLICA_INDEX] = str(
        index + 1 if runs_launcher_as_worker(job) else index
    )
    container = pod["spec"]["containers"][0]
    if not (container.get("command") or container.get("args")) or _is_remote_shell(container):
        container["command"] = [MPI_WORKER_COMMAND]
        container.pop("args", None)
    add_variables([container], {"K_MPI_JOB_ROLE": "worker"}, {})
    return pod


def build_launcher(job: TrainingJob) -> Object:
    """Build the batch Job that runs mpirun; restarts, limits and time to live belong to the Job."""
    pod = _build_pod(job, job.replicas[LAUNCHER], "launcher", launcher_name(job))
    if runs_launcher_as_worker(job):
        pod["metadata"]["labels"][REPLICA_INDEX] = "0"
    container = pod["spec"]["containers"][0]
    variables = {"K_MPI_JOB_ROLE": "launcher"} | _launcher_variables(job)
    if not runs_launcher_as_worker(job):
        variables |= {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
    add_variables([container], variables, {})
    container.setdefault("volumeMounts", []).append(
        {"name": CONFIG_VOLUME, "mountPath": CONFIG_PATH}
    )
    items = [{"key": HOSTFILE, "path": HOSTFILE, "mode": 0o444}]
    pod["spec"].setdefault("volumes", []).append(
        {"name": CONFIG_VOLUME, "configMap": {"name": config_map_name(job), "items": items}}
    )
    policy = job.spec.get("runPolicy") or {}
    spec = {"template": pod} | {key: policy[key] for key in LAUNCHER_POLICY if key in policy}
    if job.suspended:
        spec["suspend"] = True
    return {
        "metadata": {
            "name": launcher_name(job),
            "labels": {"app": job.name, **build_labels(job, "launcher")},
        },
        "spec": spec,
    }


def _build_pod(job: TrainingJob, role: Replica, role_label: str, host: str) -> Object:
    template = deep_copy(role.template)
    template_metadata, spec = template.get("metadata") or {}, template["spec"]
    spec["restartPolicy"] = role.restart_policy
    spec["hostname"], spec["subdomain"] = host, job.name
    metadata = {
        "labels": (template_metadata.get("labels") or {}) | build_labels(job, role_label),
        "annotations": (template_metadata.get("annotations") or {})
        | {MPI_JOB_ANNOTATION: uid_of(job.object)},
    }
    return {"metadata": metadata, "spec": spec}


def _launcher_variables(job: TrainingJob) -> dict[str, str]:
    """Return the variables by which the launcher finds the hosts, for each MPI.

    Open MPI 5 reads other names than those that the real operator sets.
    """
    path, slots = f"{CONFIG_PATH}/{HOSTFILE}", str(slots_per_worker(job))
    if implementation(job) == "Intel":
        return {"I_MPI_HYDRA_HOST_FILE": path, "I_MPI_PERHOST": slots}
    if implementation(job) == "MPICH":
        return {"HYDRA_HOST_FILE": path}
    return {
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": path,
        "OMPI_MCA_orte_set_default_slots": slots,
        "PRTE_MCA_prte_default_hostfile": path,
    }


def _is_remote_shell(container: Object) -> bool:
    """Return whether the command is an sshd, alone or as the end of a shell script."""
    words: Iterable[str] = " ".join(
        [*(container.get("command") or ()), *(container.get("args") or ())]
    ).split()
    return any(word.rpartition("/")[2] == REMOTE_SHELL for word in words)
