"""A submission as the gang that would wait for it, as its pods would once they were made."""

from dataclasses import replace
from datetime import datetime

from projects.models import Project
from scheduling import Gang, Pod, Preemptibility
from workloads.elastic.cluster_state import find_priority
from workloads.elastic.pod_shapes import ShapeBuilder
from workloads.fit.demand import WorkloadDemand
from workloads.manifests.placement import NodePools, build_placement
from workloads.specs import Spec

MOST_PODS = 2_000


class TooManyPods(Exception):
    """The submission has more pods than are played."""


def build_gang(
    key: str, spec: Spec, project: Project, pools: NodePools, shapes: ShapeBuilder, now: datetime
) -> Gang:
    """Build the gang of a valid spec that is submitted now. Raises TooManyPods.

    Its data workers are left out: it starts without them. An elastic one has its minimum.
    """
    demand = WorkloadDemand.from_spec(replace(spec, data_delivery=None))
    if demand.pods > MOST_PODS:
        raise TooManyPods
    pods: list[Pod] = []
    for kind in demand.kinds:
        amounts = kind.amounts
        placement = build_placement(kind.setup, "", pools)
        memory = int(amounts.memory)
        # Devices that are shared by memory count as whole ones, as in `load_cluster_state`.
        gpus = None if kind.setup.compute.gpus.memory else amounts.gpus
        shape = shapes.build(gpus, amounts.cpu, memory, placement, kind.host_port)
        pods += [
            Pod(f"{key}/{rank}", shape, rank) for rank in range(len(pods), len(pods) + kind.count)
        ]
    has_kai = project.cluster.can.has_kai
    starts_together = spec.is_distributed or not has_kai
    is_preemptible = spec.is_preemptible and has_kai
    priority = spec.lifecycle.priority
    return Gang(
        key=key,
        queue=project.queue,
        pods=pods,
        min_member=len(pods) if starts_together else 1,
        priority=find_priority(priority.value if priority else ""),
        preemptibility=(
            Preemptibility.PREEMPTIBLE if is_preemptible else Preemptibility.NON_PREEMPTIBLE
        ),
        created_at=now.timestamp(),
    )
