"""How soon GPUs change hands between an elastic training and another project, and what it costs.

    benchmarks/elastic.py [--rounds N]

A cluster of four nodes with a virtual GPU each, and Muster on it. In each round project-a trains
on all four, project-b submits two pods, of which the example's grace is part, and ends; it stays
long enough for project-a to be given fewer workers, so that Muster has to raise them again.
"""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
# This folder has modules with the names of packages, which have to be found first.
sys.path[0:1] = [str(BASE), str(BASE / "benchmarks")]

from figures import Aim, Figures, describe_machine, load_average  # noqa: E402 - see above

from tests.elastic_stage import (  # noqa: E402
    EVERY,
    ElasticStage,
    Training,
    find_lost_steps,
    train_uninterrupted,
)

GROW_AFTER, SHRINK_AFTER = 30, 10
RIVAL_STEPS = 400
"""Ten a second: the rival stays for 40 s."""
PATIENCE = 300.0
TO_RUN, TO_RESUME, TO_GROW, SAME = Aim(15), Aim(20), Aim(90), Aim(1)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="how often the GPUs change hands")
    arguments = parser.parse_args()
    # Told to end, it ends as it does by itself: with nothing left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended before its end"))
    print(describe_machine())
    figures = Figures()
    options = {"grow_after_seconds": GROW_AFTER, "shrink_after_seconds": SHRINK_AFTER}
    with tempfile.TemporaryDirectory() as folder, ElasticStage(Path(folder), **options) as stage:
        training = stage.submit_elastic("train")
        stage.wait(lambda: training.world() == 4, PATIENCE, training)
        # Before its first checkpoint it would begin anew.
        stage.wait(lambda: max(training.losses(), default=0) > EVERY, PATIENCE, training)
        for number in range(1, arguments.rounds + 1):
            print(f" round {number} · load: {load_average()}")
            measure_round(figures, stage, training, number)
        measure_training(figures, training)
    if figures.missed_aims:
        print(f"\nmissed: {', '.join(figures.missed_aims)}")
    return int(bool(figures.missed_aims))


def measure_round(figures: Figures, stage: ElasticStage, training: Training, number: int) -> None:
    """Measure one change of hands, there and back."""
    submitted = time.monotonic()
    rival = stage.submit_rival(f"rival-{number}", steps=RIVAL_STEPS)
    evicted = wait(stage, lambda: bool(training.evicted()), training, rival)
    moments: dict[str, float] = {}

    def are_both_there() -> bool:
        if len(rival.running()) == 2:
            moments.setdefault("running", time.monotonic())
        if training.world() == 2:
            moments.setdefault("resumed", time.monotonic())
        return len(moments) == 2

    wait(stage, are_both_there, training, rival)
    title = f"round {number}"
    figures.add(
        f"{title}: project-b submits -> its 2 pods run, s", moments["running"] - submitted, TO_RUN
    )
    figures.add(
        f"{title}: eviction -> project-a's next step with 2 pods, s",
        moments["resumed"] - evicted,
        TO_RESUME,
    )
    ended = wait(stage, lambda: not rival.running(), training, rival)
    grown = wait(stage, lambda: training.world() == 4, training, rival)
    figures.add(f"{title}: project-b ended -> a step with 4 pods, s", grown - ended, TO_GROW)
    rival.remove()


def wait(stage: ElasticStage, condition: Callable[[], bool], *trainings: Training) -> float:
    """Wait until it is so, and return the moment."""
    stage.wait(condition, PATIENCE, *trainings)
    return time.monotonic()


def measure_training(figures: Figures, training: Training) -> None:
    """Measure what the changes of hands cost, and whether it is the same training."""
    lost_steps = list(find_lost_steps(training.log()))
    figures.add(
        f"most steps lost at once, of {len(lost_steps)} interruptions", max(lost_steps), Aim(EVERY)
    )
    losses = training.losses()
    expected = train_uninterrupted(max(losses))
    differences = [abs(loss - expected[step]) for step, loss in losses.items()]
    name = f"most that {len(losses)} losses differ from an uninterrupted run's, 1e-6"
    figures.add(name, max(differences) * 1e6, SAME)


if __name__ == "__main__":
    sys.exit(main())
