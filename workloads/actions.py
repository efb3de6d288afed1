"""What a person or a program can do to workloads. The page, the REST API and the wizard all call
these; none of them repeats one.
"""

import uuid
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.http import Http404

from clusters.models import Cluster
from console.errors import Clash, Invalid, UserError
from projects import access, audit
from projects.audit import Event
from projects.models import Project, User
from projects.permissions import Entity, Verb
from projects.scopes import of_project
from workloads import journal, limits, placing, policies, reaching
from workloads.asset_uses import Used, credentials_of, registries_of
from workloads.manifests import refusals
from workloads.models import Workload
from workloads.specs import Spec, from_json, problems
from workloads.tasks import launch as launching
from workloads.tasks import remove as removing
from workloads.tasks import stop as stopping

MOST_AT_ONCE = 100
"""Workloads that one call of `bulk` takes."""
NOT_THERE = "There is no such workload among those that you may see."


def submit(
    spec: Spec,
    *,
    project: Project,
    by: User,
    note: str = "",
    assets: Sequence[Used] = (),
    said: Container[str] | None = None,
) -> Workload:
    """Launch a workload in a project, made from these assets: its row is there when this returns,
    its objects in the cluster soon after.

    Raises NotAllowed or Http404 for somebody who may not, Invalid with everything wrong with the
    spec (fields as `specs.problems` names them), that policies forbid (Noncompliant) or that its
    cluster cannot do, and Clash where the name is taken or the cluster is disabled. `said` are the
    fields that were given, where a missing one is something else than its default.
    """
    access.require(by, Verb.CREATE, Entity.WORKLOADS, of_project(project))
    held = policies.held(spec, project, said)
    held = replace(held, spec=placing.with_defaults(held.spec, project))
    spec = held.spec
    if found := problems(spec):
        raise Invalid([(problem.field, problem.text) for problem in found])
    held.require()
    _takes(project.cluster, spec)
    note = f"{note} {held.note}".strip()
    placing.require(spec, project)
    made_from = (*assets, *held.used, *credentials_of(spec, project), *registries_of(spec, project))
    with transaction.atomic():
        workload = journal.opened(spec, project=project, by=by, note=note, assets=made_from)
        _record(Event.CREATE, workload, by, after=_told(spec))
    launching.soon(str(workload.pk))
    return workload


def _takes(cluster: Cluster, spec: Spec) -> None:
    """Raises Clash or Invalid where a cluster takes nothing, or not this."""
    if not cluster.is_enabled:
        raise Clash(
            f"The cluster {cluster.name} is disabled: nothing is launched there. Ask its "
            "administrator, or use another cluster."
        )
    if astray := reaching.problems(spec, is_local=cluster.is_local):
        raise Invalid(astray)
    if found := refusals(spec, cluster.can):
        raise Invalid([(problem.field, problem.text) for problem in found])


def stop(workload: Workload, by: User) -> bool:
    """Free what it holds; its definition and logs stay. False when that was asked already. Raises
    NotAllowed, Http404 or Clash.
    """
    access.require(by, Verb.EDIT, Entity.WORKLOADS, of_project(workload.project_id))
    with transaction.atomic():
        asked = journal.asked_to_stop(workload.pk, by)
        if asked:
            _record(Event.STOP, workload, by)
    if asked:
        stopping.soon(str(workload.pk))
    return asked


def run(workload: Workload, by: User) -> bool:
    """Run it again, as its next attempt. False when that was asked already. Raises NotAllowed,
    Http404, Clash, and Invalid as `submit`.
    """
    access.require(by, Verb.EDIT, Entity.WORKLOADS, of_project(workload.project_id))
    spec = from_json(workload.spec)
    policies.require(
        spec,
        workload.project,
        f"{workload.name} cannot run again as it is, for policies have changed. Make a copy of it.",
    )
    _takes(workload.cluster, spec)
    placing.require(spec, workload.project)
    limits.require_left(workload)
    with transaction.atomic():
        asked = journal.asked_to_run(workload.pk, by)
        if asked:
            _record(Event.RUN, workload, by)
    if asked:
        launching.soon(str(workload.pk))
    return asked


def remove(workload: Workload, by: User) -> bool:
    """Delete it from the cluster, and then from the table. False when that was asked already.
    Raises NotAllowed, Http404 or Clash.
    """
    access.require(by, Verb.DELETE, Entity.WORKLOADS, of_project(workload.project_id))
    with transaction.atomic():
        asked = journal.asked_to_delete(workload.pk, by)
        if asked:
            _record(Event.DELETE, workload, by)
    if asked:
        removing.soon(str(workload.pk))
    return asked


def _record(
    event: Event, workload: Workload, by: User, after: Mapping[str, Any] | None = None
) -> None:
    scope = of_project(workload.project_id)
    audit.record(
        event, "workload", by=by, id=workload.pk, name=workload.name, scope=scope, after=after
    )


def _told(spec: Spec) -> Mapping[str, Any]:
    """What is said of a submission: its whole definition is the workload's own."""
    told = {
        "architecture": spec.architecture,
        "framework": spec.framework,
        "image": spec.setup.environment.image,
    }
    return {name: str(value) for name, value in told.items() if value} | {
        "pods": spec.totals.pods,
        "gpus": str(spec.totals.gpus),
    }


class Bulk(StrEnum):
    """What `bulk` can do to each workload."""

    STOP = "stop"
    RUN = "run"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one of many. `text` is for the person; `name` is the id where there is nothing
    they may see. `status` is HTTP's.
    """

    id: str
    name: str
    ok: bool
    text: str
    status: int


_VERBS: dict[Bulk, tuple[Callable[[Workload, User], bool], str, str]] = {
    Bulk.STOP: (stop, "It is being stopped.", "It was being stopped already."),
    Bulk.RUN: (run, "It runs again.", "It was started already."),
    Bulk.DELETE: (remove, "It is being deleted.", "It was being deleted already."),
}


def bulk(ids: Iterable[str], action: str, by: User) -> Sequence[Result]:
    """Do one thing to many workloads: a result for each id, in their order, each id once. One's
    refusal stops no other.

    An id that `by` may not see reads like one that does not exist. Raises UserError for an unknown
    action or more than MOST_AT_ONCE ids.
    """
    wanted = list(dict.fromkeys(map(str, ids)))
    if len(wanted) > MOST_AT_ONCE:
        raise UserError(
            (
                f"At most {MOST_AT_ONCE} workloads can be changed at once; these are "
                f"{len(wanted)}. Choose fewer."
            ),
            field="ids",
        )
    try:
        verb = Bulk(action)
    except ValueError:
        raise UserError(
            f"Workloads can be told to {', '.join(Bulk)}; not to {action[:40]}.", field="action"
        ) from None
    keys = {text: key for text in wanted if (key := _uuid(text)) is not None}
    found = Workload.objects.visible_to(by).in_bulk(list(keys.values()))
    return [_one(text, found.get(keys.get(text)), verb, by) for text in wanted]


def _one(text: str, workload: Workload | None, verb: Bulk, by: User) -> Result:
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
