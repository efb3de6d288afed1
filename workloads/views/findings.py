"""Open findings of the radar on a workload's page: blocks with links to what shows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from clusters.metrics.catalogue import METRICS_BY_NAME
from clusters.models import Cluster, Node
from projects.models import User
from workloads import queries
from workloads.journal.radar_findings import REASONS
from workloads.models import Event, Workload
from workloads.queries.findings import FindingView, ProofView
from workloads.radar import TITLES, Kind

MOST_SHOWN = 6
"""Findings of a workload that are shown, the gravest ones."""
_OF_PROGRESS = {
    Kind.LOSS: "Show the loss",
    Kind.STRAGGLER: "Compare the ranks",
    Kind.CHECKPOINTS: "Show its progress",
}
"""Kinds that the tab of the progress shows more of, with the words of the link."""
_STOPPED_FOR = frozenset({Kind.HANG, Kind.LOSS, Kind.IDLE, Kind.NODE})
"""Kinds against which a stop helps."""
_TITLES_BY_REASON = {REASONS[kind]: title for kind, title in TITLES.items()}


@dataclass(frozen=True, slots=True)
class FindingLink:
    """A link to what says more of a finding."""

    words: str
    href: str


@dataclass(frozen=True, slots=True)
class ProofBlock:
    """One piece of evidence, with the chart that shows it; "" where none does."""

    text: str
    chart: str
    chart_title: str


@dataclass(frozen=True, slots=True)
class FindingBlock:
    """An open finding as a page shows it."""

    finding: FindingView
    proofs: Sequence[ProofBlock]
    links: Sequence[FindingLink]

    @property
    def suggests_stop(self) -> bool:
        """Whether it is worth while to stop the workload."""
        return self.finding.kind in _STOPPED_FOR


@dataclass(frozen=True, slots=True)
class FindingBlocks:
    """The gravest open findings of a workload; `more` of them are in its history only."""

    shown: Sequence[FindingBlock] = ()
    more: int = 0


def build_finding_blocks(workload: Workload, user: User) -> FindingBlocks:
    """Build the blocks of a workload's open findings. Two queries, none where it does not run."""
    findings = queries.load_open_findings(workload)
    first_findings = findings[:MOST_SHOWN]
    nodes = _find_visible_nodes(workload, {each.node for each in first_findings} - {""}, user)
    blocks = [
        FindingBlock(
            each,
            [_build_proof(workload, each, proof) for proof in each.proofs],
            _list_links(workload, each, nodes),
        )
        for each in first_findings
    ]
    return FindingBlocks(blocks, len(findings) - len(first_findings))


def get_event_heading(event: Event) -> str:
    """Return what an entry of the history is headed with: its reason, of findings as a title."""
    if event.kind == Event.Kind.FINDING:
        return _TITLES_BY_REASON.get(event.reason, event.reason)
    return event.reason


def _find_visible_nodes(workload: Workload, names: set[str], user: User) -> frozenset[str]:
    """Return those of the nodes that have a page which the user may see. One query at most."""
    if not names:
        return frozenset()
    visible = Cluster.objects.visible_to(user)
    nodes = Node.objects.filter(cluster=workload.cluster_id, cluster__in=visible, name__in=names)
    return frozenset(nodes.values_list("name", flat=True))


def _build_proof(workload: Workload, finding: FindingView, proof: ProofView) -> ProofBlock:
    metric = METRICS_BY_NAME.get(proof.metric)
    if metric is None:
        return ProofBlock(proof.text, "", "")
    address = _build_metrics_address(workload, finding)
    return ProofBlock(proof.text, f"{address}#metric-{metric.name}", metric.title)


def _build_metrics_address(workload: Workload, finding: FindingView) -> str:
    """Return the address of the charts; the line of the finding's pod stands out in them."""
    address = reverse("workload-tab", args=[workload.pk, "metrics"])
    return f"{address}?{urlencode({'pod': finding.pod_id})}" if finding.pod_id else address


def _list_links(
    workload: Workload, finding: FindingView, nodes: frozenset[str]
) -> list[FindingLink]:
    links = []
    if finding.pod_id is not None:
        address = reverse("workload-tab", args=[workload.pk, "logs"])
        whose = finding.pod_name if finding.rank is None else f"rank {finding.rank}"
        query = urlencode({"pod": finding.pod_id})
        links.append(FindingLink(f"Log of {whose}", f"{address}?{query}"))
    if finding.kind in _OF_PROGRESS:
        address = reverse("workload-tab", args=[workload.pk, "progress"])
        links.append(FindingLink(_OF_PROGRESS[Kind(finding.kind)], address))
    if finding.node in nodes:
        address = reverse("cluster-node", args=[workload.cluster_id, finding.node])
        links.append(FindingLink(f"Node {finding.node}", address))
    return links
