"""The lines that Muster reads: their shape, and how often they come."""

import json

import pytest

from muster_delivery.counters import RankCounters
from muster_delivery.log_lines import MAX_LINE, PREFIX, write_failure, write_text


def read_event(text: str) -> dict[str, object]:
    """Return the event of a first line."""
    line = text.splitlines()[0]
    assert len(line) < MAX_LINE
    event: dict[str, object] = json.loads(line.removeprefix(PREFIX))
    return event


def test_a_failure_stays_short_whatever_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ValueError("ß\n" * 5000)
    except ValueError as error:
        write_failure(3, error)
    event = read_event(capsys.readouterr().err)
    assert event["worker"] == 3
    assert str(event["error"]).startswith("ValueError: ß ß")
    assert str(event["where"]).startswith("test_log_lines.py:")


def test_a_sentence_is_never_taken_for_an_event(capsys: pytest.CaptureFixture[str]) -> None:
    write_text('{"event":\n"ready"}')
    assert capsys.readouterr().err == f'{PREFIX}"event": "ready"}}\n'


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_rank_tells_the_last_ten_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    counters = RankCounters(4, clock)
    times = []
    for second in range(1200):
        clock.now = 1000.0 + second
        counters.add(waited=0.25 if second < 600 else 0.75, elements=8)
        counters.add(computed=0.25)
        counters.write_line(depth=3, delivered=8 * (second + 1), epoch=1)
        if capsys.readouterr().err:
            times.append(second)
    counters.write_line(depth=3, delivered=9600, epoch=1, force=True)
    event = read_event(capsys.readouterr().err)
    assert times[:13] == [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 140, 170]
    assert {name: event[name] for name in ("event", "rank", "depth", "delivered", "epoch")} == {
        "event": "rank",
        "rank": 4,
        "depth": 3,
        "delivered": 9600,
        "epoch": 1,
    }
    assert event["span"] == 600
    assert event["waited"] == pytest.approx(450, rel=0.01)
    assert event["computed"] == pytest.approx(150, rel=0.01)
    assert event["rate"] == pytest.approx(8, rel=0.01)
