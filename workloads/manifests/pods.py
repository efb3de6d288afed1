"""The parts of a pod template that all frameworks share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from workloads import observed, quantities
from workloads.manifests import keys
from workloads.specs import (
    Access,
    Claim,
    Compute,
    ConfigMap,
    EmptyDir,
    HostPath,
    Nfs,
    Pair,
    Secret,
    Security,
    Setup,
    Source,
    Spec,
    Toleration,
    TolerationEffect,
    TolerationOperator,
    Variable,
    Volume,
)

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose objects these are, and which scheduler places their pods ("" for the cluster's own)."""

    workload_id: str
    attempt: int
    scheduler: str


def metadata(spec: Spec, identity: Identity) -> Object:
    """The metadata of the object that stands for the workload."""
    made: Object = {"name": spec.name, "namespace": spec.namespace, "labels": labels(spec, identity, spec.setup.labels)}
    if spec.setup.annotations:
        made["annotations"] = _mapping(spec.setup.annotations)
    return made


def labels(spec: Spec, identity: Identity, chosen: Iterable[Pair]) -> dict[str, str]:
    """The person's labels and ours. They are on the job and in every template, for no engine copies them."""
    made = _mapping(chosen) | {
        keys.MANAGED_BY: keys.MUSTER,
        keys.WORKLOAD: identity.workload_id,
        keys.ATTEMPT: str(identity.attempt),
        keys.PROJECT: spec.project,
        keys.QUEUE: spec.queue,
        keys.PREEMPTIBILITY: "preemptible" if spec.is_preemptible else "non-preemptible",
    }
    if spec.lifecycle.priority is not None:
        # As a label only: a pod that names a PriorityClass which is not there is refused, while KAI falls back to its default.
        made[keys.PRIORITY_CLASS] = spec.lifecycle.priority.value
    return made


def template(
    spec: Spec, setup: Setup, identity: Identity, *, container: str, rank_0: bool, variables: Mapping[str, str] | None = None
) -> Object:
    """A pod template whose one container has this name. `rank_0` pods may write where only rank 0 may.

    `variables` are defaults that the person's own variables of the same name replace.
    """
    annotations = _mapping(setup.annotations) | _gpu_annotations(setup.compute)
    head: Object = {"labels": labels(spec, identity, setup.labels)}
    if annotations:
        head["annotations"] = annotations
    return {"metadata": head, "spec": _pod(spec, setup, identity, _container(setup, container, rank_0, variables or {}))}


def _pod(spec: Spec, setup: Setup, identity: Identity, container: Object) -> Object:
    pod: Object = {"containers": [container]}
    volumes = [{"name": name, **_volume(volume)} for name, volume in _named(setup)]
    if volumes:
        pod["volumes"] = volumes
    if identity.scheduler:
        pod["schedulerName"] = identity.scheduler
    if setup.node_type:
        pod["nodeSelector"] = {keys.NODE_TYPE: setup.node_type}
    if setup.tolerations:
        pod["tolerations"] = [_toleration(each) for each in setup.tolerations]
    if setup.environment.pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in setup.environment.pull_secrets]
    if spec.lifecycle.grace_seconds is not None:
        pod["terminationGracePeriodSeconds"] = spec.lifecycle.grace_seconds
    pod |= _pod_security(setup.security)
    # Training code needs no key to the cluster, and no variables about its neighbours' services.
    pod["automountServiceAccountToken"] = False
    pod["enableServiceLinks"] = False
    return pod


def _container(setup: Setup, name: str, rank_0: bool, defaults: Mapping[str, str]) -> Object:
    environment = setup.environment
    container: Object = {"name": name, "image": environment.image_reference}
    if environment.pull_policy is not None:
        container["imagePullPolicy"] = environment.pull_policy.value
    for field, value in (("command", list(environment.command)), ("args", list(environment.args)), ("workingDir", environment.working_dir)):
        if value:
            container[field] = value
    own = {variable.name for variable in environment.variables}
    variables = [{"name": key, "value": value} for key, value in defaults.items() if key not in own]
    variables += [_variable(variable) for variable in environment.variables]
    if variables:
        container["env"] = variables
    if resources := _resources(setup.compute):
        container["resources"] = resources
    mounts = [_mount(mount, volume, rank_0) for mount, volume in _named(setup)]
    if mounts:
        container["volumeMounts"] = mounts
    if security := _container_security(setup.security):
        container["securityContext"] = security
    # The end of the log of a container that failed is so kept in the pod's status.
    container["terminationMessagePolicy"] = "FallbackToLogsOnError"
    return container


def _variable(variable: Variable) -> Object:
    match variable.source:
        case Source.CUSTOM:
            return {"name": variable.name, "value": variable.value}
        case Source.POD_FIELD:
            return {"name": variable.name, "valueFrom": {"fieldRef": {"fieldPath": variable.key}}}
        case Source.SECRET | Source.CONFIG_MAP:
            reference = "secretKeyRef" if variable.source is Source.SECRET else "configMapKeyRef"
            return {"name": variable.name, "valueFrom": {reference: {"name": variable.object_name, "key": variable.key}}}


def _resources(compute: Compute) -> Object:
    requests: Object = {"cpu": compute.cpu_request, "memory": compute.memory_request}
    limits: Object = {"cpu": compute.cpu_limit, "memory": compute.memory_limit}
    # What cannot be shared out in parts is asked for as a limit; the request follows it.
    if compute.gpus.device_count and not compute.gpus.is_shared:
        limits[observed.GPU] = str(compute.gpus.device_count)
    limits |= {each.resource: each.quantity for each in compute.extended}
    parts = {"requests": requests, "limits": limits}
    kept = {part: {name: amount for name, amount in amounts.items() if amount} for part, amounts in parts.items()}
    return {part: amounts for part, amounts in kept.items() if amounts}


def _gpu_annotations(compute: Compute) -> dict[str, str]:
    """Parts of devices, as the KAI scheduler takes them."""
    gpus = compute.gpus
    if not gpus.is_shared:
        return {}
    if gpus.memory:
        asked = {observed.GPU_MEMORY: str(quantities.mebibytes(gpus.memory))}
    else:
        asked = {observed.GPU_FRACTION: f"{(gpus.portion or Decimal(0)).normalize():f}"}
    return asked | ({observed.GPU_DEVICES: str(gpus.device_count)} if gpus.device_count > 1 else {})


def _named(setup: Setup) -> Sequence[tuple[str, Volume]]:
    """The volumes with the names they have in the pod."""
    named: list[tuple[str, Volume]] = [(f"volume-{number}", volume) for number, volume in enumerate(setup.volumes, 1)]
    return [*named, ("shared-memory", EmptyDir(path=keys.SHARED_MEMORY, memory=True))] if setup.compute.large_shm else named


def _mount(name: str, volume: Volume, rank_0: bool) -> Object:
    mount: Object = {"name": name, "mountPath": volume.path}
    if volume.access is Access.READ_ONLY or (volume.access is Access.RANK_0_WRITES and not rank_0):
        mount["readOnly"] = True
    if isinstance(volume, ConfigMap) and volume.sub_path:
        mount["subPath"] = volume.sub_path
    if isinstance(volume, HostPath) and volume.propagate:
        mount["mountPropagation"] = "HostToContainer"
    return mount


def _volume(volume: Volume) -> Object:
    match volume:
        case EmptyDir():
            return {"emptyDir": _given(medium="Memory" if volume.memory else None, sizeLimit=volume.size or None)}
        case HostPath():
            return {"hostPath": {"path": volume.source}}
        case ConfigMap():
            return {"configMap": _given(name=volume.name, defaultMode=volume.mode)}
        case Secret():
            return {"secret": _given(secretName=volume.name, defaultMode=volume.mode)}
        case Claim():
            return {"persistentVolumeClaim": {"claimName": volume.claim}}
        case Nfs():
            return {"nfs": {"server": volume.server, "path": volume.export}}
    raise TypeError(f"{type(volume).__name__} is no kind of volume that a pod can have")


def _toleration(toleration: Toleration) -> Object:
    any_effect = toleration.effect is TolerationEffect.ANY
    return _given(
        key=toleration.key or None,
        operator=toleration.operator.value,
        value=toleration.value if toleration.operator is TolerationOperator.EQUAL else None,
        effect=None if any_effect else toleration.effect.value,
        tolerationSeconds=toleration.seconds,
    )


def _pod_security(security: Security) -> Object:
    context = _given(
        runAsUser=security.uid,
        runAsGroup=security.gid,
        supplementalGroups=list(security.supplemental_groups) or None,
        runAsNonRoot=security.non_root,
        seccompProfile=None if security.seccomp is None else {"type": security.seccomp.value},
    )
    return _given(securityContext=context or None, hostIPC=security.host_ipc or None, hostNetwork=security.host_network or None)


def _container_security(security: Security) -> Object:
    return _given(
        readOnlyRootFilesystem=security.read_only_root or None,
        allowPrivilegeEscalation=security.privilege_escalation,
        capabilities={"add": list(security.capabilities)} if security.capabilities else None,
    )


def _given(**values: Any) -> Object:
    return {name: value for name, value in values.items() if value is not None}


def _mapping(pairs: Iterable[Pair]) -> dict[str, str]:
    return {pair.key: pair.value for pair in pairs}
