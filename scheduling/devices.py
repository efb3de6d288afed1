"""The devices of a node: how much of each is free, and which ones the next pod gets."""

from collections.abc import Sequence

from scheduling.state import Number

WHOLE_DEVICE = 1


class Devices:
    """What is free of each device.

    A device is either held whole by one pod or shared by parts that add up to one at most.
    """

    __slots__ = ("free", "idle_count", "whole")

    def __init__(self, count: int, whole: int = WHOLE_DEVICE) -> None:
        self.whole = whole
        """The amount that one device has."""
        self.free: list[Number] = [whole] * count
        self.idle_count = count
        """The number of devices that nobody uses."""

    def copy(self) -> "Devices":
        copy = Devices(0, self.whole)
        copy.free, copy.idle_count = list(self.free), self.idle_count
        return copy

    def count_with_room(self, part: Number) -> int:
        """Return how many devices have `part` left."""
        return sum(1 for free in self.free if free >= part)

    def choose_devices(
        self, count: int, part: Number = WHOLE_DEVICE, beside: "Devices | None" = None
    ) -> tuple[int, ...] | None:
        """Return `count` devices with `part` of each free, also in `beside`; None without them.

        The fullest that still fit come first (best fit), so that shares gather on devices that are
        shared already and whole devices stay whole; among equals the lowest index.
        """
        if beside is None and part == self.whole:
            idle = [index for index, free in enumerate(self.free) if free == part]
            return tuple(idle[:count]) if len(idle) >= count else None
        fitting = sorted(
            (free, index)
            for index, free in enumerate(self.free)
            if free >= part and (beside is None or beside.free[index] >= part)
        )
        return (
            tuple(sorted(index for _, index in fitting[:count])) if len(fitting) >= count else None
        )

    def use_devices(
        self, indexes: Sequence[int], part: Number = WHOLE_DEVICE, sign: int = 1
    ) -> None:
        """Mark `part` of each device as used; with `sign` -1 as free again.

        Indexes that the node no longer has are ignored: the pod that has them ends by itself.
        """
        free, whole, change = self.free, self.whole, part * sign
        for index in indexes:
            if index < len(free):
                before = free[index]
                free[index] = after = before - change
                self.idle_count += (after == whole) - (before == whole)
