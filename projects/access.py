"""The one door: what is not yours is not there (404), what you see but may not change is refused (403, with who can)."""

from enum import Enum

from django.db import models
from django.http import Http404

from console.errors import NotAllowed
from projects.models import Membership, Project, Role, User


class Action(Enum):
    """What somebody may do in a project; the value says it in words."""

    VIEW = "look at its workloads"
    SUBMIT = "launch, stop, run and delete its workloads"
    MANAGE = "manage its people, service accounts and assets"


ALLOWED: dict[str, frozenset[Action]] = {
    Role.VIEWER: frozenset({Action.VIEW}),
    Role.MEMBER: frozenset({Action.VIEW, Action.SUBMIT}),
    Role.ADMINISTRATOR: frozenset(Action),
}


def role_in(user: User, project_id: int) -> str:
    """The user's role in a project, "" for none; an administrator of the installation is one everywhere."""
    if user.is_superuser:
        return Role.ADMINISTRATOR
    return Membership.objects.filter(user=user, project_id=project_id).values_list("role", flat=True).first() or ""


def may(user: User, action: Action, project_id: int) -> bool:
    """Whether the user may do this in the project."""
    return action in ALLOWED.get(role_in(user, project_id), frozenset())


def require(user: User, action: Action, project_id: int) -> None:
    """Raises Http404 where the user has no role in the project, and NotAllowed where the role does not go that far."""
    role = role_in(user, project_id)
    if not role:
        raise Http404("There is nothing here that you may see.")
    if action not in ALLOWED[role]:
        enough = " or ".join(each.label.lower() for each in Role if action in ALLOWED[each])
        raise NotAllowed(
            f"You are a {Role(role).label.lower()} of this project. To {action.value} one must be its {enough}: ask its administrator."
        )


def administrator(user: User) -> None:
    """Raises NotAllowed for anybody but an administrator of the installation."""
    if not user.is_superuser:
        raise NotAllowed("Only an administrator of Muster may do this. Ask one of them.")


def actionable(user: User, action: Action) -> models.QuerySet[Project]:
    """The projects in which the user may do this."""
    if user.is_superuser:
        return Project.objects.all()
    roles = [role for role, actions in ALLOWED.items() if action in actions]
    return Project.objects.filter(memberships__user=user, memberships__role__in=roles)
