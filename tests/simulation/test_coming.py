"""What came before is taken to come again."""

from dataclasses import replace

from scheduling import Gang
from simulation import Outlook, Past, RunLengths, forecast_starts
from simulation.alternatives import Alternative, play_alternatives
from simulation.coming import MOST_COMING, draw_coming
from simulation.world import build_world
from tests.scheduling.builders import NOW, make_gang, make_node, make_queue, make_state
from tests.simulation.test_forecasting import HOUR, make_line_of_three, runs

DAY = 24 * HOUR


def make_past_gang(key: str, at: float, **fields: object) -> Gang:
    """Return a gang that came so many seconds before now."""
    return make_gang(key, "a", 2, **{"created_at": NOW - at, "priority": 75, **fields})  # type: ignore[arg-type]


def make_past(days: float = 3.0, *gangs: Gang) -> Past:
    return Past(gangs, NOW - days * DAY)


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
    world = build_world(make_line_of_three(), gangs, NOW - 3 * DAY)
    drawn = {tuple(book.key for book in draw_coming(world, str(seed))) for seed in range(40)}
    assert drawn == {("day1",), ("day2",), ("day3",)}
    long = build_world(make_line_of_three(), gangs, NOW - 29 * DAY)
    drawn = {tuple(book.key for book in draw_coming(long, str(seed))) for seed in range(300)}
    assert len(drawn) == 14
    (book,) = draw_coming(world, "1")
    assert 0 <= book.created_at - NOW <= 180
    assert book.waiting
    assert not book.placed


def test_no_more_come_than_are_played() -> None:
    gangs = [
        make_past_gang(f"before{number}", DAY - number / 10) for number in range(MOST_COMING + 5)
    ]
    world = build_world(make_line_of_three(), gangs, NOW - DAY)
    books = draw_coming(world, "1")
    assert [book.key for book in books] == [f"before{number}" for number in range(MOST_COMING)]


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
