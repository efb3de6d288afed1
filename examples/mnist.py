"""The program of the well-known PyTorchJob tutorial's image (kubeflow/pytorch-dist-mnist).

Takes the tutorial's arguments and runs `pytorch_ddp` where torch can be imported, else `allreduce`,
in this same process. The data is synthetic: nothing is downloaded. It lasts about a minute,
whatever --epochs says, so that one can watch it; --slow changes that.
"""

import argparse
import importlib.util
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
STEPS_PER_EPOCH = 20
SECONDS = 60.0

TUTORIAL_ONLY = {
    "--test-batch-size": "there is no test set",
    "--dir": "no summaries are written",
    "--log-path": "the log is the output",
    "--logger": "the log is the output",
}
"""Arguments of the tutorial that mean nothing here, and why."""

TORCH_ONLY = (
    "--batch-size",
    "--momentum",
    "--log-interval",
    "--backend",
    "--checkpoint",
    "--checkpoint-every",
    "--timeout",
)
"""Arguments that allreduce does not use."""


def parse_arguments(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        description="Train for about a minute, with PyTorch where it is installed.",
        argument_default=None,
    )
    parser.add_argument("--epochs", type=int, default=3, help=f"each is {STEPS_PER_EPOCH} steps")
    parser.add_argument("--steps", type=int, help="steps to train, instead of --epochs")
    parser.add_argument(
        "--slow",
        type=float,
        metavar="SECONDS",
        help="pause before each step; by default what makes it last a minute",
    )
    parser.add_argument("--lr", type=float, help="learning rate")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--fail-at-step", type=int, metavar="N")
    parser.add_argument("--fail-rank", type=int, metavar="R")
    parser.add_argument("--no-cuda", action="store_true")
    parser.add_argument(
        "--save-model", action="store_true", help="ignored: --checkpoint keeps the weights"
    )
    for name in (*TORCH_ONLY, *TUTORIAL_ONLY):
        parser.add_argument(name)
    options, unknown = parser.parse_known_args(arguments)
    if options.epochs < 1 or (options.steps is not None and options.steps < 1):
        parser.error("--epochs and --steps must be at least 1")
    return options, unknown


def translate_arguments(
    known: argparse.Namespace, unknown: list[str], *, has_torch: bool
) -> tuple[list[str], list[str]]:
    """Return the arguments of the program to run, and a line for each ignored argument."""
    values = {
        f"--{name.replace('_', '-')}": value
        for name, value in vars(known).items()
        if value is not None and value is not False
    }
    steps = known.steps or known.epochs * STEPS_PER_EPOCH
    passed = [
        "--steps",
        str(steps),
        "--slow",
        str(round(SECONDS / steps, 3) if known.slow is None else known.slow),
    ]
    ignored = [f"{argument}: unknown" for argument in unknown]
    for name, value in values.items():
        if name in ("--epochs", "--steps", "--slow"):
            continue
        if name == "--save-model":
            ignored.append(f"{name}: give --checkpoint DIR to keep the weights")
        elif name in TUTORIAL_ONLY:
            ignored.append(f"{name} {value}: {TUTORIAL_ONLY[name]}")
        elif name == "--backend" and has_torch and value not in ("auto", "gloo", "nccl"):
            ignored.append(
                f"{name} {value}: torch has gloo and nccl here, and the right one is chosen"
            )
        elif name == "--no-cuda":
            passed += [name] if has_torch else []
        elif name in TORCH_ONLY and not has_torch:
            ignored.append(f"{name} {value}: allreduce has no use for it")
        else:
            passed += [name, str(value)]
    return passed, ignored


def main(arguments: list[str]) -> None:
    options, unknown = parse_arguments(arguments)
    torch = importlib.util.find_spec("torch") is not None
    passed, ignored = translate_arguments(options, unknown, has_torch=torch)
    program = "pytorch_ddp" if torch else "allreduce"
    reason = "torch is installed" if torch else "torch is not installed for this Python"
    print(f"mnist: {reason}: running {program} {' '.join(passed)}", flush=True)
    for line in ignored:
        print(f"mnist: ignored {line}", flush=True)
    os.execv(sys.executable, [sys.executable, str(HERE / f"{program}.py"), *passed])


if __name__ == "__main__":
    main(sys.argv[1:])
