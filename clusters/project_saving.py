"""Saves a project from a valid form and provisions it, for its page and for the REST API."""

from clusters.forms import ProjectChangeForm
from clusters.tasks import provision
from projects.models import Project

MAX_REMOVAL_CHECKS = 15
"""How often the workloads of a deleted project are checked for being gone before the heartbeat does
it: they usually are within seconds.
"""


def save_project(form: ProjectChangeForm, edited_version: int | None = None) -> Project:
    """Save the project of a valid form and ask for its provisioning. Raises Clash and
    ChangedMeanwhile.
    """
    old_department = form.row.department_id if form.row is not None else None
    project = form.save(edited_version)
    provision.enqueue(project.pk)
    if old_department is not None and old_department != project.department_id:
        # The sum that the department had which it was in is written with any of those that stay
        # there.
        remaining_project = (
            Project.objects.there()
            .filter(department=old_department, cluster=project.cluster_id)
            .values_list("pk", flat=True)
            .first()
        )
        if remaining_project is not None:
            provision.enqueue(remaining_project)
    return project
