"""The rules of KAI's pod-grouper: from a workload and one of its pods to the PodGroup of the gang.

Pure functions.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from localkube.metadata import Object, annotations_of, labels_of, name_of
from localkube.scheduler import defaults
from localkube.scheduler.go_durations import parse_go_duration, parse_waiting_time
from localkube.scheduler.task import (
    JOB_ROLE,
    KAI_SCHEDULER,
    PREEMPTION_DELAY_ANNOTATION,
    STALENESS_GRACE_ANNOTATION,
    Task,
)
from scheduling.state import DEFAULT_STALENESS_GRACE, Preemptibility

QUEUE_LABEL = "kai.scheduler/queue"
PROJECT_LABEL = "project"
PRIORITY_LABEL = "priorityClassName"
PREEMPTIBILITY_LABEL = "kai.scheduler/preemptibility"
MIN_MEMBER_ANNOTATION = "kai.scheduler/batch-min-member"
PREEMPTIBILITIES = tuple(each.value for each in Preemptibility)
SEMI_PREEMPTIBLE = Preemptibility.SEMI_PREEMPTIBLE.value

LAST_APPLIED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
"""The one annotation that a PodGroup does not take over from its owner.

It would make kubectl believe that it applied the PodGroup.
"""

MAX_NAME_LENGTH = 253
UID_LENGTH = 36


@dataclass(frozen=True, slots=True)
class DistributedKind:
    """A kind whose gang is the sum of its replicas; `required` types must all be there."""

    replicas: str
    required: tuple[str, ...] = ()
    elastic: bool = False


DISTRIBUTED_KINDS: Mapping[tuple[str, str], DistributedKind] = {
    ("kubeflow.org", "PyTorchJob"): DistributedKind("pytorchReplicaSpecs", elastic=True),
    ("kubeflow.org", "TFJob"): DistributedKind("tfReplicaSpecs"),
    ("kubeflow.org", "XGBoostJob"): DistributedKind(
        "xgbReplicaSpecs", required=("Master", "Worker")
    ),
    ("kubeflow.org", "JAXJob"): DistributedKind("jaxReplicaSpecs"),
    ("kubeflow.org", "MPIJob"): DistributedKind("mpiReplicaSpecs", required=("Launcher", "Worker")),
}
"""By API group and kind (engine facts 3.4).

Other kinds have a gang of one, or of what their annotation says.
"""


class GroupingError(Exception):
    """No PodGroup can be made of a workload; the text says what to mend.

    Its pods are not placed meanwhile.
    """


class OwnerLost(GroupingError):
    """The workload is gone, or is being deleted with its pods: these are removed shortly."""


@dataclass(frozen=True, slots=True)
class PodGroupSpec:
    """What a PodGroup's spec should say."""

    queue: str
    min_member: int
    priority_class: str
    preemptibility: str
    preemption_delay: str = ""
    staleness_grace: str = ""

    def build_spec(self) -> Object:
        spec: Object = {
            "minMember": self.min_member,
            "queue": self.queue,
            "priorityClassName": self.priority_class,
        }
        # The API of KAI 0.17 does not know it yet; `resolve_preemptibility` reads the label again.
        if self.preemptibility and self.preemptibility != SEMI_PREEMPTIBLE:
            spec["preemptibility"] = self.preemptibility
        if self.preemption_delay:
            spec["preemptionDelay"] = self.preemption_delay
        if self.staleness_grace:
            spec["stalenessGracePeriod"] = self.staleness_grace
        return spec


def build_pod_group_name(owner: str, uid: str) -> str:
    """Build `pg-OWNER-UID`, with the owner's name cut where it is too long."""
    return f"pg-{owner[: MAX_NAME_LENGTH - UID_LENGTH - 4]}-{uid}"


def derive_pod_group_spec(
    owner: Object | None, pod: Task, classes: Mapping[str, int]
) -> PodGroupSpec:
    """Derive what KAI makes of a workload; `owner` is the topmost, None for a bare pod.

    Raises GroupingError.
    """
    owner_labels = labels_of(owner) if owner else {}
    owner_annotations = annotations_of(owner) if owner else {}
    return PodGroupSpec(
        queue=_find_label(QUEUE_LABEL, owner_labels, pod.labels)
        or _find_label(PROJECT_LABEL, owner_labels, pod.labels)
        or defaults.DEFAULT_QUEUE,
        min_member=compute_min_member(owner, pod) if owner else 1,
        priority_class=_choose_priority_class(owner_labels, pod, classes),
        preemptibility=_choose_preemptibility(owner_labels, pod),
        preemption_delay=_choose_preemption_delay(owner_annotations, pod),
        staleness_grace=_choose_staleness_grace(owner_annotations, pod),
    )


def compute_min_member(owner: Object, pod: Task) -> int:
    """Return how many pods must start together. Raises GroupingError."""
    group = str(owner.get("apiVersion", "")).partition("/")[0]
    kind = DISTRIBUTED_KINDS.get((group, str(owner.get("kind"))))
    if kind is None:
        return _parse_min_member(owner)
    spec = owner.get("spec") or {}
    policy = (spec.get("runPolicy") or {}).get("schedulingPolicy") or {}
    if policy.get("minAvailable") is not None:
        return _parse_positive(policy["minAvailable"], "runPolicy.schedulingPolicy.minAvailable")
    elastic = (spec.get("elasticPolicy") or {}).get("minReplicas") if kind.elastic else None
    if elastic is not None:
        return _parse_positive(elastic, "elasticPolicy.minReplicas")
    total = _sum_replicas(
        name_of(owner),
        kind,
        spec.get(kind.replicas) or {},
        lenient=pod.scheduler != KAI_SCHEDULER,
    )
    # A launcher that is created once the workers are ready must not be waited for before it exists:
    # neither would ever start. It ranks first in its gang.
    is_launcher_late = (
        spec.get("launcherCreationPolicy") == "WaitForWorkersReady"
        and pod.labels.get(JOB_ROLE) != "launcher"
    )
    return max(1, total - 1) if is_launcher_late else total


def resolve_priority(class_name: str, classes: Mapping[str, int]) -> int:
    return classes.get(class_name, defaults.PRIORITY_CLASSES[defaults.DEFAULT_PRIORITY_CLASS])


def resolve_preemptibility(
    preemptibility: str, priority: int, *labels: Mapping[str, str]
) -> Preemptibility:
    """Return whether work may be taken back: by its own field, else a label, else its priority."""
    if any(each.get(PREEMPTIBILITY_LABEL) == SEMI_PREEMPTIBLE for each in labels):
        return Preemptibility.SEMI_PREEMPTIBLE
    if preemptibility in PREEMPTIBILITIES:
        return Preemptibility(preemptibility)
    if priority >= defaults.PREEMPTIBLE_BELOW:
        return Preemptibility.NON_PREEMPTIBLE
    return Preemptibility.PREEMPTIBLE


def resolve_staleness_grace(grace: object, annotations: Mapping[str, str]) -> float:
    """Return the seconds for which a gang may be stale; below 0 there is no end.

    The PodGroup's field goes before its annotation (KAI `docs/staleness-grace-period`, API).
    """
    for text in (grace, annotations.get(STALENESS_GRACE_ANNOTATION)):
        seconds = parse_go_duration(text)
        if seconds is not None:
            return seconds
    return DEFAULT_STALENESS_GRACE


def build_pod_group(name: str, namespace: str, owner: Object, spec: Object) -> Object:
    """Build the PodGroup, with the workload's labels and annotations, deleted together with it."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": owner["metadata"]["uid"],
    }
    annotations = {
        key: value for key, value in annotations_of(owner).items() if key != LAST_APPLIED_ANNOTATION
    }
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels_of(owner)),
            "annotations": annotations,
            "ownerReferences": [reference],
        },
        "spec": spec,
    }


def _sum_replicas(job: str, kind: DistributedKind, replicas: Object, *, lenient: bool) -> int:
    """Return the sum of the replicas.

    Pods of KAI get its strictness; elsewhere a missing count is one, as the operator reads it.
    """
    counts = {role: (spec or {}).get("replicas") for role, spec in replicas.items()}
    if not lenient:
        missing = [role for role in kind.required if role not in counts]
        if missing:
            raise GroupingError(
                f"the type of the job {job} doesn't have a {missing[0]} replica spec which is "
                "required. Please fix the replica field"
            )
        for role, count in counts.items():
            if not count:
                raise GroupingError(
                    f"the type of the job {job} doesn't allow for 0 {role} pods. Please fix the "
                    "replica field"
                )
    return max(1, sum(1 if count is None else int(count) for count in counts.values()))


def _parse_min_member(owner: Object) -> int:
    text = annotations_of(owner).get(MIN_MEMBER_ANNOTATION)
    return 1 if text is None else _parse_positive(text, f"annotation {MIN_MEMBER_ANNOTATION}")


def _parse_positive(value: object, field: str) -> int:
    text = str(value)
    count = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if count < 1:
        raise GroupingError(f"{field} must be a whole number above 0, not {text!r}")
    return count


def _choose_priority_class(
    owner_labels: Mapping[str, str], pod: Task, classes: Mapping[str, int]
) -> str:
    class_name = _find_label(PRIORITY_LABEL, owner_labels, pod.labels) or pod.priority_class
    return class_name if class_name in classes else defaults.DEFAULT_PRIORITY_CLASS


def _choose_preemptibility(owner_labels: Mapping[str, str], pod: Task) -> str:
    """Return what a label says, or a default.

    Without a label KAI keeps high priorities within their quota; the default scheduler knows no
    quota.
    """
    values = (labels.get(PREEMPTIBILITY_LABEL, "") for labels in (owner_labels, pod.labels))
    default = "" if pod.scheduler == KAI_SCHEDULER else Preemptibility.PREEMPTIBLE.value
    return next((value for value in values if value in PREEMPTIBILITIES), default)


def _choose_preemption_delay(owner_annotations: Mapping[str, str], pod: Task) -> str:
    """Return the first delay that can be read, the workload's before the pod's; "" without one."""
    texts = (owner_annotations.get(PREEMPTION_DELAY_ANNOTATION, ""), pod.preemption_delay)
    return next((text for text in texts if parse_waiting_time(text)), "")


def _choose_staleness_grace(owner_annotations: Mapping[str, str], pod: Task) -> str:
    """Return the first grace that can be read, the workload's before the pod's; "" without one."""
    texts = (owner_annotations.get(STALENESS_GRACE_ANNOTATION, ""), pod.staleness_grace)
    return next((text for text in texts if parse_go_duration(text) is not None), "")


def _find_label(key: str, owner_labels: Mapping[str, str], pod_labels: Mapping[str, str]) -> str:
    return owner_labels.get(key) or pod_labels.get(key) or ""
