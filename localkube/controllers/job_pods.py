"""The pods of batch/v1 Jobs: their names, labels, order of removal, and the tracking finalizer.

The finalizer keeps each pod until the Job has counted it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from localkube.controllers.job_rules import COMPLETION_INDEX, parse_index
from localkube.metadata import Object, deep_copy, name_of, namespace_of, uid_of
from localkube.objects import MAX_GENERATED_BASE, Objects
from localkube.resources import PODS
from localkube.store import Record
from localkube.tallies import TRACKING_FINALIZER

CREATION_TIME = re.compile(rb'"creationTimestamp":"([^"]*)"')

JOB_NAME = "batch.kubernetes.io/job-name"


def build_job_pod(
    job: Object, index: int | None, index_annotations: Mapping[str, str] | None = None
) -> Object:
    """Build a pod of the Job; with `index`, the pod of that completion index.

    `index_annotations` are what the pods of this index have besides.
    """
    template = deep_copy(job["spec"]["template"])
    template_metadata = template.get("metadata") or {}
    labels = dict(template_metadata.get("labels") or {}) | {
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
    if template_metadata.get("annotations"):
        metadata["annotations"] = dict(template_metadata["annotations"])
    if index is not None:
        _set_completion_index(metadata, template["spec"], name_of(job), index)
        metadata["annotations"] |= index_annotations or {}
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
        variables = container.get("env") or []
        if all(entry.get("name") != "JOB_COMPLETION_INDEX" for entry in variables):
            container["env"] = [*variables, deep_copy(variable)]


def has_tracking_finalizer(pod: Object) -> bool:
    """Return whether the pod still waits to be counted."""
    return TRACKING_FINALIZER in (pod["metadata"].get("finalizers") or ())


def release_pod(objects: Objects, pod: Object) -> None:
    """Remove the tracking finalizer from a pod that is counted or must not be counted."""
    if (
        has_tracking_finalizer(pod)
        and objects.find(PODS, namespace_of(pod), name_of(pod)) is not None
    ):
        objects.modify(PODS, namespace_of(pod), name_of(pod), _remove_finalizer)


def _remove_finalizer(pod: Object) -> None:
    remaining = [name for name in pod["metadata"].pop("finalizers") if name != TRACKING_FINALIZER]
    if remaining:
        pod["metadata"]["finalizers"] = remaining


def index_of(pod: Record) -> int:
    """Return the completion index of a pod; -1 when it has no readable one."""
    return parse_index(pod.labels.get(COMPLETION_INDEX, ""))


def sort_for_removal(active: Iterable[Record], completions: int | None) -> Sequence[Record]:
    """Return active pods in the order in which surplus ones are removed.

    First those whose index is out of range or taken by another pod; then unscheduled, pending and
    not ready ones; among equals the youngest (activePodsForRemoval and ActivePods of the real
    controller).
    """
    used_indexes: set[int] = set()
    is_surplus: dict[str, bool] = {}
    youngest_first = sorted(
        active, key=lambda pod: (_read_creation_time(pod), pod.name), reverse=True
    )
    for pod in reversed(youngest_first):
        index = index_of(pod)
        is_surplus[pod.uid] = completions is not None and (
            index in used_indexes or not 0 <= index < completions
        )
        used_indexes.add(index)
    return sorted(
        youngest_first,
        key=lambda pod: (
            not is_surplus[pod.uid],
            bool(pod.fields.get("spec.nodeName")),
            pod.fields.get("status.phase") == "Running",
            pod.tally is not None and pod.tally.ready,
        ),
    )


def _read_creation_time(pod: Record) -> bytes:
    # The object's own comes first in what is stored; decoding thousands of pods would hold the
    # loop.
    match = CREATION_TIME.search(pod.raw)
    return match[1] if match else b""
