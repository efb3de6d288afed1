"""A clock for the step that adds GPU time to the ledger, and the sums that it has added."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from tests.cast import Cast
from tests.workloads.ledger_rows import build_moment
from tests.workloads.table_rows import NOON
from workloads.ledger import GPU_HOUR, Kind
from workloads.models import LedgerBookmark, LedgerEntry
from workloads.tasks.accounting import account_gpu_hours, get_lag

GPU_MINUTE = GPU_HOUR // 60
SetClock = Callable[[float], None]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """Return what sets the time to when everything until so many minutes after NOON is due."""

    def set_clock(minutes: float) -> None:
        now = build_moment(minutes) + get_lag()
        monkeypatch.setattr(timezone, "now", lambda: now)

    return set_clock


@pytest.fixture
def at_noon(cast: Cast, clock: SetClock) -> SetClock:
    """Begin the ledger at NOON, and return what sets the clock."""
    clock(0)
    account_gpu_hours()
    return clock


def account_until(clock: SetClock, minutes: int) -> None:
    """Run the step each minute, as beat does, until so many minutes after NOON."""
    bookmark = LedgerBookmark.objects.get()
    begin = round((bookmark.until - NOON).total_seconds() / 60)
    for minute in range(begin + 1, minutes + 1):
        clock(minute)
        account_gpu_hours()


def load_minutes(**fields: Any) -> dict[str, float]:
    """Return the GPU-minutes of each kind, without those that are 0."""
    sums = dict.fromkeys(Kind, 0)
    for entry in LedgerEntry.objects.filter(**fields):
        for kind in Kind:
            sums[kind] += entry.amounts.get(kind)
    return {kind.value: amount / GPU_MINUTE for kind, amount in sums.items() if amount}
