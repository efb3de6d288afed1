"""How right forecasts of starts are, beside three plain ways to tell, and how long they take.

Worlds are played by the scheduler's own decisions with the true run lengths: three generators, and
Alibaba's public trace where `MUSTER_ALIBABA_TRACE` names the folder of `cluster-trace-gpu-v2023`.
At moments on the way all that waits is forecast by what had ended before; margins are computed
from earlier forecasts whose interval was over. The second half of the moments is scored, of some
histories of a generator, or clusters of the trace, together: all that waits at one time is early or
late together, so one of them has few outcomes that tell apart. Whole days are drawn anew to tell
how sure a figure is. What misses its goal is printed as that, and fails nothing.

python benchmarks/forecast.py [--quick] [--seed 1] [--histories 3] [--world NAME] [--no-speed]
"""

import argparse
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from figures import describe_machine  # noqa: E402 - as the other benchmarks are run

from benchmarks.forecasting.alibaba import CLUSTERS, TRACE_VARIABLE, load_trace  # noqa: E402
from benchmarks.forecasting.baselines import (  # noqa: E402
    Quantiles,
    use_mean_wait,
    use_position,
)
from benchmarks.forecasting.day_draws import (  # noqa: E402
    WITHIN,
    draw_days,
    find_range,
    split_days,
)
from benchmarks.forecasting.histories import (  # noqa: E402
    find_lengths,
    find_limits,
    find_past,
    learn_history,
)
from benchmarks.forecasting.precision import measure_precision  # noqa: E402
from benchmarks.forecasting.replay import Moment, Replay  # noqa: E402
from benchmarks.forecasting.scoring import (  # noqa: E402
    Sample,
    compute_coverage,
    compute_score,
    compute_width,
    set_margins,
)
from benchmarks.forecasting.speed import measure_speed  # noqa: E402
from benchmarks.forecasting.worlds import DAY, GENERATORS, World  # noqa: E402
from simulation import StartForecast, forecast_starts  # noqa: E402

HORIZON = DAY
COVERED = (0.75, 0.85)
MOST_SILENCE = 0.3
FIRST, LAST = 0.3, 0.9
"""Between which shares of a world's time moments are taken; before them it fills."""
MEAN_WAIT, POSITION, SLURM = "mean wait", "position", "Slurm"


@dataclass(frozen=True)
class Effort:
    """How much is played and forecast."""

    submissions: int
    trace_days: float
    moments: int

    def list_times(self, end: float) -> Sequence[float]:
        step = (LAST - FIRST) / self.moments
        return [end * (FIRST + step * number) for number in range(self.moments)]


WHOLE = Effort(700, 10, 36)
QUICK = Effort(250, 3, 6)


def forecast_by_limits(moment: Moment) -> Mapping[str, Quantiles]:
    """Forecast as Slurm plans its backfill: every run takes its limit, so all draws are alike."""
    forecasts = forecast_starts(moment.state, find_limits(moment), seed=0, horizon=HORIZON)
    starts = {
        key: HORIZON if each.likely is None else each.likely for key, each in forecasts.items()
    }
    return {key: (at, at, at) for key, at in starts.items()}


def sample_moment(moment: Moment, seed: int) -> tuple[Sequence[Sample], float]:
    """Forecast all that waits, in each way; the true starts are not known yet.

    Returns also for how many seconds ours took.
    """
    waiting = moment.list_waiting()
    history = learn_history(moment)
    lengths = find_lengths(moment, history)
    began = time.perf_counter()
    forecasts: Mapping[str, StartForecast] = forecast_starts(
        moment.state,
        lengths,
        seed=seed,
        horizon=HORIZON,
        past=find_past(moment),
    )
    taken = time.perf_counter() - began
    others = {
        MEAN_WAIT: use_mean_wait(moment, history, waiting),
        POSITION: use_position(moment, history, waiting),
        SLURM: forecast_by_limits(moment) if waiting else {},
    }
    return [
        Sample(
            gang.key,
            moment.now,
            forecasts[gang.key],
            0.0,
            HORIZON,
            {name: answers[gang.key] for name, answers in others.items()},
        )
        for gang in waiting
    ], taken


@dataclass(frozen=True)
class Played:
    """A world that was played: what it was, and the forecasts that are scored."""

    world: str
    title: str
    samples: Sequence[Sample]


def play_world(job: tuple[World, int], effort: Effort) -> Played:
    """Play a world, and forecast on the way with a seed."""
    world, seed = job
    began = time.perf_counter()
    replay = Replay(world)
    times = effort.list_times(world.end)
    samples: list[Sample] = []
    taken = 0.0
    for moment in replay.play(times):
        new_samples, seconds = sample_moment(moment, seed)
        samples += new_samples
        taken += seconds
    for sample in samples:
        start = replay.starts.get(sample.key, float("inf"))
        sample.start = min(start - sample.made_at, HORIZON)
    set_margins(samples)
    half = times[len(times) // 2]
    title = (
        f"{world.name} (seed {seed}): {len(world.nodes)} nodes, {len(world.queues)} queues, "
        f"{len(world.submissions)} submitted in {world.end / DAY:.1f} days, "
        f"{replay.evictions} gave way, {len(times)} moments; {time.perf_counter() - began:.0f} s, "
        f"{taken:.0f} of them ours{world.note}"
    )
    return Played(world.name, title, [sample for sample in samples if sample.made_at >= half])


def print_scores(played: Sequence[Played]) -> None:
    """Print what came of the histories of one world, together."""
    print()
    for each in played:
        print(each.title)
    print("\n".join(describe_scores([each.samples for each in played])), flush=True)


def describe_scores(histories: Sequence[Sequence[Sample]]) -> Iterator[str]:
    """Return the figures of the histories of a world, each with its goal, line by line."""
    samples = [sample for each in histories for sample in each]
    gangs = sum(len({sample.key for sample in each}) for each in histories)
    scored = [sample for sample in samples if sample.has_forecast]
    if not scored:
        yield f"  nothing to score: {len(samples)} waited, none of them has a forecast"
        return
    silence = 1 - len(scored) / len(samples)
    outlooks = Counter(each.forecast.outlook.value for each in samples if not each.has_forecast)
    late = sum(each.start >= HORIZON for each in samples if not each.has_forecast)
    yield format_line("scored forecasts, n", f"{len(scored)}")
    yield format_line("different gangs that waited", f"{gangs}")
    words = ", ".join(f"{count} {name}" for name, count in outlooks.most_common())
    yield format_line(
        "no forecast",
        f"{silence:.0%}",
        f"goal <= {MOST_SILENCE:.0%}: {judge(silence <= MOST_SILENCE)}"
        + (f" ({words}; {late} did not start within a day)" if outlooks else ""),
    )
    days = split_days(histories)
    draws = draw_days(days)
    raw = compute_coverage(scored, lambda each: each.quantiles)
    covered = compute_coverage(scored, lambda each: each.calibrated)
    yield format_line("80 % intervals that covered, as drawn", f"{raw:.0%}")
    yield format_line(
        "80 % intervals that covered, calibrated",
        f"{covered:.0%}",
        f"goal {COVERED[0]:.0%} to {COVERED[1]:.0%}: {judge(COVERED[0] <= covered <= COVERED[1])}"
        + describe_range(draws, lambda drawn: compute_coverage(drawn, lambda each: each.calibrated))
        + f"; days: {len(days)}",
    )
    widths = [
        compute_width(scored, pick) / 60
        for pick in (lambda each: each.quantiles, lambda each: each.calibrated)
    ]
    yield format_line("median width, as drawn, min", f"{widths[0]:.1f}")
    yield format_line("median width, calibrated, min", f"{widths[1]:.1f}")
    yield from describe_ways(scored, draws)


def describe_range(
    draws: Sequence[Sequence[Sample]], compute: Callable[[Sequence[Sample]], float]
) -> str:
    """Return in words between what a share lies in most draws of days."""
    if not draws:
        return ""
    low, high = find_range(draws, compute)
    return f"; {low:.0%} to {high:.0%} in {WITHIN:.0%} of draws"


def describe_ways(scored: Sequence[Sample], draws: Sequence[Sequence[Sample]]) -> Iterator[str]:
    """Return ours beside the plain ways, where ours is ahead, and in how many draws of days."""
    ways: dict[str, Callable[[Sample], Quantiles]] = {
        "ours": lambda each: each.calibrated,
        "ours, as drawn": lambda each: each.quantiles,
    }
    for name in (MEAN_WAIT, POSITION, SLURM):
        ways[name] = lambda each, name=name: each.others[name]  # type: ignore[misc]
    scores = {name: compute_score(scored, pick) for name, pick in ways.items()}
    drawn = {name: [compute_score(each, pick) for each in draws] for name, pick in ways.items()}
    yield f"  {'':<18}{'pinball loss, min':>20}{'median error, min':>20}   ours is ahead"
    for name, score in scores.items():
        words = ""
        if not name.startswith("ours"):
            pairs = [(scores["ours"], score), *zip(drawn["ours"], drawn[name], strict=True)]
            losses = [(ours.pinball, other.pinball) for ours, other in pairs]
            errors = [(ours.error, other.error) for ours, other in pairs]
            words = f"loss: {compare(*losses)}, error: {compare(*errors)}"
        figures = f"{score.pinball / 60:>20.1f}{score.error / 60:>20.1f}"
        yield f"  {name:<18}{figures}   {words}".rstrip()


def compare(figures: tuple[float, float], *drawn: tuple[float, float]) -> str:
    """Return whether ours is less than another's, by how much, and in how many draws it is."""
    ours, other = figures
    words = ""
    if drawn:
        share = statistics.fmean(mine < theirs for mine, theirs in drawn)
        words = f"; in {share:.0%} of draws"
    if ours < other:
        return f"yes ({1 - ours / other:.0%} less{words})"
    return f"NO ({ours / other - 1:.0%} more{words})" if other else "NO"


def judge(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def format_line(name: str, figure: str, words: str = "") -> str:
    return f"  {name:<48}{figure:>10}   {words}".rstrip()


def main() -> int:
    """Read the options and run; only a crash fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="less of everything, below a minute")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--histories", type=int, default=3, help="histories of each generator")
    parser.add_argument("--world", help="play the worlds alone whose name has this in it")
    parser.add_argument("--no-speed", action="store_true", help="only what was right")
    options = parser.parse_args()
    effort = QUICK if options.quick else WHOLE
    print(describe_machine())
    print(
        "mean wait: the project's, of those who waited longer than it has, less what it has; "
        "position: times the project's mean run length over its runs going on; Slurm: every run "
        "takes its limit. Starts and quantiles beyond a day count as a day."
    )
    seeds = range(options.seed, options.seed + (1 if options.quick else options.histories))
    worlds = [(make(seed, effort.submissions), seed) for make in GENERATORS for seed in seeds]
    folder = os.environ.get(TRACE_VARIABLE, "")
    if folder:
        clusters = CLUSTERS[:1] if options.quick else CLUSTERS
        worlds += [
            (load_trace(Path(folder), effort.trace_days, node_gpus), options.seed)
            for node_gpus in clusters
        ]
    chosen = [job for job in worlds if not options.world or options.world in job[0].name]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        played = pool.map(partial(play_world, effort=effort), chosen)
        for _, group in groupby(played, key=lambda each: each.world):
            print_scores(list(group))
    if not folder:
        print(
            f"\nSKIPPED: Alibaba's trace. {TRACE_VARIABLE} does not name its folder "
            "(github.com/alibaba/clusterdata, cluster-trace-gpu-v2023)."
        )
    if not options.no_speed:
        measure_precision()
        measure_speed(is_quick=options.quick)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
