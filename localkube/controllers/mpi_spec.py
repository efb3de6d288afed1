"""MPIJobs of mpi-operator (v2beta1) as they are read from their objects: defaults filled in, and
what makes no sense about them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from localkube.metadata import Object, name_of, namespace_of

LAUNCHER, WORKER = "Launcher", "Worker"
MANAGER = "kubeflow.org/mpi-operator"
AT_STARTUP, WHEN_READY = "AtStartup", "WaitForWorkersReady"
CLEAN_POD_POLICIES = ("None", "Running", "All")
RESTART_POLICIES = ("Never", "OnFailure")

_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class MpiReplica:
    """An entry of the replica map with its defaults."""

    count: int
    restart_policy: str
    template: Object


@dataclass(frozen=True, slots=True)
class MpiJob:
    """An MPIJob. `launcher` and `worker` are None where the map has none; `policy` is the part of
    runPolicy that the launcher gets.
    """

    object: Object
    launcher: MpiReplica | None
    worker: MpiReplica | None
    slots_per_worker: int
    runs_launcher_as_worker: bool
    """runLauncherAsWorker: ranks run in the launcher's pod as well."""
    launcher_creation_policy: str
    implementation: str
    clean_pod_policy: str
    suspended: bool
    managed_by: str
    launcher_policy: Object

    @property
    def name(self) -> str:
        return name_of(self.object)

    @property
    def namespace(self) -> str:
        return namespace_of(self.object)

    @property
    def worker_count(self) -> int:
        return 0 if self.worker is None else self.worker.count


def parse_mpi_job(obj: Object) -> MpiJob:
    """A job from its object, whatever is wrong with it: see `problems`."""
    spec = obj.get("spec") or {}
    policy, roles = spec.get("runPolicy") or {}, spec.get("mpiReplicaSpecs") or {}
    return MpiJob(
        object=obj,
        launcher=_parse_replica(roles.get(LAUNCHER), "OnFailure"),
        worker=_parse_replica(roles.get(WORKER), "Never"),
        slots_per_worker=int(spec.get("slotsPerWorker") or 1),
        runs_launcher_as_worker=bool(spec.get("runLauncherAsWorker")),
        launcher_creation_policy=spec.get("launcherCreationPolicy") or AT_STARTUP,
        implementation=spec.get("mpiImplementation") or "OpenMPI",
        clean_pod_policy=policy.get("cleanPodPolicy") or "None",
        suspended=bool(policy.get("suspend")),
        managed_by=policy.get("managedBy") or MANAGER,
        launcher_policy={
            key: policy[key]
            for key in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit")
            if key in policy
        },
    )


def _parse_replica(given: Object | None, restart: str) -> MpiReplica | None:
    if given is None:
        return None
    count = given.get("replicas")
    return MpiReplica(
        1 if count is None else int(count),
        given.get("restartPolicy") or restart,
        given.get("template") or {},
    )


def find_problems(job: MpiJob) -> Iterator[str]:
    """Why the operator does nothing for the job; it says so in one event (ValidateMPIJob of the
    real one).
    """
    longest = f"{job.name}-worker-{max(job.worker_count - 1, 0)}"
    if len(longest) > 63 or not _DNS_1035.fullmatch(longest):
        yield (
            f"metadata.name: {longest!r}, which it makes, must be a name of at most 63 small "
            "letters, digits and '-', letter first"
        )
    if job.launcher is None:
        yield f"spec.mpiReplicaSpecs[{LAUNCHER}]: must have Launcher replica spec"
    elif job.launcher.count != 1:
        yield f"spec.mpiReplicaSpecs[{LAUNCHER}].replicas: must be 1, not {job.launcher.count}"
    if job.worker is not None and job.worker.count < 1:
        yield (
            f"spec.mpiReplicaSpecs[{WORKER}].replicas: must be greater than or equal to 1, not "
            f"{job.worker.count}"
        )
    if job.slots_per_worker < 1:
        yield f"spec.slotsPerWorker: must be greater than or equal to 1, not {job.slots_per_worker}"
    if job.clean_pod_policy not in CLEAN_POD_POLICIES:
        yield (
            f"spec.runPolicy.cleanPodPolicy: {job.clean_pod_policy!r} must be one of "
            f"{', '.join(CLEAN_POD_POLICIES)}"
        )
    if job.launcher_creation_policy not in (AT_STARTUP, WHEN_READY):
        yield (
            f"spec.launcherCreationPolicy: {job.launcher_creation_policy!r} must be one of "
            f"{AT_STARTUP}, {WHEN_READY}"
        )
    for type, role in ((LAUNCHER, job.launcher), (WORKER, job.worker)):
        if role is None:
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
