"""Training on a loader that is slower than its steps, with the standard library alone.

Two lines give the loading to data workers: `loader = delivery.register(loader)` and
`delivery.unregister(loader)`. Outside Muster both do nothing, and the training waits for its data.
In a data worker `register` serves and never returns; in a rank it returns a loader with the same
batches. The model is logistic regression; an element and its label follow from its number and the
seed. Exit codes: 0 trained, 1 muster-delivery is missing, 2 wrong arguments, 143 ended by SIGTERM.
"""

import argparse
import hashlib
import json
import math
import os
import random
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

try:
    import muster_delivery as delivery
except ModuleNotFoundError as missing:
    print(f"{missing.name} is missing: pip install muster-delivery", file=sys.stderr)
    sys.exit(1)

FEATURES = 8
Vector = list[float]


@dataclass(frozen=True)
class Element:
    """One example of the dataset."""

    number: int
    point: tuple[float, ...]
    label: int


@dataclass(frozen=True)
class SlowLoader(Sequence[list[Element]]):
    """The batches of the dataset, each of which takes `seconds` to load.

    `is_computing` says how the time is spent: on a processor, as decoding is, or asleep, as a read
    from far away is.
    """

    batches: int
    batch_size: int
    seconds: float
    is_computing: bool
    seed: int

    def __len__(self) -> int:
        return self.batches

    def __getitem__(self, number: Any) -> Any:
        if not 0 <= number < self.batches:
            raise IndexError(number)
        if self.is_computing:
            compute(self.seconds)
        else:
            time.sleep(self.seconds)
        first = number * self.batch_size
        return [make_element(each, self.seed) for each in range(first, first + self.batch_size)]


@dataclass
class Training:
    """What a checkpoint keeps of a training, and what the training waited for."""

    step: int = 0
    weights: Vector = field(default_factory=lambda: [0.0] * FEATURES)
    waited: float = 0.0
    computed: float = 0.0


def compute(seconds: float) -> None:
    """Keep a processor busy until this process has used so many seconds of one."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        hashlib.sha256(bytes(4096)).digest()


def make_element(number: int, seed: int) -> Element:
    """Make an element: a point, and on which side of a plane it lies; one in twenty lies."""
    numbers = random.Random(f"delivery {seed} {number}")
    point = tuple(numbers.gauss(0, 1) for _ in range(FEATURES))
    side = sum(point[::2]) > sum(point[1::2])
    return Element(number, point, int(side != (numbers.random() < 0.05)))


# Training


def train(loader: Iterable[list[Element]], options: argparse.Namespace) -> Training:
    """Train from the checkpoint, or from the beginning, to the last step."""
    training = load_checkpoint(loader, options)
    print(f"{'resumed' if training.step else 'begins'} at step {training.step}", flush=True)
    while training.step < options.steps:
        batches = iter(loader)
        while training.step < options.steps:
            began = time.monotonic()
            batch = next(batches, None)
            if batch is None:
                break
            loaded = time.monotonic()
            train_step(training, batch, options)
            training.waited += loaded - began
            training.computed += time.monotonic() - loaded
            print(describe_step(training, batch, loaded - began, options), flush=True)
            if training.step % options.checkpoint_every == 0 or training.step == options.steps:
                save_checkpoint(training, loader, options)
    return training


def train_step(training: Training, batch: Sequence[Element], options: argparse.Namespace) -> None:
    """Take one step of gradient descent, in the time of a much larger one."""
    time.sleep(options.step_seconds)
    slope = [0.0] * FEATURES
    for element in batch:
        guess = predict(training.weights, element)
        for index, value in enumerate(element.point):
            slope[index] += (guess - element.label) * value / len(batch)
    training.weights = [
        weight - options.lr * change for weight, change in zip(training.weights, slope, strict=True)
    ]
    training.step += 1


def predict(weights: Vector, element: Element) -> float:
    score = sum(a * b for a, b in zip(element.point, weights, strict=True))
    return 1 / (1 + math.exp(-max(min(score, 30.0), -30.0)))


def describe_step(
    training: Training, batch: Sequence[Element], waited: float, options: argparse.Namespace
) -> str:
    loss = 0.0
    for element in batch:
        guess = predict(training.weights, element)
        loss -= math.log(guess if element.label else 1 - guess) / len(batch)
    text = f"step {training.step} loss {loss:.6f} waited {waited:.3f}"
    if options.print_elements:
        text += f" elements {' '.join(str(element.number) for element in batch)}"
    return text


# Checkpoints


def find_checkpoint(options: argparse.Namespace) -> "Path | None":
    """Return the file of this rank: each has handed out its own batches."""
    rank = os.environ.get("RANK", "0")
    return options.checkpoint / f"delivery-{rank}.json" if options.checkpoint else None


def save_checkpoint(training: Training, loader: Any, options: argparse.Namespace) -> None:
    """Put the checkpoint in place whole or not at all, with how far the loader has come."""
    path = find_checkpoint(options)
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    state = {"step": training.step, "weights": training.weights}
    if hasattr(loader, "state_dict"):
        state["loader"] = loader.state_dict()
    with draft.open("w") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def load_checkpoint(loader: Any, options: argparse.Namespace) -> Training:
    """Return the training of the checkpoint, and set the loader to where it was then."""
    path = find_checkpoint(options)
    if path is None or not path.exists():
        return Training()
    state = json.loads(path.read_text())
    if "loader" in state and hasattr(loader, "load_state_dict"):
        loader.load_state_dict(state["loader"])
    return Training(int(state["step"]), [float(each) for each in state["weights"]])


# The command


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Logistic regression on data that is slow to load, by the standard library."
    )
    parser.add_argument("--steps", type=int, default=200, help="steps to train")
    parser.add_argument("--batches", type=int, default=100, help="batches of an epoch")
    parser.add_argument("--batch-size", type=int, default=32, metavar="N")
    parser.add_argument(
        "--load-seconds", type=float, default=0.5, metavar="S", help="what a batch takes to load"
    )
    parser.add_argument(
        "--load-computes", action="store_true", help="load by computing instead of sleeping"
    )
    parser.add_argument(
        "--step-seconds", type=float, default=0.1, metavar="S", help="what a step takes"
    )
    parser.add_argument("--lr", type=float, default=0.5, help="learning rate")
    parser.add_argument("--seed", type=int, default=1, help="seed of the data")
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="keep a checkpoint there, and resume from it: a volume that outlives the pods",
    )
    parser.add_argument("--checkpoint-every", type=int, default=10, metavar="N")
    parser.add_argument(
        "--print-elements", action="store_true", help="print the numbers of a step's elements"
    )
    options = parser.parse_args(arguments)
    counts = options.steps, options.batches, options.batch_size, options.checkpoint_every
    if min(counts) < 1 or not 0 < options.lr < math.inf:
        parser.error("--steps, --batches, --batch-size and --checkpoint-every must be at least 1")
    if not (0 <= options.load_seconds <= 3600 and 0 <= options.step_seconds <= 3600):
        parser.error("--load-seconds and --step-seconds must be from 0 to 3600")
    return options


def end_on_sigterm(*_: object) -> NoReturn:
    sys.exit(143)


def hash_weights(weights: Vector) -> str:
    return hashlib.sha256(",".join(f"{each:.9f}" for each in weights).encode()).hexdigest()[:16]


def main(arguments: Sequence[str]) -> None:
    # The kernel delivers only handled signals to process 1 of a container.
    signal.signal(signal.SIGTERM, end_on_sigterm)
    options = parse_options(arguments)
    loader = delivery.register(
        SlowLoader(
            options.batches,
            options.batch_size,
            options.load_seconds,
            options.load_computes,
            options.seed,
        )
    )
    training = train(loader, options)
    delivery.unregister(loader)
    total = training.waited + training.computed
    print(
        f"waited {training.waited:.1f} s of {total:.1f} s for data "
        f"({100 * training.waited / max(total, 1e-9):.0f} %)"
    )
    print(f"digest {hash_weights(training.weights)} rank {os.environ.get('RANK', '0')}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
