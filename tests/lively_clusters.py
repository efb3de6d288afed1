"""The clusters of the busy day: one with everything, one that misses much, one that is disabled;
and what their nodes say.
"""

from datetime import datetime, timedelta
from decimal import Decimal

from clusters import capability_probe
from clusters.capabilities import Capabilities, TrainingRuntime
from clusters.findings import Findings, StorageClass
from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.job_kinds.tensorflow import TFJOBS
from clusters.models import Cluster, ConnectionWay, Node
from clusters.permission_review import PermissionReview
from clusters.permissions import NEEDED
from clusters.project_manifests import PRIORITY_CLASSES
from tests.cast import NOWHERE

ABSENT = ("kubeflow.org", "trainer.kubeflow.org", "scheduling.run.ai", "metrics.k8s.io")
"""Groups of which the cluster that misses much has two kinds only."""
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "PreferNoSchedule"}


def clusters(first: Cluster, now: datetime) -> dict[str, object]:
    """Fill in the first one and make the others; their ids by name."""
    everything = Capabilities(
        served=frozenset(each.key for each in capability_probe.USED_RESOURCES),
        gpu_sharing=True,
        priority_classes=frozenset(PRIORITY_CLASSES),
        runtimes=(
            TrainingRuntime("torch-distributed", "torch", "kai-scheduler"),
            TrainingRuntime("jax-distributed", "jax"),
        ),
        trainjob_fields=frozenset({"runtimeRef", "trainer", "runtimePatches"}),
    )
    found = Findings(
        (
            StorageClass("fast-nvme", "csi.example.com", True),
            StorageClass("archive", "nfs.csi.k8s.io"),
        )
    )
    times = {"probed_at": now, "permissions_at": now - timedelta(minutes=12)}
    _update_cluster(first, everything, found, _review(), platform="RKE2, linux/amd64", **times)
    missing = _create_cluster(
        "edge-lab", "https://edge-lab.example.com:6443", now, way=ConnectionWay.TOKEN
    )
    there = (
        each
        for each in capability_probe.USED_RESOURCES
        if each.group not in ABSENT or each in (PYTORCHJOBS, TFJOBS)
    )
    some = Capabilities(served=frozenset(each.key for each in there), gpu_sharing=False)
    denied = frozenset({("create", "namespaces"), ("delete", "pods"), ("list", "nodes")})
    unanswered = Findings(
        unanswered={"storage_classes": "storageclasses.storage.k8s.io is forbidden"}
    )
    _update_cluster(
        missing,
        some,
        unanswered,
        _review(denied, served=some),
        platform="K3s, linux/arm64",
        **times,
    )
    disabled = _create_cluster(
        "old-cluster",
        "https://203.0.113.7:6443",
        now,
        is_enabled=False,
        disabled_at=now - timedelta(days=3),
    )
    _nodes(first, now)
    return {"missing": missing.pk, "disabled": disabled.pk}


def _create_cluster(name: str, server: str, now: datetime, **fields: object) -> Cluster:
    made: Cluster = Cluster.objects.create(
        name=name, server=server, kubeconfig=NOWHERE, version="v1.33.4", last_seen_at=now, **fields
    )
    return made


def _update_cluster(
    cluster: Cluster, can: Capabilities, found: Findings, review: PermissionReview, **fields: object
) -> None:
    kept = {
        "capabilities": can.to_json(),
        "findings": found.to_json(),
        "permissions": review.to_json(),
        **fields,
    }
    Cluster.objects.filter(pk=cluster.pk).update(**kept)


def _review(
    denied: frozenset[tuple[str, str]] = frozenset(), served: Capabilities | None = None
) -> PermissionReview:
    answers: dict[str, dict[str, bool]] = {}
    skipped: dict[str, str] = {}
    for need in NEEDED:
        if served is not None and not served.serves(need.resource.key):
            skipped[need.kind] = "The cluster does not serve it."
        else:
            answers.setdefault(need.kind, {})[need.verb] = (need.verb, need.kind) not in denied
    return PermissionReview(answers, skipped, user="system:serviceaccount:muster:muster")


def _nodes(cluster: Cluster, now: datetime) -> None:
    about = {
        "Kubelet": "v1.32.4",
        "Operating system": "Ubuntu 24.04.2 LTS",
        "Container runtime": "containerd://2.1.4",
        "Architecture": "amd64",
    }
    for number, node in enumerate(cluster.nodes.all()):
        since = (now - timedelta(days=20 + number)).isoformat()
        ready = {"type": "Ready", "status": "True" if node.is_ready else "Unknown", "since": since}
        ready |= (
            {"reason": "KubeletReady", "message": "kubelet is posting ready status"}
            if node.is_ready
            else {"reason": "NodeStatusUnknown"}
        )
        pressure = {
            "type": "DiskPressure",
            "status": "False",
            "reason": "KubeletHasNoDiskPressure",
            "message": "",
            "since": since,
        }
        is_gpu = node.gpus > 0
        Node.objects.filter(pk=node.pk).update(
            roles="worker" if is_gpu else "control-plane",
            address=f"10.20.0.{11 + number}",
            pods=110,
            used_pods=9 + number,
            about=about,
            conditions=[ready, pressure],
            taints=[TAINT] if is_gpu else [],
            gpu_memory=143_771 if is_gpu else 0,
            gpus_unhealthy=Decimal(1) if node.name == "gpu-node-2" else Decimal(0),
            labels={"kai.scheduler/node-pool": "h200", "kubernetes.io/hostname": node.name}
            if is_gpu
            else {"kubernetes.io/hostname": node.name},
        )
