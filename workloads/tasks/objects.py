"""A workload's objects in its cluster: their kind, their namespace, and their owner."""

import contextlib
import uuid
from collections.abc import Mapping, Sequence

from django.db.models import Q

from clusters.job_kinds import JOB_KINDS, JOBS, JobKind
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Gone, Rejected
from clusters.kube.resources import PERSISTENTVOLUMECLAIMS, PODS, SECRETS, SERVICES, Resource
from console.texts import parse_number
from workloads import logbook, manifests
from workloads.kube_objects import (
    DATA_WORKER,
    ROLE,
    Object,
    find_controller,
    get_data_job_name,
    is_data_worker,
    is_pod_of_job,
    nested_dict,
    nested_list,
)
from workloads.models import Desired, Pod, Workload
from workloads.slimming import SLIMMING_DECODER
from workloads.specs import NewClaim
from workloads.tasks.retrying import RetryLater

_RESOURCES_BESIDE_JOBS: Mapping[str, Resource] = {
    "v1/PersistentVolumeClaim": PERSISTENTVOLUMECLAIMS,
    "v1/Secret": SECRETS,
    "v1/Service": SERVICES,
}
"""By apiVersion/kind."""

JOB_REMOVAL_TEXT = "Its job is being removed from the cluster."
POD_REMOVAL_TEXT = "Its pods are being removed from the cluster:"
"""How the descriptions of a removal under way begin."""

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
    return _RESOURCES_BESIDE_JOBS.get(kind) or JOB_KINDS[kind]


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
    return _select_own_pods(fetch_objects(client, PODS, workload), workload)


def _select_own_pods(pods: Sequence[Object], workload: Workload) -> list[Object]:
    kind = workload.job_kind.rpartition("/")[2]
    return [
        pod
        for pod in pods
        if is_pod_of_job(pod, kind, workload.name) or is_data_worker(pod, workload.name)
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
        # Anybody may put the label on many large objects.
        decoder=SLIMMING_DECODER,
    ):
        if page.first:
            # A listing whose continue token expired (410) begins anew: earlier pages do not count.
            objects = []
        objects += page.items
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
    jobs = _fetch_jobs(client, workload)
    labelled_pods = fetch_objects(client, PODS, workload)
    pods = _select_own_pods(labelled_pods, workload)
    doomed_jobs = [(kind, job) for kind, job in jobs if not is_being_deleted(job)]
    # As long as there is a job, its controller would replace them; with it they go by themselves,
    # though one by one where the cluster has many.
    doomed_pods = [] if jobs else [pod for pod in pods if not is_being_deleted(pod)]
    if doomed_jobs or doomed_pods:
        wait_for_logs(workload)
    for kind, job in doomed_jobs:
        delete_object(client, kind, job)
    if doomed_pods:
        _delete_pods(client, workload, doomed_pods, is_shared=len(pods) < len(labelled_pods))
    # At once: without job and pods it counts as stopped, and a step that died is not repeated.
    is_left = _remove_delivery_objects(client, workload)
    if jobs or pods:
        return describe_removal(workload, len(pods), has_job=bool(jobs))
    if is_left:
        return "What its data workers used is being removed from the cluster."
    claims = _fetch_unneeded_claims(client, workload)
    for claim in claims:
        if not is_being_deleted(claim):
            delete_object(client, PERSISTENTVOLUMECLAIMS, claim)
    return "Its volumes are being removed from the cluster." if claims else ""


def remove_data_workers(client: Client, workload: Workload) -> bool:
    """Begin the deletion of the workload's data workers and what they use. Return whether anything
    is left.

    Raises KubeError.
    """
    job = fetch_data_job(client, workload)
    if job is not None and not is_being_deleted(job):
        delete_object(client, JOBS, job)
    return _remove_delivery_objects(client, workload) or job is not None


def _fetch_jobs(client: Client, workload: Workload) -> list[tuple[Resource, Object]]:
    """Fetch the jobs of the workload, of all attempts, and that of its data workers."""
    kind = job_resource_of(workload)
    jobs: list[tuple[Resource, Object]] = [
        (kind, job)
        for job in fetch_objects(client, kind, workload)
        if is_object_of(job, workload) and not _is_data_job(job, workload)
    ]
    data_job = fetch_data_job(client, workload)
    return jobs if data_job is None else [*jobs, (JOBS, data_job)]


def fetch_data_job(client: Client, workload: Workload) -> Object | None:
    """Fetch the batch Job of the workload's data workers; None without one. Raises KubeError."""
    if workload.data_workers is None:
        return None
    return _fetch_delivery_object(client, JOBS, workload)


def _is_data_job(job: Object, workload: Workload) -> bool:
    # By its name: anybody may put a label on the training's job, which is to go all the same.
    return is_of_data_workers(job) and (
        nested_dict(job, "metadata").get("name") == get_data_job_name(workload.name)
    )


def is_of_data_workers(obj: Object) -> bool:
    """Return whether an object says that it is one of data workers."""
    return bool(nested_dict(obj, "metadata", "labels").get(ROLE) == DATA_WORKER)


def _fetch_delivery_object(client: Client, resource: Resource, workload: Workload) -> Object | None:
    """Fetch an object of the workload's data workers, which all have one name.

    One of a later attempt than the workload's row was read with is left alone.
    """
    name, namespace = get_data_job_name(workload.name), namespace_of(workload)
    try:
        obj = calls.get(client, resource, name, namespace=namespace)
    except Gone:
        return None
    is_ours = is_object_of(obj, workload) and parse_attempt(obj) <= workload.attempt
    return obj if is_ours else None


def _remove_delivery_objects(client: Client, workload: Workload) -> bool:
    """Begin the deletion of the Service and the Secret of data workers. Return whether any is
    left.
    """
    if workload.data_workers is None:
        return False
    is_left = False
    for resource in (SERVICES, SECRETS):
        obj = _fetch_delivery_object(client, resource, workload)
        if obj is not None and not is_being_deleted(obj):
            delete_object(client, resource, obj)
        is_left = is_left or obj is not None
    return is_left


def describe_removal(workload: Workload, remaining_pods: int, *, has_job: bool) -> str:
    """Describe how far the removal of a workload's objects is. One query."""
    total = max(
        remaining_pods,
        # Those that were there when its removal began.
        Pod.objects.filter(workload=workload)
        .filter(Q(vanished_at=None) | Q(vanished_at__gte=workload.status_at))
        .count(),
    )
    gone_count = total - remaining_pods
    if not has_job:
        return f"{POD_REMOVAL_TEXT} {gone_count} of {total} are gone."
    progress = f" {gone_count} of {total} pods are gone." if gone_count else ""
    return f"{JOB_REMOVAL_TEXT}{progress}"


def _delete_pods(
    client: Client, workload: Workload, pods: Sequence[Object], *, is_shared: bool
) -> None:
    """Begin the deletion of these pods, which are all that the workload has.

    One request for each attempt deletes all of its pods: one for each pod would wait for its turn
    behind those of other workloads. With `is_shared`, other pods bear the same labels.
    """
    attempts = {parse_attempt(pod) for pod in pods}
    # A selector compares texts: it would never match the label "01" of the attempt 1.
    labels = {nested_dict(pod, "metadata", "labels").get(manifests.ATTEMPT) for pod in pods}
    are_selectable = 0 not in attempts and labels == {str(each) for each in attempts}
    single_pods = list(pods)
    if not is_shared and len(pods) > 1 and are_selectable:
        # The attempt is part of the selector: pods of a new one, made meanwhile, are left alone.
        # A stranger's pod that was made with all these labels since the listing goes with them: a
        # collection has no uid as precondition, and an operator's labels are copied like ours.
        selector = manifests.build_selector(str(workload.pk))
        try:
            for attempt in sorted(attempts):
                calls.delete_collection(
                    client,
                    PODS,
                    namespace=namespace_of(workload),
                    labels=f"{selector},{manifests.ATTEMPT}={attempt}",
                )
        except Rejected as error:
            # Rights that were given for an earlier release do not include it.
            if error.status not in (403, 405):
                raise
        else:
            single_pods = []
    for pod in single_pods:
        delete_object(client, PODS, pod)


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
