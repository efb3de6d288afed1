"""The pods of batch/v1 Jobs: how they are named, marked and chosen, and the finalizer that keeps
each until it is counted.
"""

from collections.abc import Iterable, Sequence

from localkube.controllers.job_rules import COMPLETION_INDEX, completion_index
from localkube.controllers.pod_state import is_ready, phase_of
from localkube.metadata import Object, deep_copy, name_of, namespace_of, uid_of
from localkube.objects import MAX_GENERATED_BASE, Objects
from localkube.resources import PODS

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
JOB_NAME = "batch.kubernetes.io/job-name"


def build_job_pod(job: Object, index: int | None) -> Object:
    """A pod of the Job; with `index`, the one for that completion index."""
    template = deep_copy(job["spec"]["template"])
    given = template.get("metadata") or {}
    labels = dict(given.get("labels") or {}) | {
        "batch.kubernetes.io/controller-uid": uid_of(job),
        "controller-uid": uid_of(job),
        JOB_NAME: name_of(job),
        "job-name": name_of(job),
    }
    metadata: Object = {
        "generateName": f"{name_of(job)}-",
        "labels": labels,
        "finalizers": [TRACKING_FINALIZER],
    }
    if given.get("annotations"):
        metadata["annotations"] = dict(given["annotations"])
    if index is not None:
        _set_completion_index(metadata, template["spec"], name_of(job), index)
    return {"metadata": metadata, "spec": template["spec"]}


def _set_completion_index(metadata: Object, spec: Object, job: str, index: int) -> None:
    ending = f"-{index}-"
    metadata["generateName"] = job[: MAX_GENERATED_BASE - len(ending)] + ending
    metadata["labels"][COMPLETION_INDEX] = str(index)
    metadata["annotations"] = metadata.get("annotations", {}) | {COMPLETION_INDEX: str(index)}
    spec.setdefault("hostname", f"{job}-{index}"[:63])
    variable = {
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}},
    }
    for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
        given = container.get("env") or []
        if all(each.get("name") != "JOB_COMPLETION_INDEX" for each in given):
            container["env"] = [*given, deep_copy(variable)]


def has_tracking_finalizer(pod: Object) -> bool:
    """Whether the pod still waits to be counted."""
    return TRACKING_FINALIZER in (pod["metadata"].get("finalizers") or ())


def release_pod(objects: Objects, pod: Object) -> None:
    """Let a pod that is counted, or that shall not be, go when it is deleted."""
    if (
        has_tracking_finalizer(pod)
        and objects.find(PODS, namespace_of(pod), name_of(pod)) is not None
    ):
        objects.modify(PODS, namespace_of(pod), name_of(pod), _remove_finalizer)


def _remove_finalizer(pod: Object) -> None:
    left = [name for name in pod["metadata"].pop("finalizers") if name != TRACKING_FINALIZER]
    if left:
        pod["metadata"]["finalizers"] = left


def sort_for_removal(active: Iterable[Object], completions: int | None) -> Sequence[Object]:
    """Active pods in the order in which surplus ones go.

    First those with an index that is out of range or taken by another pod; then the unscheduled,
    the pending, the not ready; among equals the youngest (activePodsForRemoval and ActivePods of
    the real controller).
    """
    seen: set[int] = set()
    surplus: dict[str, bool] = {}
    youngest_first = sorted(
        active,
        key=lambda pod: (str(pod["metadata"]["creationTimestamp"]), name_of(pod)),
        reverse=True,
    )
    for pod in reversed(youngest_first):
        index = completion_index(pod)
        surplus[uid_of(pod)] = completions is not None and (
            index in seen or not 0 <= index < completions
        )
        seen.add(index)
    return sorted(
        youngest_first,
        key=lambda pod: (
            not surplus[uid_of(pod)],
            bool(pod["spec"].get("nodeName")),
            phase_of(pod) == "Running",
            is_ready(pod),
        ),
    )
