"""Who goes first where somebody has to give way, and in which parts, one row for each rule."""

from collections.abc import Sequence
from typing import Any

import pytest

from scheduling import GPU, Gang, Preemptibility
from scheduling.gangs import build_gang_book
from scheduling.shapes import ShapeTable
from scheduling.victims import VictimQueues
from tests.scheduling.builders import NOW, make_gang

SEMI = Preemptibility.SEMI_PREEMPTIBLE


def make_running(key: str, running: int = 1, **others: Any) -> Gang:
    return make_gang(key, "a", on=["n"] * running, **others)


def build_victims(gangs: Sequence[Gang]) -> VictimQueues:
    return VictimQueues(
        [build_gang_book(gang, lambda shape: shape) for gang in gangs], ShapeTable(None)
    )


def list_units(gangs: Sequence[Gang]) -> list[str]:
    """Take everything that queue a can give; return each unit's pods in a word."""
    victims = build_victims(gangs)
    units = []
    for entry in victims.list_entries("a"):
        while (unit := victims.build_unit(entry)) is not None:
            units.append(" ".join(pod.uid for pod in unit.pods))
    return units


UNITS: Sequence[tuple[str, Sequence[Gang], Sequence[str]]] = [
    (
        "the surplus goes one by one, the highest rank first, then the rest whole",
        [make_running("g", 4, minimum=2)],
        ["g-3", "g-2", "g-0 g-1"],
    ),
    ("a gang at its minimum goes whole", [make_running("g", 2)], ["g-0 g-1"]),
    (
        "the lower priority goes first",
        [make_running("high", priority=75), make_running("low")],
        ["low-0", "high-0"],
    ),
    (
        "the younger goes first",
        [make_running("old", created_at=NOW - 9), make_running("young", created_at=NOW - 1)],
        ["young-0", "old-0"],
    ),
    (
        "the surplus of all goes before the minimum of any",
        [
            make_running("old", 2, minimum=1, created_at=NOW - 9),
            make_running("young", created_at=NOW - 1),
        ],
        ["old-1", "young-0", "old-0"],
    ),
    (
        "a minimum of low priority goes before a surplus of high priority",
        [make_running("high", 2, minimum=1, priority=75), make_running("low")],
        ["low-0", "high-1", "high-0"],
    ),
    (
        "of a semi-preemptible gang only the surplus goes",
        [make_running("g", 3, minimum=2, preemptibility=SEMI)],
        ["g-2"],
    ),
    ("non-preemptible work does not go", [make_running("g", priority=100)], []),
    ("work of another scheduler does not go", [make_running("g", is_exempt=True)], []),
    (
        "who leaves anyway does not go again",
        [make_running("g", 3, minimum=1, leaving=1)],
        ["g-1", "g-0"],
    ),
    (
        "where some have succeeded, those are not missed at the minimum",
        [make_running("g", 2, minimum=3, succeeded=2)],
        ["g-1", "g-0"],
    ),
    (
        "what has fallen below its minimum goes whole",
        [make_running("g", 2, pods=3, minimum=3)],
        ["g-0 g-1"],
    ),
]


@pytest.mark.parametrize(
    ("gangs", "units"), [case[1:] for case in UNITS], ids=[case[0] for case in UNITS]
)
def test_units_go_in_this_order(gangs: Sequence[Gang], units: Sequence[str]) -> None:
    assert list_units(gangs) == units
    assert list_units(gangs[::-1]) == units


def test_only_queues_in_which_something_runs_are_listed() -> None:
    waiting = make_gang("waiting", "b")
    assert list(build_victims([make_running("g"), waiting]).list_queues()) == ["a"]


def test_a_unit_says_what_it_counts_for_in_its_queue() -> None:
    victims = build_victims([make_running("g", 3, gpus=2, minimum=2)])
    surplus, minimum = victims.list_entries("a")
    one, rest = victims.build_unit(surplus), victims.build_unit(minimum)
    assert one is not None
    assert rest is not None
    assert (one.amounts, rest.amounts) == ({GPU: 2}, {GPU: 4})


def test_a_minimum_is_kept_together_while_there_is_surplus() -> None:
    victims = build_victims([make_running("g", 3, minimum=2)])
    surplus, minimum = victims.list_entries("a")
    assert victims.build_unit(minimum) is None
    assert victims.build_unit(surplus) is not None
    assert victims.build_unit(surplus) is None


def test_pods_that_are_let_off_go_next_time() -> None:
    victims = build_victims([make_running("g", 3, minimum=1)])
    entry = victims.list_entries("a")[0]
    unit = victims.build_unit(entry)
    assert unit is not None
    unit.running.return_pods(unit.pods)
    again = victims.build_unit(entry)
    assert again is not None
    assert again.pods == unit.pods
