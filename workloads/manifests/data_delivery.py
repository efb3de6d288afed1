"""The data workers of a workload: their Secret, the Service that names them, and their Job.

They are a Job of their own beside the training, outside its gang. They run what the workers run,
without GPUs, and serve what they load to the ranks.
"""

from collections.abc import Mapping, Sequence

from clusters.job_kinds import JOBS
from workloads.kube_objects import Object, nested_dict
from workloads.manifests import keys, pod_templates, standard
from workloads.manifests.delivery_variables import KEY_NAME, PORT, DeliveryRole
from workloads.manifests.placement import HEAVIEST
from workloads.manifests.pod_templates import Identity
from workloads.specs import Claim, HostPath, NewClaim, Nfs, Setup, Spec, Volume
from workloads.specs.delivery_problems import SPILL_PATH

GPU_NODE = "nvidia.com/gpu.present"
"""The label that NVIDIA's feature discovery puts on each node with GPUs."""
LOADER_RAISED = 86
"""The exit code of a data worker whose loader raised: it would raise again."""
TRIES_PER_WORKER = 6
SPILL_VOLUME = "delivery-spill"

ALONE: Mapping[str, str] = {
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29400",
    "RANK": "0",
    "WORLD_SIZE": "1",
}
"""What the operator tells a rank. Each data worker is a group of its own: a script that joins its
process group before it registers its loader would otherwise wait for the ranks.
"""
ALONE_WITH_MPI: Mapping[str, str] = {"OMPI_MCA_rmaps_base_oversubscribe": "1"}
"""Lets mpirun start its processes in a data worker, which has fewer cores than the ranks."""


def build_objects(spec: Spec, identity: Identity) -> list[Object]:
    """Build what the data workers need, in the order in which to create it; [] without any."""
    if spec.data_delivery is None:
        return []
    return [
        _build_secret(spec, identity),
        _build_service(spec, identity),
        _build_job(spec, identity, spec.data_worker_setup),
    ]


def suspend_job(spec: Spec, job: Object) -> Object:
    """Return the training's job as it waits for data, or unchanged where nothing is prepared.

    A job whose spec has a `runPolicy` is suspended there.
    """
    if spec.data_delivery is None or not spec.data_delivery.units:
        return job
    metadata = job["metadata"]
    annotations = {**metadata.get("annotations", {}), keys.WAITS_FOR_DATA: "true"}
    body = job["spec"]
    suspended = (
        {"runPolicy": body["runPolicy"] | {"suspend": True}}
        if "runPolicy" in body
        else {"suspend": True}
    )
    return job | {"metadata": metadata | {"annotations": annotations}, "spec": body | suspended}


def _build_head(spec: Spec, identity: Identity) -> Object:
    return {
        "name": keys.data_workers_name(spec.name),
        "namespace": spec.namespace,
        "labels": _build_labels(pod_templates.build_labels(spec, identity, ())),
    }


def _build_labels(labels: Mapping[str, str]) -> dict[str, str]:
    return {**labels, keys.ROLE: keys.DATA_WORKER}


def _build_secret(spec: Spec, identity: Identity) -> Object:
    """Build the Secret with the key by which ranks and data workers of one attempt believe each
    other.
    """
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _build_head(spec, identity),
        "type": "Opaque",
        "stringData": {KEY_NAME: identity.delivery_key},
    }


def _build_service(spec: Spec, identity: Identity) -> Object:
    """Build the headless Service that gives each data worker a name.

    It publishes addresses of pods that are not ready: a rank asks until one answers.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _build_head(spec, identity),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {
                keys.WORKLOAD: identity.workload_id,
                keys.ATTEMPT: str(identity.attempt),
                keys.ROLE: keys.DATA_WORKER,
            },
            "ports": [{"name": "delivery", "port": PORT, "targetPort": PORT, "protocol": "TCP"}],
        },
    }


def _build_job(spec: Spec, identity: Identity, setup: Setup) -> Object:
    """Build the Job of the data workers; each has its number from the Job's index.

    A pod that a node or somebody else took is replaced without limit, one that failed within
    `TRIES_PER_WORKER`; where the loader itself raised, the Job fails at once.
    """
    assert spec.data_delivery is not None
    workers = spec.data_delivery.workers
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": _build_head(spec, identity),
        "spec": {
            "completionMode": "Indexed",
            "completions": workers,
            "parallelism": workers,
            "backoffLimit": TRIES_PER_WORKER * workers,
            "podFailurePolicy": {
                "rules": [
                    {
                        "action": "FailJob",
                        "onExitCodes": {
                            "containerName": JOBS.container,
                            "operator": "In",
                            "values": [LOADER_RAISED],
                        },
                    },
                    standard.build_disruption_rule(),
                ]
            },
            "template": _build_template(spec, identity, setup),
        },
    }


def _build_template(spec: Spec, identity: Identity, setup: Setup) -> Object:
    template = pod_templates.build_pod_template(
        spec,
        setup,
        identity,
        container=JOBS.container,
        rank_0=False,
        variables=_choose_defaults(spec),
        role=DeliveryRole.WORKER,
    )
    pod = template["spec"]
    [container] = pod["containers"]
    container["volumeMounts"] = [
        *_forbid_writing(container.get("volumeMounts", ()), setup.volumes),
        {"name": SPILL_VOLUME, "mountPath": SPILL_PATH},
    ]
    pod["volumes"] = [*pod.get("volumes", ()), {"name": SPILL_VOLUME, "emptyDir": {}}]
    pod["affinity"] = _avoid_gpu_nodes(pod.get("affinity", {}))
    # Only a pod that is never restarted in place may have a policy for its failures.
    pod |= {"restartPolicy": "Never", "subdomain": keys.data_workers_name(spec.name)}
    metadata = template["metadata"]
    return template | {"metadata": metadata | {"labels": _build_labels(metadata["labels"])}}


def _choose_defaults(spec: Spec) -> Mapping[str, str]:
    if spec.framework is None:
        return {}
    adapter = spec.framework.adapter
    if not adapter.is_leader_ranked:
        return ALONE_WITH_MPI
    return ALONE if ALONE.keys() <= adapter.operator_variables else {}


def _forbid_writing(mounts: Sequence[Object], volumes: Sequence[Volume]) -> list[Object]:
    """Return the mounts of these volumes, those of shared storage read-only.

    Only rank 0 writes to the project's storage. What each pod has of its own may be written.
    """
    # Mounts come in the order of their volumes; shared memory, which has none, is the last.
    forbidden = {
        mount["name"]
        for mount, volume in zip(mounts, volumes, strict=False)
        if isinstance(volume, Claim | HostPath | Nfs)
        or (isinstance(volume, NewClaim) and not volume.ephemeral)
    }
    return [mount | {"readOnly": True} if mount["name"] in forbidden else mount for mount in mounts]


def _avoid_gpu_nodes(affinity: Object) -> Object:
    """Return the affinity with the strongest wish for nodes without GPUs."""
    of_nodes, preferred = (
        nested_dict(affinity, "nodeAffinity"),
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    wish = {
        "weight": HEAVIEST,
        "preference": {"matchExpressions": [{"key": GPU_NODE, "operator": "DoesNotExist"}]},
    }
    return affinity | {"nodeAffinity": of_nodes | {preferred: [*of_nodes.get(preferred, ()), wish]}}
