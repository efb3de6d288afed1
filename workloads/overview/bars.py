"""A quota, a limit and an allocation as a bar, in thousandths of its width. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

BAR_WIDTH = 1000
"""What the whole bar measures."""
T = TypeVar("T")
_ZERO = Decimal(0)
_SPARE = Decimal("1.08")
"""How much wider than its last mark a bar without a limit is."""


@dataclass(frozen=True, slots=True)
class Bar:
    """`within` is allocated within the quota, `over` beyond it.

    Marks are None where there is no such bound. `words` describe all of it.
    """

    allocated: Decimal
    quota: Decimal | None
    limit: Decimal | None
    within: int
    over: int
    quota_at: int | None
    limit_at: int | None
    words: str
    fixed_over: int = 0
    """How much of `over` nobody may take, for it is not preemptible."""
    over_words: str = ""
    """What is over the quota, and what of it others may take; "" where nothing is."""

    @property
    def is_over(self) -> bool:
        return self.over > 0

    @property
    def percent(self) -> int | None:
        """The allocation in percent of the quota; None without a quota."""
        return round(100 * self.allocated / self.quota) if self.quota else None


def build_bar(
    allocated: Decimal,
    quota: Decimal | None,
    limit: Decimal | None,
    *,
    unit: str = "GPUs",
    fixed: Decimal | None = None,
) -> Bar:
    """Build a bar that is as wide as its limit.

    Without a limit it is a little wider than its last mark. `fixed` is allocated to what is not
    preemptible; None where that is not known.
    """
    bounds = [each for each in (quota, limit) if each is not None]
    widest = max([allocated, *bounds, _ZERO])
    if limit is None:
        widest *= _SPARE
    scale = BAR_WIDTH / widest if widest else _ZERO
    within_quota = allocated if quota is None else min(allocated, quota)
    within = _scale_position(within_quota, scale)
    over_amount = allocated - within_quota
    takeable = over_amount if fixed is None else min(over_amount, allocated - fixed)
    return Bar(
        allocated=allocated,
        quota=quota,
        limit=limit,
        within=within,
        over=max(_scale_position(allocated, scale) - within, 0),
        quota_at=None if quota is None else _scale_position(quota, scale),
        limit_at=None if limit is None else _scale_position(limit, scale),
        words=_describe_bar(allocated, quota, limit, unit),
        fixed_over=_scale_position(over_amount - takeable, scale),
        over_words="" if fixed is None else _describe_over(over_amount, takeable, unit),
    )


def _describe_over(over: Decimal, takeable: Decimal, unit: str) -> str:
    if over <= 0:
        return ""
    amount = f"{_format_amount(over)} {unit.removesuffix('s') if over == 1 else unit}"
    if takeable <= 0:
        return f"{amount} over the quota, and not preemptible: nobody can take it back."
    pronoun = "it" if over == 1 else "them"
    if takeable == over:
        return f"{amount} over the quota: projects that are below theirs may take {pronoun} back."
    return (
        f"{amount} over the quota, {_format_amount(takeable)} of {pronoun} preemptible: projects "
        "that are below theirs may take that back."
    )


def split_bar(counts: Mapping[T, int]) -> Iterator[tuple[T, int, int, int]]:
    """Yield each key with its count, and where its part of one bar begins and how wide it is.

    Small counts stay visible.
    """
    total, at = sum(counts.values()), 0
    shares = {key: max(4, BAR_WIDTH * count // total) for key, count in counts.items() if count}
    spare = BAR_WIDTH - sum(shares.values())
    for key, wide in shares.items():
        # The widest part absorbs the rounding error, so that the widths sum to BAR_WIDTH.
        wide += spare if key == max(shares, key=lambda each: shares[each]) else 0
        yield key, counts[key], at, wide
        at += wide


def _scale_position(amount: Decimal, scale: Decimal) -> int:
    return max(0, min(BAR_WIDTH, round(amount * scale)))


def _describe_bar(
    allocated: Decimal, quota: Decimal | None, limit: Decimal | None, unit: str
) -> str:
    text = f"{_format_amount(allocated)} {unit} allocated"
    if quota is None:
        text += ", without a quota"
    elif allocated > quota:
        text += (
            f", {_format_amount(allocated - quota)} more than the quota of {_format_amount(quota)}"
        )
    else:
        text += f" of a quota of {_format_amount(quota)}"
    return f"{text}, at most {_format_amount(limit)}" if limit is not None else text


def _format_amount(amount: Decimal) -> str:
    exact = amount.quantize(Decimal("0.001"))
    return f"{exact.normalize():f}" if exact else "0"
