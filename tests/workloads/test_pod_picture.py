"""Pods over time as a picture: steps, bounds and marks in their places, bounded in size. Pure."""

from datetime import UTC, datetime, timedelta

import pytest

from workloads.overview.pod_picture import Bounds, PodPicture, build_pod_picture

BEGIN = datetime(2026, 11, 20, 12, tzinfo=UTC)
END = BEGIN + timedelta(seconds=100)


def build_picture(
    *steps: tuple[float, int],
    bounds: Bounds = Bounds(),  # noqa: B008
    marks: tuple[tuple[float, bool], ...] = (),
) -> PodPicture:
    return build_pod_picture(
        [(BEGIN + timedelta(seconds=seconds), count) for seconds, count in steps],
        BEGIN,
        END,
        bounds,
        [(BEGIN + timedelta(seconds=seconds), is_loss) for seconds, is_loss in marks],
    )


def test_each_step_is_a_line_and_the_last_goes_on_to_the_end() -> None:
    picture = build_picture((0, 4), (50, 2), (75, 4))
    assert picture.line == "M0 120V4H500V62H750V4H1000"
    assert picture.area == "M0 120V4H500V62H750V4H1000V120H0Z"


def test_what_has_ended_ends_in_the_picture() -> None:
    assert build_picture((0, 1), (50, 0)).line == "M0 120V4H500V120"


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (Bounds(), []),
        (Bounds(2, 4), [("least", 62.0, "minimum: 2 pods"), ("most", 4.0, "maximum: 4 pods")]),
        (
            Bounds(1, 4, 2),
            [
                ("quota", 62.0, "quota: room for 2 pods"),
                ("least", 91.0, "minimum: 1 pod"),
                ("most", 4.0, "maximum: 4 pods"),
            ],
        ),
        (Bounds(2, 4, 8), [("quota", 4.0), ("least", 91.0), ("most", 62.0)]),
        (Bounds(2, 4, 800), [("least", 62.0), ("most", 4.0)]),
        (Bounds(quota=0), [("quota", 120.0, "quota: room for 0 pods")]),
    ],
)
def test_bounds_are_lines_unless_they_are_far_above(
    bounds: Bounds, expected: list[tuple[str | float, ...]]
) -> None:
    lines = build_picture((0, 4), bounds=bounds).lines
    assert [
        (line.name, line.y, line.words)[: len(wanted)]
        for line, wanted in zip(lines, expected, strict=True)
    ] == expected


def test_the_words_say_all_of_it() -> None:
    picture = build_picture((0, 4), (50, 2), bounds=Bounds(2, 4, 2))
    assert picture.words == (
        "Pods over time: 2 pods now, at most 4; minimum 2, maximum 4, room in the quota 2"
    )
    assert build_picture((0, 1)).words == "Pods over time: 1 pod now"
    ended = build_pod_picture([(BEGIN, 4), (END, 0)], BEGIN, END, Bounds(), is_running=False)
    assert ended.words == "Pods over time: at most 4 pods, ended"


def test_marks_have_numbers_and_those_that_lie_on_each_other_are_one() -> None:
    marks = build_picture(
        (0, 4), marks=((10, True), (50, False), (51, True), (52, False), (90, False), (500, True))
    ).marks
    assert [(mark.label, mark.percent, mark.is_loss) for mark in marks] == [
        ("1", 10.0, True),
        ("2–4", 50.0, True),
        ("5", 90.0, False),
        ("6", 100.0, True),
    ]


def test_ten_thousand_changes_are_a_bounded_picture_that_keeps_the_extremes() -> None:
    steps = [(number / 100, 2 + number % 2) for number in range(10_000)]
    steps[5003] = (50.03, 9)
    steps[7003] = (70.03, 0)
    picture = build_picture(*steps)
    assert len(picture.line) < 40_000
    assert "V4H" in picture.line
    assert "V120H" in picture.line
    assert [tick.count for tick in picture.ticks] == [0, 3, 6, 9]


@pytest.mark.parametrize("highest", [1, 2, 3, 4, 5, 7, 64, 2000])
def test_the_axis_has_few_numbers(highest: int) -> None:
    counts = [tick.count for tick in build_picture((0, highest)).ticks]
    assert counts[0] == 0
    assert len(counts) <= 5


@pytest.mark.parametrize(("highest", "is_wide"), [(999, False), (1000, True), (20_000, True)])
def test_numbers_of_many_digits_have_a_wider_column(highest: int, is_wide: bool) -> None:
    assert build_picture((0, highest)).has_wide_ticks is is_wide


def test_an_instant_is_a_picture_too() -> None:
    assert build_pod_picture([(BEGIN, 1)], BEGIN, BEGIN, Bounds()).line == "M0 120V4H1000"
