"""The elastic workloads of a cluster that run, out of their rows."""

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import Count, F
from django.utils import timezone

from clusters.job_kinds import JOB_KINDS, JobKind
from clusters.models import Cluster
from clusters.models import Node as NodeRow
from scheduling import PodShape
from workloads.elastic import cluster_state, replicas
from workloads.elastic.pod_shapes import ShapeBuilder
from workloads.elastic.scale_rules import ElasticJob
from workloads.kube_objects import (
    GPU,
    KUEUE_QUEUE,
    Object,
    int_or_zero,
    nested_dict,
    nested_list,
)
from workloads.models import Attempt, Desired, Event, Pod
from workloads.pod_counts import WITHOUT_NODE, Standing, decode_counts
from workloads.specs import is_gpu_resource
from workloads.states import (
    Status,
)
from workloads.status_rules import (
    count_requested_pods,
)

MOST_JOBS = 200
"""Elastic workloads of one cluster that are looked at in a turn; of more, the next ones."""
MOST_WORKERS = 20_000
"""Worker pods that are read of them together."""
GIVE_UPS_WITHIN = timedelta(days=1)
"""For how long it counts that workers were given up."""
_HAS_BEGUN = (Status.RUNNING, Status.DEGRADED)


@dataclass(frozen=True, slots=True)
class LoadedJob:
    """An attempt of an elastic workload with what the rules need of it.

    `job` is None where its number of workers is not to be judged now: a change is under way,
    somebody else changed it, or it is in a queue of Kueue. `cluster_workers` is how many workers
    its object wants, as last seen. `uncounted_device` is what its workers ask for of which nobody
    knows how much is free, such as a part of MIG; "" without it. It is not raised then.
    """

    attempt: Attempt
    kind: JobKind
    cluster_workers: int
    job: ElasticJob | None
    uncounted_device: str = ""

    @property
    def has_plan(self) -> bool:
        """Whether a change was planned and is not known to be done."""
        return self.attempt.workers_wanted != self.attempt.workers_set

    def is_plan_over(self, now: datetime) -> bool:
        """Return whether a change was planned too long ago to be begun."""
        ends_at = self.attempt.scale_after
        return self.has_plan and (ends_at is None or now >= ends_at)

    @property
    def is_changed_by_others(self) -> bool:
        """Whether the object wants neither what Muster set nor what it is about to set."""
        own_counts = (self.attempt.workers_set, self.attempt.workers_wanted)
        return self.cluster_workers not in own_counts

    @property
    def is_in_kueue(self) -> bool:
        """Whether Kueue admitted it: a job with other pods than those it suspends and queues anew.

        Kueue: `pkg/controller/jobframework/reconciler.go`, ensureOneWorkload.
        """
        return KUEUE_QUEUE in nested_dict(self.attempt.workload.job, "metadata", "labels")


def load_jobs(cluster: Cluster, after: int = 0) -> Sequence[LoadedJob]:
    """Load the elastic workloads that run in a cluster and that Muster may scale. Six queries.

    They begin behind the attempt whose key is `after`, and go round.
    """
    rows = Attempt.objects.filter(
        workers_set__isnull=False,
        ended_at=None,
        is_scaled_by_others=False,
        number=F("workload__attempt"),
        workload__cluster=cluster,
        workload__desired=Desired.RUNNING,
        workload__released_at=None,
        workload__status__in=_HAS_BEGUN,
        workload__job__isnull=False,
    )
    rows = (
        rows.select_related("workload__project", "workload__cluster")
        .defer("workload__spec", "workload__cluster__kubeconfig")
        .order_by("pk")
    )
    attempts = list(rows.filter(pk__gt=after)[:MOST_JOBS])
    if after and len(attempts) < MOST_JOBS:
        attempts += rows.filter(pk__lte=after)[: MOST_JOBS - len(attempts)]
    if not attempts:
        return []
    workers = _load_workers(attempts)
    examples, give_ups = _load_examples(cluster, workers), _count_give_ups(attempts)
    return [
        _build_job(
            each,
            workers.get(each.workload_id, ()),
            examples.get(each.workload_id),
            give_ups.get(each.workload_id, 0),
        )
        for each in attempts
    ]


def _load_workers(attempts: Sequence[Attempt]) -> Mapping[uuid.UUID, Sequence[Pod]]:
    """Load the worker pods of these attempts, without their objects."""
    scaled_types = {
        each.workload_id: JOB_KINDS[each.workload.job_kind].scaled_type.lower() for each in attempts
    }
    rows = Pod.objects.filter(
        workload__in=list(scaled_types), attempt=F("workload__attempt"), vanished_at=None
    ).exclude(standing=Standing.FOREIGN.value)
    workers: dict[uuid.UUID, list[Pod]] = defaultdict(list)
    for pod in rows.defer("data").order_by("workload", "id")[:MOST_WORKERS]:
        if pod.role == scaled_types[pod.workload_id]:
            workers[pod.workload_id].append(pod)
    return workers


@dataclass(frozen=True, slots=True)
class _WorkerExample:
    """What a further worker of a workload asks for, and the device of it that is not counted."""

    shape: PodShape
    uncounted_device: str


def _load_examples(
    cluster: Cluster, workers: Mapping[uuid.UUID, Sequence[Pod]]
) -> Mapping[uuid.UUID, _WorkerExample]:
    """Load what a further worker of each workload asks for: as much as its first. Two queries."""
    firsts = {pods[0].pk: pods[0] for pods in workers.values()}
    rows = list(
        Pod.objects.filter(pk__in=list(firsts)).values_list(
            "pk", "data", *(f"workload__{name}" for name in cluster_state.PORT_FIELDS)
        )
    )
    specs: dict[int, Object] = {pk: nested_dict(data, "spec") for pk, data, *_ in rows}
    host_ports = {pk: cluster_state.find_host_port(*fields) for pk, _, *fields in rows}
    builder = ShapeBuilder(
        cluster_state.build_capacities(
            NodeRow.objects.filter(cluster=cluster)[: cluster_state.MOST_NODES]
        )
    )
    return {
        pod.workload_id: _WorkerExample(
            builder.build(
                *(pod.gpus, pod.cpu, pod.memory, specs.get(pk, {})),
                host_ports.get(pk),
            ),
            _find_uncounted_device(specs.get(pk, {})),
        )
        for pk, pod in firsts.items()
    }


def _find_uncounted_device(pod_spec: Object) -> str:
    """Return the first device of a pod that the rows of nodes do not count; "" without one."""
    names = (
        name
        for container in nested_list(pod_spec, "containers")
        for name in nested_dict(container, "resources", "limits")
    )
    return next((name for name in names if name != GPU and is_gpu_resource(name)), "")


def _count_give_ups(attempts: Sequence[Attempt]) -> Mapping[uuid.UUID, int]:
    """Count how often Muster lowered the workers of these attempts of late."""
    lowered = Event.objects.filter(
        workload__in=[each.workload_id for each in attempts],
        attempt=F("workload__attempt"),
        kind=Event.Kind.SCALE,
        at__gt=timezone.now() - GIVE_UPS_WITHIN,
        pods_after__lt=F("pods_before"),
    ).order_by()
    return dict(lowered.values_list("workload").annotate(count=Count("id")))


def _build_job(
    attempt: Attempt, workers: Sequence[Pod], example: _WorkerExample | None, give_ups: int
) -> LoadedJob:
    workload = attempt.workload
    kind, obj = JOB_KINDS[workload.job_kind], workload.job or {}
    loaded = LoadedJob(attempt, kind, replicas.count_workers(obj, kind), None)
    if loaded.has_plan or loaded.is_changed_by_others or loaded.is_in_kueue or example is None:
        return loaded
    others = count_requested_pods(obj) - loaded.cluster_workers
    bounds = nested_dict(obj, "spec", "elasticPolicy")
    counts = decode_counts(workload.pod_counts)
    is_complete = (
        workload.status == Status.RUNNING
        and counts is not None
        and counts.own == counts.count(Standing.READY) == count_requested_pods(obj)
    )
    placed = [pod for pod in workers if pod.standing not in WITHOUT_NODE]
    job = ElasticJob(
        key=str(workload.pk),
        workers=loaded.cluster_workers,
        # KAI makes no gang of a job that asks for no workers (engine facts 3.3).
        min_workers=max(1, int_or_zero(bounds.get("minReplicas")) - others),
        max_workers=loaded.cluster_workers
        if example.uncounted_device
        else int_or_zero(bounds.get("maxReplicas")) - others,
        worker=example.shape,
        used=_count_used(placed, loaded.cluster_workers),
        waiting={
            pod.index: pod.created_at.timestamp()
            for pod in workers
            if pod.standing in WITHOUT_NODE and pod.index is not None and pod.created_at
        },
        is_complete=is_complete,
        room_since=attempt.room_since.timestamp() if attempt.room_since else None,
        scale_after=attempt.scale_after.timestamp() if attempt.scale_after else None,
        give_ups=give_ups,
    )
    return replace(loaded, job=job, uncounted_device=example.uncounted_device)


def _count_used(placed: Sequence[Pod], workers: int) -> int:
    """Return the least number of workers that keeps all that have a node."""
    if any(pod.index is None for pod in placed):
        return workers
    return max((pod.index + 1 for pod in placed if pod.index is not None), default=0)
