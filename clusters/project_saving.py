"""Saving a project that was filled in, and having its cluster follow: the same for its page and the
REST API.
"""

from clusters.forms import ProjectChangeForm
from clusters.tasks import provision
from projects.models import Project

MAX_REMOVAL_CHECKS = 15
"""How often one looks whether the workloads of a deleted project are gone before the heartbeat
does: they usually are within seconds.
"""


def save_project(form: ProjectChangeForm, edited_version: int | None = None) -> Project:
    """The project of a valid form, in the database and asked for in the cluster. Raises Clash and
    ChangedMeanwhile.
    """
    left = form.row.department_id if form.row is not None else None
    project = form.save(edited_version)
    provision.enqueue(project.pk)
    if left is not None and left != project.department_id:
        # The sum that the department had which it was in is written with any of those that stay
        # there.
        stays = (
            Project.objects.there()
            .filter(department=left, cluster=project.cluster_id)
            .values_list("pk", flat=True)
            .first()
        )
        if stays is not None:
            provision.enqueue(stays)
    return project
