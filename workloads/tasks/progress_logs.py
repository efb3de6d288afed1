"""Which ranks' logs a turn reads for the progress of trainings, and reading what is new of them."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import F, Q, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from workloads.kube_objects import DATA_WORKER
from workloads.logbook import stamps
from workloads.logbook.line_reading import align_to_line, find_last_line_end, read_forward
from workloads.logbook.log_files import OpenLog
from workloads.models import Log, Pod, RankProgress, TrainingProgress, Workload
from workloads.pod_counts import Standing
from workloads.specs import Architecture, Framework
from workloads.training_progress import (
    LineParser,
    Place,
    RankState,
    Reading,
    find_place,
    may_name_lagging,
    tells_checkpoint,
)

OTHER_RANKS = 15
"""Ranks that a turn reads of a workload beside its first one and the one that leads."""
OTHER_RANKS_AT_END = 120
MOST_BYTES = 128 << 10
"""Bytes of a log that a turn reads of the ranks that lead: the newest ones, where more came."""
MOST_BYTES_OF_OTHERS = 16 << 10
"""Likewise of the other ranks, of which only the last lines are kept."""
MOST_RUNS = 3
"""Pods of one rank that are read, and logs of one pod: the newest."""
_LAUNCHER = "launcher"


@dataclass(frozen=True, slots=True)
class NewLine:
    """What a line told, and how far its rank was then. `tells_loss` says that it has a loss."""

    at: datetime
    place: Place | None
    step: int | None
    loss: float | None
    tells_loss: bool


@dataclass(slots=True)
class RankLogs:
    """One rank of a workload: its row, its state, and its logs in the order of their beginnings."""

    row: RankProgress
    state: RankState
    logs: list[Log] = field(default_factory=list)


def choose_ranks(workload: Workload, row: TrainingProgress, *, is_over: bool) -> list[int]:
    """Return the ranks that a turn reads: the first, the one that leads, a share of the others.

    All the others are to be read once more when the workload is over.
    """
    count = _count_others(workload)
    if not is_over:
        row.unread_ranks = None
    elif row.unread_ranks is None:
        row.unread_ranks = count
    share = _count_share(workload, is_over=is_over)
    others = [1 + (row.first_other + number) % count for number in range(share)]
    lead = [] if row.rank is None else [row.rank]
    return sorted({0, *lead, *others})


def advance_share(workload: Workload, row: TrainingProgress, *, is_over: bool) -> None:
    """Advance the beginning of the share behind those that were read."""
    share = _count_share(workload, is_over=is_over)
    row.first_other = (row.first_other + share) % max(1, _count_others(workload))
    if row.unread_ranks is not None:
        row.unread_ranks = max(0, row.unread_ranks - share)


def _count_share(workload: Workload, *, is_over: bool) -> int:
    """Return how many of the other ranks a turn reads."""
    return min(OTHER_RANKS_AT_END if is_over else OTHER_RANKS, _count_others(workload))


def _count_others(workload: Workload) -> int:
    return max(workload.requested_pods, workload.running_pods, 1) - 1


def load_rank_logs(
    wanted: Mapping[uuid.UUID, Sequence[int]], workloads: Iterable[Workload]
) -> Mapping[uuid.UUID, Sequence[RankLogs]]:
    """Load the wanted ranks of these workloads with their newest logs. Three queries."""
    by_id = {each.pk: each for each in workloads}
    pods = _load_pods(wanted, by_id)
    ranks = {
        (row.workload_id, row.rank): row
        for row in RankProgress.objects.filter(
            workload__in=by_id, rank__in={rank for each in wanted.values() for rank in each}
        ).order_by()
    }
    logs_by_workload: dict[uuid.UUID, dict[int, RankLogs]] = defaultdict(dict)
    owners: dict[int, RankLogs] = {}
    for pod in pods:
        workload = by_id[pod.workload_id]
        rank = 0 if pod.rank is None else pod.rank
        if rank not in logs_by_workload[workload.pk]:
            row = _ensure_row(ranks.get((workload.pk, rank)), workload, rank)
            logs_by_workload[workload.pk][rank] = RankLogs(row, RankState(**row.state))
        # Of pods of one rank, the newest is the last.
        logs_by_workload[workload.pk][rank].row.pod = pod.name
        owners[pod.pk] = logs_by_workload[workload.pk][rank]
    logs = Log.objects.filter(pod__in=owners, is_init=False, size__gt=0)
    logs = logs.exclude(state=Log.State.REMOVED).defer("gaps")
    age = Window(RowNumber(), ["pod"], [F("created_at").desc(), F("run").desc(), F("pk").desc()])
    for log in logs.alias(age=age).filter(age__lte=MOST_RUNS).order_by("created_at", "run", "pk"):
        owners[log.pod_id].logs.append(log)
    for rank_logs in owners.values():
        rank_logs.logs = rank_logs.logs[-MOST_RUNS:]
    return {key: list(each.values()) for key, each in logs_by_workload.items()}


def _load_pods(
    wanted: Mapping[uuid.UUID, Sequence[int]], workloads: Mapping[uuid.UUID, Workload]
) -> Sequence[Pod]:
    conditions = Q(pk=None)
    for key, ranks in wanted.items():
        workload = workloads[key]
        own = Q(workload=key, attempt=workload.attempt)
        if workload.framework == Framework.MPI:
            # mpirun brings the output of all ranks to the launcher.
            own &= Q(role=_LAUNCHER)
        elif workload.architecture != Architecture.STANDARD:
            own &= Q(rank__in=ranks)
        conditions |= own
    rows = Pod.objects.filter(conditions).exclude(standing=Standing.FOREIGN)
    rows = rows.exclude(role=DATA_WORKER).only("workload", "name", "rank")
    # A Job makes any number of pods, and an evicted pod is made again and again.
    age = Window(RowNumber(), ["workload", "rank"], [F("created_at").desc(), F("pk").desc()])
    return list(rows.alias(age=age).filter(age__lte=MOST_RUNS).order_by("created_at", "pk"))


def _ensure_row(row: RankProgress | None, workload: Workload, rank: int) -> RankProgress:
    """Return the row of a rank, a new one where there is none of this attempt."""
    if row is not None and row.attempt == workload.attempt:
        return row
    return RankProgress(workload_id=workload.pk, attempt=workload.attempt, rank=rank)


def list_unread(rank: RankLogs) -> list[Log]:
    """Return the logs of a rank that may have something new: most of those that ended have not."""
    return [
        log
        for log in rank.logs
        if log.state == Log.State.CAPTURING or rank.row.places.get(str(log.pk), -1) < log.size
    ]


def read_new_lines(
    rank: RankLogs,
    opened: Sequence[OpenLog],
    parser: LineParser,
    clock_lead: timedelta,
    most_bytes: int,
) -> Iterator[NewLine]:
    """Yield what is new in a rank's logs, each line taken into the rank's state.

    At most the last `most_bytes` of each are read, and never less than a line. How far they are
    read is kept in the rank's row.
    """
    places = {
        key: each
        for key, each in rank.row.places.items()
        if any(key == str(log.pk) for log in rank.logs)
    }
    for log_file in opened:
        key = str(log_file.log.pk)
        place = rank.row.places.get(key)
        end = find_last_line_end(log_file.source)
        if place is None:
            rank.state.begin_log()
        begin = max(place or 0, end - most_bytes)
        begin = place if place == begin else align_to_line(log_file.source, begin)
        places[key] = max(end, place or 0)
        for offset, raw in read_forward(log_file.source, begin, end):
            yield from _apply_line(rank, log_file.log.pk, offset, raw, parser, clock_lead)
    rank.row.places = places


def _apply_line(
    rank: RankLogs, log: int, offset: int, raw: bytes, parser: LineParser, clock_lead: timedelta
) -> Iterator[NewLine]:
    ns, text_begin = stamps.parse_stamp(raw[:64])
    text = raw[text_begin:]
    if tells_checkpoint(text):
        rank.state.note_checkpoint(_find_time(ns, clock_lead).timestamp())
    if may_name_lagging(text):
        rank.state.lagging.read_line(text, _find_time(ns, clock_lead).timestamp())
    for line in parser.parse_line(text):
        at = _find_time(ns, clock_lead)
        if rank.state.apply_reading(line.reading, at.timestamp(), line.evidence):
            rank.row.log, rank.row.offset, rank.row.at = log, offset, at
            yield _build_new_line(rank.state, at, line.reading)


def _build_new_line(state: RankState, at: datetime, reading: Reading) -> NewLine:
    return NewLine(
        at,
        find_place(state.step, state.total, state.epoch, state.epochs),
        state.step,
        reading.loss,
        reading.loss is not None or reading.has_bad_loss,
    )


def _find_time(ns: int | None, clock_lead: timedelta) -> datetime:
    """Return the time of a line by our clock; one that lies ahead of it is now."""
    now = timezone.now()
    if ns is None:
        return now
    return min(now, stamps.to_datetime(ns) - clock_lead)
