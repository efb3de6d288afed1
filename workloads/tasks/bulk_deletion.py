"""Asking for the deletion of many workloads that nobody chose: those of a project that has left,
and those whose time is up.
"""

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
    """Each is asked to be deleted, unless it is already, with an entry in the audit log that says
    why; `by` None is Muster itself.
    """
    for first in range(0, len(ids), BATCH_SIZE):
        with transaction.atomic():
            asked = [
                key
                for key in ids[first : first + BATCH_SIZE]
                if journal.request_deletion(key, user)
            ]
            rows = (
                Workload.objects.filter(pk__in=asked)
                .order_by("name")
                .values_list("pk", "name", "project_id")
            )
            gone = [
                audit.AuditedObject(key, name, project_scope(project))
                for key, name, project in rows
            ]
            audit.record_all(audit.Event.DELETE, "workload", gone, by=user, text=reason)
        for key in asked:
            remove.enqueue(str(key))
