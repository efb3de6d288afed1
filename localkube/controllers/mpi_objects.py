"""The objects of MPIJobs: what they are called and carry. What a pod needs to find the others on
one machine the kubelet adds.
"""

from collections.abc import Iterable

from localkube.controllers.mpi_spec import MpiJob, Role
from localkube.metadata import Object, copied, uid_of
from localkube.options import MPI_JOB, MPI_WORKER

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


def config_name(job: MpiJob) -> str:
    return f"{job.name}-config"


def labels(job: MpiJob, role: str) -> dict[str, str]:
    return {OPERATOR_NAME: OPERATOR, JOB_NAME: job.name, JOB_ROLE: role}


def hostfile(job: MpiJob) -> str:
    """A line for each pod that runs ranks, in the words of the job's MPI."""
    pods = [launcher_name(job)] if job.launcher_works else []
    pods += [worker_name(job, index) for index in range(job.workers)]
    hosts = [f"{pod}.{job.name}.{job.namespace}.svc" for pod in pods]
    form = "{} slots={}\n" if job.implementation == "OpenMPI" else "{}:{}\n"
    return "".join(form.format(host, job.slots) for host in hosts)


def build_config(job: MpiJob) -> Object:
    return {
        "metadata": {"name": config_name(job), "labels": {"app": job.name}},
        "data": {HOSTFILE: hostfile(job)},
    }


def build_service(job: MpiJob) -> Object:
    """The headless service that gives the pods their names on a real cluster; here the names are
    for the hostfile alone.
    """
    chosen = {OPERATOR_NAME: OPERATOR, JOB_NAME: job.name}
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": chosen}
    return {"metadata": {"name": job.name, "labels": {"app": job.name}}, "spec": spec}


def build_worker(job: MpiJob, role: Role, index: int) -> Object:
    """The pod of one worker. Without a command of its own, or with sshd as its command, it waits
    for ranks.
    """
    pod = _pod(job, role, "worker", worker_name(job, index))
    pod["metadata"]["name"] = worker_name(job, index)
    pod["metadata"]["labels"][REPLICA_INDEX] = str(index + 1 if job.launcher_works else index)
    container = pod["spec"]["containers"][0]
    if not (container.get("command") or container.get("args")) or _is_remote_shell(container):
        container["command"] = [MPI_WORKER]
        container.pop("args", None)
    _add(container, {"K_MPI_JOB_ROLE": "worker"})
    return pod


def build_launcher(job: MpiJob, role: Role) -> Object:
    """The batch Job that runs mpirun; restarts, limits and time to live are its own."""
    pod = _pod(job, role, "launcher", launcher_name(job))
    if job.launcher_works:
        pod["metadata"]["labels"][REPLICA_INDEX] = "0"
    container = pod["spec"]["containers"][0]
    _add(container, {"K_MPI_JOB_ROLE": "launcher"} | _variables(job))
    if not job.launcher_works:
        _add(container, {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""})
    container.setdefault("volumeMounts", []).append(
        {"name": CONFIG_VOLUME, "mountPath": CONFIG_PATH}
    )
    items = [{"key": HOSTFILE, "path": HOSTFILE, "mode": 0o444}]
    pod["spec"].setdefault("volumes", []).append(
        {"name": CONFIG_VOLUME, "configMap": {"name": config_name(job), "items": items}}
    )
    spec = {"template": pod, **job.policy} | ({"suspend": True} if job.suspended else {})
    return {
        "metadata": {
            "name": launcher_name(job),
            "labels": {"app": job.name, **labels(job, "launcher")},
        },
        "spec": spec,
    }


def _pod(job: MpiJob, role: Role, word: str, host: str) -> Object:
    template = copied(role.template)
    given, spec = template.get("metadata") or {}, template["spec"]
    spec["restartPolicy"] = role.restart
    spec["hostname"], spec["subdomain"] = host, job.name
    metadata = {
        "labels": (given.get("labels") or {}) | labels(job, word),
        "annotations": (given.get("annotations") or {}) | {MPI_JOB: uid_of(job.object)},
    }
    return {"metadata": metadata, "spec": spec}


def _variables(job: MpiJob) -> dict[str, str]:
    """How the launcher finds the hosts, for each MPI. Open MPI 5 reads other names than those that
    the real operator sets.
    """
    path, slots = f"{CONFIG_PATH}/{HOSTFILE}", str(job.slots)
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


def _add(container: Object, variables: dict[str, str]) -> None:
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
