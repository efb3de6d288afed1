"""A scheduling pass over lines of equal gangs, whose places are taken at once.

The rules are those of `scheduling`. What is left out: why something is refused, and, where many
wait, the turns of those who get nothing. Those who give way leave at once, and the room that others
wait for is theirs at the same moment.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from scheduling.cluster_room import ClusterRoom, Fit, Place
from scheduling.decision import Action, Refusal
from scheduling.gangs import SURPLUS_PODS, Candidate, GangBook
from scheduling.giving_way import ACTIONS, GivingWay
from scheduling.node_shortages import CountPlaced
from scheduling.queue_turns import Entry, QueueTurns, merge_refused
from scheduling.queues import Queues
from scheduling.reclaim_rules import ReclaimRules
from scheduling.refusals import NO_ROOM
from scheduling.scheduling_pass import PassState, SchedulingPass
from scheduling.search_bounds import SearchBounds
from scheduling.shapes import ShapeCounts, ShapeTable
from scheduling.shortages import ShortageReports
from scheduling.state import Amounts, PodShape, Preemptibility
from simulation.lines import Demands, Head, Line, Lines, list_entries
from simulation.seekers import Seekers

NOWHERE = Refusal(NO_ROOM, "", "")

SHORT_BOUNDS = SearchBounds(victims=64, vain_steps=100, late_victims=64)
"""How long a pass searches for those who give way where many wait; a real one searches longer."""

PATIENCE_SECONDS = 600.0
"""The least time since now of which patience is a share."""

POPS_PER_CHECK = 16
"""After how many turns it is looked at again for whom there may still be room."""

MOST_BEHIND = 8
"""How many behind the first of a line others are searched for in the same pass."""


@dataclass(slots=True)
class Plan:
    """What passes of one draw work on, and change. Times are seconds, as in `ClusterState`."""

    begin: float
    now: float
    is_thorough: bool
    """Whether others are searched for, for all that wait, as a real pass does; else only for those
    who plainly may take something, and not again for a while."""
    patience: float
    """How long that while is, as a share of the time since the begin."""
    room: ClusterRoom
    queues: Queues
    shapes: ShapeTable
    search_at: float = 0.0
    """When it is worth it to search for those who give way."""
    vain_until: dict[str, float] = field(default_factory=dict)
    """Until when it is not searched again for whom others give way, by the key of a gang."""
    just_started: set[str] = field(default_factory=set)
    """Keys of the gangs that others gave way to at this moment: a real pass has kept places for
    them, and takes nothing from them."""
    mismatched: dict[PodShape, bool] = field(default_factory=dict)
    """Whether no node accepts pods of a shape: that does not change in time."""

    def find_patience_end(self) -> float:
        """Return when what is in vain now is worth another try."""
        return self.now + self.patience * max(self.now - self.begin, PATIENCE_SECONDS)


@dataclass(slots=True)
class Changes:
    """What a pass changed."""

    started: list[tuple[GangBook, Place]] = field(default_factory=list)
    evicted: dict[str, list[str]] = field(default_factory=dict)
    """Uids of pods that gave way, by the key of their gang."""
    decide_again_at: float | None = None
    """When time alone changes what is decided, in seconds as in `ClusterState`."""


@dataclass(slots=True)
class Claimants:
    """The gangs that others may give way to, where they find no room."""

    awaited_keys: set[str]
    """Keys of those whose turn is still to come."""
    keys: set[str]
    followers: dict[str, Iterator[GangBook]] = field(default_factory=dict)
    """Those behind a gang in its line, by the key of who had its turn last."""
    are_alone: bool = False
    """Whether the turns of all others were dropped."""


class LinePass(SchedulingPass):
    """Places the heads of all lines, and those behind a head that found its place."""

    def __init__(self, plan: Plan, lines: Lines) -> None:
        super().__init__(
            PassState(plan.now, plan.room, plan.queues, plan.shapes, self._note_started)
        )
        self.shortages = QuietShortages(self, plan.mismatched)
        self.changes = Changes()
        self._plan = plan
        self._lines = lines
        self._seekers = Seekers(plan.room)
        self._followers_demands: dict[str, Demands] = {}
        """What those want who came in turn behind one that was placed, by the gang's key."""

    def run(self, running: Sequence[GangBook]) -> Changes:
        """Place what finds a place, then let others give way to what does not."""
        plan = self._plan
        is_repeated = bool(plan.just_started) and not plan.is_thorough
        if is_repeated or not any(map(_may_give_way, running)):
            self._place_lines({})
        elif plan.is_thorough:
            self._place_lines({})
            self._let_give_way(GivingWay(self, running))
        else:
            self._place_and_search(running)
        self.changes.decide_again_at = self.outcome.decide_again_at
        return self.changes

    def _place_and_search(self, running: Sequence[GangBook]) -> None:
        """Let others give way to who plainly has a claim, and when it is due to all others, too."""
        plan = self._plan
        is_due = plan.search_at <= plan.now
        actions = ACTIONS if is_due else (Action.RECLAIM,)
        giving_way = GivingWay(self, running, actions, SHORT_BOUNDS)
        self._place_lines(self._list_takers(giving_way, is_due=is_due))
        if is_due:
            self._refuse_movers()
        self._let_give_way(giving_way)
        end = plan.find_patience_end()
        if self.outcome.decide_again_at is not None:
            end = min(end, self.outcome.decide_again_at)
        plan.vain_until |= {candidate.gang.key: end for candidate in self.refused}
        if is_due:
            plan.search_at = end

    def _note_started(self, gang: GangBook, places: Sequence[Place], is_core: bool) -> None:
        self.changes.started += [(gang, place) for place in places]

    def has_place(self, gang: GangBook) -> bool:
        return gang.key in self._plan.just_started or super().has_place(gang)

    def nominate(self, candidate: Candidate, fit: Fit) -> None:
        super().nominate(candidate, fit)
        self.changes.started += [(candidate.gang, place) for place in fit.places]

    def nominate_moved(self, gang: GangBook, place: Place) -> None:
        super().nominate_moved(gang, place)
        self.changes.started.append((gang, place))

    def _place_lines(self, takers: Mapping[str, Line]) -> None:
        """Place what finds a place, in turn, and note those whom others may give way.

        Until nobody is left for whom there may be room, or who may take it from others.
        """
        queues = list(self._list_queues())
        self._count_seekers(queues)
        seekers, is_thorough = self._seekers, self._plan.is_thorough
        if not (seekers.counts or takers or is_thorough):
            return
        turns = QueueTurns(self.state.queues, self.fair_shares, self._sum_candidate)
        turns.fill_queues(self._list_entries(queues, takers))
        claimants = Claimants(set(takers), set(takers))
        pops = placed = 0
        behind_it: Candidate | None = None
        while (seekers.counts or claimants.awaited_keys or is_thorough) and (
            candidate := behind_it or turns.pop()
        ) is not None:
            behind_it = None
            pops += 1
            if placed and pops % POPS_PER_CHECK == 0:
                # Not after each: there may be thousands of lines, and hundreds are placed.
                placed = 0
                seekers.remove_hopeless()
            if not (seekers.counts or is_thorough or claimants.are_alone):
                # Nothing is placed any more: others come in turn only to take from somebody.
                turns.drop_refused(claimants.awaited_keys)
                claimants.are_alone = True
            claimants.awaited_keys.discard(candidate.gang.key)
            if self._place_in_turn(candidate, turns):
                placed += 1
                turns.refresh(candidate.gang.queue)
                continue
            self._refuse_in_turn(candidate, turns, claimants)
            behind_it = turns.pop_behind(candidate)
            if behind_it is None:
                turns.refresh(candidate.gang.queue)

    def _place_in_turn(self, candidate: Candidate, turns: QueueTurns) -> bool:
        """Place the next pods of a gang if they find room, and let those behind it have a turn."""
        gang = candidate.gang
        demands = self._followers_demands.pop(gang.key, None) or self._lines.find_head_demands(gang)
        if demands not in self._seekers.counts:
            return False
        self._seekers.remove(demands)
        if not self._seekers.may_fit(demands) or self._is_known_refusal(candidate):
            return False
        if not self.place_candidate(candidate):
            return False
        for following in self._list_following(gang):
            turns.push(following)
            demands = self._lines.find_demands(following)
            self._followers_demands[following.gang.key] = demands
            self._seekers.add(demands)
        return True

    def _refuse_in_turn(
        self, candidate: Candidate, turns: QueueTurns, claimants: Claimants
    ) -> None:
        """Note who found no room, if others may give way, and let one behind it have a turn."""
        gang = candidate.gang
        if gang.key not in claimants.keys and not self._plan.is_thorough:
            return
        # What one gives up another may want, and what is left over anybody.
        self.refused.append(candidate)
        follower = self._find_follower(claimants.followers, gang)
        if follower is not None:
            claimants.keys.add(follower.gang.key)
            claimants.awaited_keys.add(follower.gang.key)
            turns.push(follower)

    def _count_seekers(self, queues: Iterable[tuple[str, Sequence[Head]]]) -> None:
        """Count the heads for whom there may be room."""
        fitting = set(filter(self._seekers.may_fit, self._lines.list_demands()))
        for name, _ in queues if fitting else ():
            counts = self._lines.count_demands(name)
            for demands in fitting & counts.keys():
                self._seekers.add(demands, counts[demands])

    def _list_entries(
        self,
        queues: Sequence[tuple[str, Sequence[Head]]],
        takers: Mapping[str, Line],
    ) -> Sequence[tuple[str, Sequence[Entry]]]:
        """Return whose turn has to be found."""
        wanted = self._seekers.counts
        if self._plan.is_thorough:
            return [(name, list(list_entries(heads))) for name, heads in queues]
        taking_queues = {line.queue for line in takers.values()}
        return [
            (name, list(merge_refused(self._list_tried(heads, takers))))
            for name, heads in queues
            if name in taking_queues
            or not wanted.keys().isdisjoint(self._lines.count_demands(name))
        ]

    def _list_tried(
        self, heads: Sequence[Head], takers: Mapping[str, Line]
    ) -> Iterator[tuple[Entry, bool]]:
        """Yield heads with whether there may be room for them, or others may give way to them."""
        wanted = self._seekers.counts
        for entry, line in heads:
            yield entry, line.demands in wanted or entry.candidate.gang.key in takers

    def _list_queues(self) -> Iterator[tuple[str, Sequence[Head]]]:
        return self._lines.list_queues(self._find_usable, self.state.shapes)

    def _list_following(self, gang: GangBook) -> Iterator[Candidate]:
        """Return the next pods of a gang that was placed, and those of who was behind it."""
        following = self.find_candidate(gang)
        if following is not None:
            yield following
        behind = self._lines.take_head(gang)
        if behind is not None:
            shapes = self.state.shapes
            entry = self._lines.find_entry(*behind, self._find_usable, shapes)
            if entry is not None:
                yield entry.candidate

    def _find_follower(
        self, behind: dict[str, Iterator[GangBook]], gang: GangBook
    ) -> Candidate | None:
        """Return who is behind a gang that was refused, as long as there are not too many."""
        others = behind.pop(gang.key, None)
        if others is None:
            others = iter(self._lines.list_behind(gang, MOST_BEHIND))
        after = next(others, None)
        if after is None:
            return None
        behind[after.key] = others
        return self._find_usable(after)

    def _find_usable(self, gang: GangBook) -> Candidate | None:
        return self.find_candidate(gang) if self.state.queues.is_usable(gang.queue) else None

    def _let_give_way(self, giving_way: GivingWay) -> None:
        """Let others give way to those that were refused."""
        if not self.refused:
            return
        for _ in giving_way.make_room():
            pass
        for eviction in self.outcome.evictions:
            self.changes.evicted.setdefault(eviction.gang, []).append(eviction.pod)

    def _list_takers(self, giving_way: GivingWay, *, is_due: bool) -> Mapping[str, Line]:
        """Return the lines for whose head others may give way, as far as is plain.

        They are by the key of the head. Nothing is searched here.
        """
        claims = _Claims(self.state.queues, ReclaimRules(self.state.queues, self.fair_shares))
        now, vain_until = self._plan.now, self._plan.vain_until
        takers = {}
        for name, heads in self._list_queues():
            if not is_due and not claims.is_within_own(name):
                continue
            for entry, line in heads:
                head = entry.candidate.gang
                if not is_due and vain_until.get(head.key, 0.0) > now:
                    continue
                if claims.allow(name, entry.charges) or (
                    is_due and any(giving_way.may_preempt(head, each) for each in line.demands.sets)
                ):
                    takers[head.key] = line
        return takers

    def _refuse_movers(self) -> None:
        """Note those for whom others may move, by what room is left after all were placed."""
        refused = {candidate.gang.key for candidate in self.refused}
        movers = [
            entry.candidate
            for _, heads in self._list_queues()
            for entry, line in heads
            if entry.candidate.gang.key not in refused
            and self._may_move_others(line, entry.candidate)
        ]
        turns = QueueTurns(self.state.queues, self.fair_shares, self._sum_candidate)
        turns.fill(movers)
        while (candidate := turns.pop()) is not None:
            self.refused.append(candidate)
            turns.refresh(candidate.gang.queue)

    def _may_move_others(self, line: Line, candidate: Candidate) -> bool:
        """Return whether there is enough room for a head, in parts that others are between."""
        enough = map(self.state.room.is_enough_in_sum, line.demands.sets)
        return candidate.stage != SURPLUS_PODS and any(enough)


class QuietShortages(ShortageReports):
    """Says that there is no room, and not why."""

    def __init__(self, scheduling: SchedulingPass, mismatched: dict[PodShape, bool]) -> None:
        super().__init__(scheduling.state.room, scheduling.state.shapes)
        self._mismatched = mismatched

    def find_mismatch_refusal(self, counts: ShapeCounts) -> Refusal | None:
        for shape in counts:
            is_mismatched = self._mismatched.get(shape)
            if is_mismatched is None:
                mismatches = shape.mismatches
                is_mismatched = all(room.node.name in mismatches for room in self._room.rooms)
                self._mismatched[shape] = is_mismatched
            if is_mismatched:
                return NOWHERE
        return None

    def build_refusal(self, counts: ShapeCounts, placed: CountPlaced) -> Refusal:
        return NOWHERE


def _may_give_way(book: GangBook) -> bool:
    """Return whether running work may be taken back."""
    return book.preemptibility is not Preemptibility.NON_PREEMPTIBLE and not book.is_exempt


class _Claims:
    """What queues may take from others, while usage stays as it is."""

    def __init__(self, queues: Queues, rules: ReclaimRules) -> None:
        self._queues = queues
        self._rules = rules
        self._claimable: dict[str, Amounts] = {}

    def is_within_own(self, queue: str) -> bool:
        """Return whether a queue is within what is its own now."""
        return all(most >= 0 for most in self._get_claimable(queue).values())

    def allow(self, queue: str, wanted: Amounts) -> bool:
        """Return whether a queue stays within what is its own with what it wants."""
        claimable = self._get_claimable(queue)
        for name, most in claimable.items():  # noqa: SIM110 - asked often
            if wanted.get(name, 0) > most:
                return False
        return True

    def _get_claimable(self, queue: str) -> Amounts:
        claimable = self._claimable.get(queue)
        if claimable is None:
            claimable = self._claimable[queue] = self._find_claimable(queue)
        return claimable

    def _find_claimable(self, name: str) -> Amounts:
        """Return how much more of each bounded resource a queue may use within what is its own."""
        queue = self._queues.get_chain(name)[0]
        used = self._queues.usage(name).allocated
        return {
            resource: bound - used.get(resource, 0)
            for resource in self._queues.list_shared(queue)
            if (bound := self._rules.find_allocatable(queue, resource)) is not None
        }
