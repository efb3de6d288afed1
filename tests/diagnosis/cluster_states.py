"""States of a cluster for the causes: a job of a master and a worker, its pods and events."""

import itertools
from typing import Any

from tests.diagnosis.injected import BuildObjects, Object, observe
from tests.workloads.cluster_objects import ClusterObjects
from tests.workloads.objects import condition

GPU = {"limits": {"nvidia.com/gpu": "1"}}
IMAGE = "registry.example/train:1"
_event_numbers = itertools.count(1)


def build_event(
    kube: ClusterObjects, subject: Object, reason: str, message: str, **more: Any
) -> Object:
    """Return an event about an object, with a uid of its own."""
    uid = f"event-{kube.uid[:13]}-{next(_event_numbers)}"
    return kube.event(subject, reason, message, uid=uid, **more)


def queue_pods(
    message: str = "", *, group: tuple[str, str] | None = None, pod_event: str = "", **more: Any
) -> BuildObjects:
    """Return the builder of a job of two pods without a node.

    `group` is the reason and the message of its PodGroup, `pod_event` the reason of an event about
    the master with the text `text`.
    """
    text, queue = more.pop("text", ""), more.pop("group_queue", "team-a")
    details = more.pop("details", None)

    def build(kube: ClusterObjects) -> Any:
        pods = [
            kube.queued(role, message=message, **({"resources": GPU} | more))
            for role in ("master", "worker")
        ]
        objects = [kube.job(condition("Created"), workers=1), *pods]
        if group is not None:
            objects.append(_build_group(kube, group, queue, details))
        if pod_event:
            objects.append(build_event(kube, pods[0], pod_event, text))
        return observe(kube, *objects)

    return build


def _build_group(
    kube: ClusterObjects, group: tuple[str, str], queue: str, details: Object | None
) -> Object:
    made = kube.group(*group)
    made["spec"] |= {"minMember": 2, "queue": queue}
    if details is not None:
        made["status"]["schedulingConditions"][0]["reasons"][0]["details"] = details
    return made


def start_pod(
    reason: str = "ContainerCreating",
    message: str = "",
    *,
    events: tuple[tuple[str, str], ...] = (),
    **more: Any,
) -> BuildObjects:
    """Return the builder of a running master and a worker that starts, with events about it."""

    def build(kube: ClusterObjects) -> Any:
        worker = kube.starting("worker", reason=reason, message=message, **more)
        worker["spec"]["containers"][0]["image"] = IMAGE
        event_objects = [build_event(kube, worker, *event) for event in events]
        master = kube.pod("master")
        return observe(
            kube, kube.job(condition("Created"), workers=1), master, worker, *event_objects
        )

    return build


def refuse_pods(message: str, reason: str = "FailedCreatePod") -> BuildObjects:
    """Return the builder of a job whose pods the cluster refuses."""

    def build(kube: ClusterObjects) -> Any:
        job = kube.job(condition("Created"), workers=1)
        event = build_event(kube, job, reason, message, kind="PyTorchJob", type="Warning")
        return observe(kube, job, event)

    return build


def hold_in_kueue(*events: tuple[str, str]) -> BuildObjects:
    """Return the builder of a job that Kueue suspends, with events about its Workload."""

    def build(kube: ClusterObjects) -> Any:
        job = kube.job(condition("Created"), condition("Suspended"), workers=1)
        job["spec"]["runPolicy"] = {"suspend": True}
        job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "team-queue"
        name = f"pytorchjob-{kube.workload.name}-5dfe2"
        subject = {"metadata": {"name": name, "uid": f"kueue-{kube.uid[:20]}"}}
        event_objects = [
            build_event(
                kube, subject, *event, kind="Workload", lastTimestamp=f"2099-01-01T00:00:0{at}Z"
            )
            for at, event in enumerate(events)
        ]
        return observe(kube, job, *event_objects)

    return build


def claim_volume(message: str, *events: tuple[str, str]) -> BuildObjects:
    """Return the builder of queued pods with a claim that Muster made, and events about it."""
    queued = queue_pods(message)

    def build(kube: ClusterObjects) -> Any:
        subject = {"metadata": {"name": f"{kube.workload.name}-data-1", "uid": f"c{kube.uid[:20]}"}}
        event_objects = [
            build_event(kube, subject, *event, kind="PersistentVolumeClaim") for event in events
        ]
        return [*queued(kube), *observe(kube, *event_objects)]

    return build


def end_pods(
    master: int | None = None,
    worker: int | None = None,
    *,
    job: Object | None = None,
    order: tuple[int, int] = (10, 11),
    **more: Any,
) -> BuildObjects:
    """Return the builder of a failed job; of each pod its exit code, None where it runs.

    `order` is the second in which each ended; `more` goes to the pod that ended first.
    """

    def build(kube: ClusterObjects) -> Any:
        failed = job or condition("Failed", reason="PyTorchJobFailed", message="1 replica failed.")
        pods = []
        for role, code, second in zip(("master", "worker"), (master, worker), order, strict=True):
            is_first = second == min(order) or None in (master, worker)
            given = more if is_first else {}
            pods.append(
                kube.pod(role, **{})
                if code is None
                else kube.ended(role, code=code, at=f"2026-11-21T00:00:{second}Z", **given)
            )
        return observe(kube, kube.job(failed, workers=1), *pods)

    return build


def fail_job(reason: str, message: str) -> BuildObjects:
    """Return the builder of a job that failed, and of which no pod is there."""

    def build(kube: ClusterObjects) -> Any:
        failed = condition("Failed", reason=reason, message=message)
        return observe(kube, kube.job(failed, workers=1))

    return build
