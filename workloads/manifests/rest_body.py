"""A submission as the body of a REST call, as Run:ai's clients send it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from workloads import quantities
from workloads.specs import (
    S3,
    Claim,
    ClaimAccess,
    Compute,
    ConfigMap,
    EmptyDir,
    Framework,
    Git,
    HostPath,
    Lifecycle,
    NewClaim,
    Nfs,
    Pair,
    Secret,
    Security,
    Setup,
    Spec,
    Toleration,
    Topology,
    Variable,
    VariableSource,
    Volume,
    VolumeAccess,
    join_command_line,
)
from workloads.specs.spec import UNCHANGED

Body = dict[str, Any]

ACCESS_MODES: Mapping[ClaimAccess, str] = {
    ClaimAccess.ONE_NODE: "readWriteOnce",
    ClaimAccess.MANY_READ: "readOnlyMany",
    ClaimAccess.MANY_WRITE: "readWriteMany",
}
"""The access modes of a new claim, as the API names its flags."""

DISTRIBUTED_PATH = "/api/v1/workloads/distributed"
STANDARD_PATH = "/api/v1/workloads/trainings"


def get_rest_path(spec: Spec) -> str:
    """Return the path to which `build_rest_body` is posted."""
    return DISTRIBUTED_PATH if spec.is_distributed else STANDARD_PATH


def build_rest_body(spec: Spec, *, project_id: str, cluster_id: str) -> Body:
    """Build the body that submits this spec.

    Our extensions, for what the API has no field for: `noMaster`, `parameterServers`,
    `maxRestarts`, `writableByRank0Only`, a bucket's `prefix`, `readOnly` of an empty directory and
    a Git repository, and the restart policy ExitCode.
    """
    body: Body = {"name": spec.name, "projectId": project_id, "clusterId": cluster_id}
    spec_fields = _serialize_setup(spec.setup) | _serialize_lifecycle(spec.lifecycle)
    if not spec.is_distributed:
        runs = {} if spec.runs == 1 else {"completions": spec.runs, "parallelism": spec.parallelism}
        return body | {"spec": spec_fields | runs}
    body["spec"] = _serialize_distributed(spec) | spec_fields
    if not spec.has_master:
        return body | {"noMaster": True}
    if spec.master == UNCHANGED:
        return body | {"masterSpecSameAsWorker": True}
    return body | {
        "masterSpecSameAsWorker": False,
        "masterSpec": _serialize_setup(spec.master_setup),
    }


def _serialize_distributed(spec: Spec) -> Body:
    """Return the fields that only distributed workloads have, or only one framework."""
    head: Body = {
        "distributedFramework": spec.framework.value if spec.framework else None,
        "numWorkers": spec.workers,
    }
    if spec.elastic is not None:
        head |= {"minReplicas": spec.elastic.min_workers, "maxReplicas": spec.elastic.max_workers}
        head |= (
            {} if spec.elastic.max_restarts is None else {"maxRestarts": spec.elastic.max_restarts}
        )
    if spec.parameter_servers:
        head["parameterServers"] = spec.parameter_servers
    if spec.framework is Framework.MPI:
        mpi = spec.mpi
        head |= {
            "slotsPerWorker": mpi.slots,
            "sshAuthMountPath": mpi.ssh_path,
            "mpiLauncherCreationPolicy": mpi.launcher.value,
        }
    return head


def _serialize_setup(setup: Setup) -> Body:
    environment = setup.environment
    return _drop_empty(
        image=environment.image,
        imagePullPolicy=environment.pull_policy and environment.pull_policy.value,
        imagePullSecrets=[{"name": name} for name in environment.pull_secrets],
        command=join_command_line(environment.command),
        args=join_command_line(environment.args),
        workingDir=environment.working_dir,
        environmentVariables=[_serialize_variable(variable) for variable in environment.variables],
        annotations=_serialize_pairs(setup.annotations),
        labels=_serialize_pairs(setup.labels),
        compute=_serialize_compute(setup.compute),
        storage=_serialize_storage(setup.volumes),
        nodeType=setup.node_type,
        nodePools=list(setup.node_pools),
        podAffinity=_serialize_topology(setup.topology),
        tolerations=[
            _serialize_toleration(number, each) for number, each in enumerate(setup.tolerations, 1)
        ],
        security=_serialize_security(setup.security),
    )


def _serialize_lifecycle(lifecycle: Lifecycle) -> Body:
    values = {
        "backoffLimit": lifecycle.backoff_limit,
        "restartPolicy": lifecycle.restart_policy,
        "cleanPodPolicy": lifecycle.clean_pod_policy,
        "terminationGracePeriodSeconds": lifecycle.grace_seconds,
        "autoDeletionTimeAfterCompletionSeconds": lifecycle.auto_delete_seconds,
        "priorityClass": lifecycle.priority,
        "preemptibility": lifecycle.preemptibility,
    }
    # Not `_drop_empty`: 0 is a chosen value here, unlike an empty text.
    return {
        name: value if isinstance(value, int) else value.value
        for name, value in values.items()
        if value is not None
    }


def _serialize_variable(variable: Variable) -> Body:
    match variable.source:
        case VariableSource.CUSTOM:
            return {"name": variable.name, "value": variable.value}
        case VariableSource.POD_FIELD:
            return {"name": variable.name, "podFieldRef": {"path": variable.key}}
        case VariableSource.SECRET | VariableSource.CONFIG_MAP:
            return {
                "name": variable.name,
                variable.source.value: {"name": variable.object_name, "key": variable.key},
            }


def _serialize_compute(compute: Compute) -> Body:
    gpus = compute.gpus
    kind = None
    if gpus.memory:
        kind = "memory"
    elif gpus.portion is not None:
        kind = "portion"
    return _drop_empty(
        gpuDevicesRequest=gpus.device_count,
        gpuRequestType=kind,
        gpuPortionRequest=None if gpus.portion is None else float(gpus.portion),
        gpuMemoryRequest=gpus.memory,
        cpuCoreRequest=_parse_cores(compute.cpu_request),
        cpuCoreLimit=_parse_cores(compute.cpu_limit),
        cpuMemoryRequest=compute.memory_request,
        cpuMemoryLimit=compute.memory_limit,
        largeShmRequest=compute.large_shm,
        extendedResources=[
            {"resource": each.resource, "quantity": each.quantity} for each in compute.extended
        ],
    )


def _parse_cores(quantity: str) -> float | None:
    return float(quantities.parse_quantity(quantity)) if quantity else None


def _serialize_storage(volumes: Iterable[Volume]) -> Body:
    storage: dict[str, list[Body]] = {}
    for number, volume in enumerate(volumes, 1):
        field, entry = _STORAGE_SERIALIZERS[type(volume)](volume)
        access: Body = {}
        if field in ("pvc", "nfs", "hostPath"):
            # Always set: the API's own defaults differ between these kinds.
            access["readOnly"] = volume.access is VolumeAccess.READ_ONLY
        elif field in ("emptyDirVolume", "git") and volume.access is VolumeAccess.READ_ONLY:
            access["readOnly"] = True
        if volume.access is VolumeAccess.RANK_0_WRITES:
            access["writableByRank0Only"] = True
        storage.setdefault(field, []).append({"name": f"volume-{number}"} | entry | access)
    return dict(storage)


_STORAGE_SERIALIZERS: Mapping[type[Volume], Callable[[Any], tuple[str, Body]]] = {
    EmptyDir: lambda it: (
        "emptyDirVolume",
        _drop_empty(path=it.path, medium="Memory" if it.memory else None, sizeLimit=it.size),
    ),
    HostPath: lambda it: (
        "hostPath",
        _drop_empty(
            path=it.source,
            mountPath=it.path,
            mountPropagation="HostToContainer" if it.propagate else None,
        ),
    ),
    ConfigMap: lambda it: (
        "configMapVolume",
        _drop_empty(
            configMap=it.name,
            mountPath=it.path,
            subPath=it.sub_path,
            defaultMode=_format_mode(it.mode),
        ),
    ),
    Secret: lambda it: (
        "secretVolume",
        _drop_empty(secret=it.name, mountPath=it.path, defaultMode=_format_mode(it.mode)),
    ),
    Claim: lambda it: ("pvc", {"claimName": it.claim, "existingPvc": True, "path": it.path}),
    NewClaim: lambda it: ("pvc", _serialize_new_claim(it)),
    Nfs: lambda it: ("nfs", {"server": it.server, "path": it.export, "mountPath": it.path}),
    Git: lambda it: (
        "git",
        _drop_empty(
            repository=it.repository,
            branch=it.branch,
            revision=it.revision,
            path=it.path,
            secretRef=_serialize_git_secret(it),
        ),
    ),
    S3: lambda it: (
        "s3",
        _drop_empty(
            bucket=it.bucket, prefix=it.prefix, path=it.path, url=it.url, accessKeySecret=it.secret
        ),
    ),
}


def _serialize_new_claim(claim: NewClaim) -> Body:
    modes = {ACCESS_MODES[mode]: True for mode in claim.modes}
    info = _drop_empty(
        size=claim.size,
        storageClass=claim.storage_class,
        accessModes=modes,
        volumeMode="Filesystem",
    )
    return {
        "existingPvc": False,
        "claimInfo": info,
        "ephemeral": claim.ephemeral,
        "path": claim.path,
    }


def _serialize_git_secret(git: Git) -> Body:
    return _drop_empty(
        name=git.secret, authenticationMethod=git.credential and git.credential.value
    )


def _format_mode(mode: int | None) -> str | None:
    return None if mode is None else f"{mode:04o}"


def _serialize_topology(topology: Topology | None) -> Body | None:
    return (
        None
        if topology is None
        else {"type": "Required" if topology.required else "Preferred", "key": topology.key}
    )


def _serialize_toleration(number: int, toleration: Toleration) -> Body:
    fields = {
        "name": f"toleration-{number}",
        "operator": toleration.operator.value,
        "effect": toleration.effect.value,
    }
    return fields | _drop_empty(
        key=toleration.key, value=toleration.value, seconds=toleration.seconds
    )


def _serialize_security(security: Security) -> Body:
    custom = security.uid is not None or security.gid is not None or security.supplemental_groups
    groups = ",".join(map(str, security.supplemental_groups))
    values = {
        "uidGidSource": "custom" if custom else None,
        "runAsUid": security.uid,
        "runAsGid": security.gid,
        "supplementalGroups": groups or None,
        "runAsNonRoot": security.non_root,
        "readOnlyRootFilesystem": security.read_only_root or None,
        "allowPrivilegeEscalation": security.privilege_escalation,
        "capabilities": list(security.capabilities) or None,
        "hostIpc": security.host_ipc or None,
        "hostNetwork": security.host_network or None,
        "seccompProfileType": security.seccomp and security.seccomp.value,
    }
    return {name: value for name, value in values.items() if value is not None}


def _serialize_pairs(pairs: Iterable[Pair]) -> list[Body]:
    return [{"name": pair.key, "value": pair.value} for pair in pairs]


def _drop_empty(**values: Any) -> Body:
    """Return the values that are not empty: the API takes a missing field for its default."""
    return {name: value for name, value in values.items() if value}
