"""What a person or a program can do to workloads: submit, stop, run, remove.

The pages, the REST API and the wizard all call these functions.
"""

import uuid
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.http import Http404

from clusters.models import Node
from console.errors import Invalid, UserError
from projects import access, audit
from projects.audit import Event
from projects.models import Project, User
from projects.permissions import Entity, Verb
from projects.scopes import project_scope
from workloads import journal, runtime_limits
from workloads.asset_references import AssetReference
from workloads.asset_uses import load_named_credentials, load_registry_credentials
from workloads.judgement import Judgement, judge_stored, judge_submission
from workloads.models import Workload
from workloads.specs import Spec, decode_spec
from workloads.states import RESTING
from workloads.tasks import launch as launching
from workloads.tasks import remove as removing
from workloads.tasks import stop as stopping

MOST_AT_ONCE = 100
"""Workloads that one call of `apply_bulk_action` accepts."""
MOST_EXCLUDED = 16
"""Nodes that the runs of a workload may leave out."""
NOT_FOUND_TEXT = "There is no such workload among those that you may see."


def submit(
    spec: Spec,
    *,
    project: Project,
    user: User,
    note: str = "",
    assets: Sequence[AssetReference] = (),
    given_fields: Container[str] | None = None,
    judgement: Judgement | None = None,
) -> Workload:
    """Create a workload in a project and queue its launch.

    The row exists when this returns; the objects in the cluster follow soon after. `assets` are
    what the workload was made from. `given_fields` are the fields that the caller gave, where a
    missing field differs from its default; `judgement` is that of the spec where the caller has it.

    Raises NotAllowed or Http404 for a user without the right, Invalid with all problems of the spec
    (fields as `specs.find_problems` names them) or with what the cluster cannot do, Noncompliant
    where policies forbid it, and Clash where the name is taken or the cluster is disabled.
    """
    access.require(user, Verb.CREATE, Entity.WORKLOADS, project_scope(project))
    judged = judgement or judge_submission(spec, project, given_fields=given_fields)
    judged.require_acceptable()
    spec, note = judged.spec, f"{note} {judged.note}".strip()
    made_from = (
        *assets,
        *judged.policy_references,
        *load_named_credentials(spec, project),
        *load_registry_credentials(spec, project),
    )
    # The audit entry and the row are committed together, or neither.
    with transaction.atomic():
        workload = journal.create_workload(
            spec, project=project, user=user, note=note, assets=made_from
        )
        _record(Event.CREATE, workload, user, after=_build_audit_values(spec))
    launching.enqueue(str(workload.pk))
    return workload


def stop(workload: Workload, user: User) -> bool:
    """Free the workload's resources; its definition and logs stay.

    Returns False when that was requested already. Raises NotAllowed, Http404 or Clash.
    """
    access.require(user, Verb.EDIT, Entity.WORKLOADS, project_scope(workload.project_id))
    with transaction.atomic():
        is_new = journal.request_stop(workload.pk, user)
        if is_new:
            _record(Event.STOP, workload, user)
    if is_new:
        stopping.enqueue(str(workload.pk))
    return is_new


def run(workload: Workload, user: User) -> bool:
    """Run the workload again, as its next attempt.

    Returns False when that was requested already. Raises NotAllowed, Http404, Clash, and Invalid as
    `submit` does.
    """
    access.require(user, Verb.EDIT, Entity.WORKLOADS, project_scope(workload.project_id))
    spec = decode_spec(workload.spec)
    judge_stored(spec, workload.project, workload.cluster).require_acceptable(
        f"{workload.name} cannot run again as it is, for policies have changed. Make a copy of it."
    )
    runtime_limits.require_time_left(workload)
    with transaction.atomic():
        is_new = journal.request_run(workload.pk, user)
        if is_new:
            _record(Event.RUN, workload, user)
    if is_new:
        launching.enqueue(str(workload.pk))
    return is_new


def exclude_nodes(
    workload: Workload, nodes: Sequence[str], user: User, *, runs_again: bool = False
) -> bool:
    """Set the nodes that the workload's next runs do not use; with `runs_again` one begins soon.

    What runs is then stopped first. Returns False when nothing of that is new. Raises NotAllowed,
    Http404, Clash, and Invalid for a node that its cluster does not have, or as `run` does.
    """
    access.require(user, Verb.EDIT, Entity.WORKLOADS, project_scope(workload.project_id))
    wanted = list(dict.fromkeys(nodes))
    _check_nodes(workload, wanted)
    if runs_again:
        spec = decode_spec(workload.spec)
        judge_stored(spec, workload.project, workload.cluster).require_acceptable(
            f"{workload.name} cannot run again as it is, for policies have changed. Make a copy."
        )
        runtime_limits.require_time_left(workload)
    with transaction.atomic():
        is_new = journal.exclude_nodes(workload.pk, wanted, user)
        if is_new:
            text = f"Nodes that it does not use: {', '.join(wanted) or 'none'}."
            _record(Event.UPDATE, workload, user, after={"nodes": text})
    if not runs_again:
        return is_new
    if workload.status in RESTING:
        return run(workload, user) or is_new
    with transaction.atomic():
        is_stopping = journal.request_stop(workload.pk, user, runs_again=True)
        if is_stopping:
            _record(Event.STOP, workload, user)
    if is_stopping:
        stopping.enqueue(str(workload.pk))
    return is_new or is_stopping


def _check_nodes(workload: Workload, nodes: Sequence[str]) -> None:
    """Raise Invalid for more nodes than are left out at once, or one that is not known."""
    if len(nodes) > MOST_EXCLUDED:
        raise Invalid([("nodes", f"At most {MOST_EXCLUDED} nodes can be left out.")])
    rows = Node.objects.filter(cluster=workload.cluster_id, name__in=nodes)
    known_names = {*rows.values_list("name", flat=True), *workload.excluded_nodes}
    unknown = next((each for each in nodes if each not in known_names), None)
    if unknown is not None:
        raise Invalid(
            [("nodes", f"Its cluster has no node {unknown[:80]}. `muster node list` has them.")]
        )


def remove(workload: Workload, user: User) -> bool:
    """Delete the workload from the cluster, and then from the table.

    Returns False when that was requested already. Raises NotAllowed, Http404 or Clash.
    """
    access.require(user, Verb.DELETE, Entity.WORKLOADS, project_scope(workload.project_id))
    with transaction.atomic():
        is_new = journal.request_deletion(workload.pk, user)
        if is_new:
            _record(Event.DELETE, workload, user)
    if is_new:
        removing.enqueue(str(workload.pk))
    return is_new


def _record(
    event: Event, workload: Workload, user: User, after: Mapping[str, Any] | None = None
) -> None:
    scope = project_scope(workload.project_id)
    audit.record(
        event, "workload", by=user, id=workload.pk, name=workload.name, scope=scope, after=after
    )


def _build_audit_values(spec: Spec) -> Mapping[str, Any]:
    """Return what the audit log keeps of a submission.

    The whole definition stays with the workload.
    """
    texts = {
        "architecture": spec.architecture,
        "framework": spec.framework,
        "image": spec.setup.environment.image,
    }
    return {name: str(value) for name, value in texts.items() if value} | {
        "pods": spec.totals.pods,
        "gpus": str(spec.totals.gpus),
    }


class BulkAction(StrEnum):
    """What `apply_bulk_action` can do to each workload."""

    STOP = "stop"
    RUN = "run"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class BulkResult:
    """The outcome for one of many workloads.

    `text` is for the person, `status` is HTTP's. `name` is the id where the user may not see the
    workload.
    """

    id: str
    name: str
    ok: bool
    text: str
    status: int

    @property
    def text_without_name(self) -> str:
        """The text, for where the name stands before it."""
        return self.text.removeprefix(f"{self.name} ")


_BULK_ACTIONS: dict[BulkAction, tuple[Callable[[Workload, User], bool], str, str]] = {
    BulkAction.STOP: (stop, "It is being stopped.", "It was being stopped already."),
    BulkAction.RUN: (run, "It runs again.", "It was started already."),
    BulkAction.DELETE: (remove, "It is being deleted.", "It was being deleted already."),
}


def apply_bulk_action(ids: Iterable[str], action: str, user: User) -> Sequence[BulkResult]:
    """Apply one action to many workloads and return a result for each id.

    Results are in the order of the ids, each id once. A refusal for one workload does not stop the
    others. An id that the user may not see reads like one that does not exist.

    Raises UserError for an unknown action or more than MOST_AT_ONCE ids.
    """
    unique_ids = list(dict.fromkeys(map(str, ids)))
    if len(unique_ids) > MOST_AT_ONCE:
        raise UserError(
            (
                f"At most {MOST_AT_ONCE} workloads can be changed at once; these are "
                f"{len(unique_ids)}. Choose fewer."
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
    keys = {text: key for text in unique_ids if (key := _parse_uuid(text)) is not None}
    workloads = Workload.objects.visible_to(user).in_bulk(list(keys.values()))
    return [_apply_to_one(text, workloads.get(keys.get(text)), verb, user) for text in unique_ids]


def _apply_to_one(
    text: str, workload: Workload | None, action: BulkAction, user: User
) -> BulkResult:
    if workload is None:
        return BulkResult(text, text, False, NOT_FOUND_TEXT, 404)
    act, success_text, already = _BULK_ACTIONS[action]
    try:
        is_new = act(workload, user)
    except UserError as refusal:
        return BulkResult(text, workload.name, False, refusal.text, refusal.status)
    except Http404:
        # The row was deleted, or the user's role taken away, after the look-up above.
        return BulkResult(text, workload.name, False, NOT_FOUND_TEXT, 404)
    return BulkResult(text, workload.name, True, success_text if is_new else already, 202)


def _parse_uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
