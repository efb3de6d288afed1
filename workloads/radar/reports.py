"""Finds ranks that the library of collectives itself says did not come. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from workloads.radar.evidence import LaggingReport, RankEvidence, WorkloadEvidence

REPEATED = 30.0
"""Seconds over which RAS says the same of a training that does not go on."""
LONGEST_AGE = 900.0
"""Seconds after which a report says nothing any more where nobody prints steps."""


@dataclass(frozen=True, slots=True)
class ReportedRanks:
    """The ranks that did not come, the one whose log says so, and what it printed."""

    ranks: Sequence[RankEvidence]
    reporter: RankEvidence
    report: LaggingReport


def find_reported_ranks(
    evidence: WorkloadEvidence, missed: Collection[int], shortest: float
) -> ReportedRanks | None:
    """Return the ranks that the newest report names; None where any rank went on since.

    RAS counts only for ranks that are `missed`: silent for longer than is usual. What the program
    itself was told counts after `shortest` seconds.
    """
    candidates = [
        each
        for reporter in evidence.ranks
        if (each := _read_report(reporter, evidence)) is not None
        and _is_believed(each, evidence, missed, shortest)
    ]
    return max(candidates, key=lambda each: each.report.at, default=None)


def _read_report(reporter: RankEvidence, evidence: WorkloadEvidence) -> ReportedRanks | None:
    report = reporter.report
    if report is None or not reporter.is_running:
        return None
    named = set(report.ranks)
    ranks = [each for each in evidence.ranks if each.rank in named and not each.is_done]
    others = [each for each in evidence.ranks if each.is_running and each.rank not in named]
    return ReportedRanks(ranks, reporter, report) if ranks and others else None


def _is_believed(
    reported_ranks: ReportedRanks,
    evidence: WorkloadEvidence,
    missed: Collection[int],
    shortest: float,
) -> bool:
    """Tell whether a report is of now, and sure enough."""
    report = reported_ranks.report
    starts = [each.started_at or 0.0 for each in (*reported_ranks.ranks, reported_ranks.reporter)]
    steps = [max(each.step_times.values(), default=0.0) for each in evidence.ranks]
    if report.at < max(starts) or report.at < max(steps):
        return False
    if not all(each.is_captured for each in (*reported_ranks.ranks, reported_ranks.reporter)):
        # They may have gone on since.
        return False
    if not any(steps) and evidence.now - report.at > LONGEST_AGE:
        return False
    if report.is_of_ras:
        is_repeated = report.at - report.since >= REPEATED
        return is_repeated and all(each.rank in missed for each in reported_ranks.ranks)
    has_spoken = any((each.line_at or 0.0) > report.at for each in reported_ranks.ranks)
    return not has_spoken and evidence.now - report.since >= shortest
