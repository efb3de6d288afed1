"""The parts of a pod template that all frameworks share."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from workloads import kube_objects, quantities
from workloads.kube_objects import Object
from workloads.manifests import keys, placement, volumes
from workloads.manifests.volumes import IMAGES, Images
from workloads.specs import Compute, Gpus, Pair, Security, Setup, Spec, Variable, VariableSource


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose objects these are, and what their cluster has for them.

    `scheduler` places their pods, "" is the cluster's own; `classes` are the PriorityClasses that
    its pods name.
    """

    workload_id: str
    attempt: int = 1
    scheduler: str = keys.KAI
    classes: frozenset[str] = frozenset()
    images: Images = IMAGES
    pull_secrets: tuple[str, ...] = ()
    pools: placement.NodePools = placement.NO_POOLS


def build_metadata(spec: Spec, identity: Identity) -> Object:
    """The metadata of the object that stands for the workload."""
    made: Object = {
        "name": spec.name,
        "namespace": spec.namespace,
        "labels": build_labels(spec, identity, spec.setup.labels),
    }
    if spec.setup.annotations:
        made["annotations"] = pairs_to_dict(spec.setup.annotations)
    return made


def build_labels(spec: Spec, identity: Identity, chosen: Iterable[Pair]) -> dict[str, str]:
    """The person's labels and ours. They are on the job and in every template, for no engine copies
    them.
    """
    made = pairs_to_dict(chosen) | {
        keys.MANAGED_BY: keys.MUSTER,
        keys.WORKLOAD: identity.workload_id,
        keys.ATTEMPT: str(identity.attempt),
        keys.PROJECT: spec.project,
        keys.QUEUE: spec.queue,
        keys.PREEMPTIBILITY: "preemptible" if spec.is_preemptible else "non-preemptible",
    }
    if spec.lifecycle.priority is not None:
        # As a label only: a pod that names a PriorityClass which is not there is refused, while KAI
        # falls back to its default.
        made[keys.PRIORITY_CLASS] = spec.lifecycle.priority.value
    return made


def with_labels(obj: Object, marked: Mapping[str, str]) -> Object:
    """The object with these labels."""
    return obj | {"metadata": obj["metadata"] | {"labels": dict(marked)}}


def build_pod_template(
    spec: Spec,
    setup: Setup,
    identity: Identity,
    *,
    container: str,
    rank_0: bool,
    variables: Mapping[str, str] | None = None,
) -> Object:
    """A pod template whose one container has this name. `rank_0` pods may write where only rank 0
    may.

    `variables` are defaults that the person's own variables of the same name replace.
    """
    made = _build_container(setup, container, rank_0, variables or {})
    return {
        "metadata": build_template_metadata(spec, setup, identity),
        "spec": _build_pod_spec(spec, setup, identity, made),
    }


def build_template_metadata(spec: Spec, setup: Setup, identity: Identity) -> Object:
    """The metadata of a pod template: labels, and annotations where there are any."""
    annotations = pairs_to_dict(setup.annotations) | _build_gpu_annotations(setup.compute)
    head: Object = {"labels": build_labels(spec, identity, setup.labels)}
    return head | ({"annotations": annotations} if annotations else {})


def _build_pod_spec(spec: Spec, setup: Setup, identity: Identity, container: Object) -> Object:
    pod: Object = {"containers": [container]}
    if fetching := volumes.build_fetchers(
        setup, identity.images, build_resources(replace(setup.compute, gpus=Gpus(), extended=()))
    ):
        pod["initContainers"] = fetching
    if made := volumes.build_pod_volumes(spec, setup):
        pod["volumes"] = made
    if identity.scheduler:
        pod["schedulerName"] = identity.scheduler
    if spec.lifecycle.priority is not None and spec.lifecycle.priority.value in identity.classes:
        pod["priorityClassName"] = spec.lifecycle.priority.value
    pod |= placement.build_placement(setup, identity.workload_id, identity.pools)
    if secrets := build_pull_secrets(setup, identity):
        pod["imagePullSecrets"] = secrets
    if spec.lifecycle.grace_seconds is not None:
        pod["terminationGracePeriodSeconds"] = spec.lifecycle.grace_seconds
    pod |= build_pod_security(setup.security)
    # Training code needs no key to the cluster, and no variables about its neighbours' services.
    pod["automountServiceAccountToken"] = False
    pod["enableServiceLinks"] = False
    return pod


def build_pull_secrets(setup: Setup, identity: Identity) -> list[Object]:
    """The environment's own and the project's: a pod that names any gets none of its service
    account's.
    """
    return [
        {"name": name}
        for name in dict.fromkeys((*setup.environment.pull_secrets, *identity.pull_secrets))
    ]


def _build_container(setup: Setup, name: str, rank_0: bool, defaults: Mapping[str, str]) -> Object:
    environment = setup.environment
    container: Object = {"name": name, "image": environment.image_reference}
    if environment.pull_policy is not None:
        container["imagePullPolicy"] = environment.pull_policy.value
    for field, value in (
        ("command", list(environment.command)),
        ("args", list(environment.args)),
        ("workingDir", environment.working_dir),
    ):
        if value:
            container[field] = value
    if variables := build_environment(setup, defaults):
        container["env"] = variables
    if resources := build_resources(setup.compute):
        container["resources"] = resources
    if mounts := volumes.build_mounts(setup, rank_0=rank_0):
        container["volumeMounts"] = mounts
    if security := build_container_security(setup.security):
        container["securityContext"] = security
    # The end of the log of a container that failed is so kept in the pod's status.
    container["terminationMessagePolicy"] = "FallbackToLogsOnError"
    return container


def build_environment(setup: Setup, defaults: Mapping[str, str] | None = None) -> list[Object]:
    """The variables of a container: the person's, after those `defaults` that they do not
    replace.
    """
    own = {variable.name for variable in setup.environment.variables}
    variables: list[Object] = [
        {"name": key, "value": value} for key, value in (defaults or {}).items() if key not in own
    ]
    return [*variables, *(_build_variable(variable) for variable in setup.environment.variables)]


def _build_variable(variable: Variable) -> Object:
    match variable.source:
        case VariableSource.CUSTOM:
            return {"name": variable.name, "value": variable.value}
        case VariableSource.POD_FIELD:
            return {"name": variable.name, "valueFrom": {"fieldRef": {"fieldPath": variable.key}}}
        case VariableSource.SECRET | VariableSource.CONFIG_MAP:
            reference = (
                "secretKeyRef" if variable.source is VariableSource.SECRET else "configMapKeyRef"
            )
            return {
                "name": variable.name,
                "valueFrom": {reference: {"name": variable.object_name, "key": variable.key}},
            }


def build_resources(compute: Compute) -> Object:
    """Requests and limits of a container; {} where nothing is asked for."""
    requests: Object = {"cpu": compute.cpu_request, "memory": compute.memory_request}
    limits: Object = {"cpu": compute.cpu_limit, "memory": compute.memory_limit}
    # What cannot be shared out in parts is asked for as a limit; the request follows it.
    if compute.gpus.device_count and not compute.gpus.is_shared:
        limits[kube_objects.GPU] = str(compute.gpus.device_count)
    limits |= {each.resource: each.quantity for each in compute.extended}
    parts = {"requests": requests, "limits": limits}
    kept = {
        part: {name: amount for name, amount in amounts.items() if amount}
        for part, amounts in parts.items()
    }
    return {part: amounts for part, amounts in kept.items() if amounts}


def _build_gpu_annotations(compute: Compute) -> dict[str, str]:
    """Parts of devices, as the KAI scheduler takes them."""
    gpus = compute.gpus
    if not gpus.is_shared:
        return {}
    if gpus.memory:
        asked = {kube_objects.GPU_MEMORY: str(quantities.to_mebibytes(gpus.memory))}
    else:
        asked = {kube_objects.GPU_FRACTION: f"{(gpus.portion or Decimal(0)).normalize():f}"}
    return asked | (
        {kube_objects.GPU_DEVICES: str(gpus.device_count)} if gpus.device_count > 1 else {}
    )


def build_pod_security(security: Security) -> Object:
    """The fields of a pod that say as whom it runs."""
    context = volumes.drop_unset(
        runAsUser=security.uid,
        runAsGroup=security.gid,
        supplementalGroups=list(security.supplemental_groups) or None,
        runAsNonRoot=security.non_root,
        seccompProfile=None if security.seccomp is None else {"type": security.seccomp.value},
    )
    return volumes.drop_unset(
        securityContext=context or None,
        hostIPC=security.host_ipc or None,
        hostNetwork=security.host_network or None,
    )


def build_container_security(security: Security) -> Object:
    """The securityContext of the container; {} for the cluster's own."""
    return volumes.drop_unset(
        readOnlyRootFilesystem=security.read_only_root or None,
        allowPrivilegeEscalation=security.privilege_escalation,
        capabilities={"add": list(security.capabilities)} if security.capabilities else None,
    )


def pairs_to_dict(pairs: Iterable[Pair]) -> dict[str, str]:
    """Labels or annotations as an object has them."""
    return {pair.key: pair.value for pair in pairs}
