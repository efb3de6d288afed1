"""The rules of KAI's pod-grouper: from a workload and one of its pods to the PodGroup that makes a
gang of them. Pure functions.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from localkube.metadata import Object, annotations_of, labels_of, name_of
from localkube.scheduler import defaults
from localkube.scheduler.task import JOB_ROLE, KAI, Task

QUEUE_LABEL = "kai.scheduler/queue"
PROJECT_LABEL = "project"
PRIORITY_LABEL = "priorityClassName"
PREEMPTIBILITY_LABEL = "kai.scheduler/preemptibility"
MIN_MEMBER = "kai.scheduler/batch-min-member"
PREEMPTIBLE = "preemptible"
FIRM = "non-preemptible"
PREEMPTIBILITIES = (PREEMPTIBLE, FIRM)

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The one annotation that a PodGroup does not take over from its owner: it would make kubectl
believe it applied the PodGroup.
"""

NAME_LENGTH = 253
UID_LENGTH = 36


@dataclass(frozen=True, slots=True)
class Distributed:
    """A kind whose gang is the sum of its replicas; `required` types must all be there."""

    replicas: str
    required: tuple[str, ...] = ()
    elastic: bool = False


DISTRIBUTED: Mapping[tuple[str, str], Distributed] = {
    ("kubeflow.org", "PyTorchJob"): Distributed("pytorchReplicaSpecs", elastic=True),
    ("kubeflow.org", "TFJob"): Distributed("tfReplicaSpecs"),
    ("kubeflow.org", "XGBoostJob"): Distributed("xgbReplicaSpecs", required=("Master", "Worker")),
    ("kubeflow.org", "JAXJob"): Distributed("jaxReplicaSpecs"),
    ("kubeflow.org", "MPIJob"): Distributed("mpiReplicaSpecs", required=("Launcher", "Worker")),
}
"""By API group and kind (engine facts 3.4). What is not here has a gang of one, or of what its
annotation says.
"""


class GroupingError(Exception):
    """No PodGroup can be made of a workload; the text says what to mend. Its pods are not placed
    meanwhile.
    """


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a PodGroup's spec should say."""

    queue: str
    min_member: int
    priority_class: str
    preemptibility: str

    def spec(self) -> Object:
        spec: Object = {
            "minMember": self.min_member,
            "queue": self.queue,
            "priorityClassName": self.priority_class,
        }
        return spec | ({"preemptibility": self.preemptibility} if self.preemptibility else {})


def name(owner: str, uid: str) -> str:
    """`pg-OWNER-UID`, cut in the middle where the owner's name is too long for that."""
    return f"pg-{owner[: NAME_LENGTH - UID_LENGTH - 4]}-{uid}"


def wanted(owner: Object | None, pod: Task, classes: Mapping[str, int]) -> Wanted:
    """What KAI makes of a workload: `owner` is the topmost, None for a bare pod. Raises
    GroupingError.
    """
    above = labels_of(owner) if owner else {}
    return Wanted(
        queue=_first(QUEUE_LABEL, above, pod.labels)
        or _first(PROJECT_LABEL, above, pod.labels)
        or defaults.QUEUE,
        min_member=min_member(owner, pod) if owner else 1,
        priority_class=_priority_class(above, pod, classes),
        preemptibility=_preemptibility(above, pod),
    )


def min_member(owner: Object, pod: Task) -> int:
    """How many pods must start together. Raises GroupingError."""
    group = str(owner.get("apiVersion", "")).partition("/")[0]
    distributed = DISTRIBUTED.get((group, str(owner.get("kind"))))
    if distributed is None:
        return _annotated(owner)
    spec = owner.get("spec") or {}
    policy = (spec.get("runPolicy") or {}).get("schedulingPolicy") or {}
    if policy.get("minAvailable") is not None:
        return _positive(policy["minAvailable"], "runPolicy.schedulingPolicy.minAvailable")
    elastic = (spec.get("elasticPolicy") or {}).get("minReplicas") if distributed.elastic else None
    if elastic is not None:
        return _positive(elastic, "elasticPolicy.minReplicas")
    everyone = _sum(
        name_of(owner),
        distributed,
        spec.get(distributed.replicas) or {},
        lenient=pod.scheduler != KAI,
    )
    # A launcher that comes once the workers are ready cannot be waited for before it is there; it
    # is the first of its gang's pods.
    late = (
        spec.get("launcherCreationPolicy") == "WaitForWorkersReady"
        and pod.labels.get(JOB_ROLE) != "launcher"
    )
    return max(1, everyone - 1) if late else everyone


def priority(class_name: str, classes: Mapping[str, int]) -> int:
    return classes.get(class_name, defaults.PRIORITY_CLASSES[defaults.PRIORITY_CLASS])


def is_firm(preemptibility: str, priority: int) -> bool:
    """Not preemptible: by its own word, else by its priority."""
    if preemptibility in PREEMPTIBILITIES:
        return preemptibility == FIRM
    return priority >= defaults.PREEMPTIBLE_BELOW


def pod_group(name: str, namespace: str, owner: Object, spec: Object) -> Object:
    """The object, with the labels and annotations of the workload and deleted with it."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": owner["metadata"]["uid"],
    }
    annotations = {
        key: value for key, value in annotations_of(owner).items() if key != LAST_APPLIED
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


def _sum(job: str, kind: Distributed, replicas: Object, *, lenient: bool) -> int:
    """The replicas as written. Pods of KAI get its strictness; elsewhere a count left out is one,
    as the operator reads it.
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


def _annotated(owner: Object) -> int:
    text = annotations_of(owner).get(MIN_MEMBER)
    return 1 if text is None else _positive(text, f"annotation {MIN_MEMBER}")


def _positive(value: object, where: str) -> int:
    text = str(value)
    count = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if count < 1:
        raise GroupingError(f"{where} must be a whole number above 0, not {text!r}")
    return count


def _priority_class(above: Mapping[str, str], pod: Task, classes: Mapping[str, int]) -> str:
    asked = _first(PRIORITY_LABEL, above, pod.labels) or pod.priority_class
    return asked if asked in classes else defaults.PRIORITY_CLASS


def _preemptibility(above: Mapping[str, str], pod: Task) -> str:
    """What a label says. Without one KAI keeps high priorities within their quota; the default
    scheduler knows no quota.
    """
    labelled = (labels.get(PREEMPTIBILITY_LABEL, "") for labels in (above, pod.labels))
    silent = "" if pod.scheduler == KAI else PREEMPTIBLE
    return next((value for value in labelled if value in PREEMPTIBILITIES), silent)


def _first(key: str, above: Mapping[str, str], own: Mapping[str, str]) -> str:
    return above.get(key) or own.get(key) or ""
