"""Builds the objects that benchmarks load a server with."""

from typing import Any

NAMESPACE = "muster-benchmark"
HOLD = "localkube.muster.dev/hold"
"""localkube stores a pod with this annotation and never starts it; to other servers it means
nothing.
"""

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
JOBS = f"/apis/kubeflow.org/v1/namespaces/{NAMESPACE}/pytorchjobs"


def build_pod(name: str) -> dict[str, Any]:
    """Build a pod like that of a training job's worker: about 6 kB once the server has filled it
    in.
    """
    env = [
        {"name": f"SETTING_{number}", "value": f"value-of-the-setting-{number}"}
        for number in range(22)
    ]
    resources = {
        "requests": {"cpu": "4", "memory": "16Gi"},
        "limits": {"cpu": "4", "memory": "16Gi"},
    }
    mounts = [
        {"name": name, "mountPath": f"/mnt/{name}"} for name in ("data", "checkpoints", "shm")
    ]
    container = {
        "name": "pytorch",
        "image": "registry.example.com/team/train:2026.11",
        "command": [
            "torchrun",
            "--nnodes=4",
            "--nproc-per-node=8",
            "/workspace/train.py",
            "--epochs=90",
            "--batch-size=256",
        ],
        "env": env,
        "resources": resources,
        "volumeMounts": mounts,
        "ports": [{"name": "pytorchjob-port", "containerPort": 23456}],
    }
    volumes = [{"name": name, "emptyDir": {}} for name in ("data", "checkpoints", "shm")]
    labels = {
        "training.kubeflow.org/job-name": name.rsplit("-", 1)[0],
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": "0",
        "training.kubeflow.org/operator-name": "pytorchjob-controller",
        "team": "vision",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {HOLD: "true", "sidecar.istio.io/inject": "false"},
        },
        # A scheduler that does not exist: on a peer too, the objects are all there is to measure.
        "spec": {
            "restartPolicy": "Never",
            "schedulerName": "nobody",
            "containers": [container],
            "volumes": volumes,
        },
    }


def build_job(name: str) -> dict[str, Any]:
    """Build a suspended PyTorchJob: an operator, where there is one, makes no pods of it."""
    template = {
        "spec": {
            "containers": [
                {"name": "pytorch", "image": "train:1", "command": ["python", "train.py"]}
            ]
        }
    }
    replicas = {
        "Master": {"replicas": 1, "template": template},
        "Worker": {"replicas": 3, "template": template},
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": replicas},
    }


def build_printing_pod(name: str, lines: int) -> dict[str, Any]:
    """Build a pod that prints `lines` lines of 100 bytes and ends."""
    text = "0123456789" * 10
    command = ["sh", "-c", f"yes {text[:99]} | head -n {lines}"]
    container = {"name": "main", "image": "busybox", "command": command}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
