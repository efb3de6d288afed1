"""Faults of nodes' devices that were found while a workload ran. Pure."""

from dataclasses import dataclass

FAULT_HELP = (
    "Run it again without that node, and tell an administrator of the node: a device of it is "
    "faulty."
)


@dataclass(frozen=True, slots=True)
class NodeFault:
    """A fault of a node's device, in words, and the rank below which it is, where that is known."""

    node: str
    rank: int | None
    text: str
