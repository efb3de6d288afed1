"""What logs and containers told of the ranks that a timeline shows; no log is read for it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from workloads.journal.cluster_events import MAX_CLOCK_LAG, parse_moment
from workloads.kube_objects import Object, int_or_zero, nested_dict, nested_list
from workloads.models import Log, Pod, RankProgress, TrainingProgress, Workload
from workloads.timeline import LogFact, MarkKind, PodFact, RestartFact
from workloads.training_progress import RankState, format_place

MOST_DETAILS = 96
"""Pods whose objects are read, the newest of those with a lane of their own."""
MOST_LOGS = 400
MOST_RANKS = 64
_CLOCK_SLACK = MAX_CLOCK_LAG.total_seconds()


@dataclass(frozen=True, slots=True)
class PodClock:
    """How moments that nodes wrote are read, which may be of any year.

    `lead` is how far the cluster's clock is ahead of ours; `since` and `now` are the beginning of
    the workload and the present.
    """

    lead: timedelta
    since: float
    now: float

    def parse(self, text: object, pod: PodFact) -> float | None:
        """Parse a moment of a pod's object, which is hostile; None for what is none."""
        moment = parse_moment(text, self.lead)
        return None if moment is None else self.fit_into_life(moment.timestamp(), pod)

    def fit_into_life(self, at: float, pod: PodFact) -> float | None:
        """Return a moment as one of the pod's life; None where no clock is that wrong.

        containerd writes 1970 for a container that it could not start.
        """
        known = (each for each in (pod.created_at, pod.started_at) if each is not None)
        since = next(known, self.since)
        if not since - _CLOCK_SLACK <= at <= self.now + _CLOCK_SLACK:
            return None
        return min(max(at, since), self.now)


def add_pod_details(
    pods: Sequence[PodFact], drawn_keys: Collection[int], clock: PodClock
) -> list[PodFact]:
    """Add to pods with a lane of their own when their programs began and began again.

    Two queries, none where no pod is drawn.
    """
    keys = sorted(drawn_keys, reverse=True)[:MOST_DETAILS]
    if not keys:
        return list(pods)
    objects = dict(Pod.objects.filter(pk__in=keys).values_list("pk", "data").order_by())
    runs = _load_later_runs(keys)
    return [
        _add_details(pod, objects[pod.key], runs.get(pod.key, ()), clock)
        if pod.key in objects
        else pod
        for pod in pods
    ]


def _load_later_runs(keys: Sequence[int]) -> Mapping[int, list[Log]]:
    """Load the logs of containers that began again, by pod, in the order of runs."""
    rows = (
        Log.objects.filter(pod__in=keys, run__gt=0, first_at__isnull=False, is_init=False)
        .only("pod_id", "container", "run", "first_at")
        .order_by("-first_at")[:MOST_LOGS]
    )
    runs: dict[int, list[Log]] = {}
    for row in reversed(list(rows)):
        runs.setdefault(row.pod_id, []).append(row)
    return runs


def _add_details(pod: PodFact, data: Object, runs: Sequence[Log], clock: PodClock) -> PodFact:
    statuses = nested_list(data, "status", "containerStatuses")
    logged_runs = {(each.container, each.run): each for each in runs}
    restarts = [
        RestartFact(at, f"run {each.run + 1} of container {each.container}")
        for each in runs
        if each.first_at is not None
        and (at := clock.fit_into_life(each.first_at.timestamp(), pod)) is not None
    ]
    restarts += _list_last_restarts(statuses, logged_runs, pod, clock)
    begins = [at for each in statuses if (at := _find_first_run(each, pod, clock)) is not None]
    return replace(
        pod,
        running_at=max(begins) if begins else pod.running_at,
        restarts=sorted(restarts, key=lambda each: each.at),
    )


def _list_last_restarts(
    statuses: Sequence[Object],
    logged_runs: Collection[tuple[str, int]],
    pod: PodFact,
    clock: PodClock,
) -> Iterator[RestartFact]:
    """Yield when containers began their last run, where no log tells it."""
    for each in statuses:
        name, count = str(each.get("name") or ""), int_or_zero(each.get("restartCount"))
        if count < 1 or (name, count) in logged_runs:
            continue
        before = nested_dict(each, "lastState", "terminated")
        at = clock.parse(before.get("finishedAt"), pod)
        if at is not None:
            code = int_or_zero(before.get("exitCode"))
            reason = str(before.get("reason") or "")
            how = f"exit code {code}" + (f", {reason}" if reason and reason != "Error" else "")
            yield RestartFact(at, f"container {name} ended ({how}) and began again")


def _find_first_run(status: Object, pod: PodFact, clock: PodClock) -> float | None:
    """Return since when a container that never began again runs or ran."""
    if int_or_zero(status.get("restartCount")):
        return None
    state = nested_dict(status, "state")
    for name in ("running", "terminated"):
        at = clock.parse(nested_dict(state, name).get("startedAt"), pod)
        if at is not None:
            return at
    return None


def list_training_facts(workload: Workload) -> Iterator[LogFact]:
    """Yield what the rank whose lines tell the progress said. No query."""
    row: TrainingProgress | None = getattr(workload, "progress", None)
    if row is None or row.attempt != workload.attempt or row.at is None:
        return
    subject = f"Rank {row.rank}" if row.rank is not None else "Its log"
    yield from _list_state_facts(RankState(**row.state), subject, None)


def load_rank_facts(workload: Workload, ranks: Collection[int]) -> list[LogFact]:
    """Load what other ranks with a lane of their own said last. One query, none without ranks."""
    if not ranks:
        return []
    row: TrainingProgress | None = getattr(workload, "progress", None)
    told_by = row.rank if row is not None else None
    rows = (
        RankProgress.objects.filter(
            workload=workload,
            attempt=workload.attempt,
            rank__in=sorted(ranks)[:MOST_RANKS],
            at__isnull=False,
        )
        .only("rank", "state")
        .order_by("rank")
    )
    return [
        fact
        for each in rows
        if each.rank != told_by
        for fact in _list_state_facts(RankState(**each.state), f"Rank {each.rank}", each.rank)
    ]


def _list_state_facts(state: RankState, subject: str, rank: int | None) -> Iterator[LogFact]:
    if state.checkpoint_at is not None:
        at = state.checkpoint_at
        number = state.checkpoints
        for gap in (0.0, *reversed(state.checkpoint_gaps)):
            at -= gap
            yield LogFact(at, MarkKind.CHECKPOINT, f"{subject} saved checkpoint {number}.", rank)
            number -= 1
    if state.bad_loss_at is not None:
        yield LogFact(
            state.bad_loss_at, MarkKind.BAD_LOSS, f"{subject}: the loss is no number.", rank
        )
    if state.at is not None:
        place = format_place(state.step, state.total, state.epoch, state.epochs)
        words = f"{subject} said last: {place}." if place else f"{subject} told its progress last."
        yield LogFact(state.at, MarkKind.LAST_LINE, words, rank)
