"""A distributed workload as a job whose launcher starts the program in the workers."""

from clusters.job_kinds import JobKind
from workloads.kube_objects import Object
from workloads.manifests import training
from workloads.manifests.delivery_variables import build_launcher_variables
from workloads.manifests.pod_templates import Identity
from workloads.specs import RestartPolicy, Spec


def build_job(spec: Spec, identity: Identity, kind: JobKind) -> list[Object]:
    """Build a job whose launcher has no rank; the workers wait for it.

    Without SSH keys the launcher always waits for the workers. They never end by themselves, so by
    default they are removed when the launcher has ended.
    """
    body: Object = {"slotsPerWorker": spec.mpi.slots}
    if kind.has_ssh:
        body |= {
            "sshAuthMountPath": spec.mpi.ssh_path,
            "launcherCreationPolicy": spec.mpi.launcher.value,
        }
    body["runPolicy"] = training.build_run_policy(spec)
    body[kind.replicas_field] = _build_replicas(spec, identity, kind)
    return [training.build_training_job(spec, identity, kind, body)]


def _build_replicas(spec: Spec, identity: Identity, kind: JobKind) -> Object:
    """Build the replica map.

    A command for both kinds of pods goes to the launcher: the operator makes the workers wait.
    Workers that keep their command keep their arguments too.
    """
    launcher = training.build_replica(
        spec,
        spec.master_setup,
        identity,
        1,
        container=kind.container,
        default=RestartPolicy.ON_FAILURE if kind.has_ssh else RestartPolicy.NEVER,
        variables=build_launcher_variables(spec, identity.attempt),
    )
    workers = training.build_replica(
        spec,
        spec.setup,
        identity,
        spec.workers,
        container=kind.container,
        default=RestartPolicy.NEVER,
    )
    if not kind.has_ssh:
        # It reaches the workers with the service account that the operator gives it.
        del launcher["template"]["spec"]["automountServiceAccountToken"]
    container = workers["template"]["spec"]["containers"][0]
    # Arguments belong to their command, and without one to the image's.
    deciding = "command" if spec.setup.environment.command else "args"
    if deciding not in spec.master.changes:
        container.pop("command", None)
        container.pop("args", None)
    return {"Launcher": launcher, "Worker": workers}
