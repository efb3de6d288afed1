"""How long the command line takes to start: `muster list` against a large database.

Cold processes, in turn with a bare `python -c pass`, so that both meet the same machine.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(BASE))

from figures import KEYS  # noqa: E402 - as the other benchmarks are run

os.environ |= {f"MUSTER_{name.upper()}": value for name, value in KEYS.items()}

from tests.console_server import WebServer  # noqa: E402 - the path comes first

WORKLOADS = 100_000
RUNS = 20
LIMIT_MS = 300.0
FILLED_AT_ONCE = 10_000
"""Workloads that one process creates: each has to end within a bound."""
FIRST = """
from tests.cast import a_spec, make_cast
from workloads import journal
from workloads.models import Workload
cast = make_cast()
first = journal.create_workload(a_spec(cast.team_a, "first"), project=cast.team_a, user=cast.bob)
Workload.objects.filter(pk=first.pk).update(status="Completed", next_try_at=None)
"""
FURTHER = """
from django.db import transaction
from workloads.models import Workload
first = Workload.objects.get(name="first")
fields = [each for each in Workload._meta.concrete_fields if not each.primary_key]
values = {{each.attname: getattr(first, each.attname) for each in fields}}
with transaction.atomic():
    for start in range({start}, {end}, 2000):
        Workload.objects.bulk_create(
            Workload(**values | {{"name": f"train-{{n}}"}})
            for n in range(start, min(start + 2000, {end}))
        )
print(Workload.objects.count())
"""


def fill_database(web: WebServer, count: int) -> int:
    """Create so many workloads and one; return how many there are."""
    web.python(FIRST)
    stored = 1
    for start in range(0, count, FILLED_AT_ONCE):
        end = min(start + FILLED_AT_ONCE, count)
        stored = int(web.python(FURTHER.format(start=start, end=end)))
    return stored


def measure(command: Sequence[str], environment: dict[str, str]) -> float:
    """Run a command to its end; return the milliseconds that it took."""
    started = time.perf_counter()
    subprocess.run(
        command,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=60,
    )
    return (time.perf_counter() - started) * 1000


def describe(name: str, values: Sequence[float]) -> str:
    """Return a line of the report."""
    ordered = sorted(values)
    p95 = ordered[int(len(ordered) * 0.95) - 1]
    return f"| {name} | {statistics.median(ordered):.0f} | {p95:.0f} | {ordered[-1]:.0f} |"


def run_benchmark(count: int, runs: int) -> int:
    """Print the report; fail where the median is beyond the limit."""
    with (
        tempfile.TemporaryDirectory() as folder,
        WebServer(Path(folder) / "web", debug=0, log_level="ERROR") as web,
    ):
        stored = fill_database(web, count)
        environment = os.environ | {
            "XDG_CONFIG_HOME": folder,
            "PYTHONPATH": str(BASE / "cli" / "src"),
        }
        muster = [sys.executable, "-m", "muster_cli"]
        sign_in = [*muster, "login", web.url, "--user", "bob", "--password-stdin"]
        subprocess.run(
            sign_in,
            env=environment,
            input=b"correct horse battery",
            check=True,
            timeout=60,
            stdout=subprocess.DEVNULL,
        )
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "muster --version": [*muster, "--version"],
            "muster list": [*muster, "list"],
            "muster list -o json": [*muster, "list", "-o", "json"],
            "muster submit --help": [*muster, "submit", "pytorch", "--help"],
        }
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for number in range(runs + 1):
            for name, command in commands.items():
                value = measure(command, environment)
                # The first run of each compiles, and fills the file cache.
                if number:
                    taken[name].append(value)
    print(f"{stored:,} workloads, {runs} cold processes each, in milliseconds\n")
    print("| command | p50 | p95 | most |\n|---|---:|---:|---:|")
    for name, values in taken.items():
        print(describe(name, values))
    over = statistics.median(taken["muster list"]) - statistics.median(taken["python -c pass"])
    print(f"\n`muster list` takes {over:.0f} ms more than a bare Python; at most {LIMIT_MS:.0f}.")
    return int(over > LIMIT_MS)


def main() -> int:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=WORKLOADS)
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    return run_benchmark(options.workloads, options.runs)


if __name__ == "__main__":
    raise SystemExit(main())
