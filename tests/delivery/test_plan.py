"""Which batches fall to which rank: by rule, for random sizes and changes of the world."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from muster_delivery.plan import RankPlan, decode_index, encode_index
from muster_delivery.sources import LoaderOptions
from muster_delivery.sources.plain import SequenceSource
from muster_delivery.sources.source import EpochKey, Index, IndexedSource, LoadedBatch
from muster_delivery.state import DeliveryState, parse_state

KEY = EpochKey(0, 5)


class ShardedNumbers(IndexedSource):
    """Numbers that a sampler deals out element by element, as torch's DistributedSampler does."""

    shards_itself = True
    is_split = True

    def __init__(self, count: int, size: int) -> None:
        super().__init__(None, LoaderOptions())
        self.count, self.size = count, size

    def list_batches(self, key: EpochKey, world: int, rank: int) -> Sequence[Index]:
        padded = -(-self.count // world) * world
        own = [number % self.count for number in range(rank, padded, world)]
        return [own[at : at + self.size] for at in range(0, len(own), self.size)]

    def load_batch(self, index: Index, key: EpochKey) -> LoadedBatch:
        return LoadedBatch(index, len(index))

    def split_index(self, index: Index, parts: int) -> Sequence[Index]:
        return [list(index)[part::parts] for part in range(parts)]

    def begin_work(self, worker: int, workers: int) -> None:
        return

    def describe(self) -> str:
        return "numbers"


worlds = st.integers(1, 5)
changes = st.lists(st.tuples(worlds, st.integers(0, 8)), max_size=3)


def play_epoch(source: IndexedSource, parts: list[tuple[int, int]], last: int) -> list[list[Index]]:
    """Return the batches of each rank and part: so many positions in each world, then the rest."""
    delivered: list[list[Index]] = []
    history: list[tuple[int, int]] = []
    for world, limit in [*parts, (last, 10**9)]:
        plans = [RankPlan(source, KEY, world, rank, history) for rank in range(world)]
        count = min(limit, *(len(plan) for plan in plans)) if limit < 10**9 else 10**9
        delivered += [
            [plan.get_batch(position).index for position in range(min(count, len(plan)))]
            for plan in plans
        ]
        history.append((world, count))
    return delivered


@given(st.integers(0, 40), changes, worlds)
def test_items_fall_to_one_rank_each_through_changes(
    count: int, parts: list[tuple[int, int]], last: int
) -> None:
    source = SequenceSource(range(count), LoaderOptions())
    delivered = play_epoch(source, parts, last)
    assert sorted(item for batches in delivered for item in batches) == list(range(count))


@given(st.integers(1, 60), st.integers(1, 5), changes, worlds)
def test_elements_of_a_sampler_are_all_delivered_and_ranks_get_as_many_batches(
    count: int, size: int, parts: list[tuple[int, int]], last: int
) -> None:
    source = ShardedNumbers(count, size)
    first = parts[0][0] if parts else last
    delivered = play_epoch(source, parts, last)
    counted = Counter(n for batches in delivered for batch in batches for n in batch)
    padded = Counter(n % count for n in range(-(-count // first) * first))
    assert padded - counted == Counter()
    # What is doubled beside the sampler's own padding fills one last round at most.
    assert (counted - padded).total() < max(last, *(w for w, _ in parts), 1)
    assert len({len(batches) for batches in delivered[-last:]}) == 1


@given(st.integers(0, 30), worlds)
def test_without_splitting_every_rank_gets_everything(count: int, world: int) -> None:
    source = SequenceSource(range(count), LoaderOptions(split=False))
    for rank in range(world):
        plan = RankPlan(source, KEY, world, rank, [])
        batches = [plan.get_batch(position) for position in range(len(plan))]
        assert [batch.index for batch in batches] == list(range(count))
        assert all(batch.number % world == rank for batch in batches)


def test_drop_last_leaves_the_last_round_out() -> None:
    source = SequenceSource(range(11), LoaderOptions(drop_last=True))
    assert [len(RankPlan(source, KEY, 3, rank, [])) for rank in range(3)] == [3, 3, 3]
    kept = SequenceSource(range(11), LoaderOptions())
    assert [len(RankPlan(kept, KEY, 3, rank, [])) for rank in range(3)] == [4, 4, 3]


def test_a_shuffle_depends_on_seed_and_epoch() -> None:
    source = SequenceSource(range(50), LoaderOptions(shuffle=True))
    orders = [
        tuple(source.list_batches(EpochKey(epoch, seed), 1, 0))
        for epoch, seed in ((0, 5), (0, 5), (1, 5), (0, 6))
    ]
    assert orders[0] == orders[1]
    assert len(set(orders)) == 3
    assert sorted(orders[0]) == list(range(50))


indices = st.recursive(
    st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=6,
)


@given(indices)
def test_an_index_comes_back_as_it_was(index: Index) -> None:
    assert decode_index(encode_index(index)) == index


def test_a_state_survives_a_checkpoint_and_a_change_of_the_world() -> None:
    state = DeliveryState(2, 7, 4, 1, 9, 300, [(2, 3)], 2, [(0, 4), (0, 3)])
    again = parse_state(state.to_dict())
    assert again == state
    again.change_world(3, 2, is_split=True)
    assert (again.position, again.history) == (0, [(2, 3), (4, 7)])
    assert again.shards == [(16, 0), (12, 0)]
    assert (again.world, again.rank) == (3, 2)
