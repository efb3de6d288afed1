"""What the viewer can do to a workload, and why not where they cannot."""

from dataclasses import dataclass

from projects import access
from projects.models import User
from projects.permissions import Entity, Permission, Verb
from projects.scopes import project_scope
from workloads.models import Workload
from workloads.states import ACTIVE, RESTING, Status


@dataclass(frozen=True, slots=True)
class Ability:
    """An action; `why_not` is a sentence, "" where it can be done."""

    name: str
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Abilities:
    stop: Ability
    run: Ability
    copy: Ability
    delete: Ability
    template: bool
    """Whether to offer saving it as a template."""


def list_abilities(workload: Workload, user: User) -> Abilities:
    """List what the buttons of the details offer. The actions themselves check again."""
    status = Status(workload.status)
    scope = project_scope(workload.project_id)
    allowed = {
        verb: user.rights.may(Permission(Entity.WORKLOADS, verb), scope)
        for verb in (Verb.CREATE, Verb.EDIT, Verb.DELETE)
    }
    refusal = access.Refusal(user, scope)
    why = {
        verb: "" if is_allowed else refusal.describe(Permission(Entity.WORKLOADS, verb))
        for verb, is_allowed in allowed.items()
    }
    deleted = "It is deleted; its logs and history are still here." if workload.released_at else ""
    return Abilities(
        Ability(
            "stop",
            why[Verb.EDIT]
            or deleted
            or (
                ""
                if status in ACTIVE or workload.may_be_resumed_by_others
                else _describe_not_running(status)
            ),
        ),
        Ability(
            "run",
            why[Verb.EDIT]
            or deleted
            or ("" if status in RESTING else _describe_not_at_rest(status)),
        ),
        Ability("copy", why[Verb.CREATE]),
        Ability(
            "delete",
            why[Verb.DELETE]
            or deleted
            or ("It is being deleted already." if status is Status.DELETING else ""),
        ),
        allowed[Verb.CREATE]
        and user.rights.may_anywhere(Permission(Entity.TEMPLATES, Verb.CREATE)),
    )


def _describe_not_running(status: Status) -> str:
    if status is Status.STOPPING:
        return "It is being stopped already."
    if status is Status.DELETING:
        return "It is being deleted."
    return f"It is {status.label.lower()}: it holds nothing that could be freed."


def _describe_not_at_rest(status: Status) -> str:
    if status is Status.DELETING:
        return "It is being deleted."
    if status is Status.STOPPING:
        return "It is still being stopped; it can be run again in a moment."
    return f"It is {status.label.lower()}: stop it first to run it anew."
