"""What data delivery makes of a loader that is slower than the steps, and what it carries.

    benchmarks/delivery.py [--parts busy,computing,gate,transport]

`busy`: the example with a loader that sleeps five times as long as a step, one batch at a time in a
data worker, one rank, at least twenty times the prepared units; preparation is not counted.
`computing`: the same with a loader that computes, on this machine's processors. `gate`: an
installation with an embedded cluster, and the GPUs that are allocated while data is prepared.
`transport`: what one data worker sends one rank beside a plain socket copy.
"""

import argparse
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
# This folder has modules with the names of packages, which have to be found first.
sys.path[0:1] = [str(BASE), str(BASE / "benchmarks")]

from figures import Aim, Figures, describe_machine, load_average  # noqa: E402 - see above

from tests.delivery_stage import DeliveryStage  # noqa: E402
from tests.free_ports import pick_free_port  # noqa: E402

STEP, LOAD = 0.05, 0.25
PREPARED = 16
"""Batches that are prepared before the rank starts."""
STEPS = 20 * PREPARED
BATCH = 4
WAITED = re.compile(r"^waited ([\d.]+) s of ([\d.]+) s for data", re.MULTILINE)
READY = '"event":"ready"'
PATIENCE = 600.0
BUSY_AIMS = {0: None, 1: None, 2: None, 4: Aim(75, at_least=True), 6: Aim(90, at_least=True)}
PARTS = ("busy", "computing", "gate", "transport")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--parts", default=",".join(PARTS), help="what to measure")
    options = parser.parse_args()
    # Told to end, it ends as it does by itself: with nothing left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended before its end"))
    print(describe_machine())
    figures = Figures()
    parts = options.parts.split(",")
    if "busy" in parts:
        measure_busy_share(figures)
    if "computing" in parts:
        measure_computing_loader(figures)
    if "gate" in parts:
        measure_gate(figures)
    if "transport" in parts:
        subprocess.run([sys.executable, str(BASE / "benchmarks" / TRANSPORT)], check=True)
    if figures.missed_aims:
        print(f"\nmissed: {', '.join(figures.missed_aims)}")
    return int(bool(figures.missed_aims))


TRANSPORT = "delivery_transport.py"


# One rank and its data workers, as plain processes


def measure_busy_share(figures: Figures) -> None:
    print(f" a loader that sleeps {LOAD / STEP:g} times as long as a step · load: {load_average()}")
    for workers, aim in BUSY_AIMS.items():
        figures.add(describe_workers(workers), run_training(workers, STEPS), aim)


def measure_computing_loader(figures: Figures) -> None:
    processors = os.cpu_count() or 1
    print(
        f" a loader that computes {LOAD / STEP:g} times as long as a step, on {processors} "
        f"processors · load: {load_average()}"
    )
    for workers in (0, 1, 2):
        figures.add(describe_workers(workers), run_training(workers, STEPS // 4, "--load-computes"))


def describe_workers(workers: int) -> str:
    if not workers:
        return "busy share without data workers, %"
    return f"busy share with {workers} data worker{'s' if workers > 1 else ''}, %"


def run_training(workers: int, steps: int, *more: str) -> float:
    """Return the share of its time that a rank did not wait for data, in percent."""
    options = ["--steps", str(steps), "--batches", str(steps), "--batch-size", str(BATCH)]
    options += ["--load-seconds", str(LOAD), "--step-seconds", str(STEP), *more]
    with (
        tempfile.TemporaryDirectory() as folder,
        run_workers(workers, options, Path(folder)) as environment,
    ):
        process = subprocess.run(
            build_command(options),
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    match = WAITED.search(process.stdout)
    if process.returncode or not match:
        raise SystemExit(f"the rank ended with {process.returncode}: {process.stderr[-2000:]}")
    waited, total = float(match[1]), float(match[2])
    return 100 * (1 - waited / total)


def build_command(options: Sequence[str]) -> list[str]:
    return [sys.executable, str(BASE / "examples" / "delivery.py"), *options]


@contextmanager
def run_workers(count: int, options: Sequence[str], folder: Path) -> Iterator[dict[str, str]]:
    """Start data workers, wait until all have prepared their part, and give a rank's variables."""
    base = {"PATH": os.environ["PATH"], "PYTHONPATH": str(BASE / "delivery" / "src")}
    if not count:
        yield base
        return
    addresses = ",".join(f"127.0.0.1:{pick_free_port()}" for _ in range(count))
    base |= {
        "MUSTER_DELIVERY_WORKERS": addresses,
        "MUSTER_DELIVERY_UNITS": str(PREPARED * BATCH),
        "MUSTER_DELIVERY_WORLD": "1",
        "MUSTER_DELIVERY_KEY": secrets.token_hex(32),
        "MUSTER_DELIVERY_ATTEMPT": "1",
    }
    started: list[subprocess.Popen[bytes]] = []
    logs = [folder / f"worker-{number}.log" for number in range(count)]
    try:
        for number, log in enumerate(logs):
            own = {
                "MUSTER_DELIVERY_ROLE": "worker",
                "JOB_COMPLETION_INDEX": str(number),
                "MUSTER_DELIVERY_SPILL": str(folder / f"spill-{number}"),
            }
            with log.open("wb") as sink:
                started.append(
                    subprocess.Popen(
                        build_command(options), env=base | own, stdout=sink, stderr=sink
                    )
                )
        wait_until_ready(logs, started)
        yield base | {"MUSTER_DELIVERY_ROLE": "rank", "RANK": "0", "WORLD_SIZE": "1"}
    finally:
        for process in started:
            process.kill()
            process.wait()


def wait_until_ready(logs: Sequence[Path], workers: Sequence[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not all(READY in log.read_text() for log in logs):
        if time.monotonic() > deadline or any(each.poll() is not None for each in workers):
            raise SystemExit("\n".join(log.read_text()[-2000:] for log in logs))
        time.sleep(0.05)


# An installation


def measure_gate(figures: Figures) -> None:
    """Measure the seconds of GPU allocation while data is prepared, and what follows."""
    print(f" an installation with an embedded cluster · load: {load_average()}")
    options = "--steps 40 --batches 400 --batch-size 32 --load-seconds 0.5 --step-seconds 0.1"
    with (
        tempfile.TemporaryDirectory() as folder,
        DeliveryStage(Path(folder), localkube_gpus=2) as stage,
    ):
        training = stage.submit("gate", options, data_workers=4, units=5120)
        training.wait_for_phase("Running", within=PATIENCE)
        early, prepared, until_pods = stage.measure_preparation(training)
        training.wait_for_phase("Completed", within=PATIENCE)
        training.remove()
    figures.add("GPU allocation while data was prepared, GPU seconds", early, Aim(0))
    figures.add("preparation of 5,120 elements by 4 data workers, s", prepared)
    figures.add("data is ready -> a pod of the training is there, whole s", until_pods)


if __name__ == "__main__":
    sys.exit(main())
