"""Fair shares: how much of the cluster each queue may claim, given what all of them request.

Each level is divided on its own, for each resource (KAI
`pkg/scheduler/plugins/proportion/resource_division`); unlike there the amounts are exact, not
rounded to whole devices.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from scheduling.amounts import divide_exactly
from scheduling.queues import Division, Queues, Shares
from scheduling.state import CPU, GPU, MEMORY, Amounts, Bound, Number

RESOURCES = (GPU, CPU, MEMORY)
MAX_DEPTH = 16
"""How many levels of queues are divided; deeper ones get nothing."""

UNBOUNDED = Bound(None, None, 1)


@dataclass(frozen=True, slots=True)
class Claim:
    """What one queue claims of a resource; a quota of None is all there is."""

    quota: Number | None
    requested: Number
    """What it requests, as far as its limit allows it."""
    weight: Number
    priority: int


def compute_fair_shares(queues: Queues, capacity: Amounts) -> Shares:
    """Return the fair share of every queue, from the roots down.

    Resources of which no queue has a quota are left out: nobody asks for their shares.
    """
    shares: dict[str, dict[str, Number]] = {}
    for resource in queues.shared_resources.intersection(RESOURCES):
        _divide_level(queues, "", resource, capacity.get(resource, 0), shares, MAX_DEPTH)
    return shares


def divide_fairly(total: Number, claims: Sequence[Claim]) -> Sequence[Number]:
    """Return the share of each claim.

    First each gets its quota as far as it requests that; the rest goes by priority, and by weight
    among equals, up to what each requests.
    """
    shares: list[Number] = [
        min(total if claim.quota is None else claim.quota, claim.requested) for claim in claims
    ]
    rest = total - sum(shares)
    for priority in sorted({claim.priority for claim in claims}, reverse=True):
        if rest <= 0:
            break
        level = [index for index, claim in enumerate(claims) if claim.priority == priority]
        rest = _fill_by_weight(rest, claims, level, shares)
    return shares


def _fill_by_weight(
    rest: Number, claims: Sequence[Claim], level: Sequence[int], shares: list[Number]
) -> Number:
    """Raise the shares of one level together until all are served or nothing is left."""
    while rest > 0:
        hungry = [
            index
            for index in level
            if shares[index] < claims[index].requested and claims[index].weight > 0
        ]
        weights = sum(claims[index].weight for index in hungry)
        if not weights:
            return rest
        # Serve first those whose request ends earliest: what they leave is divided again.
        unit = divide_exactly(rest, weights)
        served = [
            index
            for index in hungry
            if claims[index].requested - shares[index] <= unit * claims[index].weight
        ]
        for index in served or hungry:
            amount = (
                claims[index].requested - shares[index] if served else unit * claims[index].weight
            )
            shares[index] += amount
            rest -= amount
        if not served:
            return 0
    return rest


def _divide_level(
    queues: Queues,
    parent: str,
    resource: str,
    total: Number,
    shares: dict[str, dict[str, Number]],
    depth: int,
) -> None:
    names = queues.list_children(parent)
    if not names or not depth:
        return
    requests = [queues.usage(name).requested.get(resource, 0) for name in names]
    division = queues.divisions.get((parent, resource))
    if division is None or division.total != total or division.requests != requests:
        claims = [
            _build_claim(queues, name, resource, requested)
            for name, requested in zip(names, requests, strict=True)
        ]
        division = Division(total, requests, divide_fairly(total, claims))
        queues.divisions[parent, resource] = division
    for name, share in zip(names, division.shares, strict=True):
        shares.setdefault(name, {})[resource] = share
        if queues.list_children(name):
            _divide_level(queues, name, resource, share, shares, depth - 1)


def _build_claim(queues: Queues, name: str, resource: str, requested: Number) -> Claim:
    queue = queues.find_queue(name)
    assert queue is not None
    bound = queue.bounds.get(resource, UNBOUNDED)
    if bound.limit is not None:
        requested = min(requested, bound.limit)
    return Claim(bound.quota, requested, bound.weight, queue.priority)
