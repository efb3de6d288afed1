"""Whether pods that are moved, and those they make room for, come to rest where they are to go."""

from collections.abc import Sequence

from scheduling.cluster_room import Fit, Place
from scheduling.gangs import Candidate, find_stage
from scheduling.scheduling_pass import PassState
from scheduling.victims import VictimUnit


def place_in_turn(
    state: PassState, candidate: Candidate, units: Sequence[VictimUnit], fit: Fit
) -> Fit | None:
    """Place the gang and the moved pods in the order of scheduling; return their places.

    Returns None without room for all in that order.

    `fit` has found room for the candidate first and then for the units that are moved; where the
    order counts, it is undone. Later decisions keep their nodes for them but no devices, and go by
    the order of gangs. Parts of devices may fit in one order and not in another: the same pods
    would be moved again and again.
    """
    if not any(state.shapes.get_demand(place.pod.shape).share for place in fit.places):
        return fit
    room = state.room
    room.undo_fit(fit, at_once=False)
    fits: list[Fit] = []
    for places in _sort_by_turn(candidate, units, fit.places):
        only = [(place.pod.shape, place.node) for place in places]
        again = room.fit_pods([place.pod for place in places], at_once=False, only=only)
        if not again.is_complete:
            for each in reversed(fits):
                room.undo_fit(each, at_once=False)
            return None
        fits.append(again)
    return Fit([place for each in fits for place in each.places], is_complete=True)


def _sort_by_turn(
    candidate: Candidate, units: Sequence[VictimUnit], places: Sequence[Place]
) -> Sequence[Sequence[Place]]:
    """Return the places of each gang, the gang first whose turn is first when all have left."""
    keys = {pod.uid: unit.gang.key for unit in units for pod in unit.pods}
    by_gang: dict[str, list[Place]] = {}
    for place in places:
        by_gang.setdefault(keys.get(place.pod.uid, candidate.gang.key), []).append(place)
    turns = {unit.gang.key: _build_candidate(unit) for unit in units}
    turns[candidate.gang.key] = candidate
    return [by_gang[key] for key in sorted(by_gang, key=lambda key: turns[key].order)]


def _build_candidate(unit: VictimUnit) -> Candidate:
    """Build the candidate that a moved gang will be, when its pods are made again."""
    gang, active = unit.gang, len(unit.running.pods)
    return Candidate(gang, find_stage(active, gang.min_member - active), ())
