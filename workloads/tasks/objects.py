"""A workload's objects in its cluster: of which kind they are, where, and whose."""

import contextlib
import uuid
from collections.abc import Mapping

from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Gone, NotServed
from clusters.kube.resources import JOBS, PODS, PYTORCHJOBS, Resource
from workloads import logbook, manifests
from workloads.models import Workload
from workloads.observed import Object, part
from workloads.specs import Framework
from workloads.tasks.trying import Later

KINDS: Mapping[str, Resource] = {"Job": JOBS, "PyTorchJob": PYTORCHJOBS}
"""What stands for a workload in a cluster, by kind."""

LOGS = 2.0
PATIENCE = 8
"""For so many turns of so many seconds the logs of finished pods are waited for. Longer and whoever reads them is not there."""

_BY_FRAMEWORK: Mapping[str, Resource] = {"": JOBS, Framework.PYTORCH.value: PYTORCHJOBS}


def resource_of(workload: Workload) -> Resource:
    """The kind of the object that stands for a workload."""
    return _BY_FRAMEWORK[workload.framework]


def kind_of(resource: Resource) -> str:
    """The kind as objects spell it; the items of a list of a built-in kind do not say it."""
    return next(kind for kind, each in KINDS.items() if each == resource)


def namespace_of(workload: Workload) -> str:
    """Where its objects were made."""
    return str(workload.spec.get("namespace") or workload.project.namespace)


def is_of(obj: Object, workload: Workload) -> bool:
    """Whether an object carries this workload's id."""
    labels = part(obj, "metadata", "labels")
    return bool(labels.get(manifests.MANAGED_BY) == manifests.MUSTER and labels.get(manifests.WORKLOAD) == str(workload.pk))


def workload_of(obj: Object) -> uuid.UUID | None:
    """The workload whose id an object carries."""
    labels = part(obj, "metadata", "labels")
    try:
        return uuid.UUID(labels.get(manifests.WORKLOAD)) if labels.get(manifests.MANAGED_BY) == manifests.MUSTER else None
    except (ValueError, TypeError, AttributeError):
        return None


def attempt_of(obj: Object) -> int:
    """The attempt that an object is of; 0 where it does not say."""
    value = part(obj, "metadata", "labels").get(manifests.ATTEMPT)
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 7 else 0


def is_going(obj: Object) -> bool:
    """Whether its deletion has begun."""
    return bool(part(obj, "metadata").get("deletionTimestamp"))


def all_of(client: Client, resource: Resource, workload: Workload) -> list[Object]:
    """Every object of a kind that carries the workload's id, of whatever attempt. Raises KubeError."""
    found: list[Object] = []
    with contextlib.suppress(Gone, NotServed):
        for page in calls.list_all(client, resource, namespace=namespace_of(workload), labels=manifests.selector(str(workload.pk))):
            found = [*page.items] if page.first else [*found, *page.items]
    return found


def delete(client: Client, resource: Resource, obj: Object) -> None:
    """Begin the end of this very object, with what hangs on it. Conflict when the name has passed to another one; never Gone."""
    metadata = part(obj, "metadata")
    with contextlib.suppress(Gone):
        calls.delete(client, resource, metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"])


def keep_logs(workload: Workload) -> None:
    """Wait a little until the logs of its finished pods are safe: they go with the pods. Raises Later while they are not; not for ever."""
    if workload.tries < PATIENCE and not logbook.keep(workload.pk, LOGS):
        raise Later("Its logs are read to their end first.", 1.0)


def clear(client: Client, workload: Workload) -> str:
    """Begin the end of everything of the workload in the cluster; gives in words what is still there, "" for nothing. Raises KubeError.

    The logs of pods that have finished are kept first, which may raise Later. Services and PodGroups go with the job that they hang on.
    """
    resource = resource_of(workload)
    jobs, pods = all_of(client, resource, workload), all_of(client, PODS, workload)
    doomed = [(resource, job) for job in jobs if not is_going(job)]
    if not jobs:
        # As long as there is a job, its controller would replace them; with it they go by themselves.
        doomed += [(PODS, pod) for pod in pods if not is_going(pod)]
    if doomed:
        keep_logs(workload)
    for kind, obj in doomed:
        delete(client, kind, obj)
    if jobs:
        return "Its job is being removed from the cluster."
    return f"{len(pods)} of its pods are still ending." if pods else ""
