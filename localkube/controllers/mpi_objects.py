"""The objects of MPIJobs: what they are called and carry. What a pod needs to find the others on
one machine the kubelet adds.
"""

from collections.abc import Iterable

from localkube.controllers.mpi_spec import MpiJob, MpiReplica
from localkube.metadata import Object, deep_copy, uid_of
from localkube.options import MPI_JOB_ANNOTATION, MPI_WORKER_COMMAND

OPERATOR = "mpi-operator"
JOB_NAME = "training.kubeflow.org/job-name"
OPERATOR_NAME = "training.kubeflow.org/operator-name"
JOB_ROLE = "training.kubeflow.org/job-role"
REPLICA_INDEX = "training.kubeflow.org/replica-index"

CONFIG_PATH = "/etc/mpi"
HOSTFILE = "hostfile"
CONFIG_VOLUME = "mpi-job-config"

REMOTE_SHELL = "sshd"
"""The program by which workers wait for ranks on a real cluster. It needs root, a port and keys;
ours takes its place.
"""


def launcher_name(job: MpiJob) -> str:
    return f"{job.name}-launcher"


def worker_name(job: MpiJob, index: int) -> str:
    return f"{job.name}-worker-{index}"


def config_map_name(job: MpiJob) -> str:
    return f"{job.name}-config"


def build_labels(job: MpiJob, role: str) -> dict[str, str]:
    return {OPERATOR_NAME: OPERATOR, JOB_NAME: job.name, JOB_ROLE: role}


def build_hostfile(job: MpiJob) -> str:
    """A line for each pod that runs ranks, in the words of the job's MPI."""
    pods = [launcher_name(job)] if job.runs_launcher_as_worker else []
    pods += [worker_name(job, index) for index in range(job.worker_count)]
    hosts = [f"{pod}.{job.name}.{job.namespace}.svc" for pod in pods]
    form = "{} slots={}\n" if job.implementation == "OpenMPI" else "{}:{}\n"
    return "".join(form.format(host, job.slots_per_worker) for host in hosts)


def build_config_map(job: MpiJob) -> Object:
    return {
        "metadata": {"name": config_map_name(job), "labels": {"app": job.name}},
        "data": {HOSTFILE: build_hostfile(job)},
    }


def build_service(job: MpiJob) -> Object:
    """The headless service that gives the pods their names on a real cluster; here the names are
    for the hostfile alone.
    """
    chosen = {OPERATOR_NAME: OPERATOR, JOB_NAME: job.name}
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": chosen}
    return {"metadata": {"name": job.name, "labels": {"app": job.name}}, "spec": spec}


def build_worker(job: MpiJob, role: MpiReplica, index: int) -> Object:
    """The pod of one worker. Without a command of its own, or with sshd as its command, it waits
    for ranks.
    """
    pod = _build_pod(job, role, "worker", worker_name(job, index))
    pod["metadata"]["name"] = worker_name(job, index)
    pod["metadata"]["labels"][REPLICA_INDEX] = str(
        index + 1 if job.runs_launcher_as_worker else index
    )
    container = pod["spec"]["containers"][0]
    if not (container.get("command") or container.get("args")) or _is_remote_shell(container):
        container["command"] = [MPI_WORKER_COMMAND]
        container.pop("args", None)
    _add_variables(container, {"K_MPI_JOB_ROLE": "worker"})
    return pod


def build_launcher(job: MpiJob, role: MpiReplica) -> Object:
    """The batch Job that runs mpirun; restarts, limits and time to live are its own."""
    pod = _build_pod(job, role, "launcher", launcher_name(job))
    if job.runs_launcher_as_worker:
        pod["metadata"]["labels"][REPLICA_INDEX] = "0"
    container = pod["spec"]["containers"][0]
    _add_variables(container, {"K_MPI_JOB_ROLE": "launcher"} | _launcher_variables(job))
    if not job.runs_launcher_as_worker:
        _add_variables(container, {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""})
    container.setdefault("volumeMounts", []).append(
        {"name": CONFIG_VOLUME, "mountPath": CONFIG_PATH}
    )
    items = [{"key": HOSTFILE, "path": HOSTFILE, "mode": 0o444}]
    pod["spec"].setdefault("volumes", []).append(
        {"name": CONFIG_VOLUME, "configMap": {"name": config_map_name(job), "items": items}}
    )
    spec = {"template": pod, **job.launcher_policy} | ({"suspend": True} if job.suspended else {})
    return {
        "metadata": {
            "name": launcher_name(job),
            "labels": {"app": job.name, **build_labels(job, "launcher")},
        },
        "spec": spec,
    }


def _build_pod(job: MpiJob, role: MpiReplica, role_label: str, host: str) -> Object:
    template = deep_copy(role.template)
    given, spec = template.get("metadata") or {}, template["spec"]
    spec["restartPolicy"] = role.restart_policy
    spec["hostname"], spec["subdomain"] = host, job.name
    metadata = {
        "labels": (given.get("labels") or {}) | build_labels(job, role_label),
        "annotations": (given.get("annotations") or {}) | {MPI_JOB_ANNOTATION: uid_of(job.object)},
    }
    return {"metadata": metadata, "spec": spec}


def _launcher_variables(job: MpiJob) -> dict[str, str]:
    """How the launcher finds the hosts, for each MPI. Open MPI 5 reads other names than those that
    the real operator sets.
    """
    path, slots = f"{CONFIG_PATH}/{HOSTFILE}", str(job.slots_per_worker)
    if job.implementation == "Intel":
        return {"I_MPI_HYDRA_HOST_FILE": path, "I_MPI_PERHOST": slots}
    if job.implementation == "MPICH":
        return {"HYDRA_HOST_FILE": path}
    return {
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": path,
        "OMPI_MCA_orte_set_default_slots": slots,
        "PRTE_MCA_prte_default_hostfile": path,
    }


def _add_variables(container: Object, variables: dict[str, str]) -> None:
    container["env"] = [
        *(container.get("env") or ()),
        *({"name": name, "value": value} for name, value in variables.items()),
    ]


def _is_remote_shell(container: Object) -> bool:
    """Whether the command is an sshd, alone or as the end of a shell script."""
    words: Iterable[str] = " ".join(
        [*(container.get("command") or ()), *(container.get("args") or ())]
    ).split()
    return any(word.rpartition("/")[2] == REMOTE_SHELL for word in words)
