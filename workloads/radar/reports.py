"""Finds ranks that the library of collectives itself says did not come. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from workloads.radar.evidence import LaggingReport, RankEvidence, WorkloadEvidence

REPEATED = 30.0
"""Seconds over which a report is the same that also a training which goes on prints."""
LONGEST_AGE = 900.0
"""Seconds after which a report of a training that prints no steps says nothing any more."""


@dataclass(frozen=True, slots=True)
class ReportedRanks:
    """The ranks that did not come, the one whose log says so, and what it printed."""

    ranks: Sequence[RankEvidence]
    reporter: RankEvidence
    report: LaggingReport


def find_reported_ranks(evidence: WorkloadEvidence) -> ReportedRanks | None:
    """Return the ranks that the newest report names; None where any rank went on since."""
    reporters = [each for each in evidence.ranks if each.is_running and each.report is not None]
    if not reporters:
        return None
    reporter = max(reporters, key=lambda each: each.report.at if each.report else 0.0)
    report = reporter.report
    assert report is not None
    went_on = any(max(each.step_times.values(), default=0.0) > report.at for each in evidence.ranks)
    is_confirmed = not report.must_repeat or report.at - report.since >= REPEATED
    if went_on or not is_confirmed or evidence.now - report.at > LONGEST_AGE:
        return None
    named = set(report.ranks)
    ranks = [each for each in evidence.ranks if each.rank in named and not each.is_done]
    if not ranks or len(ranks) == len(evidence.ranks):
        return None
    return ReportedRanks(ranks, reporter, report)
