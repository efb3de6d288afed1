"""Who may try other quotas on a cluster, and what becomes of their requests.

A trial shows the waits of all projects of its cluster, and is made of their quotas: it takes the
right to change both departments and projects, and to see all workloads there.
"""

import uuid
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.http import Http404

from clusters.models import Cluster
from console.errors import Clash
from projects import access
from projects.models import User
from projects.permissions import Entity, Verb
from projects.scopes import cluster_scope
from workloads.elastic.cluster_state import load_queue_projects
from workloads.forms.trial_form import TrialForm
from workloads.models import (
    MOST_OPEN_TRIALS,
    MOST_TRIALS,
    MOST_TRIALS_OF_ONE,
    OPEN_TRIALS,
    QuotaTrial,
    TrialStatus,
)
from workloads.tasks import play_trials
from workloads.trials import Change, ChangeKind, build_change_fields, load_node_kinds
from workloads.trials.changes import MOST_CHANGES
from workloads.trials.node_kinds import MOST_KINDS

_NEEDS = (
    (Verb.EDIT, Entity.DEPARTMENTS),
    (Verb.EDIT, Entity.PROJECTS),
    (Verb.VIEW, Entity.WORKLOADS),
)
MOST_CLUSTERS = 100
MOST_ROWS = 200
"""Departments, and projects, of the form on the page; REST reaches all of them."""


def may_try(user: User, cluster: uuid.UUID) -> bool:
    """Tell whether the user may try other quotas on a cluster."""
    scope = cluster_scope(cluster)
    return all(access.is_permitted(user, verb, entity, scope) for verb, entity in _NEEDS)


def require_trials(user: User, cluster: uuid.UUID) -> None:
    """Check that the user may try other quotas on a cluster. Raises Http404 or NotAllowed."""
    for verb, entity in _NEEDS:
        access.require(user, verb, entity, cluster_scope(cluster))


def list_clusters(user: User) -> Sequence[Cluster]:
    """List the clusters on which the user may try other quotas. One query."""
    rows = Cluster.objects.in_use().order_by("name").defer("kubeconfig", "permissions")
    return [row for row in rows[:MOST_CLUSTERS] if may_try(user, row.pk)]


def get_trial(user: User, key: uuid.UUID) -> QuotaTrial:
    """Return a trial. Raises Http404 where its cluster is not the user's to try quotas on."""
    trial = _filter_trials(Cluster.objects.in_use()).filter(pk=key).first()
    if trial is None:
        raise Http404(access.NOT_THERE)
    require_trials(user, trial.cluster_id)
    return trial


def list_trials(user: User) -> "tuple[Sequence[Cluster], QuerySet[QuotaTrial]]":
    """List the clusters on which the user may try quotas, and their trials, the newest first.

    Of the trials' changes they have the first ones alone, and no results. One query, and one more
    for the trials.
    """
    clusters = list_clusters(user)
    return clusters, _filter_trials(clusters).defer("changes", "result")


def _filter_trials(
    clusters: "Sequence[Cluster] | QuerySet[Cluster]",
) -> "QuerySet[QuotaTrial]":
    """Return the trials of some clusters, the newest first."""
    rows = QuotaTrial.objects.filter(cluster__in=clusters).select_related("cluster", "asked_by")
    return rows.defer("cluster__kubeconfig", "cluster__permissions")


def load_form(
    cluster: Cluster,
    *,
    data: Mapping[str, Any] | None = None,
    tried: Iterable[Change] = (),
    named: Container[tuple[ChangeKind, str]] | None = None,
) -> TrialForm:
    """Load the form of a cluster's departments, projects and nodes, with what was tried before.

    `named` are the rows that it has, by kind and id; without it, all of them up to a bound. Three
    queries.
    """
    projects = sorted(
        (row for row in load_queue_projects(cluster) if row.deleted_at is None),
        key=lambda row: (row.department.name, row.name),
    )
    departments = list({row.department_id: row.department for row in projects}.values())
    kinds = load_node_kinds(cluster)
    shown_kinds = kinds[:MOST_KINDS]
    if named is None:
        departments, projects = departments[:MOST_ROWS], projects[:MOST_ROWS]
    else:
        departments = [row for row in departments if (ChangeKind.DEPARTMENT, str(row.pk)) in named]
        projects = [row for row in projects if (ChangeKind.PROJECT, str(row.pk)) in named]
        shown_kinds = [kind for kind in kinds if (ChangeKind.NODES, kind.key) in named]
    return TrialForm(
        departments,
        projects,
        shown_kinds,
        other_nodes=sum(kind.count for kind in kinds) - sum(kind.count for kind in shown_kinds),
        data=data,
        tried=tried,
    )


def request_trial(user: User, cluster: Cluster, changes: Sequence[Change]) -> QuotaTrial:
    """Create a trial of a valid form's changes, and ask a worker to play it.

    Raises NotAllowed, Http404, and Clash where it has to wait for others or cannot be.
    """
    require_trials(user, cluster.pk)
    require_quotas(cluster)
    if len(changes) > MOST_CHANGES:
        raise Clash(f"A trial has at most {MOST_CHANGES:,} changes. Make fewer at once.")
    with transaction.atomic():
        _require_place_in_line(user)
        _forget_oldest(user)
        try:
            with transaction.atomic():
                trial = QuotaTrial.objects.create(
                    cluster=cluster, asked_by=user, **build_change_fields(changes)
                )
        except IntegrityError:
            raise _build_clash_with_own() from None
        play_trials.enqueue()
    return trial


def require_quotas(cluster: Cluster) -> None:
    """Check that quotas hold in a cluster at all. Raises Clash."""
    if not cluster.can.has_kai:
        raise Clash(
            f"Cluster {cluster.name} has no KAI scheduler, so nothing enforces quotas there, and "
            "other ones would change nothing. Choose a cluster with KAI, or install it there."
        )


def _require_place_in_line(user: User) -> None:
    open_trials = QuotaTrial.objects.filter(status__in=OPEN_TRIALS)
    if open_trials.filter(asked_by=user).exists():
        raise _build_clash_with_own()
    if len(open_trials.order_by().values_list("pk")[:MOST_OPEN_TRIALS]) >= MOST_OPEN_TRIALS:
        raise Clash(
            f"{MOST_OPEN_TRIALS} trials wait already, and each takes up to some minutes. Try again "
            "when some of them are done."
        )


def _build_clash_with_own() -> Clash:
    return Clash(
        "Another trial of yours is not done yet, and each takes the worker some minutes. Wait for "
        "it, or cancel it."
    )


def _forget_oldest(user: User) -> None:
    """Delete the oldest trials that are done, where there would be too many."""
    finished_trials = QuotaTrial.objects.exclude(status__in=OPEN_TRIALS)
    for rows, most in (
        (finished_trials.filter(asked_by=user), MOST_TRIALS_OF_ONE),
        (finished_trials, MOST_TRIALS),
    ):
        ids = list(rows.values_list("pk", flat=True)[most - 1 : most + MOST_TRIALS])
        QuotaTrial.objects.filter(pk__in=ids).delete()


def cancel_trial(user: User, trial: QuotaTrial) -> bool:
    """Cancel a trial; return whether it was not done yet."""
    require_trials(user, trial.cluster_id)
    rows = QuotaTrial.objects.filter(pk=trial.pk, status__in=OPEN_TRIALS)
    trouble = f"{user.username} cancelled it."[:300]
    return rows.update(status=TrialStatus.FAILED, trouble=trouble) == 1
