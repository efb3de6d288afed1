"""How a level of queues divides a resource (KAI:docs/fairness/README.md), one row for each rule."""

from collections.abc import Sequence
from fractions import Fraction

import pytest

from scheduling import GPU, Number
from scheduling.fair_share import MAX_DEPTH, Claim, compute_fair_shares, divide_fairly
from scheduling.queues import Booking, Queues
from tests.scheduling.builders import make_queue
from tests.scheduling.fair_shares import Demand, divide_shares


def claim(
    quota: Number | None, requested: Number, weight: Number = 1, priority: int = 100
) -> Claim:
    return Claim(quota, requested, weight, priority)


DIVISIONS: Sequence[tuple[str, Number, Sequence[Claim], Sequence[Number]]] = [
    ("nobody asks", 4, [], []),
    ("each gets its quota", 4, [claim(3, 9, 0), claim(1, 9, 0)], [3, 1]),
    ("what a quota leaves unused goes to others", 4, [claim(2, 1), claim(2, 9)], [1, 3]),
    ("a quota without a bound is all there is", 4, [claim(None, 9)], [4]),
    ("the rest goes in equal parts", 4, [claim(0, 9), claim(0, 9)], [2, 2]),
    ("the rest goes by weight", 8, [claim(0, 9, 3), claim(0, 9)], [6, 2]),
    ("without a weight nothing beyond the quota", 4, [claim(1, 9, 0), claim(0, 9)], [1, 3]),
    ("nobody gets more than it asks for", 9, [claim(0, 2), claim(0, 3)], [2, 3]),
    (
        "what one leaves of its part is divided again",
        9,
        [claim(0, 1), *[claim(0, 9)] * 2],
        [1, 4, 4],
    ),
    ("a higher priority is served first", 4, [claim(0, 3, 1, 200), claim(0, 9, 9)], [3, 1]),
    ("a lower priority keeps its quota", 4, [claim(0, 9, 1, 200), claim(2, 9)], [2, 2]),
    ("parts are exact", 1, [claim(0, 1)] * 3, [Fraction(1, 3)] * 3),
    ("quotas beyond the total are not cut", 2, [claim(2, 9), claim(2, 9)], [2, 2]),
]


@pytest.mark.parametrize(
    ("total", "claims", "shares"),
    [case[1:] for case in DIVISIONS],
    ids=[case[0] for case in DIVISIONS],
)
def test_a_level_is_divided_by(
    total: Number, claims: Sequence[Claim], shares: Sequence[Number]
) -> None:
    assert divide_fairly(total, claims) == shares
    # The proofs' own recipe has to know the rule, too.
    demands = [
        Demand(each.quota, None, each.weight, each.priority, each.requested) for each in claims
    ]
    assert divide_shares(total, demands) == shares


def request(queues: Queues, **gpus: int) -> None:
    """Let work of these queues ask for so many devices."""
    for name, count in gpus.items():
        queues.count_booking(Booking(name, {GPU: count}, placed=False, non_preemptible=False))


def test_each_level_divides_what_the_level_above_got() -> None:
    queues = Queues()
    queues.replace_queues(
        [
            make_queue("d1", quota=2),
            make_queue("d2", quota=6),
            make_queue("a", "d1", quota=1),
            make_queue("b", "d1", quota=0),
            make_queue("c", "d2", quota=6),
        ]
    )
    request(queues, a=4, b=4, c=2)
    shares = compute_fair_shares(queues, {GPU: 8})
    gpus = {name: share[GPU] for name, share in shares.items()}
    # c leaves 4 of its quota; of the 6 of d1 its children get a quota of 1, then halves.
    assert gpus == {"d1": 6, "d2": 2, "a": Fraction(7, 2), "b": Fraction(5, 2), "c": 2}


def test_a_limit_bounds_what_counts_as_requested() -> None:
    queues = Queues()
    queues.replace_queues([make_queue("a", limit=1), make_queue("b")])
    request(queues, a=9, b=9)
    shares = compute_fair_shares(queues, {GPU: 8})
    assert [shares[name][GPU] for name in ("a", "b")] == [1, 7]


def test_queues_below_the_deepest_level_get_nothing() -> None:
    queues = Queues()
    names = [f"q{level}" for level in range(MAX_DEPTH + 1)]
    queues.replace_queues(
        make_queue(name, parent) for name, parent in zip(names, ["", *names], strict=False)
    )
    request(queues, **{names[-1]: 1})
    shares = compute_fair_shares(queues, {GPU: 1})
    assert shares[names[-2]][GPU] == 1
    assert names[-1] not in shares
