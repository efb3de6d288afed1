"""How long it is searched for those who give way, for one gang and in a whole decision."""

from dataclasses import dataclass

from scheduling.decision import Action

MAX_VICTIMS = 1024
"""How many pods are tried as victims of one gang."""

MAX_MOVED = 64
"""How many pods are moved to let one gang in."""

MAX_VAIN_STEPS = 2000
"""How many victims a decision tries in vain, all gangs together, before searches become short."""

MAX_LATE_VICTIMS = 16
"""How many pods are tried for each gang after that.

Whoever needs few is served all the same, however many wait before it whom nobody can help.
"""


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """How long victims are searched for."""

    victims: int = MAX_VICTIMS
    vain_steps: int = MAX_VAIN_STEPS
    late_victims: int = MAX_LATE_VICTIMS

    def find_most(self, action: Action, vain_steps: int) -> int:
        """Return how many pods are tried for one gang after so many steps in vain."""
        is_late = vain_steps >= self.vain_steps
        if action is Action.CONSOLIDATE:
            return MAX_LATE_VICTIMS if is_late else MAX_MOVED
        return self.late_victims if is_late else self.victims


USUAL_BOUNDS = SearchBounds()
