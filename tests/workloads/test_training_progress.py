"""Progress read from lines of logs: every form of the table, hostile lines, estimates, history."""

import math
import re
import time
from pathlib import Path
from typing import Any

import pytest

from workloads.training_progress import (
    VARIABLE,
    BadPattern,
    LineParser,
    LossHistory,
    Place,
    RankState,
    add_point,
    check_own_pattern,
    decode_history,
    estimate_rest,
    find_place,
    is_by_step,
)
from workloads.training_progress.estimating import Pace, describe_pace
from workloads.training_progress.parsing import LONGEST_PATTERN, compile_own_pattern
from workloads.training_progress.readings import Metric

DATA = Path(__file__).parent / "data" / "progress"

EXPECTED: dict[str, dict[str, Any]] = {
    "tqdm": {"pattern": "tqdm", "step": 300, "total": 500, "loss": 1.3},
    # The third bar of as many steps: how many there will be, nobody knows.
    "tqdm_rounds": {"pattern": "tqdm", "step": 230, "total": None, "epoch_step": 30},
    "lightning": {
        "pattern": "lightning",
        "step": 22,
        "total": None,
        "epoch": 1,
        "epoch_step": 4,
        "epoch_steps": 18,
        "loss": 9.85,
    },
    "huggingface": {
        "step": 200,
        "total": 1377,
        "epoch": 0.44,
        "epochs": 3,
        "loss": 0.5102,
        "learning_rate": 4.274e-05,
    },
    "keras2": {
        "pattern": "keras",
        "step": 469 + 235,
        "total": 4690,
        "epoch": 2,
        "epochs": 10,
        "loss": 0.231,
    },
    "keras3": {"pattern": "keras", "step": 938, "total": 2345, "epoch": 2, "loss": 0.227},
    "deepspeed": {
        "pattern": "deepspeed",
        "step": 35,
        "total": None,
        "learning_rate": 2.1731931451279077e-06,
        "samples_per_second": 8.00912418308922,
    },
    "deepspeed_old": {"step": 40, "samples_per_second": 83.48609168106144},
    "megatron": {
        "pattern": "megatron",
        "step": 123,
        "total": 250_000,
        "loss": 2.493043,
        "learning_rate": 9.225e-06,
        "samples_per_second": 12.5,
    },
    "neox": {"step": 34, "total": 10_000, "loss": 11.18665, "samples_per_second": 7.799},
    "allreduce": {"pattern": "plain", "step": 120, "total": 200, "loss": 0.31},
    "elastic": {"pattern": "plain", "step": 120, "total": None, "loss": 0.31},
    "mnist": {"step": 60640, "total": None, "epoch": 2, "epoch_step": 640, "loss": 0.2565},
    "imagenet": {"step": 5015, "epoch": 1, "epoch_step": 10, "epoch_steps": 5005, "loss": 6.9321},
    "tutorial": {"step": 900, "total": 3000, "epoch": 2, "epochs": 5, "loss": 0.2345},
    "nanogpt": {"pattern": "plain", "step": 1010, "loss": 2.095},
    "json_lines": {
        "pattern": "json",
        "step": 250,
        "total": 1000,
        "epoch": 0.5,
        "loss": None,
        "has_bad_loss": True,
        "learning_rate": 0.0003,
        "samples_per_second": 512.5,
    },
    "epochs": {"pattern": "plain-epochs", "step": None, "epoch": 3, "epochs": 12, "loss": 0.4321},
    "timm": {
        "pattern": "timm",
        "step": 1301,
        "total": None,
        "epoch": 1,
        "epoch_step": 50,
        "epoch_steps": 1251,
        "loss": 6.843,
        "learning_rate": 2e-5,
        "samples_per_second": 3095.23,
    },
    "mmengine": {
        "pattern": "openmmlab-epochs",
        "step": 286,
        "total": None,
        "epoch": 3,
        "epoch_step": 50,
        "epoch_steps": 118,
        "loss": 0.7345,
    },
    "mmengine_iterations": {
        "pattern": "openmmlab",
        "step": 100,
        "total": 80_000,
        "loss": 2.1234,
        "learning_rate": 9.9888e-3,
    },
    "mmcv": {"step": 50, "total": None, "epoch": 1, "epoch_steps": 7330, "loss": 1.2345},
    "fairseq": {"step": 100, "total": None, "epoch": 1, "epoch_steps": 1102, "loss": 14.2},
    "estimator": {"pattern": "estimator", "step": 100, "total": None, "loss": 1.2345},
    "composer": {
        "pattern": "composer-epochs",
        "step": 12,
        "total": None,
        "epoch": 1,
        "epoch_steps": 100,
        "loss": 11.7312,
        "samples_per_second": 23.5,
        "learning_rate": 3e-4,
    },
    "composer_batches": {"pattern": "composer", "step": 12, "total": 4800, "loss": 9.5},
    "yolo": {"pattern": "yolo", "step": 132, "total": 12_000, "epoch": 2, "epochs": 100},
    "yolo_new": {"pattern": "yolo", "step": 180, "total": 12_000, "epoch": 2, "epochs": 100},
    "xgboost": {"pattern": "boosting", "step": 10, "total": None, "loss": 0.51234},
    # Its last line has a loss of validation alone.
    "lightgbm": {"pattern": "boosting", "step": 20, "total": None, "loss": 0.25},
}


def _read_state(data: bytes, own: str = "") -> RankState:
    state, parser = RankState(), LineParser(own)
    for number, line in enumerate(data.split(b"\n")):
        for each in parser.parse_line(line):
            state.apply_reading(each.reading, float(number), each.evidence)
    return state


def test_every_sample_is_expected() -> None:
    assert {each.stem for each in DATA.glob("*.log")} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_reads_the_output_of_a_framework(name: str) -> None:
    state = _read_state((DATA / f"{name}.log").read_bytes())
    wanted = EXPECTED[name]
    assert {field: getattr(state, field) for field in wanted} == pytest.approx(wanted)
    assert state.evidence


@pytest.mark.parametrize(
    "line",
    [
        b"Validation: 40%|####      | 4/10 [00:00<00:01, 5.0it/s]",
        b"Downloading: 12%|#         | 120/1000 [00:01<00:09]",
        b"Adding EOS to train dataset: 100%|####| 1000/1000 [00:00<00:00, 9000.00 examples/s]",
        b"Grouping texts in chunks of 1024:   0%|    | 0/1000 [00:00<?, ? examples/s]",
        b"Grouping texts in chunks of 1024:  50%|##  | 500/1000 [00:01<00:01, 450.50 examples/s]",
        b"Packing train dataset: 100%|####| 9/9 [00:00<00:00, 9.0it/s]",
        b"Capturing CUDA graph shapes: 100%|####| 67/67 [00:20<00:00,  3.30it/s]",
        b" 45%|##  | 4500000/10000000 [00:10<00:12, 45.0MB/s]",
        b"100%|####| 170498071/170498071 [00:05<00:00, 31024567.20it/s]",
        b"{'eval_loss': 0.5512, 'epoch': 0.22}",
        b"validation loss: 0.3",
        b"a step in the right direction",
        b"loss scale: 65536",
        b"listening on 10.0.0.1/24",
        b"100%",
        b"\xff\xfe\x00 loss=",
        b"{" * 3000,
        b'{"step": {"a": 1}, "loss": [1, 2]}',
        b"step 99999999999999999999999999 loss x",
        b"INFO:tensorflow:Saving dict for global step 9: global_step = 9, loss = 0.5",
        b"01 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 9.5 | ppl 415",
        b"01 - mmengine - INFO - Epoch(val) [3][10/20]  time: 0.2  loss: 0.5",
        b"Class  Images  Instances  Box(P  R  mAP50): 100%|####| 4/4 [00:01<00:00, 3.0it/s]",
        b"[Eval batch=3/10] Eval on eval data:",
        b"[12] a line with a number in front",
        b"[12]\tvalid_0's loss: 0.4",
    ],
)
def test_ignores_what_is_no_progress(line: bytes) -> None:
    assert LineParser().parse_line(line) == []


@pytest.mark.parametrize("loss", ["nan", "NaN", "inf", "-inf", "1e400", "-Infinity"])
def test_notices_a_loss_that_is_no_finite_number(loss: str) -> None:
    state = _read_state(f"step 7 loss {loss} rank 0".encode())
    assert (state.step, state.loss, state.has_bad_loss) == (7, None, True)


def test_keeps_numbers_bounded() -> None:
    state = _read_state(
        b"step 5/3 loss -0.25 lr=-1 samples/s: 1e300\nstep 12345678901234567890 of 3 loss -0.5"
    )
    assert (state.step, state.total) == (5, None)
    assert state.loss == -0.5
    assert (state.learning_rate, state.samples_per_second) == (None, None)


def test_reads_long_lines_in_bounded_time() -> None:
    lines = [
        b"step 1 " + b"loss=" * 200_000,
        b"\r" * 1_000_000,
        b"\r 1%|#| 1/100 [00:00<" * 50_000,
        b"epoch " * 170_000,
        b"{" + b'"a":[' * 200_000,
        b"Epoch 1: " + b" " * 1_000_000 + b"3%|",
        b"Train: 0 [1/2 " + b"Time: 1" * 200_000,
        b"1/2 1G " + b"1:" * 500_000,
        b"[1]\t" + b"a-" * 500_000,
        b"Epoch(train) [" + b"1][" * 300_000,
    ]
    parser, began = LineParser(), time.process_time()
    for line in lines:
        assert len(parser.parse_line(line)) <= 4
    assert time.process_time() - began < 5


def test_takes_the_last_bar_of_a_line_of_bars() -> None:
    bars = b"".join(
        b"\r%3d%%|#         | %d/1000 [00:01<00:09, 9.9it/s]" % (at // 10, at) for at in range(1000)
    )
    assert _read_state(bars).step == 999


def test_steps_may_go_backwards_after_a_restart() -> None:
    state = _read_state(b"step 500 of 1000 loss 0.1")
    state.begin_log()
    for each in LineParser().parse_line(b"step 400 of 1000 loss 0.2"):
        assert state.apply_reading(each.reading, 9.0, each.evidence)
    assert (state.step, state.total, state.loss) == (400, 1000, 0.2)


@pytest.mark.parametrize(
    ("before", "after", "step"),
    [
        (
            b"Epoch(train) [3][ 50/118]  lr: 2.0000e-03  loss: 0.7",
            b"Epoch(train) [2][ 10/118]  lr: 2.0000e-03  loss: 0.8",
            128,
        ),
        (b"Train: 4 [ 900/1000 ( 90%)]  Loss: 1", b"Train: 4 [   0/1000 (  0%)]  Loss: 2", 4000),
        (b"loss = 0.5, step = 900 (2.3 sec)", b"loss = 0.6, step = 800", 800),
    ],
)
def test_a_restart_goes_on_from_its_checkpoint(before: bytes, after: bytes, step: int) -> None:
    state = _read_state(before)
    state.begin_log()
    for each in LineParser().parse_line(after):
        assert state.apply_reading(each.reading, 9.0, each.evidence)
    assert state.step == step


def test_an_evaluation_inside_a_training_does_not_count() -> None:
    state = _read_state(
        b" 50%|#| 500/1000 [00:01<00:09]\n 20%|#| 2/10 [00:01<00:09]\n 51%|#| 510/1000 [00:01<0]"
    )
    assert (state.step, state.total) == (510, 1000)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.297", ("pytorch-example", 640)),
        (b"  1%|    | 3/375 [00:03<06:00,  1.03it/s]", ("tqdm", 3)),
    ],
)
def test_a_download_does_not_hide_the_training_after_it(
    line: bytes, expected: tuple[str, int]
) -> None:
    """As torchvision downloads MNIST: at its first bar nobody knows what it is of."""
    state = _read_state(
        b"  0%|    | 0/9912422 [00:00<?, ?it/s]"
        b"\r  1%|    | 65536/9912422 [00:00<00:30, 320512.50it/s]"
        b"\r100%|####| 9912422/9912422 [00:00<00:00, 98765432.10it/s]\n" + line
    )
    assert (state.pattern, state.step) == expected


@pytest.mark.parametrize(
    "line",
    [
        b"Train: 1%|    | 3/375 [00:03<06:00, 103.0 examples/s]",
        b"Training on dataset wikitext: 1%|    | 3/375 [00:03<06:00, 1.03it/s]",
        b"Train (compiled): 1%|    | 3/375 [00:03<06:00, 1.03it/s]",
    ],
)
def test_a_bar_that_says_it_is_of_a_training_is_one(line: bytes) -> None:
    state = _read_state(line)
    assert (state.pattern, state.step, state.total) == ("tqdm", 3, 375)


def test_a_line_at_step_zero_that_is_written_over_has_its_loss() -> None:
    line = b"step 0: loss 9.1\rstep 1: loss 8.0"
    assert [each.reading.loss for each in LineParser().parse_line(line)] == [9.1, 8.0]


def test_what_stands_behind_the_rate_of_a_bar_is_no_rate() -> None:
    state = _read_state(b"  1%|    | 3/375 [00:03<06:00,  1.03it/s, io=12.5MB/s, 900 examples/s]")
    assert (state.pattern, state.step) == ("tqdm", 3)


def test_two_patterns_for_one_step_do_not_alternate() -> None:
    state = _read_state(
        b" 50%|#| 500/1000 [00:01<00:09]\n[Rank 0] step=62, skipped=0, lr=[0.1], mom=[0.9]\n"
    )
    assert (state.step, state.total, state.learning_rate) == (500, 1000, 0.1)


def test_reads_by_a_pattern_of_ones_own() -> None:
    own = r"it#(?P<step>\d+)~(?P<total>\d+) L(?P<loss>\S+) (?P<unread>\w+)"
    state = _read_state(b"it#12~40 L0.5 x\nstep 99 loss 9", own)
    assert (state.pattern, state.step, state.total, state.loss) == ("own", 12, 40, 0.5)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (r"step (?P<step>\d+", "must be an expression of RE2"),
        (r"(?P<step>\d+)(?=x)", "must be an expression of RE2"),
        (r"step \d+", "must have a named group that is read"),
        (r"(?P<pace>\d+)", "must have a named group that is read"),
        ("(?P<step>1)" + "x" * LONGEST_PATTERN, "must have at most 1,000 characters"),
        ("(?P<loss>" + "(?:[ab]?){900}" * 12 + "x)", "must be simpler: RE2 makes 21,607"),
        (r"(?P<loss>\pL+)", "must be simpler: RE2 makes .* and 500 are the most"),
    ],
)
def test_refuses_a_pattern_that_cannot_be_used(own: str, words: str) -> None:
    with pytest.raises(BadPattern, match=words):
        compile_own_pattern(own)


def test_takes_the_patterns_that_the_documentation_shows() -> None:
    text = (Path(__file__).parents[2] / "docs/progress.md").read_text()
    patterns = re.findall(rf"^{VARIABLE}=(.+)$", text, re.MULTILINE)
    assert patterns
    assert [check_own_pattern(each) for each in patterns] == [""] * len(patterns)


def test_takes_a_pattern_with_all_groups() -> None:
    number = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
    all_groups = ".*?".join(rf"(?i){each}[ =:]+(?P<{each}>{number})" for each in Metric)
    assert check_own_pattern(all_groups) == ""


def test_finds_the_place() -> None:
    assert find_place(None, None, None, None) is None
    assert find_place(5, 10, 1, 2) == Place(5, 10, "step")
    assert find_place(5, None, 0.5, 2) == Place(0.5, 2, "epoch")
    assert find_place(None, None, 3, 4) == Place(3, 4, "epoch")
    place = find_place(5, None, None, None)
    assert place is not None
    assert place.share is None


def _build_points(*pairs: tuple[float, float]) -> list[tuple[float, float]]:
    points: list[tuple[float, float]] = []
    for at, done in pairs:
        points = add_point(points, at, done)
    return points


def test_estimates_with_how_it_was_worked_out() -> None:
    points = _build_points(*((second, 40.0 * second) for second in range(0, 601, 2)))
    assert len(points) <= 40
    estimate = estimate_rest(Place(24_000, 52_800, "step"), points, 600)
    assert estimate is not None
    assert estimate.seconds == pytest.approx(720)
    assert estimate.words == (
        "about 12 min, from 40 steps a second over the last 5 min; total from the log"
    )


def test_estimates_slow_trainings() -> None:
    points = _build_points((0, 1), (3600, 2), (7200, 3))
    estimate = estimate_rest(Place(3, 10, "epoch"), points, 7300)
    assert estimate is not None
    assert estimate.words.startswith("about 6 h 58 min, from 60 min an epoch over the last 2 h;")


@pytest.mark.parametrize(
    ("per_second", "words"),
    [
        (1234.5, "1,234 steps a second"),
        (999.7, "1,000 steps a second"),
        (999.4, "999 steps a second"),
        (1.0, "1 step a second"),
        (0.25, "0.25 steps a second"),
        (0.01, "100 s a step"),
    ],
)
def test_a_pace_is_told_in_plain_numbers(per_second: float, words: str) -> None:
    assert describe_pace(Pace(per_second, 60, 1), "step") == words


@pytest.mark.parametrize(
    ("place", "points", "now"),
    [
        (None, [(0, 0), (10, 10)], 10),
        (Place(10, None, "step"), [(0, 0), (10, 10)], 10),
        (Place(10, 10, "step"), [(0, 0), (10, 10)], 10),
        (Place(10, 20, "step"), [(10, 10)], 10),
        (Place(10, 20, "step"), [(0, 0), (1, 10)], 1),
        # Silent for longer than its lines come apart.
        (Place(10, 20, "step"), [(0, 0), (10, 10)], 1000),
        # Two years.
        (Place(10, 63_000_010, "step"), [(0, 0), (10, 10)], 10),
    ],
)
def test_estimates_nothing_rather_than_nonsense(
    place: Place | None, points: list[tuple[float, float]], now: float
) -> None:
    assert estimate_rest(place, points, now) is None


def test_the_pace_begins_anew_when_steps_go_backwards() -> None:
    points = _build_points((0, 0), (100, 1000), (110, 900))
    assert points == [(110, 900)]


def test_a_silence_within_the_pace_shortens_the_rest() -> None:
    points = _build_points((0, 0), (100, 100))
    estimate = estimate_rest(Place(100, 200, "step"), points, 130)
    assert estimate is not None
    assert estimate.seconds == pytest.approx(70)


def test_the_loss_history_stays_bounded() -> None:
    history = LossHistory()
    for number in range(20_000):
        history.add_point(float(number), number, math.sin(number))
    assert 200 < len(history.points) <= 500
    assert history.points[0][0] == 0
    assert history.points[-1][0] > 19_800
    again = decode_history(history.encode())
    assert again == history
    assert is_by_step(again.points)
    assert history.add_point(20_000.0, 20_000, None)
    assert history.points[-1] == (20_000.0, 20_000, None)


def test_lines_of_one_millisecond_all_count() -> None:
    history = LossHistory()
    assert all(history.add_point(1.0006 + number / 10_000, number, 0.5) for number in range(4))


def test_a_chart_goes_by_time_where_steps_go_backwards() -> None:
    assert not is_by_step([(0, 5, 0.1), (1, 3, 0.2)])
    assert not is_by_step([(0, None, 0.1)])
    assert not is_by_step([])
