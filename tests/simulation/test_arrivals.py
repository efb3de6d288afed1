"""What came before is taken to come again."""

from dataclasses import replace

from scheduling import ClusterState, Gang
from simulation import Outlook, Past, RunLengths, forecast_starts
from simulation.alternatives import Alternative, play_alternatives
from simulation.arrivals import (
    MOST_ARRIVALS,
    PACE_SECONDS,
    count_daily_arrivals,
    draw_arrivals,
    list_arrivals,
    name_arrival,
)
from simulation.drawing import Drawing
from simulation.playing import COARSE, THOROUGH, choose_precision
from simulation.world import build_world
from tests.scheduling.builders import NOW, make_gang, make_node, make_queue, make_state
from tests.simulation.test_forecasting import HOUR, make_line_of_three, runs

DAY = 24 * HOUR


def make_past_gang(key: str, at: float, **fields: object) -> Gang:
    """Return a gang that came so many seconds before now."""
    return make_gang(key, "a", 2, **{"created_at": NOW - at, "priority": 75, **fields})  # type: ignore[arg-type]


def find_begin(days: float) -> float:
    """Return since when so many days are known, and the hours before them."""
    return NOW - days * DAY - PACE_SECONDS


def make_past(days: float = 3.0, *gangs: Gang) -> Past:
    return Past(gangs, find_begin(days))


def forecast_first(past: Past, **lengths: RunLengths) -> float | None:
    """Return when the first of two that wait for the end in an hour is likely to start."""
    known = {"runs": runs(2 * HOUR), "first": runs(HOUR), "second": runs(HOUR), **lengths}
    found = forecast_starts(make_line_of_three(), known, seed=1, past=past)
    assert found.keys() == {"first", "second"}
    assert "+before" not in [*found["first"].blockers, *found["second"].blockers]
    return found["first"].likely


def test_what_came_each_day_at_this_time_comes_today() -> None:
    alone = forecast_first(Past())
    assert alone is not None
    daily = [make_past_gang(f"before{day}", day * DAY - 600) for day in (1, 2, 3)]
    lengths = {gang.key: runs(2 * HOUR) for gang in daily}
    assert forecast_first(make_past(3, *daily), **lengths) == alone + 2 * HOUR


def test_a_part_of_a_day_says_nothing_of_the_next_one() -> None:
    gang = make_past_gang("before", DAY / 2)
    assert forecast_first(make_past(0.9, gang), before=runs(2 * HOUR)) == forecast_first(Past())


def test_what_comes_later_or_is_of_unknown_length_changes_nothing() -> None:
    late = make_past_gang("before", DAY - 3 * HOUR)
    assert forecast_first(make_past(1, late), before=runs(HOUR)) == forecast_first(Past())
    soon = make_past_gang("before", DAY - 60)
    assert forecast_first(make_past(1, soon)) == forecast_first(Past())


def test_who_comes_is_drawn_from_the_days_that_are_known() -> None:
    gangs = [make_past_gang(f"day{day}", day * DAY - 60 * day) for day in range(1, 30)]
    world = build_world(make_line_of_three(), gangs, find_begin(3))
    drawn = {tuple(book.key for book in draw_arrivals(world, str(seed))) for seed in range(40)}
    assert drawn == {("day1",), ("day2",), ("day3",)}
    long = build_world(make_line_of_three(), gangs, find_begin(29))
    drawn = {tuple(book.key for book in draw_arrivals(long, str(seed))) for seed in range(300)}
    assert len(drawn) == 14
    (book,) = draw_arrivals(world, "1")
    assert 0 <= book.created_at - NOW <= 180
    assert book.waiting
    assert not book.placed


def test_on_a_quiet_day_less_comes() -> None:
    # One came each minute, and today nobody has for six hours.
    gangs = [
        make_past_gang(f"before{number}", 2 * DAY - number * 60) for number in range(-360, 2520)
    ]
    world = build_world(make_line_of_three(), gangs, find_begin(2))
    counts = [len(draw_arrivals(world, str(seed))) for seed in range(20)]
    assert max(counts) < 40
    busy = [make_past_gang(f"today{number}", number * 60 + 1) for number in range(360)]
    world = build_world(make_line_of_three(), [*gangs, *busy], find_begin(2))
    assert max(len(draw_arrivals(world, str(seed))) for seed in range(20)) > 300


def test_on_a_busy_day_as_many_more_come_for_some_hours() -> None:
    before = [make_past_gang(f"before{number}", DAY - number * 600) for number in range(-36, 108)]
    today = [make_past_gang(f"today{number}", number * 60 + 1) for number in range(360)]
    world = build_world(make_line_of_three(), [*before, *today], find_begin(1))
    books = draw_arrivals(world, "1")
    assert len({book.key for book in books}) == len(books)
    # Of 360 in six hours 36 are what came then.
    soon = [book for book in books if book.created_at < NOW + PACE_SECONDS]
    assert 290 < sum(book.key.startswith("today") for book in soon) < 350
    assert len(books) == len(before[36:]) + len(today)
    assert books == sorted(books, key=lambda book: book.created_at)


def test_of_more_than_are_played_some_of_the_whole_day_come() -> None:
    numbers = range(2 * MOST_ARRIVALS)
    gangs = [make_past_gang(f"before{number}", DAY - number / 10) for number in numbers]
    world = build_world(make_line_of_three(), gangs, find_begin(1))
    books = draw_arrivals(world, "1")
    assert [book.key for book in books] == [f"before{number}" for number in numbers[::2]]


def make_guaranteed_past() -> tuple[ClusterState, Past, dict[str, RunLengths]]:
    """Return a node that runs full for an hour, one that waits, and guaranteed work of a past."""
    gangs = [
        make_gang("runs", "b", 8, on=["n1"], priority=100),
        make_gang("waits", "b", 8, priority=100),
    ]
    state = make_state([make_node("n1", 8)], [make_queue("b", quota=8)], gangs)
    before = make_gang("before", "b", 8, priority=125, created_at=NOW - DAY + 600)
    lengths = {"runs": runs(2 * HOUR), "waits": runs(HOUR), "before": runs(10 * HOUR)}
    return state, make_past(1, before), lengths


def test_each_draw_begins_with_nobody_who_came_in_another() -> None:
    state, past, lengths = make_guaranteed_past()
    world = build_world(state, list_arrivals(past, lengths), past.since)
    known = {**lengths, name_arrival("before"): lengths["before"]}
    drawing = Drawing(world, known, 1, COARSE, DAY, ["waits"])
    draws = [drawing.play(number) for number in (0, 1, 2)]
    assert [draw and draw.starts for draw in draws] == [{"+before": HOUR, "waits": 11 * HOUR}] * 3
    found = forecast_starts(state, lengths, seed=1, past=past)
    assert found["waits"].likely == 11 * HOUR


def test_nobody_waits_for_the_unknown_end_of_who_may_come() -> None:
    state, past, lengths = make_guaranteed_past()
    # Most of its like go on after the last end that is known.
    endless = RunLengths([100.0] * 3, [1e6] * 50)
    found = forecast_starts(state, lengths | {"before": endless}, seed=1, past=past)
    assert found["waits"].outlook is Outlook.TOO_LATE


def test_where_many_come_a_cluster_is_played_less_closely() -> None:
    gangs = [make_past_gang(f"before{number}", number * 60) for number in range(900)]
    world = build_world(make_line_of_three(), gangs, find_begin(3))
    assert count_daily_arrivals(world) == 300
    assert choose_precision(2, 1) == THOROUGH
    assert choose_precision(2, 1 + count_daily_arrivals(world)) == COARSE


def test_work_that_waits_and_came_before_counts_once_as_itself() -> None:
    """What is in the state and in the past has keys and uids of its own where it comes again."""
    state = make_line_of_three()
    again = replace(state.gangs[1], created_at=NOW - DAY + 60)
    found = forecast_starts(
        state,
        {"runs": runs(2 * HOUR), "first": runs(HOUR), "second": runs(HOUR)},
        seed=1,
        past=make_past(1, again),
    )
    assert {key: each.outlook for key, each in found.items()} == {
        "first": Outlook.STARTS,
        "second": Outlook.STARTS,
    }
    # It comes behind both, at their priority.
    assert found["second"].likely == 2 * HOUR


def test_alternatives_are_played_with_what_comes() -> None:
    gang = make_gang("mine", "a", 2, created_at=NOW - 10)
    running = make_gang("runs", "a", 2, on=["n1"], started_at=NOW, priority=100)
    state = make_state([make_node("n1", 2)], [make_queue("a")], [running, gang])
    lengths = {"runs": runs(HOUR), "mine": runs(HOUR), "before": runs(2 * HOUR)}
    higher = Alternative("a higher priority", replace(gang, priority=90))
    alternatives = [Alternative("as it is", gang), higher]

    def play(past: Past) -> dict[str, float | None]:
        answers = play_alternatives(
            state, lengths, alternatives, seed=1, horizon=DAY, most_seconds=60, past=past
        )
        return {answer.key: answer.likely for answer in answers}

    assert play(Past()) == {"as it is": HOUR}
    soon = make_past_gang("before", DAY - 600)
    assert play(make_past(1, soon)) == {"as it is": 3 * HOUR, "a higher priority": HOUR}
