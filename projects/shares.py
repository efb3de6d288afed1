"""Shares of a cluster: GPUs in devices, CPU in cores, memory in bytes. Pure values."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

MEGABYTE = 10**6
"""Bytes; the unit of memory in a Queue and in the REST API."""


@dataclass(frozen=True, slots=True)
class Share:
    """The share of one resource: quota, limit, and weight over quota. None is unlimited.

    The weight is the part of idle resources that it gets against others.
    """

    quota: Decimal | None = None
    limit: Decimal | None = None
    weight: Decimal = Decimal(1)


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of each resource."""

    gpu: Share
    cpu: Share
    memory: Share


def derive_parent_shares(own: Shares, members: Iterable[Shares]) -> Shares:
    """Return a parent's shares: its own, and its members' sum where it has no quota."""
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
    """Return the sum of the quotas. It has no limits: those of the members hold."""
    members = list(shares)
    return Shares(
        gpu=Share(_sum_quotas(member.gpu.quota for member in members)),
        cpu=Share(_sum_quotas(member.cpu.quota for member in members)),
        memory=Share(_sum_quotas(member.memory.quota for member in members)),
    )


def to_json_number(amount: Decimal | None, unlimited: int | None = -1) -> int | float | None:
    """Return an amount as JSON has it: 2, 0.5; `unlimited` for None."""
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
