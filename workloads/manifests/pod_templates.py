"""The parts of a pod template that all frameworks share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from workloads import kube_objects, quantities
from workloads.kube_objects import Object
from workloads.manifests import keys, placement, volumes
from workloads.manifests.delivery_variables import DeliveryRole, build_variables
from workloads.manifests.volumes import IMAGES, Images
from workloads.specs import Compute, Gpus, Pair, Security, Setup, Spec, Variable, VariableSource

HIDDEN_KEY = "…"
"""What stands for the key of data delivery in objects that are only shown."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The workload and attempt that objects belong to, and what their cluster has for them.

    `scheduler` places their pods, "" is the cluster's own; `classes` are the PriorityClasses that
    its pods name. `delivery_key` is the attempt's secret between ranks and data workers.
    """

    workload_id: str
    attempt: int = 1
    scheduler: str = keys.KAI
    classes: frozenset[str] = frozenset()
    images: Images = IMAGES
    pull_secrets: tuple[str, ...] = ()
    pools: placement.NodePools = placement.NO_POOLS
    delivery_key: str = HIDDEN_KEY


def build_metadata(spec: Spec, identity: Identity) -> Object:
    """Build the metadata of the object that represents the workload."""
    metadata: Object = {
        "name": spec.name,
        "namespace": spec.namespace,
        "labels": build_labels(spec, identity, spec.setup.labels),
    }
    if annotations := pairs_to_dict(spec.setup.annotations) | _build_delay_annotation(spec):
        metadata["annotations"] = annotations
    return metadata


def build_labels(spec: Spec, identity: Identity, own_labels: Iterable[Pair]) -> dict[str, str]:
    """Build the person's labels and ours.

    They are on the job and in every template, because no operator copies them.
    """
    labels = pairs_to_dict(own_labels) | {
        keys.MANAGED_BY: keys.MUSTER,
        keys.WORKLOAD: identity.workload_id,
        keys.ATTEMPT: str(identity.attempt),
        keys.PROJECT: spec.project,
        keys.QUEUE: spec.queue,
        keys.PREEMPTIBILITY: "preemptible" if spec.is_preemptible else "non-preemptible",
    }
    if spec.lifecycle.priority is not None:
        # A label, which KAI reads with a default: a pod that names a missing PriorityClass in its
        # spec is refused (see `Identity.classes`).
        labels[keys.PRIORITY_CLASS] = spec.lifecycle.priority.value
    return labels


def with_labels(obj: Object, marked: Mapping[str, str]) -> Object:
    """Return the object with these labels."""
    return obj | {"metadata": obj["metadata"] | {"labels": dict(marked)}}


def build_pod_template(
    spec: Spec,
    setup: Setup,
    identity: Identity,
    *,
    container: str,
    rank_0: bool,
    variables: Mapping[str, str] | None = None,
    role: DeliveryRole = DeliveryRole.RANK,
) -> Object:
    """Build a pod template with one container of this name.

    `rank_0` pods may write where only rank 0 may. `variables` are defaults that the person's own
    variables of the same name replace. `role` is that in the delivery of data, if there is any.
    """
    environment = build_environment(setup, variables, build_variables(spec, identity.attempt, role))
    container_object = _build_container(setup, container, rank_0, environment)
    return {
        "metadata": build_template_metadata(spec, setup, identity),
        "spec": _build_pod_spec(spec, setup, identity, container_object),
    }


def build_template_metadata(spec: Spec, setup: Setup, identity: Identity) -> Object:
    """Build the metadata of a pod template: labels, and annotations where there are any."""
    annotations = (
        pairs_to_dict(setup.annotations)
        | _build_gpu_annotations(setup.compute)
        | _build_delay_annotation(spec)
    )
    head: Object = {"labels": build_labels(spec, identity, setup.labels)}
    return head | ({"annotations": annotations} if annotations else {})


def _build_pod_spec(spec: Spec, setup: Setup, identity: Identity, container: Object) -> Object:
    pod: Object = {"containers": [container]}
    if fetching := volumes.build_fetchers(
        setup, identity.images, build_resources(replace(setup.compute, gpus=Gpus(), extended=()))
    ):
        pod["initContainers"] = fetching
    if pod_volumes := volumes.build_pod_volumes(spec, setup):
        pod["volumes"] = pod_volumes
    if identity.scheduler:
        pod["schedulerName"] = identity.scheduler
    if spec.lifecycle.priority is not None and spec.lifecycle.priority.value in identity.classes:
        pod["priorityClassName"] = spec.lifecycle.priority.value
    pod |= placement.build_placement(
        setup,
        identity.workload_id,
        identity.pools,
        has_data_workers=spec.data_delivery is not None,
    )
    if setup.security.host_network and spec.data_delivery is not None:
        # With the node's own DNS the names of data workers would not be found.
        pod["dnsPolicy"] = "ClusterFirstWithHostNet"
    if secrets := build_pull_secrets(setup, identity):
        pod["imagePullSecrets"] = secrets
    if spec.lifecycle.grace_seconds is not None:
        pod["terminationGracePeriodSeconds"] = spec.lifecycle.grace_seconds
    pod |= build_pod_security(setup.security)
    # Training code needs neither credentials for the API nor variables of other services.
    pod["automountServiceAccountToken"] = False
    pod["enableServiceLinks"] = False
    return pod


def build_pull_secrets(setup: Setup, identity: Identity) -> list[Object]:
    """Return the environment's pull secrets and the project's.

    A pod that names any gets none of its service account's.
    """
    return [
        {"name": name}
        for name in dict.fromkeys((*setup.environment.pull_secrets, *identity.pull_secrets))
    ]


def _build_container(setup: Setup, name: str, rank_0: bool, variables: list[Object]) -> Object:
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
    if variables:
        container["env"] = variables
    if resources := build_resources(setup.compute):
        container["resources"] = resources
    if mounts := volumes.build_mounts(setup, rank_0=rank_0):
        container["volumeMounts"] = mounts
    if security := build_container_security(setup.security):
        container["securityContext"] = security
    # Keeps the end of a failed container's log in the pod's status, for the diagnosis.
    container["terminationMessagePolicy"] = "FallbackToLogsOnError"
    return container


def build_environment(
    setup: Setup, defaults: Mapping[str, str] | None = None, fixed: Sequence[Object] = ()
) -> list[Object]:
    """Build the variables of a container: `defaults` that are not replaced, then the person's.

    The `fixed` ones come before them, and take the place of the person's own.
    """
    fixed_names = {variable["name"] for variable in fixed}
    own_names = {variable.name for variable in setup.environment.variables}
    variables: list[Object] = [
        {"name": key, "value": value}
        for key, value in (defaults or {}).items()
        if key not in own_names
    ]
    own_variables = (
        _build_variable(variable)
        for variable in setup.environment.variables
        if variable.name not in fixed_names
    )
    return [*fixed, *variables, *own_variables]


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
    """Build requests and limits of a container; {} where nothing is requested."""
    requests: Object = {"cpu": compute.cpu_request, "memory": compute.memory_request}
    limits: Object = {"cpu": compute.cpu_limit, "memory": compute.memory_limit}
    # Kubernetes accepts extended resources only as limits; requests default to them.
    if compute.gpus.device_count and not compute.gpus.is_shared:
        limits[kube_objects.GPU] = str(compute.gpus.device_count)
    limits |= {each.resource: each.quantity for each in compute.extended}
    parts = {"requests": requests, "limits": limits}
    given_parts = {
        part: {name: amount for name, amount in amounts.items() if amount}
        for part, amounts in parts.items()
    }
    return {part: amounts for part, amounts in given_parts.items() if amounts}


def _build_gpu_annotations(compute: Compute) -> dict[str, str]:
    """Build the annotations by which the KAI scheduler allocates parts of devices."""
    gpus = compute.gpus
    if not gpus.is_shared:
        return {}
    if gpus.memory:
        annotations = {kube_objects.GPU_MEMORY: str(quantities.to_mebibytes(gpus.memory))}
    else:
        annotations = {kube_objects.GPU_FRACTION: f"{(gpus.portion or Decimal(0)).normalize():f}"}
    return annotations | (
        {kube_objects.GPU_DEVICES: str(gpus.device_count)} if gpus.device_count > 1 else {}
    )


def _build_delay_annotation(spec: Spec) -> dict[str, str]:
    """Build the annotation by which KAI waits before it evicts others: a duration."""
    delay = spec.lifecycle.preemption_delay
    return {} if delay is None else {keys.PREEMPTION_DELAY: f"{delay}s"}


def build_pod_security(security: Security) -> Object:
    """Build the security fields of a pod."""
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
    """Build the securityContext of the container; {} for the cluster's default."""
    return volumes.drop_unset(
        readOnlyRootFilesystem=security.read_only_root or None,
        allowPrivilegeEscalation=security.privilege_escalation,
        capabilities={"add": list(security.capabilities)} if security.capabilities else None,
    )


def pairs_to_dict(pairs: Iterable[Pair]) -> dict[str, str]:
    """Return labels or annotations as an object has them."""
    return {pair.key: pair.value for pair in pairs}
