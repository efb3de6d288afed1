"""What can be done to a workload by the one who looks, and why not where it cannot."""

from dataclasses import dataclass

from console.errors import NotAllowed
from projects import access
from projects.access import Action
from projects.models import User
from workloads.models import Workload
from workloads.states import ACTIVE, RESTING, Status


@dataclass(frozen=True, slots=True)
class Ability:
    """`why_not` is a sentence; "" where it can be done."""

    name: str
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Abilities:
    stop: Ability
    run: Ability
    copy: Ability
    delete: Ability


def abilities(workload: Workload, user: User) -> Abilities:
    """For the buttons of the details. The actions themselves judge again."""
    status = Status(workload.status)
    refusal = ""
    try:
        access.require(user, Action.SUBMIT, workload.project_id)
    except NotAllowed as refused:
        refusal = refused.text
    gone = "It is deleted; its logs and history are still here." if workload.released_at else ""
    return Abilities(
        Ability("stop", refusal or gone or ("" if status in ACTIVE else _not_running(status))),
        Ability("run", refusal or gone or ("" if status in RESTING else _not_at_rest(status))),
        Ability("copy", refusal),
        Ability("delete", refusal or gone or ("It is being deleted already." if status is Status.DELETING else "")),
    )


def _not_running(status: Status) -> str:
    if status is Status.STOPPING:
        return "It is being stopped already."
    if status is Status.DELETING:
        return "It is being deleted."
    return f"It is {status.label.lower()}: it holds nothing that could be freed."


def _not_at_rest(status: Status) -> str:
    if status is Status.DELETING:
        return "It is being deleted."
    if status is Status.STOPPING:
        return "It is still being stopped; it can be run again in a moment."
    return f"It is {status.label.lower()}: stop it first to run it anew."
