"""Random histories of submits, ends, scaling, node losses and changes of quotas and limits.

Every decision on the way is judged; after each change the cluster has to come to rest in a bounded
number of decisions, and nobody may take from somebody who took from them. Histories of single
devices are asked at rest whether anybody waits who should not.
"""

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from scheduling import decide
from tests.scheduling.descriptions import describe_state
from tests.scheduling.histories import History, draw_history
from tests.scheduling.judge_rest import RestingWorld
from tests.scheduling.world import count_evictions

HOW: Any = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    # A seed does not shrink.
    "phases": [Phase.explicit, Phase.generate],
    "database": None,
    "print_blob": True,
}


def run_histories(
    number: int, examples: int, *, is_plain: bool = False, is_flat: bool = False
) -> Counter[str]:
    """Live as many histories as are wanted of a seed; print what happened in them."""
    counts: Counter[str] = Counter()

    @seed(number)
    @settings(max_examples=examples, **HOW)
    @given(history_seed=st.integers(0, 2**32 - 1))
    def live(history_seed: int) -> None:
        setting, drawn = draw_history(history_seed, is_flat=is_flat)
        history = History(setting, decide, is_plain)
        history.live(drawn)
        if is_flat:
            state = history.world.observe()
            assert list(RestingWorld(state).find_unfair_shares()) == [], describe_state(state)
        longest = max(counts["longest"], history.counts["longest"])
        counts.update(history.counts)
        counts["longest"] = longest
        counts["histories"] += 1

    live()
    evictions = count_evictions(counts)
    lost = counts["lost with nodes"]
    print(f"\nseed {number}: {evictions} evictions, {lost} pods lost with nodes, {dict(counts)}")
    return counts


def test_no_rule_is_broken_in_sixty_histories_of_all_shapes() -> None:
    counts = run_histories(15, 60)
    assert counts["bindings"]
    assert count_evictions(counts)


def test_nobody_waits_in_vain_in_sixty_histories_of_single_devices() -> None:
    counts = run_histories(16, 60, is_plain=True)
    assert counts["reclaim"]
    assert counts["preempt"]


def test_shares_are_fair_at_the_end_of_forty_histories_without_departments() -> None:
    assert run_histories(17, 40, is_plain=True, is_flat=True)["reclaim"]


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", range(100, 110))
def test_no_rule_is_broken_in_any_of_a_thousand_histories_of_all_shapes(number: int) -> None:
    run_histories(number, 100)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", range(200, 210))
def test_nobody_waits_in_vain_in_any_of_a_thousand_histories_of_devices(number: int) -> None:
    run_histories(number, 100, is_plain=True)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", range(300, 310))
def test_shares_are_fair_at_the_end_of_any_of_a_thousand_histories(number: int) -> None:
    run_histories(number, 100, is_plain=True, is_flat=True)
