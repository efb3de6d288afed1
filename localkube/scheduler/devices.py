"""The GPUs of the node during a pass: how much of each is free, which ones the next pod gets."""

from collections.abc import Sequence
from fractions import Fraction

WHOLE_DEVICE = Fraction(1)


class Devices:
    """What is free of each device.

    A device is either held whole by one pod or shared by parts that add up to one at most.
    """

    def __init__(self, count: int) -> None:
        self.free = [WHOLE_DEVICE] * count

    def copy(self) -> "Devices":
        copy = Devices(0)
        copy.free = list(self.free)
        return copy

    @property
    def idle_count(self) -> int:
        """The number of devices that nobody uses."""
        return sum(1 for free in self.free if free == WHOLE_DEVICE)

    def count_with_room(self, part: Fraction) -> int:
        """Return how many devices have `part` left."""
        return sum(1 for free in self.free if free >= part)

    def choose_devices(self, count: int, part: Fraction = WHOLE_DEVICE) -> tuple[int, ...] | None:
        """Return `count` devices with `part` of each free, or None.

        The fullest that still fit come first (best fit), so that shares gather on devices that are
        shared already and whole devices stay whole; among equals the lowest index.
        """
        fitting = sorted((free, index) for index, free in enumerate(self.free) if free >= part)
        return (
            tuple(sorted(index for _, index in fitting[:count])) if len(fitting) >= count else None
        )

    def use_devices(self, indexes: Sequence[int], part: Fraction = WHOLE_DEVICE) -> None:
        """Mark `part` of each device as used.

        Indexes that the node no longer has are ignored: the pod that has them ends by itself.
        """
        for index in indexes:
            if index < len(self.free):
                self.free[index] -= part
