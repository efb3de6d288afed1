"""A quota trial of a busy console, with what came out."""

import uuid
from datetime import datetime, timedelta

from projects.models import Project, User
from workloads.models import TRIAL_WINDOW, QuotaTrial
from workloads.trials import load_node_kinds
from workloads.trials.changes import Change, ChangeKind, build_change_fields
from workloads.trials.results import ProjectWaits, TrialResult, Waits, encode_result

HOUR = 3600.0
OTHERS = ("speech", "vision-transformers", "protein-folding", "recommendation", "evaluation")
_FIGURES = (
    # Workloads; the median and the longer waits: measured, as it is, as tried.
    (412, (2.6, 17.0), (2.3, 15.5), (0.7, 6.2)),
    (238, (0.4, 3.1), (0.3, 2.6), (0.8, 5.4)),
    (871, (0.02, 0.9), (0.01, 0.7), (0.01, 0.7)),
    (96, (9.5, 41.0), (8.8, 37.0), (5.1, 22.0)),
    (154, (0.1, 1.2), (0.08, 1.0), (0.5, 2.9)),
    (305, (0.9, 6.4), (0.8, 5.7), (0.7, 5.1)),
    (1280, (0.0, 0.3), (0.0, 0.2), (0.0, 0.2)),
)


def create_trial(projects: tuple[Project, Project], by: User, now: datetime) -> uuid.UUID:
    """Create a trial that gives one project more, at the cost of others."""
    first, second = projects
    names = [(first.pk, first.name), (second.pk, second.name)]
    names += [(10_000 + number, name) for number, name in enumerate(OTHERS)]
    rows = [
        _build_waits(key, name, *figures)
        for (key, name), figures in zip(names, _FIGURES, strict=True)
    ]
    result = TrialResult(
        begin=now - TRIAL_WINDOW,
        until=now,
        is_whole=True,
        total=_build_waits(0, "All projects", 3356, (0.3, 4.8), (0.25, 4.1), (0.2, 3.2)),
        projects=rows,
        more_projects=0,
        is_cut=False,
        never_started=61,
        unreadable=0,
        deleted=112,
        seconds=[7.9, 8.4],
    )
    changes = [
        Change(ChangeKind.PROJECT, str(first.pk), first.name, "gpu_quota", "16", "24"),
        Change(ChangeKind.PROJECT, str(second.pk), second.name, "gpu_quota", "16", "8"),
        Change(ChangeKind.PROJECT, "10002", OTHERS[2], "over_quota_weight", "1", "2"),
    ]
    for kind in load_node_kinds(first.cluster)[:1]:
        counts = str(kind.count), str(kind.count + 1)
        changes.append(Change(ChangeKind.NODES, kind.key, kind.label, "count", *counts))
    trial = QuotaTrial.objects.create(
        cluster_id=first.cluster_id,
        asked_by=by,
        **build_change_fields(changes),
        status="done",
        created_at=now - timedelta(minutes=12),
        computed_at=now - timedelta(minutes=11),
        took_seconds=17,
        result=encode_result(result),
    )
    return trial.pk


def create_open_trial(project: Project, by: User, now: datetime) -> uuid.UUID:
    """Create a trial that is being played."""
    change = Change(ChangeKind.PROJECT, str(project.pk), project.name, "gpu_limit", "", "32")
    trial = QuotaTrial.objects.create(
        cluster_id=project.cluster_id,
        asked_by=by,
        **build_change_fields([change]),
        status="running",
        created_at=now - timedelta(seconds=9),
        began_at=now - timedelta(seconds=8),
        tries=1,
    )
    return trial.pk


def _build_waits(
    key: int,
    name: str,
    count: int,
    truth: tuple[float, float],
    before: tuple[float, float],
    after: tuple[float, float],
) -> ProjectWaits:
    """Build the waits of a project, given in hours."""
    parts = [
        Waits(median * HOUR, high * HOUR, round((median + high) / 4 * count * 3.1, 1), count // 150)
        for median, high in (truth, before, after)
    ]
    return ProjectWaits(key, name, count, *parts)
