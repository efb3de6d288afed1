"""States of a cluster that one cause alone has."""

from typing import Any

from tests.diagnosis.cluster_states import GPU, IMAGE, build_event
from tests.diagnosis.injected import BuildObjects, observe
from tests.workloads.cluster_objects import ClusterObjects
from tests.workloads.objects import condition

LATER = "2099-01-01T00:00:09Z"


def leave_pod_out() -> BuildObjects:
    """Return the builder of a gang of which one pod does not exist yet."""

    def build(kube: ClusterObjects) -> Any:
        group = kube.group()
        group["spec"] |= {"minMember": 2, "queue": "team-a"}
        pod = kube.queued("master", resources=GPU)
        return observe(kube, kube.job(condition("Created"), workers=1), pod, group)

    return build


def gate_pods() -> BuildObjects:
    """Return the builder of pods that scheduling gates hold back."""

    def build(kube: ClusterObjects) -> Any:
        pods = [kube.queued(role, resources=GPU) for role in ("master", "worker")]
        for pod in pods:
            pod["status"]["conditions"] = [
                condition("PodScheduled", False, reason="SchedulingGated", message="gated")
            ]
        return observe(kube, kube.job(condition("Created"), workers=1), *pods)

    return build


def lose_node() -> BuildObjects:
    """Return the builder of pods on a node that does not answer."""

    def build(kube: ClusterObjects) -> Any:
        pods = [kube.pod(role, ready=False) for role in ("master", "worker")]
        return observe(kube, kube.job(condition("Created"), workers=1), *pods)

    return build


def leave_job_alone() -> BuildObjects:
    """Return the builder of a job of which nobody makes pods."""
    return lambda kube: observe(kube, kube.job(condition("Created"), workers=1))


def pull_image() -> BuildObjects:
    """Return the builder of pods of which one pulls its image, and the other has pulled it."""

    def build(kube: ClusterObjects) -> Any:
        pods = [kube.starting(role) for role in ("master", "worker")]
        pulled = (
            f'Successfully pulled image "{IMAGE}" in 1m2.5s (1m2.5s including waiting). Image '
            "size: 9876543210 bytes."
        )
        events = [
            build_event(kube, pods[0], "Pulling", f'Pulling image "{IMAGE}"'),
            build_event(kube, pods[1], "Pulled", pulled),
        ]
        return observe(kube, kube.job(condition("Created"), workers=1), *pods, *events)

    return build


def run_init() -> BuildObjects:
    """Return the builder of a worker whose init container waits for the master."""

    def build(kube: ClusterObjects) -> Any:
        worker = kube.starting("worker", reason="PodInitializing")
        worker["spec"]["initContainers"] = [{"name": "init-pytorch", "image": "alpine:3"}]
        worker["status"]["initContainerStatuses"] = [
            {"name": "init-pytorch", "ready": False, "restartCount": 0, "state": {"running": {}}}
        ]
        master = kube.pod("master")
        return observe(kube, kube.job(condition("Created"), workers=1), master, worker)

    return build


def fail_probe() -> BuildObjects:
    """Return the builder of a worker that runs, and whose readiness probe fails."""

    def build(kube: ClusterObjects) -> Any:
        worker = kube.pod("worker", ready=False)
        text = "Readiness probe failed: HTTP probe failed with statuscode: 503"
        event = build_event(kube, worker, "Unhealthy", text, type="Warning")
        master = kube.pod("master")
        return observe(kube, kube.job(condition("Created"), workers=1), master, worker, event)

    return build


def fail_init() -> BuildObjects:
    """Return the builder of a worker whose init container did not fetch its data."""

    def build(kube: ClusterObjects) -> Any:
        worker = kube.pod("worker", phase="Failed", ready=False)
        worker["status"]["containerStatuses"] = []
        worker["spec"]["initContainers"] = [{"name": "fetch-volume-1", "image": "git-sync:4"}]
        ended = {
            "exitCode": 128,
            "reason": "Error",
            "message": "fatal: repository not found",
            "finishedAt": "2026-11-21T00:00:10Z",
        }
        worker["status"]["initContainerStatuses"] = [
            {"name": "fetch-volume-1", "restartCount": 0, "state": {"terminated": ended}}
        ]
        failed = condition("Failed", reason="PyTorchJobFailed", message="1 replica failed.")
        return observe(kube, kube.job(failed, workers=1), kube.pod("master"), worker)

    return build
