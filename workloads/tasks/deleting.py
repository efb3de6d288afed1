"""Asking for the deletion of many workloads that nobody chose: those of a project that has left,
and those whose time is up.
"""

import uuid
from collections.abc import Sequence

from django.db import transaction

from projects import audit
from projects.models import User
from projects.scopes import of_project
from workloads import journal
from workloads.models import Workload
from workloads.tasks.ending import remove

AT_ONCE = 100
"""Workloads of one transaction: nobody else writes to the journal meanwhile."""


def ask_to_delete(ids: Sequence[uuid.UUID], *, by: User | None, why: str) -> None:
    """Each is asked to be deleted, unless it is already, with an entry in the audit log that says
    why; `by` None is Muster itself.
    """
    for first in range(0, len(ids), AT_ONCE):
        with transaction.atomic():
            asked = [
                key for key in ids[first : first + AT_ONCE] if journal.asked_to_delete(key, by)
            ]
            rows = (
                Workload.objects.filter(pk__in=asked)
                .order_by("name")
                .values_list("pk", "name", "project_id")
            )
            gone = [audit.Of(key, name, of_project(project)) for key, name, project in rows]
            audit.record_all(audit.Event.DELETE, "workload", gone, by=by, text=why)
        for key in asked:
            remove.soon(str(key))
