"""Rows of the time machine: blocks of past states, deltas since, and how far it has recorded."""

from django.db import models


class StateBlock(models.Model):
    """The state at `begin` and what changed until `until` (`time_machine.Block`).

    The newest block is open: it has its first state only, and its deltas are rows of their own.
    """

    begin = models.DateTimeField(unique=True)
    until = models.DateTimeField(null=True, db_index=True)
    """None while it is open."""
    size = models.PositiveBigIntegerField()
    """Bytes of its data when it was opened, unpacked: so many of deltas, and it is closed."""
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"states from {self.begin} until {self.until}"


class StateDelta(models.Model):
    """What changed at one moment of the open block (`time_machine.Delta`)."""

    at = models.DateTimeField(unique=True)
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"changes of {self.at}"


class StateBookmark(models.Model):
    """How far the state is recorded, in one row."""

    position = models.BigIntegerField()
    """The journal's position up to which workloads are recorded."""
    recorded_at = models.DateTimeField()
    explained = models.UUIDField(null=True)
    """The workload that was explained last: the next in the order of ids is to follow."""

    def __str__(self) -> str:
        return f"recorded until {self.recorded_at}"
