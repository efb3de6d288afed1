"""Quotas as pictures: where the parts of a bar are, and the words for who does not see it."""

from decimal import Decimal

import pytest

from workloads.overview.bars import BAR_WIDTH, build_bar, split_bar


def test_what_is_held_of_the_quota_is_told_apart_from_what_is_over_it() -> None:
    found = build_bar(Decimal(12), Decimal(8), Decimal(16))
    assert (found.within, found.over, found.quota_at, found.limit_at) == (500, 250, 500, 1000)
    assert found.words == "12 GPUs allocated, 4 more than the quota of 8, at most 16"


def test_within_the_quota_nothing_is_over_it() -> None:
    found = build_bar(Decimal("0.5"), Decimal(2), None)
    assert not found.is_over
    assert found.percent == 25
    assert found.words == "0.5 GPUs allocated of a quota of 2"
    assert found.limit_at is None
    assert found.quota_at is not None
    assert found.quota_at < BAR_WIDTH


@pytest.mark.parametrize(("held_gpus", "quota"), [(0, 0), (0, None), (3, 0), (3, None)])
def test_a_bar_of_nothing_or_without_bounds_has_its_place(
    held_gpus: int, quota: int | None
) -> None:
    found = build_bar(Decimal(held_gpus), None if quota is None else Decimal(quota), None)
    assert 0 <= found.within + found.over <= BAR_WIDTH
    assert found.percent is None
    assert ("without a quota" in found.words) == (quota is None)


def test_a_limit_below_what_is_held_stays_in_the_picture() -> None:
    found = build_bar(Decimal(9), Decimal(2), Decimal(4))
    assert found.within + found.over == BAR_WIDTH
    assert found.limit_at == round(BAR_WIDTH * 4 / 9)


def test_parts_fill_the_bar_and_the_smallest_is_seen() -> None:
    found = list(split_bar({"a": 9999, "b": 1, "c": 0}))
    assert [(key, count) for key, count, _, _ in found] == [("a", 9999), ("b", 1)]
    assert sum(wide for *_, wide in found) == BAR_WIDTH
    assert min(wide for *_, wide in found) >= 4
    assert found[1][2] == found[0][3]
