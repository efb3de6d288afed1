"""Makes room for gangs that found none: consolidation, reclaim, preemption, in KAI's order.

For each refused gang victims are taken one after the other until it fits among what is free then;
those that turn out not to be needed are let off. How many are tried is bounded, for one gang and
for a whole decision.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

from scheduling.cluster_room import Fit
from scheduling.consolidation import place_in_turn
from scheduling.decision import Action, Eviction, Refusal
from scheduling.evictions import EvictionPlan
from scheduling.gangs import SURPLUS_PODS, Candidate, GangBook, PodSet, is_stale
from scheduling.late_victims import LateVictims
from scheduling.minimum_runtimes import find_protection_end
from scheduling.queues import Booking
from scheduling.reclaim_rules import Claim, GivingQueues, ReclaimRules
from scheduling.refusals import OVER_LIMIT, PIPELINED, WITHIN_DELAY, describe_delay
from scheduling.scheduling_pass import SchedulingPass
from scheduling.search_bounds import USUAL_BOUNDS, SearchBounds
from scheduling.shapes import ShapeCounts, count_shapes
from scheduling.state import Amounts
from scheduling.victims import VictimEntry, VictimQueues, VictimUnit

MAX_PROTECTED = 20_000
"""How many protected entries a decision passes over, before each search passes over few."""

MAX_LATE_PROTECTED = 1000
"""How many each search passes over after that; the end of their protection decides again."""

LONGEST_DELAY = 2**63 / 10**9
"""Seconds from which on a delay is more than KAI can read: nobody waits for its end."""

ACTIONS = (Action.CONSOLIDATE, Action.RECLAIM, Action.PREEMPT)

SearchKey = tuple[Action, str, bool, int, frozenset[object]]


class GivingWay:
    """Finds those who give way to the gangs that a pass refused."""

    def __init__(
        self,
        scheduling: SchedulingPass,
        running: Iterable[GangBook],
        actions: Sequence[Action] = ACTIONS,
        bounds: SearchBounds = USUAL_BOUNDS,
    ) -> None:
        self._pass = scheduling
        self._actions = actions
        self._bounds = bounds
        self._state = scheduling.state
        self._rules = ReclaimRules(self._state.queues, scheduling.fair_shares)
        self._running = list(running)
        self._victims = VictimQueues(self._running, self._state.shapes)
        self._giving = GivingQueues(self._state.queues, self._rules, self._list_giving())
        self._givers: set[str] = set()
        """Keys of the gangs that give way in this decision."""
        self._moved: set[str] = set()
        """Keys of those whose pods have places again."""
        self._delayed: list[Candidate] = []
        """Candidates that may not take from others yet."""
        has_leaving = self._state.room.has_leaving or self._state.queues.has_leaving()
        self._departures = int(has_leaving)
        """How often others have given way, those before this decision together once."""
        self._fitted: dict[str, int] = {}
        """After how many departures a gang was found not to fit, by its key."""
        self._vain_steps = 0
        self._passed_over = 0
        """Protected entries that searches looked at."""
        self._vain_sizes: dict[SearchKey, int] = {}
        """For searches of one kind: from how many pods on they were in vain."""
        self._served_sizes: dict[SearchKey, int] = {}
        """For searches of one kind: up to how many pods others would give way."""

    def make_room(self) -> Generator[None, None, None]:
        """Let others give way to the gangs that were refused, in steps."""
        for action in self._actions:
            refused = [candidate for candidate in self._pass.refused if self._may_evict(candidate)]
            self._pass.refused = []
            for candidate in refused:
                yield
                if candidate.gang.key in self._givers:
                    # What is left of it in the next decision says what it wants then.
                    continue
                yield from self._serve_gang(action, candidate)

    def note_late_claims(self) -> Generator[None, None, None]:
        """Note whether a gang that is still refused may take from one that starts just now.

        Nothing is taken from these in this decision.
        """
        late = LateVictims(self._pass.started.values(), self._victims)
        vain: set[tuple[SearchKey, int]] = set()
        for candidate in self._pass.refused if late.list_queues() else ():
            yield
            for action in (Action.RECLAIM, Action.PREEMPT):
                for pods in candidate.pod_sets:
                    # Many that wait want the same.
                    key = self._build_key(action, candidate, pods), pods.size
                    if key in vain:
                        continue
                    if self._may_take_late(action, candidate, pods, late):
                        self._pass.outcome.is_final = False
                        return
                    vain.add(key)

    def _may_take_late(
        self, action: Action, candidate: Candidate, pods: PodSet, late: LateVictims
    ) -> bool:
        """Return whether the next decision may let those who start now give way to pods."""
        gang = candidate.gang
        if action is Action.PREEMPT:
            freed = late.count_devices_below(gang.queue, gang.priority)
        else:
            gives = any(
                queue != gang.queue and self._rules.is_over_quota(queue)
                for queue in late.list_queues()
            )
            freed = late.count_devices() if gives else {}
        wanted = self._state.shapes.sum_charges(pods.counts)
        # What can never start must not have all others asked again at each start.
        return (
            bool(freed)
            and self._may_search(action, candidate, pods, wanted)
            and self._may_have_room(pods.counts, freed)
        )

    def evict_stale_gangs(self) -> Generator[None, None, None]:
        """Evict what is left of gangs that have been below their minimum for too long."""
        evicted = {each.pod for each in self._pass.outcome.evictions}
        for gang in self._running:
            yield
            if not is_stale(gang) or self._pass.has_place(gang) or gang.staleness_grace < 0:
                continue
            end = (
                self._state.now if gang.stale_since is None else gang.stale_since
            ) + gang.staleness_grace
            if gang.stale_since is None or end > self._state.now:
                self._pass.decide_again(end)
                continue
            self._pass.outcome.evictions += [
                Eviction(pod.uid, gang.key, Action.STALE_GANG, "")
                for pod in gang.list_active()
                if pod.uid not in evicted
            ]

    def _may_evict(self, candidate: Candidate) -> bool:
        """Return whether a gang may take from others yet; it waits again when it may not."""
        gang = candidate.gang
        if gang.is_exempt:
            return False
        end = gang.created_at + gang.preemption_delay
        if gang.preemption_delay > 0 and end > self._state.now:
            self._pass.decide_again(end)
            if gang.preemption_delay < LONGEST_DELAY:
                self._delayed.append(candidate)
            return False
        return True

    def explain_delays(self) -> Generator[None, None, None]:
        """Say of gangs that would take from others that they wait for the end of their delay."""
        refusals = self._pass.outcome.refusals
        for candidate in self._delayed:
            yield
            gang = candidate.gang
            before = refusals[gang.key]
            if gang.key in self._givers or (before is not None and before.reason == PIPELINED):
                continue
            if (yield from self._can_take(candidate)):
                refusals[gang.key] = Refusal(
                    WITHIN_DELAY,
                    WITHIN_DELAY,
                    describe_delay(gang.preemption_delay),
                    ends_at=gang.created_at + gang.preemption_delay,
                )

    def _can_take(self, candidate: Candidate) -> Generator[None, None, bool]:
        """Return whether others would have to give way to a gang, and leave all as it is."""
        for pods in candidate.pod_sets:
            fit = self._pass.fit_later(candidate, pods)
            if fit is not None:
                # Others made more room than they needed: the next decision gives it away.
                self._state.room.undo_fit(fit, at_once=False)
                return False
        for action in self._actions:
            for pods in candidate.pod_sets:
                key = self._build_key(action, candidate, pods)
                if pods.size <= self._served_sizes.get(key, 0):
                    return True
                version = self._state.room.version
                plan_and_fit = yield from self._find_victims(action, candidate, pods)
                if plan_and_fit is not None:
                    plan, fit = plan_and_fit
                    self._state.room.undo_fit(fit, at_once=False)
                    self._discard_plan(plan, version)
                    self._served_sizes[key] = pods.size
                    return True
        return False

    def _serve_gang(self, action: Action, candidate: Candidate) -> Generator[None, None, None]:
        """Make room for the next pods of a gang, and for those after them."""
        following: Candidate | None = candidate
        # Somebody else may have made more room than he needed.
        may_fit = self._fitted.get(candidate.gang.key, 0) != self._departures
        while following is not None:
            is_served = False
            for pods in following.pod_sets:
                fit = self._pass.fit_later(following, pods) if may_fit else None
                if fit is not None:
                    self._pass.nominate(following, fit)
                    is_served = True
                else:
                    is_served = yield from self._search(action, following, pods)
                if is_served:
                    break
            if not is_served:
                self._pass.refused.append(following)
                self._fitted[candidate.gang.key] = self._departures
                return
            following = self._pass.find_candidate(candidate.gang)
            may_fit = True

    def _search(
        self, action: Action, candidate: Candidate, pods: PodSet
    ) -> Generator[None, None, bool]:
        """Find victims for pods and evict them; return whether there were enough."""
        plan_and_fit = yield from self._find_victims(action, candidate, pods)
        if plan_and_fit is None:
            return False
        yield from self._let_off(action, candidate, pods, *plan_and_fit)
        return True

    def _find_victims(
        self, action: Action, candidate: Candidate, pods: PodSet
    ) -> Generator[None, None, tuple[EvictionPlan, Fit] | None]:
        """Take victims until pods fit; return them with the places, None when it is in vain."""
        wanted = self._state.shapes.sum_charges(pods.counts)
        key = self._build_key(action, candidate, pods)
        if self._vain_sizes.get(key, pods.size + 1) <= pods.size or not self._is_promising(
            action, candidate, pods, wanted
        ):
            return None
        plan = EvictionPlan(self._state)
        version = self._state.room.version
        most = self._bounds.find_most(action, self._vain_steps)
        device_count = self._state.shapes.count_devices(pods.counts)
        for unit in self._choose_units(action, candidate.gang, wanted):
            yield
            if plan.pod_count + len(unit.pods) > most:
                unit.running.return_pods(unit.pods)
                self._vain_steps += 1
                break
            plan.add_unit(unit)
            if self._state.room.idle_later < device_count:
                continue
            fit = self._fit_all(action, candidate, pods, plan)
            if fit is not None:
                return plan, fit
        self._discard_plan(plan, version)
        self._vain_sizes[key] = pods.size
        return None

    def _discard_plan(self, plan: EvictionPlan, version: int) -> None:
        """Let all victims off; the room is what it was at that version."""
        self._vain_steps += len(plan.units)
        plan.discard()
        self._state.room.version = version

    def _build_key(self, action: Action, candidate: Candidate, pods: PodSet) -> SearchKey:
        gang = candidate.gang
        shapes: frozenset[object] = frozenset(
            pods.counts if len(pods.counts) == 1 else pods.counts.items()
        )
        return action, gang.queue, gang.is_core(candidate.stage), gang.priority, shapes

    def _is_promising(
        self, action: Action, candidate: Candidate, pods: PodSet, wanted: Amounts
    ) -> bool:
        """Return whether it is worth a search, by what can be said without one."""
        if not self._may_search(action, candidate, pods, wanted):
            return False
        if action is Action.CONSOLIDATE:
            is_whole = candidate.stage != SURPLUS_PODS
            return is_whole and self._state.room.is_enough_in_sum(pods.counts)
        return action is Action.RECLAIM or self.may_preempt(candidate.gang, pods.counts)

    def _may_search(
        self, action: Action, candidate: Candidate, pods: PodSet, wanted: Amounts
    ) -> bool:
        """Return whether an action may help pods, by the nodes and the bounds of their queue."""
        state, gang = self._state, candidate.gang
        if self._pass.shortages.find_mismatch_refusal(pods.counts) is not None:
            return False
        if state.shapes.count_devices(pods.counts) > state.room.device_count:
            return False
        refusal = state.queues.find_refusal(
            gang.queue, wanted, non_preemptible=gang.is_core(candidate.stage), at_once=False
        )
        if refusal is not None and refusal.reason != OVER_LIMIT:
            return False
        if action is Action.CONSOLIDATE:
            return refusal is None
        if action is Action.RECLAIM:
            is_own_limit = refusal is not None and refusal.queue == gang.queue
            return not is_own_limit and self._rules.can_claim(gang.queue, wanted)
        return True

    def may_preempt(self, gang: GangBook, counts: ShapeCounts) -> bool:
        """Return whether there may be room for pods when all below their priority have left."""
        return self._may_have_room(
            counts, self._victims.count_devices_below(gang.queue, gang.priority)
        )

    def _may_have_room(self, counts: ShapeCounts, freed: Mapping[str, int]) -> bool:
        """Return whether pods may find room when so many devices more are free, by node."""
        count_most = self._state.room.count_most_later
        return bool(freed) and all(
            count <= count_most(shape, freed) for shape, count in counts.items()
        )

    def _choose_units(
        self, action: Action, taker: GangBook, wanted: Amounts
    ) -> Iterator[VictimUnit]:
        """Take units out of their gangs one after the other, as the action allows it."""
        match action:
            case Action.PREEMPT:
                yield from self._iterate_units(action, taker, taker.queue)
            case Action.RECLAIM:
                yield from self._choose_reclaimed(taker, wanted)
            case _:
                yield from self._choose_moved(taker)

    def _iterate_units(self, action: Action, taker: GangBook, queue: str) -> Iterator[VictimUnit]:
        passed_over = 0
        for entry in self._victims.list_entries(queue):
            if action is Action.PREEMPT and entry.running.gang.priority >= taker.priority:
                return
            if not self._is_protected(action, taker, entry):
                while (unit := self._victims.build_unit(entry)) is not None:
                    yield unit
                continue
            passed_over += 1
            self._passed_over += 1
            if self._passed_over > MAX_PROTECTED and passed_over >= MAX_LATE_PROTECTED:
                return

    def _is_protected(self, action: Action, taker: GangBook, entry: VictimEntry) -> bool:
        victim = entry.running.gang
        if victim is taker or self._pass.has_place(victim) or victim.key in self._moved:
            return True
        if not entry.is_minimum:
            return False
        end = find_protection_end(self._state.queues, self._rules, action, taker, victim)
        if end <= self._state.now:
            return False
        self._pass.decide_again(end)
        return True

    def _choose_reclaimed(self, taker: GangBook, wanted: Amounts) -> Iterator[VictimUnit]:
        """Take from the queue that is furthest over what it may keep, as long as it is."""
        claim = Claim(self._giving, taker.queue, wanted)
        sources: dict[str, Iterator[VictimUnit]] = {}
        empty_queues: set[str] = set()
        # Chosen anew each time: what siblings give may bring the taker's department within its own
        # bounds.
        while (chosen := claim.choose_giver(empty_queues)) is not None:
            if chosen not in sources:
                sources[chosen] = self._iterate_units(Action.RECLAIM, taker, chosen)
            unit = next(sources[chosen], None)
            if unit is None:
                empty_queues.add(chosen)
            else:
                yield unit
                claim.note_given(chosen)

    def _list_giving(self) -> Sequence[str]:
        """Return the queues in which something runs that others may take or move.

        A queue that cannot be used gives nothing, as with KAI (`actions/utils/input_jobs.go`): one
        that was deleted under its pods has no share, and nothing of it would start elsewhere.
        """
        is_usable = self._state.queues.is_usable
        return [queue for queue in self._victims.list_queues() if is_usable(queue)]

    def _choose_moved(self, taker: GangBook) -> Iterator[VictimUnit]:
        """Move small units first: they find another place most easily."""
        entries = [
            entry
            for queue in self._list_giving()
            for entry in self._victims.list_entries(queue)
            if not self._is_protected(Action.CONSOLIDATE, taker, entry)
        ]
        entries.sort(key=lambda entry: (entry.is_minimum and len(entry.running.pods), entry.order))
        for entry in entries:
            while (unit := self._victims.build_unit(entry)) is not None:
                yield unit

    def _fit_all(
        self, action: Action, candidate: Candidate, pods: PodSet, plan: EvictionPlan
    ) -> Fit | None:
        """Return places for pods, and with consolidation for those that gave way, or None."""
        fit = self._pass.fit_later(candidate, pods)
        if fit is None or action is not Action.CONSOLIDATE:
            return fit
        moved = self._state.room.fit_pods(plan.list_pods(), at_once=False)
        if not moved.is_complete:
            self._state.room.undo_fit(fit, at_once=False)
            return None
        together = Fit([*fit.places, *moved.places], is_complete=True)
        return place_in_turn(self._state, candidate, plan.units, together)

    def _let_off(
        self,
        action: Action,
        candidate: Candidate,
        pods: PodSet,
        plan: EvictionPlan,
        fit: Fit,
    ) -> Generator[None, None, None]:
        """Let off who is not needed, then evict the others and keep their places."""
        # Without the last one it did not fit.
        tried = {id(plan.units[-1])}
        while True:
            unit = next((each for each in plan.list_removable() if id(each) not in tried), None)
            if unit is None:
                break
            yield
            tried.add(id(unit))
            if action is not Action.CONSOLIDATE and self._is_plainly_needed(pods, unit):
                continue
            self._state.room.undo_fit(fit, at_once=False)
            index = plan.units.index(unit)
            plan.remove_unit(unit)
            smaller = self._fit_all(action, candidate, pods, plan)
            if smaller is None:
                unit.running.take_pods(len(unit.pods))
                plan.add_unit(unit, index)
                # The same room as before gives the same places again.
                smaller = self._fit_all(action, candidate, pods, plan)
                assert smaller is not None
            fit = smaller
        self._settle(action, candidate, plan, fit)

    def _is_plainly_needed(self, pods: PodSet, unit: VictimUnit) -> bool:
        """Return whether pods use more whole devices than there would be without a unit.

        Trying that takes as long as placing the whole gang, for each of its victims.
        """
        room, get_demand = self._state.room, self._state.shapes.get_demand
        if any(get_demand(shape).share for shape in pods.counts):
            return False
        return sum(map(room.count_held, unit.pods)) > room.idle_later

    def _settle(self, action: Action, candidate: Candidate, plan: EvictionPlan, fit: Fit) -> None:
        moved = {pod.uid: unit.gang for unit in plan.units for pod in unit.pods}
        mine = Fit([place for place in fit.places if place.pod.uid not in moved], True)
        self._pass.outcome.evictions += plan.build_evictions(action, candidate.gang)
        givers = {unit.gang.key for unit in plan.units}
        self._givers |= givers
        self._departures += 1
        if action is Action.CONSOLIDATE:
            self._moved |= givers
        self._pass.note_leaving(plan.list_pods(), moved)
        self._pass.nominate(candidate, mine)
        if action is not Action.CONSOLIDATE:
            return
        for place in fit.places:
            if place.pod.uid in moved:
                self._pass.nominate_moved(moved[place.pod.uid], place)
        for unit in plan.units:
            amounts = self._state.shapes.sum_charges(count_shapes(unit.pods))
            for placed, sign in ((False, -1), (True, 1)):
                booking = Booking(unit.gang.queue, amounts, placed, non_preemptible=False)
                self._state.queues.count_booking(booking, sign)
