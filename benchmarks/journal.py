"""Measures the processor time of the journal: of one change by the size of its workload, and of a
first listing of pods.

    benchmarks/journal.py [--pods N] [--database-url URL]

No cluster is asked and no server runs: the figures are seconds of this process's processor, hence
also meaningful on a busy machine. With PostgreSQL the database's own time is not in them.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(os.environ.get("MUSTER_BENCHMARK_ROOT", Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(ROOT))

SIZES = (1, 100, 2000)
CHANGES = 60
AT_ONCE = 20
"""Changes of one batch, as they gather at 200 a second."""
PAGE = 500

Object = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000, help="pods of the listing")
    parser.add_argument("--database-url", default="", metavar="URL")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="muster-journal-") as data:
        set_up_django(data, options.database_url)
        for size in SIZES:
            report_changes(size)
        report_listing(options.pods, 4)
        report_listing(options.pods, 100)
    return 0


def set_up_django(data: str, database_url: str) -> None:
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "MUSTER_DATA_DIR": data,
        "MUSTER_SECRET_KEY": "only-for-a-benchmark-that-serves-nobody-else",
        "MUSTER_ENCRYPTION_KEYS": "b25seS10by1sb29rLWF0LXRoZS1jb2RlLW5vdC1rZXk=",
        "MUSTER_DATABASE_URL": database_url,
    }
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    # The tables as the models say, at once: passing through all migrations takes longer than the
    # measurement.
    settings.MIGRATION_MODULES = {each.label: None for each in django.apps.apps.get_app_configs()}
    call_command("migrate", verbosity=0, run_syncdb=True)


def report_changes(size: int) -> None:
    """Report the processor time of a change in a workload of this size, alone and among others."""
    from workloads import journal
    from workloads.journal import Observation

    workload_set = Submitted(1, size)
    record_pages(workload_set, "starting")
    changed = [
        [
            Observation(
                "pod", workload_set.decode_pod(0, number % size, "ready", version=number + 10)
            )
        ]
        for number in range(CHANGES)
    ]
    flipped = [
        [
            Observation(
                "pod", workload_set.decode_pod(0, number % size, phase, version=number + 1000)
            )
        ]
        for number in range(CHANGES)
        for phase in ("starting" if number % 2 else "ready",)
    ]
    single = measure(
        lambda: [journal.record_observations(workload_set.cluster_id, each) for each in changed]
    )
    batches = [
        [each for part in flipped[at : at + AT_ONCE] for each in part]
        for at in range(0, CHANGES, AT_ONCE)
    ]
    together = measure(
        lambda: [journal.record_observations(workload_set.cluster_id, each) for each in batches]
    )
    print(
        f"a change among {size} pods: {single / CHANGES * 1e6:.0f} µs alone, "
        f"{together / CHANGES * 1e6:.0f} µs as one of {AT_ONCE}",
        flush=True,
    )


def report_listing(pods: int, size: int) -> None:
    """Report the processor time of the first listing of so many pods, in workloads of this size."""
    workload_set = Submitted(pods // size, size)
    pages = workload_set.encode_pages("ready")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took = measure(lambda: record_listing(workload_set.cluster_id, pages))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"a first listing of {pods} pods in workloads of {size}: {took:.2f} s; at most "
        f"{after / 1024:.0f} MiB, {before / 1024:.0f} before",
        flush=True,
    )


def record_pages(workload_set: "Submitted", phase: str) -> None:
    record_listing(workload_set.cluster_id, workload_set.encode_pages(phase))


def record_listing(cluster_id: uuid.UUID, pages: Sequence[bytes]) -> None:
    from clusters.kube.frames import parse_page
    from workloads import journal
    from workloads.slimming import SLIMMING_DECODER

    listing = journal.Listing(cluster_id, "pod")
    for page in pages:
        listing.add_page(parse_page(page, SLIMMING_DECODER).items)
    listing.finish()


def measure(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


class Submitted:
    """Workloads in a cluster of their own, each with a job, and the objects of their pods."""

    def __init__(self, workloads: int, size: int) -> None:
        from clusters.models import Cluster
        from projects.models import Department, Project
        from workloads.models import Attempt, Workload

        self.size = size
        name = f"c{uuid.uuid4().hex[:8]}"
        cluster = Cluster.objects.create(name=name)
        department = Department.objects.create(name=name)
        project = Project.objects.create(
            name=name, department=department, cluster=cluster, namespace=name, queue=name
        )
        self.cluster_id, self.namespace = cluster.pk, name
        self.rows = [
            Workload(
                project=project,
                cluster=cluster,
                name=f"train-{number}",
                job_kind="kubeflow.org/v1/PyTorchJob",
                spec={},
                status="Pending",
                requested_pods=size,
                job_uid=str(uuid.uuid4()),
            )
            for number in range(workloads)
        ]
        for row in self.rows:
            row.job = self._build_job(row)
            if hasattr(row, "pod_counts"):
                row.pod_counts = {"job_uid": row.job_uid, "is_led": True}
        Workload.objects.bulk_create(self.rows)
        Attempt.objects.bulk_create(
            [Attempt(workload=each, number=1, status="Pending") for each in self.rows]
        )

    def encode_pages(self, phase: str) -> list[bytes]:
        """Return the answers to the requests of a listing."""
        pods = [
            self.encode_pod(workload, number, phase)
            for workload in range(len(self.rows))
            for number in range(self.size)
        ]
        head = b'{"metadata":{"resourceVersion":"5"},"items":['
        return [
            head + b",".join(pods[begin : begin + PAGE]) + b"]}"
            for begin in range(0, len(pods), PAGE)
        ]

    def decode_pod(self, workload: int, number: int, phase: str, *, version: int) -> Object:
        from workloads.slimming import SLIMMING_DECODER

        return SLIMMING_DECODER.decode(self.encode_pod(workload, number, phase, version=version))

    def _build_job(self, row: Any) -> Object:
        replicas = {"Master": {"replicas": 1}, "Worker": {"replicas": self.size - 1}}
        return {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {
                "name": row.name,
                "uid": row.job_uid,
                "namespace": self.namespace,
                "resourceVersion": "1",
                "labels": {"muster.dev/workload": str(row.pk), "muster.dev/attempt": "1"},
            },
            "spec": {"pytorchReplicaSpecs": replicas},
            "status": {"conditions": [{"type": "Created", "status": "True"}]},
        }

    def encode_pod(self, workload: int, number: int, phase: str, *, version: int = 3) -> bytes:
        """Return the object of a pod as an API server sends it."""
        row = self.rows[workload]
        role, index = ("worker", number - 1) if number else ("master", 0)
        name, at = f"{row.name}-{role}-{index}", "2026-11-21T00:00:00Z"
        is_ready = phase == "ready"
        labels = {
            "muster.dev/workload": str(row.pk),
            "muster.dev/attempt": "1",
            "training.kubeflow.org/job-name": row.name,
            "training.kubeflow.org/operator-name": "pytorchjob-controller",
            "training.kubeflow.org/replica-index": str(index),
            "training.kubeflow.org/replica-type": role,
        }
        owner = {
            "apiVersion": "kubeflow.org/v1",
            "blockOwnerDeletion": True,
            "controller": True,
            "kind": "PyTorchJob",
            "name": row.name,
            "uid": row.job_uid,
        }
        env = [{"name": f"PET_SETTING_{each}", "value": str(each)} for each in range(12)]
        container = {
            "name": "pytorch",
            "image": "registry.example/train:1",
            "command": ["python", "train.py"],
            "env": env,
            "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}},
            "ports": [{"containerPort": 23456, "name": "pytorchjob-port", "protocol": "TCP"}],
            "terminationMessagePath": "/dev/termination-log",
            "volumeMounts": [{"mountPath": "/var/run/secrets", "name": "token", "readOnly": True}],
        }
        state = {"running": {"startedAt": at}}
        if not is_ready:
            state = {"waiting": {"reason": "ContainerCreating"}}  # type: ignore[dict-item]
        status = {
            "name": "pytorch",
            "ready": is_ready,
            "restartCount": 0,
            "state": state,
            "lastState": {},
            "image": "registry.example/train:1",
            "imageID": f"registry.example/train@sha256:{'0' * 64}",
        }
        conditions = [
            {
                "type": kind,
                "status": "True" if is_ready or kind == "PodScheduled" else "False",
                "lastProbeTime": None,
                "lastTransitionTime": at,
            }
            for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ]
        fields = [{"manager": "kubelet", "operation": "Update", "time": at, "fieldsV1": {}}]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "uid": str(uuid.uuid5(row.pk, name)),
                "resourceVersion": str(version),
                "creationTimestamp": at,
                "labels": labels,
                "ownerReferences": [owner],
                "managedFields": fields,
            },
            "spec": {
                "containers": [container],
                "nodeName": f"node-{number % 50}",
                "restartPolicy": "Never",
                "schedulerName": "default-scheduler",
                "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
                "volumes": [{"name": "token", "projected": {"sources": []}}],
            },
            "status": {
                "phase": "Running" if is_ready else "Pending",
                "conditions": conditions,
                "containerStatuses": [status],
                "podIP": "10.0.0.1",
                "startTime": at,
            },
        }
        return json.dumps(pod, separators=(",", ":")).encode()


if __name__ == "__main__":
    sys.exit(main())
