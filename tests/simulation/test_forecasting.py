"""Forecasts of starts: what they say of plain clusters, and how near they are to plain replay."""

import random
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pytest

from scheduling import GPU, ClusterState, Gang
from scheduling.shapes import count_shapes
from simulation import Outlook, RunLengths, forecast_starts
from simulation.forecasting import LEAST_DRAWS
from simulation.lines import Lines
from simulation.playing import COARSE, COARSEST, THOROUGH, Player, Precision
from simulation.world import ScaledState, build_scaled_world, build_world, scale_state
from tests.scheduling.builders import (
    GIB,
    NOW,
    make_gang,
    make_node,
    make_queue,
    make_shape,
    make_state,
)
from tests.simulation.replay import play_exactly, settle

HOUR = 3600.0
EXACT = Precision(is_thorough=True, merged_share=0.0)


def runs(seconds: float) -> RunLengths:
    """Return lengths that are all alike."""
    return RunLengths([seconds] * 3)


def make_line_of_three() -> ClusterState:
    """Return one node that is full for another hour, and two that wait for it."""
    return make_state(
        [make_node("n1", 2)],
        [make_queue("a")],
        [
            make_gang("runs", "a", 2, on=["n1"]),
            make_gang("first", "a", 2, created_at=NOW - 200),
            make_gang("second", "a", 2, created_at=NOW - 100),
        ],
    )


def test_those_who_wait_start_when_those_before_them_end() -> None:
    lengths = {"runs": runs(2 * HOUR), "first": runs(HOUR / 2), "second": runs(HOUR)}
    found = forecast_starts(make_line_of_three(), lengths, seed=1)
    assert {key: (each.outlook, each.likely, each.position) for key, each in found.items()} == {
        "first": (Outlook.STARTS, HOUR, 1),
        "second": (Outlook.STARTS, 1.5 * HOUR, 2),
    }
    assert found["first"].blockers == ["runs"]
    assert found["second"].blockers == ["first"]
    assert found["first"].earliest == found["first"].latest == HOUR


def test_what_gave_way_before_goes_on_where_it_was() -> None:
    state = make_line_of_three()
    gangs = [
        replace(gang, started_at=NOW - HOUR / 4) if gang.key == "first" else gang
        for gang in state.gangs
    ]
    lengths = {"runs": runs(2 * HOUR), "first": runs(HOUR / 2), "second": runs(HOUR)}
    found = forecast_starts(replace(state, gangs=gangs), lengths, seed=1)["second"]
    assert (found.outlook, found.likely) == (Outlook.STARTS, 1.25 * HOUR)
    assert found.blockers == ["first"]


def make_begun_gang(started_at: float | None) -> ClusterState:
    """Return a node on which one of a gang's two pods has its place, and other work the rest."""
    return make_state(
        [make_node("n1", 2)],
        [make_queue("a")],
        [
            make_gang("begun", "a", pods=2, on=["n1"], created_at=NOW - 300, started_at=started_at),
            make_gang("runs", "a", on=["n1"]),
            make_gang("after", "a", 2, created_at=NOW - 100),
        ],
    )


@pytest.mark.parametrize(
    ("started_at", "after"), [(None, 1.5 * HOUR), (NOW - HOUR / 4, 1.25 * HOUR)]
)
def test_a_gang_with_a_part_of_its_pods_ends_after_it_has_all(
    started_at: float | None, after: float
) -> None:
    lengths = {"runs": runs(2 * HOUR), "begun": runs(HOUR / 2), "after": runs(HOUR)}
    found = forecast_starts(make_begun_gang(started_at), lengths, seed=1)
    assert {key: (each.outlook, each.likely) for key, each in found.items()} == {
        "begun": (Outlook.STARTS, HOUR),
        "after": (Outlook.STARTS, after),
    }


def test_a_gang_with_a_part_of_its_pods_waits_for_work_of_unknown_end() -> None:
    found = forecast_starts(make_begun_gang(None), {"begun": runs(HOUR)}, seed=1)
    assert {key: (each.outlook, each.blockers) for key, each in found.items()} == {
        "begun": (Outlook.NO_END, ["runs"]),
        "after": (Outlook.NO_END, ["begun", "runs"]),
    }


def test_a_gang_of_which_some_have_succeeded_runs_with_the_rest() -> None:
    state = make_begun_gang(NOW - HOUR / 4)
    gangs = [
        replace(gang, succeeded=1, min_member=2) if gang.key == "begun" else gang
        for gang in state.gangs
    ]
    lengths = {"runs": runs(2 * HOUR), "begun": runs(HOUR / 2), "after": runs(HOUR)}
    found = forecast_starts(replace(state, gangs=gangs), lengths, seed=1)
    assert {key: (each.outlook, each.likely) for key, each in found.items()} == {
        "after": (Outlook.STARTS, HOUR),
    }


def test_the_spread_is_that_of_the_lengths() -> None:
    lengths = {"runs": RunLengths([2 * HOUR, 3 * HOUR, 4 * HOUR, 5 * HOUR, 6 * HOUR])}
    found = forecast_starts(make_line_of_three(), lengths, seed=1)["first"]
    times = [time for time in (found.earliest, found.likely, found.latest) if time is not None]
    assert len(times) == 3
    assert HOUR <= times[0] < times[1] < times[2] <= 5 * HOUR


def test_what_waits_for_work_of_unknown_end_has_no_start() -> None:
    found = forecast_starts(make_line_of_three(), {"first": runs(HOUR)}, seed=1)
    assert {each.outlook for each in found.values()} == {Outlook.NO_END}
    assert found["first"].blockers == ["runs"]


def test_what_waits_behind_waiting_work_of_unknown_length_has_no_start() -> None:
    lengths = {"runs": runs(2 * HOUR), "second": runs(HOUR)}
    found = forecast_starts(make_line_of_three(), lengths, seed=1)
    assert found["first"].likely == HOUR
    assert found["second"].outlook is Outlook.NO_END


def test_what_it_waits_for_is_what_holds_what_it_wants() -> None:
    away = make_shape(0, cpu=4)
    wanted = make_shape(2, mismatches={"n2": "taint"})
    state = make_state(
        [make_node("n1", 2), make_node("n2", 2)],
        [make_queue("a")],
        [
            make_gang("many", "a", shape=away, on=["n1"] * 9),
            make_gang("elsewhere", "a", 2, on=["n2"]),
            make_gang("holds", "a", 2, on=["n1"]),
            make_gang("waits", "a", shape=wanted),
        ],
    )
    found = forecast_starts(state, {"waits": runs(HOUR)}, seed=1)
    assert found["waits"].outlook is Outlook.NO_END
    assert found["waits"].blockers == ["holds"]


def test_it_draws_no_more_when_its_time_is_over() -> None:
    lengths = {"runs": RunLengths([2 * HOUR, 3 * HOUR, 4 * HOUR, 5 * HOUR, 6 * HOUR])}
    found = forecast_starts(make_line_of_three(), lengths, seed=1, most_seconds=0.0)
    assert found["first"].draws == 1


def test_what_starts_beyond_the_horizon_is_too_late() -> None:
    lengths = {"runs": runs(50 * HOUR), "first": runs(HOUR), "second": runs(HOUR)}
    found = forecast_starts(make_line_of_three(), lengths, seed=1)
    assert {each.outlook for each in found.values()} == {Outlook.TOO_LATE}


def test_what_fits_nowhere_never_starts() -> None:
    state = ClusterState(
        NOW,
        [make_node("n1", 2)],
        [make_queue("a"), make_queue("limited", limit=1)],
        [make_gang("huge", "a", 4), make_gang("over", "limited", 2), make_gang("lost", "none")],
    )
    found = forecast_starts(state, {}, seed=1)
    assert {each.outlook for each in found.values()} == {Outlook.NEVER}


@pytest.mark.parametrize(
    ("devices", "limit", "outlook"),
    [(3, None, Outlook.NEVER), (4, 3, Outlook.NEVER), (4, None, Outlook.NO_END)],
    ids=["no room", "no more allowed", "room that another holds"],
)
def test_the_rest_of_a_gang_has_no_room_that_the_gang_holds_itself(
    devices: int, limit: int | None, outlook: Outlook
) -> None:
    part = make_gang("part", "a", 2, pods=2, on=["n1"], priority=100)
    others = [make_gang("other", "b", 2, on=["n2"])] if outlook is Outlook.NO_END else []
    state = make_state(
        [make_node("n1", 2), make_node("n2", devices - 2)],
        [make_queue("a", quota=4, limit=limit), make_queue("b", quota=2)],
        [part, *others],
    )
    found = forecast_starts(state, {}, seed=1)
    assert found["part"].outlook is outlook


def test_a_reclaim_is_foreseen() -> None:
    state = make_state(
        [make_node("n1", 4)],
        [make_queue("a", quota=2), make_queue("b", quota=2)],
        [
            make_gang("mine", "a", 2, on=["n1"]),
            make_gang("over", "a", 2, on=["n1"], created_at=NOW - 10),
            make_gang("late", "b", 2),
        ],
    )
    found = forecast_starts(state, {"mine": runs(9 * HOUR), "over": runs(9 * HOUR)}, seed=1)
    assert found["late"].likely == 0.0


@pytest.mark.parametrize("precision", [EXACT, THOROUGH, COARSE, COARSEST])
def test_who_has_a_delay_takes_nothing_before_its_end(precision: Precision) -> None:
    gangs = [
        make_gang("over", "a", 1, on=["n1"]),
        make_gang("ends", "c", 1, on=["n2"]),
        make_gang("waits", "b", 1, created_at=NOW, preemption_delay=2 * HOUR),
        make_gang("large", "b", 2, created_at=NOW, preemption_delay=2 * HOUR),
    ]
    queues = [make_queue("a"), make_queue("b", quota=1), make_queue("c", quota=1)]
    nodes = [make_node("n1", 1), make_node("n2", 1, device_memory=None)]
    state = make_state(nodes, queues, gangs)
    lengths = {gang.key: runs(9 * HOUR) for gang in gangs} | {"ends": runs(4 * HOUR)}
    found = forecast_starts(state, lengths, seed=1, precision=precision)
    assert found["waits"].likely == pytest.approx(2 * HOUR, abs=1)


@pytest.mark.parametrize("precision", [EXACT, THOROUGH, COARSE, COARSEST])
@pytest.mark.parametrize("seconds", [60, 1000, 9000])
def test_the_end_of_a_protection_is_waited_for(precision: Precision, seconds: float) -> None:
    gangs = [make_gang("holds", "a", 1, on=["n1"]), make_gang("waits", "b", 1)]
    queues = [make_queue("a", reclaim_min_runtime=HOUR + seconds), make_queue("b", quota=1)]
    state = make_state([make_node("n1", 1)], queues, gangs)
    lengths = {"holds": runs(90 * HOUR), "waits": runs(HOUR)}
    found = forecast_starts(state, lengths, seed=1, precision=precision)
    assert found["waits"].likely == pytest.approx(seconds, abs=1)


@pytest.mark.parametrize("precision", [EXACT, THOROUGH, COARSE, COARSEST])
def test_what_ends_before_a_delay_does_changes_nothing(precision: Precision) -> None:
    gangs = [
        make_gang("low", "a", 1, on=["n1"]),
        make_gang("ends", "a", 0, on=["n1"], shape=make_shape(0, cpu=1)),
        make_gang("high", "a", 1, priority=75, created_at=NOW, preemption_delay=300),
    ]
    state = make_state([make_node("n1", 1)], [make_queue("a")], gangs)
    lengths = {"low": runs(90 * HOUR), "ends": runs(HOUR + 100), "high": runs(HOUR)}
    found = forecast_starts(state, lengths, seed=1, precision=precision)
    assert found["high"].likely == pytest.approx(300, abs=1)


@pytest.mark.parametrize("precision", [THOROUGH, COARSE, COARSEST])
def test_among_equal_queues_the_older_goes_first(precision: Precision) -> None:
    """The first of a finds no node: who is behind it does not take its turn."""
    nowhere = make_shape(1, mismatches={"n1": "mismatch"})
    gangs = [
        make_gang("never", "a", 1, shape=nowhere, created_at=NOW - 100),
        make_gang("younger", "a", 1, created_at=NOW - 10),
        make_gang("older", "b", 1, created_at=NOW - 50),
    ]
    queues = [make_queue(name, quota=1) for name in "ab"]
    state = make_state([make_node("n1", 1)], queues, gangs)
    lengths = {gang.key: runs(HOUR) for gang in gangs}
    found = forecast_starts(state, lengths, seed=1, precision=precision)
    assert (found["older"].likely, found["younger"].likely) == (0.0, HOUR)


@pytest.mark.parametrize("precision", [EXACT, THOROUGH, COARSE, COARSEST])
def test_those_behind_who_took_from_others_wait_no_longer(precision: Precision) -> None:
    gangs = [
        *(make_gang(f"over-{index}", "a", 1, on=["n1"]) for index in range(2)),
        *(make_gang(f"equal-{index}", "b", 1, created_at=NOW - 100 + index) for index in range(4)),
    ]
    queues = [make_queue("a"), make_queue("b", quota=2)]
    state = make_state([make_node("n1", 2)], queues, gangs)
    lengths = {gang.key: runs(HOUR) for gang in gangs} | {"equal-1": runs(5 * HOUR)}
    found = forecast_starts(state, lengths, seed=1, precision=precision)
    starts = [found[f"equal-{index}"].likely for index in range(4)]
    assert starts == [0.0, 0.0, HOUR, 2 * HOUR]


@pytest.mark.parametrize("precision", [THOROUGH, COARSE, COARSEST])
def test_what_gets_no_room_decides_whose_turn_it_is(precision: Precision) -> None:
    """Were the first of a not too large for its share, the small one would be the oldest."""
    gangs = [
        make_gang("mine", "a", 1, on=["n1"]),
        make_gang("yours", "b", 1, on=["n1"]),
        make_gang("large", "a", 4, created_at=NOW - 300),
        make_gang("small", "a", 1, created_at=NOW - 200),
        make_gang("other", "b", 1, created_at=NOW - 100),
    ]
    state = make_state([make_node("n1", 3)], [make_queue("a"), make_queue("b")], gangs)
    lengths = {gang.key: runs(9 * HOUR) for gang in gangs}
    found = forecast_starts(state, lengths, seed=1, precision=precision)
    assert found["other"].likely == 0.0
    assert found["small"].likely != 0.0
    without = replace(state, gangs=[gang for gang in state.gangs if gang.key != "large"])
    found = forecast_starts(without, lengths, seed=1, precision=precision)
    assert found["small"].likely == 0.0


def test_on_the_largest_clusters_no_more_are_drawn_than_have_to_be() -> None:
    state, lengths = make_busy_world(3, nodes=3, waiting=5)
    few, many = (
        {each.draws for each in forecast_starts(state, lengths, seed=5, precision=way).values()}
        for way in (COARSEST, COARSE)
    )
    assert few == {LEAST_DRAWS}
    assert min(many) > LEAST_DRAWS


def test_the_same_seed_gives_the_same_answer() -> None:
    state, lengths = make_busy_world(3, nodes=3, waiting=5)
    assert forecast_starts(state, lengths, seed=5) == forecast_starts(state, lengths, seed=5)
    assert forecast_starts(state, lengths, seed=5) != forecast_starts(state, lengths, seed=6)


def share_devices(state: ClusterState) -> ClusterState:
    """Return the state with a third, or some MiB, of a device for each pod that waits for one."""
    shapes = [make_shape(part=Fraction(1, 3), cpu=Fraction(7, 2)), make_shape(mib=30_000)]
    gangs = [
        gang
        if gang.pods[0].node or gang.pods[0].shape.amounts[GPU] > 1
        else replace(gang, pods=[replace(pod, shape=shapes[at % 2]) for pod in gang.pods])
        for at, gang in enumerate(state.gangs)
    ]
    nodes = [replace(node, device_memory=80_000) for node in state.nodes]
    return replace(state, nodes=nodes, gangs=gangs)


def test_whole_units_change_nothing() -> None:
    state, lengths = make_busy_world(3, nodes=6, waiting=40)
    state = share_devices(state)
    scaled = scale_state(state)
    assert scaled.whole_device == 24
    world, exact = build_world(state), build_scaled_world(ScaledState(state))
    charges = [
        amount
        for book in world.books
        for amount in world.shapes.sum_charges(count_shapes(book.waiting.values())).values()
    ]
    assert charges
    assert not [amount for amount in charges if not isinstance(amount, int)]
    waiting = [book.key for book in world.books if not book.placed]
    first, second = (
        Player(each, lengths, "1", COARSE).play(24 * HOUR, waiting) for each in (world, exact)
    )
    assert len(first.starts) > 20
    assert first == second


def test_devices_are_counted_in_a_million_parts_where_no_smaller_number_divides() -> None:
    state, _ = make_busy_world(3, nodes=2, waiting=15)
    state = share_devices(state)
    memories = zip(state.nodes, (81_559, 46_068), strict=True)
    state = replace(state, nodes=[replace(node, device_memory=each) for node, each in memories])
    world = build_world(state)
    assert scale_state(state).whole_device == 1_000_000
    (third,) = {
        pod.shape
        for book in world.books
        for pod in book.waiting.values()
        if pod.shape.share and pod.shape.share.fraction
    }
    assert world.shapes.sum_charges({third: 3})[GPU] == 999_999
    assert world.queues.capacity[GPU] == 16_000_000


def test_equal_gangs_stand_in_one_line_and_are_placed_in_order() -> None:
    gangs = [make_gang(f"g{age}", "a", 1, created_at=NOW - age) for age in range(5)]
    state = ClusterState(NOW, [make_node("n1", 2)], [make_queue("a")], gangs)
    lines = Lines()
    books = build_world(state).copy_books()
    for book in books:
        lines.add_gang(book)
    line, behind = lines.take_head(books[0]) or (None, None)
    assert line
    assert behind is books[4]
    lines.add_gang(books[0])
    assert lines.find_head(line) is books[4]
    lines.remove_gang(books[4])
    assert lines.find_head(line) is books[3]
    assert lines.list_behind(books[3], 2) == [books[2], books[1]]


@pytest.mark.parametrize(("precision", "least"), [(EXACT, 0.9), (THOROUGH, 0.9), (COARSE, 0.8)])
def test_single_draws_are_near_to_plain_replay(precision: Precision, least: float) -> None:
    """One draw, of whose errors each has others for its consequence; a likely start is nearer."""
    near = total = 0
    for seed in range(3):
        state, lengths = make_busy_world(seed, nodes=8, waiting=15)
        world = build_world(state)
        waiting = [book.key for book in world.books if not book.placed]
        draw = Player(world, lengths, "1", precision).play(24 * HOUR, waiting)
        starts = play_exactly(state, find_remaining(state, lengths), 24 * HOUR)
        total += len(waiting)
        near += sum(
            abs(draw.starts.get(key, 48 * HOUR) - start) <= 0.1 * start + 60
            for key in waiting
            for start in [starts.get(key, 48 * HOUR)]
        )
    print(f"{near / total:.0%} of {total} starts are near")
    assert near / total >= least


def find_remaining(state: ClusterState, lengths: Mapping[str, RunLengths]) -> Mapping[str, float]:
    """Return the same lengths that the draw named "1" has, from now on."""
    remaining = {}
    for gang in state.gangs:
        is_running = gang.started_at is not None and any(pod.node for pod in gang.pods)
        elapsed = state.now - gang.started_at if is_running and gang.started_at else 0.0
        length = lengths[gang.key].draw(random.Random(f"1 {gang.key}"), elapsed)
        if length is not None:
            remaining[gang.key] = max(0.0, length - elapsed)
    return remaining


def make_busy_world(
    seed: int, *, nodes: int, waiting: int
) -> tuple[ClusterState, Mapping[str, RunLengths]]:
    """Return a full cluster at rest, with queues of two departments, and lengths of heavy tails."""
    draw = random.Random(seed)
    shapes = {size: make_shape(size, cpu=Fraction(7, 2), memory=GIB) for size in (1, 2, 4, 8)}
    queues = [make_queue(f"d{index}", quota=nodes * 4) for index in range(2)]
    queues += [make_queue(f"q{index}", f"d{index % 2}", quota=nodes * 2) for index in range(4)]
    gangs: list[Gang] = []
    for index in range(nodes * 4 + waiting):
        pods = draw.choice([1, 1, 2])
        gangs.append(
            make_gang(
                f"g{index}",
                f"q{draw.randrange(4)}",
                pods=pods,
                shape=shapes[draw.choice([1, 1, 2, 4, 8])],
                priority=draw.choice([50, 50, 75]),
                created_at=NOW - 20_000 + index,
            )
        )
    state = settle(
        ClusterState(NOW, [make_node(f"n{at}", 8) for at in range(nodes)], queues, gangs)
    )
    assert state is not None
    running = [
        replace(gang, started_at=NOW - draw.random() * 5000)
        for gang in state.gangs
        if gang.pods[0].node
    ]
    others = [gang for gang in state.gangs if not gang.pods[0].node][:waiting]
    lengths = {
        gang.key: RunLengths([draw.lognormvariate(8, 1.2) for _ in range(20)])
        for gang in [*running, *others]
    }
    return replace(state, gangs=[*running, *others]), lengths
