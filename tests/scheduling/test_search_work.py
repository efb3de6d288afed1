"""How much a search for victims looks at: counted, not timed."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from scheduling import decide
from scheduling.cluster_room import ClusterRoom
from scheduling.reclaim_rules import GivingQueues
from scheduling.shapes import Demand
from tests.scheduling.builders import NOW, make_gang, make_node, make_queue, make_shape, make_state


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often places are sought for a gang, and how often queues are ranked."""
    counts: Counter[str] = Counter()

    def count(owner: type, name: str) -> None:
        method: Callable[..., Any] = getattr(owner, name)

        def count_call(*args: Any, **options: Any) -> Any:
            counts[name] += 1
            return method(*args, **options)

        monkeypatch.setattr(owner, name, count_call)

    count(ClusterRoom, "fit_pods")
    count(GivingQueues, "rank_leaves")
    return counts


def test_a_gang_that_needs_all_its_victims_is_not_placed_anew_for_each(
    calls: Counter[str],
) -> None:
    size = 64
    nodes = [make_node(f"n{number}", 8) for number in range(size // 8)]
    queues = [make_queue("greedy"), make_queue("large", quota=size)]
    gangs = [make_gang(f"small-{n}", "greedy", on=[f"n{n // 8}"]) for n in range(size)]
    decision = decide(make_state(nodes, queues, [*gangs, make_gang("large", "large", pods=size)]))
    assert len(decision.evictions) == len(decision.nominations) == size
    assert calls["fit_pods"] < 10


def test_queues_that_have_nothing_to_give_are_ranked_twice_and_not_for_each_other(
    calls: Counter[str],
) -> None:
    """Each of the queues is over its quota, and its work is protected."""
    count = 40
    nodes = [make_node(f"n{number}", 8) for number in range(count // 8)]
    queues = [make_queue(f"q{n}", reclaim_min_runtime=7200) for n in range(count)]
    gangs = [make_gang(f"g{n}", f"q{n}", on=[f"n{n // 8}"]) for n in range(count)]
    gangs.append(make_gang("claiming", "quota"))
    state = make_state(nodes, [*queues, make_queue("quota", quota=1)], gangs)
    decision = decide(state)
    assert not decision.evictions
    assert decision.decide_again_at == NOW + 3600
    assert calls["rank_leaves"] == 2 * count


def test_the_one_queue_that_gives_is_found_behind_many_that_do_not() -> None:
    nodes = [make_node(f"n{number}", 1) for number in range(8)]
    queues = [
        make_queue(f"q{n}", reclaim_min_runtime=0 if n == 3 else 7200, priority=100 + n % 3)
        for n in range(8)
    ]
    gangs = [make_gang(f"g{n}", f"q{n}", on=[f"n{n}"]) for n in range(8)]
    gangs += [make_gang(f"claiming-{n}", "quota") for n in range(2)]
    state = make_state(nodes, [*queues, make_queue("quota", quota=2)], gangs)
    assert [each.gang for each in decide(state).evictions] == ["g3"]


def test_the_smallest_share_takes_something_where_parts_are_whole_numbers() -> None:
    shape = make_shape(part=Fraction(1, 10**9 + 7))
    assert Demand(shape, None, 1_000_000).find_part(None) == 1
    assert Demand(shape, None).find_part(None) == Fraction(1, 10**9 + 7)
