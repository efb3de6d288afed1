"""What a person or a program can do to workloads. The page, the REST API and the wizard all call these; none of them repeats one."""

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.http import Http404

from console.errors import Invalid, UserError
from projects import access
from projects.access import Action
from projects.models import Project, User
from workloads import journal
from workloads.models import Workload
from workloads.specs import Spec, problems
from workloads.tasks import launch as launching
from workloads.tasks import remove as removing
from workloads.tasks import stop as stopping

MOST_AT_ONCE = 100
"""Workloads that one call of `bulk` takes."""
NOT_THERE = "There is no such workload among those that you may see."


def submit(spec: Spec, *, project: Project, by: User, note: str = "") -> Workload:
    """Launch a workload in a project: its row is there when this returns, its objects in the cluster soon after.

    Raises NotAllowed or Http404 for somebody who may not, Invalid with everything wrong with the spec (fields as `specs.problems`
    names them), and Clash where the name is taken.
    """
    access.require(by, Action.SUBMIT, project.pk)
    found = problems(spec)
    if found:
        raise Invalid([(problem.field, problem.text) for problem in found])
    workload = journal.opened(spec, project=project, by=by, note=note)
    launching.soon(str(workload.pk))
    return workload


def stop(workload: Workload, by: User) -> bool:
    """Free what it holds; its definition and logs stay. False when that was asked already. Raises NotAllowed, Http404 or Clash."""
    access.require(by, Action.SUBMIT, workload.project_id)
    asked = journal.asked_to_stop(workload.pk, by)
    if asked:
        stopping.soon(str(workload.pk))
    return asked


def run(workload: Workload, by: User) -> bool:
    """Run it again, as its next attempt. False when that was asked already. Raises NotAllowed, Http404 or Clash."""
    access.require(by, Action.SUBMIT, workload.project_id)
    asked = journal.asked_to_run(workload.pk, by)
    if asked:
        launching.soon(str(workload.pk))
    return asked


def remove(workload: Workload, by: User) -> bool:
    """Delete it from the cluster, and then from the table. False when that was asked already. Raises NotAllowed, Http404 or Clash."""
    access.require(by, Action.SUBMIT, workload.project_id)
    asked = journal.asked_to_delete(workload.pk, by)
    if asked:
        removing.soon(str(workload.pk))
    return asked


class Verb(StrEnum):
    """What `bulk` can do to each workload."""

    STOP = "stop"
    RUN = "run"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one of many. `text` is for the person; `name` is the id where there is nothing they may see. `status` is HTTP's."""

    id: str
    name: str
    ok: bool
    text: str
    status: int


_VERBS: dict[Verb, tuple[Callable[[Workload, User], bool], str, str]] = {
    Verb.STOP: (stop, "It is being stopped.", "It was being stopped already."),
    Verb.RUN: (run, "It runs again.", "It was started already."),
    Verb.DELETE: (remove, "It is being deleted.", "It was being deleted already."),
}


def bulk(ids: Iterable[str], action: str, by: User) -> Sequence[Result]:
    """Do one thing to many workloads: a result for each id, in their order, each id once. One's refusal stops no other.

    An id that `by` may not see reads like one that does not exist. Raises UserError for an unknown action or more than MOST_AT_ONCE ids.
    """
    wanted = list(dict.fromkeys(map(str, ids)))
    if len(wanted) > MOST_AT_ONCE:
        raise UserError(f"At most {MOST_AT_ONCE} workloads can be changed at once; these are {len(wanted)}. Choose fewer.", field="ids")
    try:
        verb = Verb(action)
    except ValueError:
        raise UserError(f"Workloads can be told to {', '.join(Verb)}; not to {action[:40]}.", field="action") from None
    keys = {text: key for text in wanted if (key := _uuid(text)) is not None}
    found = Workload.objects.visible_to(by).in_bulk(list(keys.values()))
    return [_one(text, found.get(keys.get(text)), verb, by) for text in wanted]


def _one(text: str, workload: Workload | None, verb: Verb, by: User) -> Result:
    if workload is None:
        return Result(text, text, False, NOT_THERE, 404)
    act, done, already = _VERBS[verb]
    try:
        asked = act(workload, by)
    except UserError as refusal:
        return Result(text, workload.name, False, refusal.text, refusal.status)
    except Http404:
        # The row or the role went away since it was looked up.
        return Result(text, workload.name, False, NOT_THERE, 404)
    return Result(text, workload.name, True, done if asked else already, 202)


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
