"""A past of the lively console: a day of the queue, as the time machine recorded it."""

from datetime import timedelta

from django.utils import timezone

from workloads.models import StateBlock, StateBookmark
from workloads.recording.turns import record_turn


def record_past(minutes: int = 90) -> None:
    """Record the present state, as if it had been so for some time."""
    now = timezone.now()
    record_turn(now - timedelta(minutes=minutes))
    assert StateBlock.objects.exists()
    StateBookmark.objects.update(recorded_at=now - timedelta(seconds=30))
    record_turn(now)
