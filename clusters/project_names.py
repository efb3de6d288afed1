"""The names that a project has in its cluster, and who has them already."""

from django.core.validators import RegexValidator

from console.errors import Clash
from projects.models import Project

NAME_VALIDATOR = RegexValidator(
    r"^[a-z]([-a-z0-9]*[a-z0-9])?$",
    "Use lower-case letters, digits and dashes; start with a letter, end with a letter or a digit.",
)
"""A DNS label that starts with a letter: a possible name of a namespace and a Queue."""
DEPARTMENT_QUEUE_PREFIX = "department-"
"""The prefix of the names of departments' Queues."""
NAMESPACE_HELP = (
    "Leave it empty and Muster makes muster-<name>. To name one takes the permission to edit "
    "clusters: who has a project there reads the "
    "Secrets that are in it. A namespace that is there already is adopted: what is in it stays "
    "and is not touched, "
    "workloads run beside it, and it outlives the project. It can belong to one project only."
)


def build_namespace_name(name: str) -> str:
    """Return the name of the namespace that Muster makes for a project of this name."""
    return f"muster-{name}"


def build_clash(project: Project) -> Clash:
    """Return the Clash that says who has the project's name or namespace."""
    others = Project.objects.filter(cluster=project.cluster_id, removed_at=None).exclude(
        pk=project.pk
    )
    if other := others.filter(namespace=project.namespace).exclude(name=project.name).first():
        if other.deleted_at is None and project.is_namespace_adopted:
            return Clash(
                (
                    f"The namespace {project.namespace} is that of another project. Choose "
                    "another one."
                ),
                field="namespace",
            )
        if project.is_namespace_adopted:
            return Clash(
                f"The namespace {project.namespace} is still being given back by another project.",
                field="namespace",
            )
    if others.filter(name=project.name, deleted_at__isnull=False).exists():
        text = (
            f"A project {project.name} was deleted, and its cluster still holds some of it. Try "
            "again in a moment, or choose another name."
        )
        return Clash(text, field="name")
    return Clash(
        "The name, or the namespace that follows from it, is in use already. Choose another name.",
        field="name",
    )
