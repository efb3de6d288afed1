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
from projects.scopes import project_scope
from workloads import journal, placement_rules, policies, runtime_limits, source_addresses
from workloads.asset_uses import AssetReference, load_named_credentials, load_registry_credentials
from workloads.manifests import find_refusals
from workloads.models import Workload
from workloads.specs import Spec, decode_spec, find_problems
from workloads.tasks import launch as launching
from workloads.tasks import remove as removing
from workloads.tasks import stop as stopping

MOST_AT_ONCE = 100
"""Workloads that one call of `bulk` takes."""
NOT_FOUND_TEXT = "There is no such workload among those that you may see."


def submit(
    spec: Spec,
    *,
    project: Project,
    user: User,
    note: str = "",
    assets: Sequence[AssetReference] = (),
    given_fields: Container[str] | None = None,
) -> Workload:
    """Launch a workload in a project, made from these assets: its row is there when this returns,
    its objects in the cluster soon after.

    Raises NotAllowed or Http404 for somebody who may not, Invalid with everything wrong with the
    spec (fields as `specs.problems` names them), that policies forbid (Noncompliant) or that its
    cluster cannot do, and Clash where the name is taken or the cluster is disabled. `said` are the
    fields that were given, where a missing one is something else than its default.
    """
    access.require(user, Verb.CREATE, Entity.WORKLOADS, project_scope(project))
    held = policies.check_policies(spec, project, given_fields)
    held = replace(held, spec=placement_rules.apply_project_defaults(held.spec, project))
    spec = held.spec
    if found := find_problems(spec):
        raise Invalid([(problem.field, problem.text) for problem in found])
    held.require_compliance()
    _check_cluster_accepts(project.cluster, spec)
    note = f"{note} {held.note}".strip()
    placement_rules.require_allowed_pools(spec, project)
    made_from = (
        *assets,
        *held.policy_references,
        *load_named_credentials(spec, project),
        *load_registry_credentials(spec, project),
    )
    with transaction.atomic():
        workload = journal.create_workload(
            spec, project=project, user=user, note=note, assets=made_from
        )
        _record(Event.CREATE, workload, user, after=_build_audit_values(spec))
    launching.enqueue(str(workload.pk))
    return workload


def _check_cluster_accepts(cluster: Cluster, spec: Spec) -> None:
    """Raises Clash or Invalid where a cluster takes nothing, or not this."""
    if not cluster.is_enabled:
        raise Clash(
            f"The cluster {cluster.name} is disabled: nothing is launched there. Ask its "
            "administrator, or use another cluster."
        )
    if astray := source_addresses.find_address_problems(spec, is_local=cluster.is_local):
        raise Invalid(astray)
    if found := find_refusals(spec, cluster.can):
        raise Invalid([(problem.field, problem.text) for problem in found])


def stop(workload: Workload, user: User) -> bool:
    """Free what it holds; its definition and logs stay. False when that was asked already. Raises
    NotAllowed, Http404 or Clash.
    """
    access.require(user, Verb.EDIT, Entity.WORKLOADS, project_scope(workload.project_id))
    with transaction.atomic():
        asked = journal.request_stop(workload.pk, user)
        if asked:
            _record(Event.STOP, workload, user)
    if asked:
        stopping.enqueue(str(workload.pk))
    return asked


def run(workload: Workload, user: User) -> bool:
    """Run it again, as its next attempt. False when that was asked already. Raises NotAllowed,
    Http404, Clash, and Invalid as `submit`.
    """
    access.require(user, Verb.EDIT, Entity.WORKLOADS, project_scope(workload.project_id))
    spec = decode_spec(workload.spec)
    policies.require_compliance(
        spec,
        workload.project,
        f"{workload.name} cannot run again as it is, for policies have changed. Make a copy of it.",
    )
    _check_cluster_accepts(workload.cluster, spec)
    placement_rules.require_allowed_pools(spec, workload.project)
    runtime_limits.require_time_left(workload)
    with transaction.atomic():
        asked = journal.request_run(workload.pk, user)
        if asked:
            _record(Event.RUN, workload, user)
    if asked:
        launching.enqueue(str(workload.pk))
    return asked


def remove(workload: Workload, user: User) -> bool:
    """Delete it from the cluster, and then from the table. False when that was asked already.
    Raises NotAllowed, Http404 or Clash.
    """
    access.require(user, Verb.DELETE, Entity.WORKLOADS, project_scope(workload.project_id))
    with transaction.atomic():
        asked = journal.request_deletion(workload.pk, user)
        if asked:
            _record(Event.DELETE, workload, user)
    if asked:
        removing.enqueue(str(workload.pk))
    return asked


def _record(
    event: Event, workload: Workload, user: User, after: Mapping[str, Any] | None = None
) -> None:
    scope = project_scope(workload.project_id)
    audit.record(
        event, "workload", by=user, id=workload.pk, name=workload.name, scope=scope, after=after
    )


def _build_audit_values(spec: Spec) -> Mapping[str, Any]:
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


class BulkAction(StrEnum):
    """What `bulk` can do to each workload."""

    STOP = "stop"
    RUN = "run"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class BulkResult:
    """What became of one of many. `text` is for the person; `name` is the id where there is nothing
    they may see. `status` is HTTP's.
    """

    id: str
    name: str
    ok: bool
    text: str
    status: int


_BULK_ACTIONS: dict[BulkAction, tuple[Callable[[Workload, User], bool], str, str]] = {
    BulkAction.STOP: (stop, "It is being stopped.", "It was being stopped already."),
    BulkAction.RUN: (run, "It runs again.", "It was started already."),
    BulkAction.DELETE: (remove, "It is being deleted.", "It was being deleted already."),
}


def apply_bulk_action(ids: Iterable[str], action: str, user: User) -> Sequence[BulkResult]:
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
        verb = BulkAction(action)
    except ValueError:
        raise UserError(
            f"Workloads can be told to {', '.join(BulkAction)}; not to {action[:40]}.",
            field="action",
        ) from None
    keys = {text: key for text in wanted if (key := _parse_uuid(text)) is not None}
    found = Workload.objects.visible_to(user).in_bulk(list(keys.values()))
    return [_apply_to_one(text, found.get(keys.get(text)), verb, user) for text in wanted]


def _apply_to_one(
    text: str, workload: Workload | None, action: BulkAction, user: User
) -> BulkResult:
    if workload is None:
        return BulkResult(text, text, False, NOT_FOUND_TEXT, 404)
    act, done, already = _BULK_ACTIONS[action]
    try:
        asked = act(workload, user)
    except UserError as refusal:
        return BulkResult(text, workload.name, False, refusal.text, refusal.status)
    except Http404:
        # The row or the role went away since it was looked up.
        return BulkResult(text, workload.name, False, NOT_FOUND_TEXT, 404)
    return BulkResult(text, workload.name, True, done if asked else already, 202)


def _parse_uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
