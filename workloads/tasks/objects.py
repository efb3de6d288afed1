"""A workload's objects in its cluster: their kind, their namespace, and their owner."""

import contextlib
import uuid
from collections.abc import Sequence

from clusters.job_kinds import JOB_KINDS, JobKind
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Gone
from clusters.kube.resources import PERSISTENTVOLUMECLAIMS, PODS, Resource
from console.texts import parse_number
from workloads import logbook, manifests
from workloads.kube_objects import Object, find_controller, is_pod_of_job, nested_dict, nested_list
from workloads.models import Desired, Workload
from workloads.specs import NewClaim
from workloads.tasks.retrying import RetryLater

CLAIM_KIND = "v1/PersistentVolumeClaim"

LOG_WAIT_SECONDS = 2.0
LOG_WAIT_TRIES = 8
"""How many tries, of LOG_WAIT_SECONDS each, wait for the logs of finished pods.

After more than that, nobody is reading the logs.
"""


def job_resource_of(workload: Workload) -> JobKind:
    """Return the kind of the object that stands for a workload."""
    return JOB_KINDS[workload.job_kind]


def resource_of_manifest(manifest: Object) -> Resource:
    """Return the resource of an object that `manifests.build` made."""
    kind = f"{manifest['apiVersion']}/{manifest['kind']}"
    return PERSISTENTVOLUMECLAIMS if kind == CLAIM_KIND else JOB_KINDS[kind]


def namespace_of(workload: Workload) -> str:
    """Return the namespace where the workload's objects were made."""
    return str(workload.spec.get("namespace") or workload.project.namespace)


def is_object_of(obj: Object, workload: Workload) -> bool:
    """Return whether an object that Muster may have made carries this workload's id.

    An object with a controller was made by that controller.
    """
    labels = nested_dict(obj, "metadata", "labels")
    is_labelled = labels.get(manifests.MANAGED_BY) == manifests.MUSTER and labels.get(
        manifests.WORKLOAD
    ) == str(workload.pk)
    return bool(is_labelled) and not find_controller(obj)


def fetch_pods(client: Client, workload: Workload) -> list[Object]:
    """Fetch the workload's pods of all attempts. Raises KubeError.

    Pods that have its labels and are somebody else's are left out.
    """
    kind = workload.job_kind.rpartition("/")[2]
    return [
        pod
        for pod in fetch_objects(client, PODS, workload)
        if is_pod_of_job(pod, kind, workload.name)
    ]


def find_workload_id(obj: Object) -> uuid.UUID | None:
    """Return the id of the workload that an object carries, if any."""
    labels = nested_dict(obj, "metadata", "labels")
    try:
        return (
            uuid.UUID(labels.get(manifests.WORKLOAD))
            if labels.get(manifests.MANAGED_BY) == manifests.MUSTER
            else None
        )
    except (ValueError, TypeError, AttributeError):
        return None


def parse_attempt(obj: Object) -> int:
    """Return the attempt that an object belongs to; 0 where it does not say."""
    return parse_number(nested_dict(obj, "metadata", "labels").get(manifests.ATTEMPT), 6) or 0


def is_being_deleted(obj: Object) -> bool:
    """Return whether the object's deletion has begun."""
    return bool(nested_dict(obj, "metadata").get("deletionTimestamp"))


def fetch_objects(client: Client, resource: Resource, workload: Workload) -> list[Object]:
    """Fetch every object of a kind that carries the workload's id, of all attempts. Raises
    KubeError.

    A kind that the cluster is known not to serve has none. A momentary "not served" answer proves
    nothing, and raises.
    """
    if not workload.cluster.can.serves(resource.key):
        return []
    objects: list[Object] = []
    for page in calls.list_all(
        client,
        resource,
        namespace=namespace_of(workload),
        labels=manifests.build_selector(str(workload.pk)),
    ):
        # A listing whose continue token expired (410) begins anew: earlier pages do not count.
        objects = [*page.items] if page.first else [*objects, *page.items]
    return objects


def delete_object(client: Client, resource: Resource, obj: Object) -> None:
    """Begin the deletion of this very object and its dependents.

    Raises Conflict when another object has the name by now; never Gone.
    """
    metadata = nested_dict(obj, "metadata")
    with contextlib.suppress(Gone):
        # The uid is a precondition: an object that took over the name meanwhile is not deleted.
        calls.delete(
            client, resource, metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"]
        )


def wait_for_logs(workload: Workload) -> None:
    """Wait a little until the logs of the finished pods are kept.

    They vanish with the pods. Raises RetryLater while they are not, but not for ever.
    """
    if workload.tries < LOG_WAIT_TRIES and not logbook.wait_until_logs_kept(
        workload.pk, LOG_WAIT_SECONDS
    ):
        raise RetryLater("Its logs are read to their end first.", 1.0)


def remove_all_objects(client: Client, workload: Workload) -> str:
    """Begin the deletion of all objects of the workload. Return in words what is left, "" for
    nothing.

    Raises KubeError. The logs of finished pods are kept first, which may raise RetryLater. Services
    and PodGroups go with their job. Claims made for the workload go when it is deleted, once no pod
    uses them.
    """
    resource = job_resource_of(workload)
    jobs, pods = (
        [job for job in fetch_objects(client, resource, workload) if is_object_of(job, workload)],
        fetch_pods(client, workload),
    )
    doomed: list[tuple[Resource, Object]] = [
        (resource, job) for job in jobs if not is_being_deleted(job)
    ]
    if not jobs:
        # As long as there is a job, its controller would replace them; with it they go by
        # themselves.
        doomed += [(PODS, pod) for pod in pods if not is_being_deleted(pod)]
    if doomed:
        wait_for_logs(workload)
    for kind, obj in doomed:
        delete_object(client, kind, obj)
    if jobs:
        return "Its job is being removed from the cluster."
    if pods:
        return f"{len(pods)} of its pods are still ending."
    claims = _fetch_unneeded_claims(client, workload)
    for claim in claims:
        if not is_being_deleted(claim):
            delete_object(client, PERSISTENTVOLUMECLAIMS, claim)
    return "Its volumes are being removed from the cluster." if claims else ""


def _fetch_unneeded_claims(client: Client, workload: Workload) -> Sequence[Object]:
    """Fetch the claims that are left of a deleted workload; a stopped one keeps them."""
    volumes = [
        *nested_list(workload.spec, "setup", "volumes"),
        *nested_list(workload.spec, "master", "volumes"),
    ]
    if workload.desired != Desired.DELETED or not any(
        each.get("kind") == NewClaim.kind for each in volumes
    ):
        return ()
    return fetch_objects(client, PERSISTENTVOLUMECLAIMS, workload)
