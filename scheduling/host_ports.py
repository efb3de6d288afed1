"""Ports of a node: amounts like others, of which every node has the same, in words of their own.

A pod that takes a port on every address of its node takes the whole of it. One that takes it on one
address takes the whole of that address, and a small part of the port: so pods with different
addresses stand beside each other, and beside none that takes all of them.
"""

from collections.abc import Iterable, Sequence

from scheduling.state import Number

WHOLE_PORT = 1 << 32
"""What a node has of each port, and of each address of a port."""

ADDRESS_PART = 1
"""What a pod takes of a port that it takes on one address alone."""

PORT_PREFIX = "host port "
"""With blanks, which no name of a resource has."""

MAX_NAMED_PORTS = 5
"""Ports that one refusal names: a pod may take thousands."""

NO_FREE_PORTS = "node(s) didn't have free ports for the requested pod ports"
"""The words of Kubernetes' scheduler and kubelets (`plugins/nodeports`)."""


class FreeAmounts(dict[str, Number]):
    """What is free on a node: nothing of what is not in it, and of a port all there is.

    So a node has each port once and names none that nobody took: there are thousands of either.
    """

    __slots__ = ()

    def __missing__(self, name: str) -> Number:
        return WHOLE_PORT if is_host_port(name) else 0


def is_host_port(name: str) -> bool:
    """Return whether an amount of this name is of a port, and not of a resource."""
    return name.startswith(PORT_PREFIX)


def select_named(short: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Return what is short, each a name and its words, of ports the first few alone."""
    ports = [each for each in short if is_host_port(each[0])][:MAX_NAMED_PORTS]
    return [each for each in short if not is_host_port(each[0])] + ports


def compute_port_amounts(ports: Iterable[tuple[str, str, int]]) -> dict[str, Number]:
    """Return the amounts of ports, each given as protocol, address and number.

    An empty address stands for all addresses.
    """
    amounts: dict[str, Number] = {}
    for protocol, address, number in sorted(set(ports)):
        port = f"{PORT_PREFIX}{protocol}/{number}"
        if not address:
            amounts[port] = WHOLE_PORT
        else:
            amounts[port] = min(amounts.get(port, 0) + ADDRESS_PART, WHOLE_PORT)
            amounts[f"{port}/{address}"] = WHOLE_PORT
    return amounts


def describe_port_shortage(name: str, wanted: Number, node_count: int, gang_suffix: str) -> str:
    """Describe a port that is short: which one, and for several pods whether it can ever be free.

    `wanted` is what pods that start together want of it, `node_count` how many nodes accept such
    pods, and `gang_suffix` says for whom it is.
    """
    label = name.removeprefix(PORT_PREFIX)
    pods = -(-wanted // WHOLE_PORT)
    if pods < 2:
        return f"{NO_FREE_PORTS} ({label})"
    never = ""
    if pods > node_count:
        nodes = "node takes" if node_count == 1 else "nodes take"
        never = f", and {node_count} {nodes} such pods: this can never fit"
    return f"{NO_FREE_PORTS} ({label} on {pods} nodes{gang_suffix}{never})"
