"""A quota, a limit and what is held as a picture: where the parts of a bar begin and end, in
thousandths of its width. Pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

BAR_WIDTH = 1000
"""What the whole bar measures."""
T = TypeVar("T")
_ZERO = Decimal(0)
_SPARE = Decimal("1.08")
"""How much wider than its last mark a bar is where nothing limits it."""


@dataclass(frozen=True, slots=True)
class Bar:
    """`within` is held of the quota, `over` beyond it; marks are None where there is no such bound.
    `words` say all of it.
    """

    allocated: Decimal
    quota: Decimal | None
    limit: Decimal | None
    within: int
    over: int
    quota_at: int | None
    limit_at: int | None
    words: str

    @property
    def is_over(self) -> bool:
        return self.over > 0

    @property
    def percent(self) -> int | None:
        """What is held of the quota; None where that says nothing."""
        return round(100 * self.allocated / self.quota) if self.quota else None


def build_bar(
    allocated: Decimal, quota: Decimal | None, limit: Decimal | None, *, unit: str = "GPUs"
) -> Bar:
    """The bar is as wide as its limit, or a little more than its last mark where nothing limits
    it.
    """
    bounds = [each for each in (quota, limit) if each is not None]
    most = max([allocated, *bounds, _ZERO])
    if limit is None:
        most *= _SPARE
    scale = BAR_WIDTH / most if most else _ZERO
    own = allocated if quota is None else min(allocated, quota)
    within = _scale_position(own, scale)
    return Bar(
        allocated=allocated,
        quota=quota,
        limit=limit,
        within=within,
        over=max(_scale_position(allocated, scale) - within, 0),
        quota_at=None if quota is None else _scale_position(quota, scale),
        limit_at=None if limit is None else _scale_position(limit, scale),
        words=_describe_bar(allocated, quota, limit, unit),
    )


def split_bar(counts: Mapping[T, int]) -> Iterator[tuple[T, int, int, int]]:
    """Each with its count, and where its part of one bar begins and how wide it is. What there is
    little of is seen as well.
    """
    total, at = sum(counts.values()), 0
    shares = {key: max(4, BAR_WIDTH * count // total) for key, count in counts.items() if count}
    spare = BAR_WIDTH - sum(shares.values())
    for key, wide in shares.items():
        # The widest one gives, or takes, what rounding left.
        wide += spare if key == max(shares, key=lambda each: shares[each]) else 0
        yield key, counts[key], at, wide
        at += wide


def _scale_position(amount: Decimal, scale: Decimal) -> int:
    return max(0, min(BAR_WIDTH, round(amount * scale)))


def _describe_bar(
    allocated: Decimal, quota: Decimal | None, limit: Decimal | None, unit: str
) -> str:
    told = f"{_format_amount(allocated)} {unit} allocated"
    if quota is None:
        told += ", without a quota"
    elif allocated > quota:
        told += (
            f", {_format_amount(allocated - quota)} more than the quota of {_format_amount(quota)}"
        )
    else:
        told += f" of a quota of {_format_amount(quota)}"
    return f"{told}, at most {_format_amount(limit)}" if limit is not None else told


def _format_amount(amount: Decimal) -> str:
    exact = amount.quantize(Decimal("0.001"))
    return f"{exact.normalize():f}" if exact else "0"
