"""Events that the history leaves out, because there are too many: it says so."""

import uuid
from collections import Counter
from collections.abc import Collection, Mapping

from django.db.models import Count, F
from django.db.models.functions import Greatest
from django.utils import timezone

from workloads.journal.cluster_events import Subject
from workloads.journal.transactions import journal_transaction
from workloads.models import Event, Workload

MAX_EVENTS = 20_000
"""Events of one attempt that are kept, of the cluster and of changes of its pods each."""
MOST_DELETED = 1000
"""Changes that are deleted at once."""
LEFT_OUT = "EventLeftOut"
"""The reason of the history's entry that says so."""


def count_events(cluster_id: uuid.UUID, subjects: Collection[Subject]) -> Counter[Subject]:
    """Return how many events of the cluster the present attempts of these workloads have."""
    rows = Workload.objects.filter(
        cluster=cluster_id,
        project__namespace__in={each.namespace for each in subjects},
        name__in={each.name for each in subjects},
        released_at=None,
        events__attempt=F("attempt"),
        events__kind=Event.Kind.CLUSTER,
    ).order_by()
    counted = rows.values_list("project__namespace", "name").annotate(count=Count("events"))
    return Counter({Subject(namespace, name): count for namespace, name, count in counted})


def record_left_out_events(
    cluster_id: uuid.UUID,
    counts: Mapping[Subject, int],
    explanation: str,
    *,
    may_repeat: bool = False,
) -> None:
    """Say in the histories of these workloads that so many more events were left out, and why.

    An attempt has one such entry, which counts them all. With `may_repeat` the same events may
    have been counted before: then the larger of the two numbers counts.
    """
    with journal_transaction() as journal_tx:
        for subject, count in counts.items():
            workload = (
                Workload.objects.filter(
                    cluster=cluster_id,
                    project__namespace=subject.namespace,
                    name=subject.name,
                    released_at=None,
                )
                .only("project", "attempt")
                .first()
            )
            if workload is None:
                continue
            text = f"An event of the cluster was left out. {explanation}"
            entry, is_new = _get_or_create_entry(workload, "left-out", text, count)
            if not is_new:
                total = Greatest(F("count"), count) if may_repeat else F("count") + count
                Event.objects.filter(pk=entry.pk).update(count=total, at=timezone.now())
            Workload.objects.filter(pk=workload.pk).update(changed=journal_tx.position)
            journal_tx.mark_changed(workload.project_id)


def make_room_for_change(workload: Workload) -> None:
    """Delete the oldest changes of the attempt's pods, so that one more can be written.

    The history says how many. The caller notes that the workload has changed.
    """
    rows = Event.objects.filter(
        workload=workload, attempt=workload.attempt, kind=Event.Kind.SCALE
    ).order_by("-at", "-id")
    oldest = list(rows.values_list("pk", flat=True)[MAX_EVENTS - 1 :][:MOST_DELETED])
    if not oldest:
        return
    Event.objects.filter(pk__in=oldest).delete()
    text = (
        "An earlier change of its pods was left out. A workload keeps the newest "
        f"{MAX_EVENTS:,} of an attempt."
    )
    entry, is_new = _get_or_create_entry(workload, "left-out-changes", text, len(oldest))
    if not is_new:
        Event.objects.filter(pk=entry.pk).update(count=F("count") + len(oldest), at=timezone.now())


def _get_or_create_entry(workload: Workload, key: str, text: str, count: int) -> tuple[Event, bool]:
    now = timezone.now()
    return Event.objects.get_or_create(
        workload=workload,
        uid=f"{key}-{workload.attempt}",
        defaults={
            "attempt": workload.attempt,
            "kind": Event.Kind.CLUSTER,
            "is_warning": True,
            "reason": LEFT_OUT,
            "text": text,
            "at": now,
            "first_at": now,
            "count": count,
        },
    )
