"""Finds nodes with faulty devices, and nodes that are not ready, below running ranks. Pure."""

from workloads.quantities import format_count, format_ranks
from workloads.radar.evidence import RankEvidence, WorkloadEvidence
from workloads.radar.findings import Certainty, Finding, Kind, Proof
from workloads.xids import FATAL_XIDS

MOST_FOUND = 5
SAME_MOMENT = 20.0
OTHERS_SECONDS = 60.0
"""Seconds after the beginning of a rank in which an Xid may be that of the pod before it."""
GROWTH_SECONDS = 330.0
"""Likewise of counters, whose growth is that of five minutes."""
HELP = "Run the workload again without that node, and tell an administrator of the node."


def find_faulty_nodes(evidence: WorkloadEvidence) -> list[Finding]:
    """Return the faulty nodes of a workload, by their names."""
    ranks_by_node: dict[str, list[RankEvidence]] = {}
    for each in evidence.ranks:
        if each.node:
            ranks_by_node.setdefault(each.node, []).append(each)
    findings = []
    for name in sorted(ranks_by_node):
        proofs = _list_proofs(evidence, name, ranks_by_node[name])
        if proofs:
            findings.append(_build_finding(evidence, name, ranks_by_node[name], proofs))
    return findings[:MOST_FOUND]


def _list_proofs(evidence: WorkloadEvidence, name: str, ranks: list[RankEvidence]) -> list[Proof]:
    proofs = []
    node = evidence.nodes.get(name)
    if node is not None and not node.is_ready and any(each.is_running for each in ranks):
        proofs.append(Proof(f"It is not ready. {node.trouble}".strip()))
    for each in ranks:
        xid = _find_new_xid(each)
        if xid is not None:
            proofs.append(
                Proof(f"Xid {xid} ({FATAL_XIDS[xid]}) on the GPU of rank {each.rank}.", "xid")
            )
        for metric, words in (
            ("ecc_errors", "memory errors that could not be corrected"),
            ("nvlink_errors", "errors of NVLink"),
        ):
            count = _count_errors(each, metric)
            if count:
                proofs.append(Proof(f"{count} {words} on rank {each.rank}.", metric))
    return proofs


def _find_new_xid(rank: RankEvidence) -> int | None:
    """Return a fatal Xid that came while the rank ran: an exporter keeps the last one for ever.

    A device without any has no figure of it.
    """
    points = rank.figures.get("xid", ())
    if not points:
        return None
    begin = min(series[0][0] for series in rank.figures.values() if series)
    first_at, first = points[0]
    is_new = first_at > begin + SAME_MOMENT and first_at > (rank.started_at or 0.0) + OTHERS_SECONDS
    values = [round(value) for _, value in points]
    new_values = values if is_new else [value for value in values if value != round(first)]
    return next((value for value in new_values if value in FATAL_XIDS), None)


def _count_errors(rank: RankEvidence, metric: str) -> int:
    """Return the most errors that a device counted while the rank had it."""
    since = (rank.started_at or 0.0) + GROWTH_SECONDS
    return round(
        max((value for at, value in rank.figures.get(metric, ()) if at >= since), default=0)
    )


def _build_finding(
    evidence: WorkloadEvidence, name: str, ranks: list[RankEvidence], proofs: list[Proof]
) -> Finding:
    node = evidence.nodes.get(name)
    others = node.failed_elsewhere if node is not None else 0
    if others:
        failed = format_count(others, "other workload")
        proofs.append(Proof(f"{failed} of the project failed there in the last 7 days."))
    rank_words = format_ranks([each.rank for each in ranks])
    verb = "runs" if len(ranks) == 1 else "run"
    text = proofs[0].text.removesuffix(".")
    reason = f"{text[0].lower()}{text[1:]}" if text.startswith("It ") else text
    return Finding(
        Kind.NODE,
        Certainty.CERTAIN,
        f"Node {name}, where {rank_words} {verb}, is faulty: {reason}.",
        HELP,
        evidence.now,
        subject=name,
        rank=ranks[0].rank if len(ranks) == 1 else None,
        pod=ranks[0].pod,
        node=name,
        proofs=tuple(proofs),
        is_immediate=True,
    )
