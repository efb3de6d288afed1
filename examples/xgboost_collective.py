"""Distributed gradient boosting with XGBoost: all ranks build the same trees from own data.

Rank 0 runs the tracker. Uses only MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK, as the training
operator sets them; without them it trains alone. Exit codes: 0 trained, 1 XGBoost is missing or the
group broke, 2 wrong arguments or variables.
"""

import argparse
import hashlib
import os
import socket
import sys
from contextlib import ExitStack
from typing import Any

try:
    import numpy as np
    import xgboost
    from xgboost import collective
    from xgboost.tracker import RabitTracker
except ModuleNotFoundError as missing:
    print(
        (
            f"{missing.name} is missing: pip install xgboost-cpu numpy, then run this with the "
            "Python that has it"
        ),
        file=sys.stderr,
    )
    sys.exit(1)

FEATURES, SAMPLES = 8, 512
TRIES = 30
"""How often a rank tries to reach the tracker: that of rank 0 may start later."""


def parse_variable(variable: str, default: str) -> int:
    """Return a variable as a whole number; ends the program when it is none."""
    text = os.environ.get(variable, default)
    if not text.isdecimal():
        print(f"{variable} is {text!r}: it must be a whole number", file=sys.stderr)
        sys.exit(2)
    return int(text)


def join_group(stack: ExitStack, rank: int, world: int, timeout: int) -> None:
    """Be one rank of the group until the stack is left; rank 0 runs the tracker for all."""
    host, port = os.environ.get("MASTER_ADDR", "127.0.0.1"), parse_variable("MASTER_PORT", "0")
    if rank == 0:
        tracker = RabitTracker(
            host_ip=socket.gethostbyname(host),
            port=port,
            n_workers=world,
            sortby="task",
            timeout=timeout,
        )
        tracker.start()
        stack.callback(tracker.wait_for, timeout)
    arguments: dict[str, Any] = {
        "dmlc_tracker_uri": socket.gethostbyname(host),
        "dmlc_tracker_port": port,
        "dmlc_task_id": f"{rank:06d}",
        "dmlc_retry": TRIES,
        "dmlc_timeout": timeout,
    }
    stack.enter_context(collective.CommunicatorContext(**arguments))


def train(options: argparse.Namespace, rank: int, world: int) -> None:
    total = float(rank + 1)
    if world > 1:
        total = float(collective.allreduce(np.array([rank + 1.0]), collective.Op.SUM)[0])
    print(f"sum {total:g} of {world} ranks rank {rank}", flush=True)
    random = np.random.default_rng([options.seed, rank])
    truth = np.random.default_rng(options.seed).normal(size=FEATURES)
    inputs = random.normal(size=(SAMPLES, FEATURES))
    data = xgboost.DMatrix(inputs, label=(inputs @ truth > 0).astype(float))

    class PrintLoss(xgboost.callback.TrainingCallback):
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            print(
                f"step {epoch + 1} loss {evals_log['train']['logloss'][-1]:.6f} rank {rank}",
                flush=True,
            )
            return False

    settings = {
        "objective": "binary:logistic",
        "eval_metric": "logloss",
        "tree_method": "hist",
        "max_depth": 3,
        "nthread": 1,
    }
    model = xgboost.train(
        settings,
        data,
        options.steps,
        evals=[(data, "train")],
        callbacks=[PrintLoss()],
        verbose_eval=False,
    )
    digest = hashlib.sha256("".join(model.get_dump()).encode()).hexdigest()[:16]
    print(f"digest {digest} rank {rank}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=10, help="rounds of boosting")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--timeout", type=int, default=120, help="seconds that the ranks wait for each other"
    )
    options = parser.parse_args()
    rank, world = parse_variable("RANK", "0"), parse_variable("WORLD_SIZE", "1")
    try:
        with ExitStack() as stack:
            if world > 1:
                join_group(stack, rank, world, options.timeout)
            train(options, rank, world)
    except (xgboost.core.XGBoostError, OSError) as error:
        print(f"the group broke: {str(error).splitlines()[-1]}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
