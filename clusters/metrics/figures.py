"""What one sweep of a cluster's sources found."""

from dataclasses import dataclass, field

Name = tuple[str, str]
"""Namespace and name of a pod."""
Figures = dict[int, float]
"""Values by the codes of their metrics."""


@dataclass(slots=True)
class Sweep:
    """Figures by pod and by node. What no source gave is missing: a gap is a gap."""

    pods: dict[Name, Figures] = field(default_factory=dict)
    nodes: dict[str, Figures] = field(default_factory=dict)
