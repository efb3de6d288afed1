"""The end of workloads whose cluster was removed: no cluster can be asked any more."""

import uuid
from typing import Any

from django.utils import timezone

from projects import audit
from projects.models import User
from projects.scopes import project_scope
from workloads.journal import workload_writing
from workloads.journal.transactions import journal_transaction
from workloads.models import Desired, Event, Pod, Workload
from workloads.states import RESTING, Status

BATCH_SIZE = 100
"""Workloads of one transaction."""
ABANDONED = "Abandoned"


def abandon_workloads(cluster_id: uuid.UUID, reason: str, user: User | None) -> int:
    """Delete and release every workload of a removed cluster; its history stays. Return how many.

    Writes an audit entry for each. Nothing is asked of the cluster: what runs there goes on.
    """
    count = 0
    while abandoned := _abandon_batch(cluster_id, reason, user):
        count += abandoned
    return count


def _abandon_batch(cluster_id: uuid.UUID, reason: str, user: User | None) -> int:
    with journal_transaction() as journal_tx:
        rows = list(
            Workload.objects.filter(cluster_id=cluster_id, released_at=None).order_by(
                "created_at", "id"
            )[:BATCH_SIZE]
        )
        now = timezone.now()
        requested = [each for each in rows if each.status != Status.DELETING]
        entries = [
            audit.AuditedObject(each.pk, each.name, project_scope(each.project_id))
            for each in requested
        ]
        audit.record_all(audit.Event.DELETE, "workload", entries, by=user, text=reason)
        for workload in rows:
            is_resting = Status(workload.status) in RESTING
            values: dict[str, Any] = {
                "status": Status.DELETING,
                "reason": reason,
                "status_at": now,
                "desired": Desired.DELETED,
            }
            values |= {
                "deleted_at": workload.deleted_at or now,
                "released_at": now,
                "running_pods": 0,
                **workload_writing.NOTHING_ALLOCATED,
                "pod_counts": None,
            }
            values |= {
                "job": None,
                "pod_group": None,
                "data_job": None,
                "next_try_at": None,
                "tries": 0,
                "trouble": "",
            }
            if workload.started_at is not None and workload.ended_at is None:
                values["ended_at"] = now
            # An attempt that has come to its end keeps it.
            workload_writing.update_workload(
                journal_tx, workload, values, update_attempt=not is_resting
            )
            Event.objects.create(
                workload=workload,
                attempt=workload.attempt,
                kind=Event.Kind.STATUS,
                is_warning=not is_resting,
                old=workload.status,
                new=Status.DELETING,
                reason=ABANDONED,
                text=reason,
                by=user,
            )
        Pod.objects.filter(workload__in=rows, vanished_at=None).update(vanished_at=now)
    return len(rows)
