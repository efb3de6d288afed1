"""Finds ranks that hang: which one says nothing, and how the others wait for it. Pure."""

import statistics
from collections.abc import Sequence

from workloads.radar.evidence import RankEvidence, WorkloadEvidence
from workloads.radar.findings import Finding, Kind, Proof
from workloads.radar.hang_sentences import CERTAINTY, MOST_NAMED, describe_silence
from workloads.radar.pauses import tells_pause
from workloads.radar.reports import find_reported_ranks
from workloads.radar.silences import Shape, Silence
from workloads.radar.thresholds import (
    LONGEST_SHARE,
    PAUSE_SILENCE,
    STARTUP_SILENCE,
    Thresholds,
)

FEWEST_TO_COMPARE = 3
IDLE_CORES, BUSY_CORES = 0.3, 0.7
IDLE_GPU, BUSY_GPU = 20.0, 80.0
WRITING = 1e6
"""Bytes a second to disk of a rank that saves."""
LOW_POWER = 0.6
"""A device that only waits takes less than this share of the power it took before."""
RECENT = 60.0
"""Seconds: figures of this time are those of now."""
HELP = (
    "Stop it to free what it holds: run again, it goes on from its last checkpoint. The log of the "
    "rank says what it did last."
)


def is_silent(evidence: WorkloadEvidence, thresholds: Thresholds) -> bool:
    """Tell whether any rank is silent for so long that figures are wanted to say why."""
    working = [each for each in evidence.ranks if each.is_running and not each.is_done]
    return bool(_list_silent([each for each in working if each.talks], evidence, thresholds))


def list_suspects(evidence: WorkloadEvidence, thresholds: Thresholds) -> Sequence[RankEvidence]:
    """Return the ranks whose last lines are wanted before it is said that they hang."""
    silence = _find_silence(evidence, thresholds)
    return [] if silence is None else silence.ranks[:MOST_NAMED]


def find_hang(evidence: WorkloadEvidence, thresholds: Thresholds) -> Finding | None:
    """Return the hang of a workload; None where there is none, or not yet."""
    silence = _find_silence(evidence, thresholds)
    if silence is None or _is_pause(evidence, silence):
        return None
    rank = silence.ranks[0] if len(silence.ranks) == 1 else None
    proofs = [
        *silence.proofs,
        *_list_last_lines(evidence, silence),
        *_list_activity(evidence, silence),
    ]
    return Finding(
        Kind.HANG,
        CERTAINTY[silence.shape],
        describe_silence(evidence, silence),
        HELP,
        silence.since,
        rank=None if rank is None else rank.rank,
        pod=silence.ranks[0].pod if silence.shape is not Shape.TOGETHER else None,
        node="" if rank is None else rank.node,
        proofs=tuple(proofs),
    )


def _find_silence(evidence: WorkloadEvidence, thresholds: Thresholds) -> Silence | None:
    if (reported := _find_reported(evidence, thresholds)) is not None:
        return reported
    talkers = [each for each in evidence.ranks if each.is_running and each.talks]
    working = [each for each in talkers if not each.is_done]
    if not talkers:
        return _find_silent_start(evidence)
    silent = _list_silent(working, evidence, thresholds)
    ended = _find_ended(evidence, thresholds.get_silence(evidence.gap))
    # A rank whose log is not captured now may well go on: then not all are silent.
    are_all_silent = len(silent) == len(working) and evidence.are_all_captured
    if ended and working and are_all_silent:
        since = min(each.ended_at or evidence.now for each in ended)
        return Silence(Shape.ENDED, ended, working, since)
    if not silent:
        return None
    if len(silent) < len(talkers):
        return _find_alone(silent, talkers, evidence, thresholds)
    return _find_all_silent(silent, evidence, thresholds) if are_all_silent else None


def _find_reported(evidence: WorkloadEvidence, thresholds: Thresholds) -> Silence | None:
    """Return the ranks that the library of collectives says did not come."""
    if not any(each.report is not None for each in evidence.ranks):
        return None
    running = [each for each in evidence.ranks if each.is_running and not each.is_done]
    missed = {
        each.rank
        for each in _list_silent(running, evidence, thresholds)
        if not _is_usual(each, _measure_silence(each, evidence.now))
    }
    reported_ranks = find_reported_ranks(evidence, missed, thresholds.hang_seconds or 0.0)
    if reported_ranks is None:
        return None
    named = {each.rank for each in reported_ranks.ranks}
    others = [each for each in evidence.ranks if each.is_running and each.rank not in named]
    shape = Shape.SEEN_BY_RAS if reported_ranks.report.is_of_ras else Shape.REPORTED
    proof = Proof(f"Rank {reported_ranks.reporter.rank} printed: {reported_ranks.report.line}")
    return Silence(shape, reported_ranks.ranks, others, reported_ranks.report.since, [proof])


def _list_silent(
    ranks: Sequence[RankEvidence], evidence: WorkloadEvidence, thresholds: Thresholds
) -> list[RankEvidence]:
    gap = evidence.gap
    return [
        each
        for each in ranks
        if each.is_captured
        and _measure_silence(each, evidence.now) >= thresholds.get_silence(max(gap, each.gap))
    ]


def _find_alone(
    silent: Sequence[RankEvidence],
    talkers: Sequence[RankEvidence],
    evidence: WorkloadEvidence,
    thresholds: Thresholds,
) -> Silence | None:
    """Return the silence of a few ranks that the others have left behind for as long."""
    numbers = {each.rank for each in silent}
    others = [each for each in talkers if each.rank not in numbers]
    if len(silent) > len(others):
        return None
    missed = _list_missed(silent, evidence, thresholds)
    begin = _find_begin(missed)
    return Silence(Shape.ALONE, missed, others, begin) if missed else None


def _list_missed(
    ranks: Sequence[RankEvidence], evidence: WorkloadEvidence, thresholds: Thresholds
) -> list[RankEvidence]:
    """Return those that were waited for, or left behind, for longer than ever before."""
    gap, missed = evidence.gap, []
    for each in ranks:
        wait = evidence.waits.get(each.rank, 0.0)
        usual = min(LONGEST_SHARE * evidence.longest_waits.get(each.rank, 0.0), PAUSE_SILENCE)
        if wait >= max(thresholds.get_silence(max(gap, each.gap)), usual):
            missed.append(each)
    return missed


def _find_all_silent(
    talkers: Sequence[RankEvidence], evidence: WorkloadEvidence, thresholds: Thresholds
) -> Silence | None:
    behind = _list_behind(talkers)
    if behind:
        missed = _list_missed(behind, evidence, thresholds)
        numbers = {each.rank for each in behind}
        others = [each for each in talkers if each.rank not in numbers]
        begin = _find_begin(missed)
        return Silence(Shape.BEHIND, missed, others, begin) if missed else None
    since = max(each.line_at or 0.0 for each in talkers)
    odd = _find_odd(talkers, max(since, evidence.now - RECENT))
    # The first rank is the one that saves and evaluates while the others wait.
    if odd is not None and odd.rank != 0:
        others = [each for each in talkers if each is not odd]
        return Silence(Shape.ODD, [odd], others, since)
    together = thresholds.get_silence_together(evidence.gap, evidence.longest_gap)
    if evidence.now - since < together:
        return None
    return Silence(Shape.TOGETHER, talkers, (), since)


def _find_silent_start(evidence: WorkloadEvidence) -> Silence | None:
    """Return the silence of a workload that has never told a step; nothing where others print."""
    running = [each for each in evidence.ranks if each.is_running]
    if not running or evidence.started_at is None or not evidence.are_all_captured:
        return None
    since = max([evidence.started_at, *(each.line_at or 0.0 for each in running)])
    if evidence.now - since < STARTUP_SILENCE:
        return None
    # A script that prints nothing is not idle: what it uses says so.
    for each in running:
        cores = each.measure("cpu", evidence.now - RECENT)
        gpu = each.measure("gpu_use", evidence.now - RECENT)
        if cores is None or cores >= IDLE_CORES or (gpu is not None and gpu >= IDLE_GPU):
            return None
    return Silence(Shape.START, running, (), since)


def _find_ended(evidence: WorkloadEvidence, silence: float) -> list[RankEvidence]:
    """Return the ranks whose pods ended a while ago, with nothing in their place."""
    return [
        each
        for each in evidence.ranks
        if not each.is_running
        and not each.is_done
        and each.ended_at is not None
        and evidence.now - each.ended_at >= silence
    ]


def _list_behind(talkers: Sequence[RankEvidence]) -> list[RankEvidence]:
    """Return the ranks that have not printed a step which most others have."""
    read = [each for each in talkers if each.is_read and each.step is not None]
    if len(read) < len(talkers):
        return []
    furthest = max(each.step or 0 for each in read)
    behind = [each for each in read if (each.step or 0) + each.stride <= furthest]
    return behind if 0 < len(behind) <= len(read) // 2 else []


def _find_odd(talkers: Sequence[RankEvidence], since: float) -> RankEvidence | None:
    """Return the one rank that computes while the others wait, or waits while they spin."""
    if len(talkers) < FEWEST_TO_COMPARE:
        return None
    for metric, idle, busy in (("gpu_use", IDLE_GPU, BUSY_GPU), ("cpu", IDLE_CORES, BUSY_CORES)):
        values = [each.measure(metric, since) for each in talkers]
        low = [each for each, value in zip(talkers, values, strict=True) if _is_below(value, idle)]
        high = [each for each, value in zip(talkers, values, strict=True) if _is_above(value, busy)]
        if len(low) + len(high) == len(talkers) and 1 in (len(low), len(high)):
            return low[0] if len(low) == 1 else high[0]
    return None


def _is_below(value: float | None, bound: float) -> bool:
    return value is not None and value < bound


def _is_above(value: float | None, bound: float) -> bool:
    return value is not None and value > bound


def _is_pause(evidence: WorkloadEvidence, silence: Silence) -> bool:
    """Tell whether the silence is one that trainings have: somebody saves, or evaluates."""
    lasted = evidence.now - silence.since
    if silence.shape in (Shape.REPORTED, Shape.ENDED, Shape.TOGETHER, Shape.START):
        return False
    if lasted < PAUSE_SILENCE and any(
        tells_pause(evidence.last_lines.get(each.rank, "")) for each in silence.ranks
    ):
        return True
    if silence.shape is Shape.ODD and _is_usual(silence.ranks[0], lasted):
        return True
    first = silence.ranks[0]
    written = first.measure("disk_written", evidence.now - RECENT) if first.rank == 0 else None
    return written is not None and written >= WRITING and lasted < PAUSE_SILENCE


def _is_usual(rank: RankEvidence, lasted: float) -> bool:
    """Tell whether a silence is about as long as one from which the rank went on before."""
    return lasted < min(LONGEST_SHARE * rank.longest_gap, PAUSE_SILENCE)


def _measure_silence(rank: RankEvidence, now: float) -> float:
    return now - max(rank.line_at or 0.0, rank.started_at or 0.0)


def _find_begin(ranks: Sequence[RankEvidence]) -> float:
    """Return when the first of these ranks fell silent; 0 of none."""
    begins = [max(each.line_at or 0.0, each.started_at or 0.0) for each in ranks]
    return min(begins, default=0.0)


def _list_last_lines(evidence: WorkloadEvidence, silence: Silence) -> list[Proof]:
    return [
        Proof(f"Rank {each.rank} printed last: {line}")
        for each in silence.ranks[:MOST_NAMED]
        if (line := evidence.last_lines.get(each.rank, ""))
    ]


def _list_activity(evidence: WorkloadEvidence, silence: Silence) -> list[Proof]:
    """Describe what devices and processors do meanwhile, of the first rank that hangs and the
    others.
    """
    proofs = []
    recent = max(silence.since, evidence.now - RECENT)
    first = silence.ranks[0]
    for name, ranks in ((f"rank {first.rank}", [first]), ("the others", silence.others)):
        if name == "the others" and not ranks:
            continue
        if spinning := _describe_spinning(ranks, silence.since, recent):
            proofs.append(Proof(f"{name.capitalize()}: {spinning}", "gpu_power"))
        cores = [value for each in ranks if (value := each.measure("cpu", recent)) is not None]
        if cores and (silence.shape is not Shape.TOGETHER):
            amount = statistics.median(cores)
            proofs.append(Proof(f"{name.capitalize()}: {amount:.2f} cores in use.", "cpu"))
    return proofs


def _describe_spinning(ranks: Sequence[RankEvidence], since: float, recent: float) -> str:
    """Say that devices only wait: all of their time in use, at a fraction of their power."""
    use = [value for each in ranks if (value := each.measure("gpu_use", recent)) is not None]
    power = [value for each in ranks if (value := each.measure("gpu_power", recent)) is not None]
    before = [
        value
        for each in ranks
        for at, value in each.figures.get("gpu_power", ())
        if at < since - RECENT / 2
    ]
    if not use or not power:
        return ""
    text = f"GPU {statistics.median(use):.0f} % at {statistics.median(power):.0f} W"
    is_low = bool(before) and statistics.median(power) < LOW_POWER * statistics.median(before)
    spins = is_low and statistics.median(use) > BUSY_GPU
    return f"{text}: it spins in a collective." if spins else f"{text}."
