"""Pods that are lost with their nodes: which nodes, since when, and how many pods."""

from collections.abc import Mapping, Sequence

from workloads.diagnosis.node_capacity import NodeCapacity, NodeLoss
from workloads.diagnosis.result import Diagnosis, build_sentence

MOST_NAMED = 3
"""Lost nodes that a sentence names."""
HELP = (
    "Its pods go on, or are made anew, once the node is back. If it does not come back, ask the "
    "administrator of the cluster to remove it: they are then made anew elsewhere, as soon as "
    "there is room."
)


def diagnose_lost_nodes(
    lost_pods: Mapping[str, int], nodes: Sequence[NodeCapacity]
) -> Diagnosis | None:
    """Return which nodes are lost with how many pods of it; None when none is.

    `lost_pods` has the unended pods by the name of their node.
    """
    losses = {node.name: node.loss for node in nodes if node.loss is not None}
    sentences = [
        _describe_loss(name, losses[name], lost_pods[name])
        for name in sorted(lost_pods, key=lambda name: (-lost_pods[name], name))
        if name in losses and lost_pods[name]
    ]
    if not sentences:
        return None
    left_out = len(sentences) - MOST_NAMED
    named = sentences[:MOST_NAMED]
    if left_out > 0:
        named.append(f"So it is with {left_out:,} other node{'s' * (left_out > 1)}.")
    return Diagnosis(" ".join(named), HELP)


def _describe_loss(name: str, loss: NodeLoss, pods: int) -> str:
    state = "does not answer" if loss.is_silent else "is not ready"
    since = f" since {loss.since:%-d %b, %H:%M} UTC" if loss.since else ""
    consequence = "1 pod of it is lost" if pods == 1 else f"{pods:,} pods of it are lost"
    return build_sentence(f"Node {name} {state}{since}; {consequence}")
