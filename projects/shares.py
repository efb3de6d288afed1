"""What a project, or several together, may have of a cluster: GPUs in devices, CPU in cores, memory
in bytes. Pure values.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

MEGABYTE = 10**6
"""Bytes; the unit of memory in a Queue and in the REST API."""


@dataclass(frozen=True, slots=True)
class Share:
    """Of one resource: what is its own, what it may hold at most, and its part of what others leave
    idle. None is without limit.
    """

    quota: Decimal | None = None
    limit: Decimal | None = None
    weight: Decimal = Decimal(1)


@dataclass(frozen=True, slots=True)
class Shares:
    """Of each resource, a share."""

    gpu: Share
    cpu: Share
    memory: Share


def derive_parent_shares(own: Shares, members: Iterable[Shares]) -> Shares:
    """What is above several: its own, and their sum where it has no quota of its own."""
    total = sum_shares(members)
    return Shares(
        *(
            _default_quota(mine, sum_)
            for mine, sum_ in (
                (own.gpu, total.gpu),
                (own.cpu, total.cpu),
                (own.memory, total.memory),
            )
        )
    )


def _default_quota(own: Share, sum_: Share) -> Share:
    return own if own.quota is not None else replace(own, quota=sum_.quota)


def sum_shares(shares: Iterable[Shares]) -> Shares:
    """What they have in sum. It sets no limit of its own, for theirs hold."""
    each = list(shares)
    return Shares(
        gpu=Share(_sum_quotas(one.gpu.quota for one in each)),
        cpu=Share(_sum_quotas(one.cpu.quota for one in each)),
        memory=Share(_sum_quotas(one.memory.quota for one in each)),
    )


def to_json_number(amount: Decimal | None, unlimited: int | None = -1) -> int | float | None:
    """An amount as JSON has it: 2, 0.5; `unlimited` for one without limit."""
    if amount is None:
        return unlimited
    return int(amount) if amount == int(amount) else float(amount)


def _sum_quotas(quotas: Iterable[Decimal | None]) -> Decimal | None:
    total = Decimal(0)
    for quota in quotas:
        if quota is None:
            return None
        total += quota
    return total
