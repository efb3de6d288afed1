"""Deletion of many workloads that nobody selected: of a removed project, or of expired ones."""

import uuid
from collections.abc import Sequence

from django.db import transaction

from projects import audit
from projects.models import User
from projects.scopes import project_scope
from workloads import journal
from workloads.models import Workload
from workloads.tasks.teardown import remove

BATCH_SIZE = 100
"""Workloads of one transaction: nobody else writes to the journal meanwhile."""


def request_deletions(ids: Sequence[uuid.UUID], *, user: User | None, reason: str) -> None:
    """Request the deletion of each workload, with an audit entry that says why.

    Those that are being deleted already are skipped. `user` None is Muster itself.
    """
    for first in range(0, len(ids), BATCH_SIZE):
        with transaction.atomic():
            requested = [
                key
                for key in ids[first : first + BATCH_SIZE]
                if journal.request_deletion(key, user)
            ]
            rows = (
                Workload.objects.filter(pk__in=requested)
                .order_by("name")
                .values_list("pk", "name", "project_id")
            )
            entries = [
                audit.AuditedObject(key, name, project_scope(project))
                for key, name, project in rows
            ]
            audit.record_all(audit.Event.DELETE, "workload", entries, by=user, text=reason)
        for key in requested:
            remove.enqueue(str(key))
