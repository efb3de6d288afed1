"""The places of workloads in the queues of their projects, out of rows.

One query for any number of workloads. Only workloads of the same project and cluster are compared:
whoever may see one of them may see them all.
"""

import uuid
from collections.abc import Iterable, Mapping

from django.db.models import (
    BooleanField,
    Count,
    ExpressionWrapper,
    F,
    Q,
    Window,
)
from django.db.models.functions import RowNumber

from workloads.diagnosis import QueuePosition
from workloads.elastic.cluster_state import build_priority_case
from workloads.models import Workload
from workloads.states import Status

_PARTS = ("cluster", "project", "wants_gpus")


def load_queue_positions(workloads: Iterable[Workload]) -> Mapping[uuid.UUID, QueuePosition]:
    """Load the place of each of these workloads that is pending, by its id.

    The order is that of KAI within a queue: a higher priority first, then what was asked for first.
    """
    wanted = {each.pk: each for each in workloads if each.status == Status.PENDING}
    if not wanted:
        return {}
    pending = Workload.objects.filter(
        status=Status.PENDING.value,
        ended_at=None,
        released_at=None,
        project__in={each.project_id for each in wanted.values()},
        cluster__in={each.cluster_id for each in wanted.values()},
        attempts__number=F("attempt"),
    ).annotate(
        priority_value=build_priority_case("priority"),
        wants_gpus=ExpressionWrapper(
            Q(gpus_requested__gt=0) | Q(gpu_memory_requested__gt=0), output_field=BooleanField()
        ),
    )
    placed = pending.order_by().annotate(
        position=Window(
            RowNumber(),
            partition_by=[F(name) for name in _PARTS],
            order_by=[F("priority_value").desc(), F("attempts__requested_at").asc(), F("pk").asc()],
        ),
        length=Window(Count("pk"), partition_by=[F(name) for name in _PARTS]),
    )
    # A filter by key alone would stand inside, where it leaves nobody to be compared with: Django
    # filters outside by what needs a window, and no position is below 1.
    chosen = placed.filter(Q(position__lt=1) | Q(pk__in=list(wanted)))
    rows = chosen.values_list("pk", "position", "length", "wants_gpus")
    return {
        pk: QueuePosition(position, length, wanted[pk].project.name, wants_gpus)
        for pk, position, length, wants_gpus in rows
    }
