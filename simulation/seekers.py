"""Who looks for room in a pass, and may still find some."""

from scheduling.cluster_room import ClusterRoom
from simulation.lines import Demands


class Seekers:
    """How many gangs, whose turn is still to come, want each of what there may be room for.

    Room only shrinks in a pass: whoever finds none never finds some later.
    """

    def __init__(self, room: ClusterRoom) -> None:
        self._room = room
        self.counts: dict[Demands, int] = {}
        self._answers: dict[Demands, tuple[int, bool]] = {}
        """The version of the room, and whether something may fit in, by what it wants."""

    def add(self, demands: Demands, count: int = 1) -> None:
        self.counts[demands] = self.counts.get(demands, 0) + count

    def remove(self, demands: Demands) -> None:
        """Count one less, whose turn has come."""
        self.counts[demands] -= 1
        if not self.counts[demands]:
            del self.counts[demands]

    def remove_hopeless(self) -> None:
        """Forget those for whom there is no room any more."""
        self.counts = {each: count for each, count in self.counts.items() if self.may_fit(each)}

    def may_fit(self, demands: Demands) -> bool:
        """Return whether there may be room for one of the sets that are wanted."""
        room = self._room
        answer = self._answers.get(demands)
        if answer is not None and (answer[0] == room.version or not answer[1]):
            return answer[1]
        may_fit = not all(room.is_too_small(each, at_once=True) for each in demands.sets)
        self._answers[demands] = room.version, may_fit
        return may_fit
