"""What it costs to record the state of a large installation, and to look at a moment of it.

    benchmarks/time_machine.py [--workloads N] [--changes N]

Workloads, their pods and nodes are rows of a throwaway SQLite file. Turns of the step change some
of them as pods start and end; then moments at random are read as the page does, and the same out
of everything that was recorded since the beginning, which is the peer: a log without snapshots.
Times are processor seconds of this process.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0:1] = [str(ROOT), str(Path(__file__).resolve().parent)]

# ruff: noqa: E402 - the data directory comes before the settings, and these before models
os.environ["MUSTER_DATA_DIR"] = tempfile.mkdtemp(prefix="muster-time-machine-")
os.environ["DJANGO_SETTINGS_MODULE"] = "console.settings"

import django

import tests.environ  # noqa: F401 - what Django's settings read

django.setup()

from django.core.management import call_command
from django.db.models import F

from clusters.models import Node
from tests.cast import Cast, make_cast
from workloads.models import Attempt, Pod, Position, StateBlock, StateDelta, Workload
from workloads.overview.past_sight import load_sight
from workloads.overview.past_view import PastFocus, build_past_view
from workloads.queries.past_states import load_past_state, load_record_bounds
from workloads.recording.turns import record_turn
from workloads.time_machine import State, apply_delta, decode_block, decode_delta

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
TURN = timedelta(seconds=30)
PODS_PER_WORKLOAD = 8
LOOKS, PEER_LOOKS = 20, 5


def main() -> int:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=100_000, help="rows, most have ended")
    parser.add_argument("--unended", type=int, default=20_000, help="of these wait or run")
    parser.add_argument("--changes", type=int, default=50_000, help="changes of pods")
    parser.add_argument("--turns", type=int, default=100)
    options = parser.parse_args()
    call_command("migrate", verbosity=0)
    cast = make_cast()
    running = fill_database(cast, options.workloads, options.unended)
    first = measure(lambda: record_turn(BEGIN))
    print(f"{options.workloads:,} workloads, {options.unended:,} of them wait or run")
    print(f"the first state: {first:.2f} s, {size_of_record() / 1e6:.2f} MB", flush=True)
    record_changes(running, options.turns, max(1, options.changes // options.turns))
    read_moment(cast, BEGIN)
    rng = random.Random(2)
    moments = [BEGIN + rng.random() * options.turns * TURN for _ in range(LOOKS)]
    looks = [measure(partial(read_moment, cast, at)) for at in moments]
    peers = [measure(partial(replay_record, at)) for at in moments[:PEER_LOOKS]]
    print(f"{LOOKS} moments: median {1000 * statistics.median(looks):.0f} ms, ", end="")
    print(f"most {1000 * max(looks):.0f} ms; the peer {1000 * statistics.median(peers):.0f} ms")
    return 0


def record_changes(running: list[Workload], turns: int, each: int) -> None:
    """Run the step so many times, after changes of so many pods, and print what it costs."""
    rng = random.Random(1)
    before, times = size_of_record(), []
    for number in range(1, turns + 1):
        change_pods(rng, running, each)
        times.append(measure(partial(record_turn, BEGIN + number * TURN)))
    per_change = (size_of_record() - before) / (each * turns)
    print(f"{turns} turns of {each} changed pods: {statistics.median(times):.2f} s each, ", end="")
    print(f"at most {max(times):.2f} s; {StateBlock.objects.count()} blocks")
    print(f"{per_change:.0f} bytes a change: {per_change / 1000:.3f} GB per million", flush=True)


def measure(run: Callable[[], object]) -> float:
    """Return the processor seconds that a call takes."""
    begin = time.process_time()
    run()
    return time.process_time() - begin


def fill_database(cast: Cast, count: int, unended: int) -> list[Workload]:
    """Make nodes and workloads, one of ten unended runs with its pods; returns those that run."""
    Node.objects.bulk_create(
        Node(cluster=cast.cluster, name=f"node-{number:04}", gpus=8, is_ready=True)
        for number in range(unended // 50)
    )
    teams = (cast.team_a, cast.team_b)
    workloads = [
        Workload(
            project=teams[number % 2],
            cluster=cast.cluster,
            name=f"train-{number}",
            architecture="Distributed",
            framework="PyTorch",
            spec={},
            submitted_by=cast.bob,
            status=choose_status(number, unended),
            reason="" if number % 10 == 0 else "Its queue has no quota for it.",
            ended_at=None if number < unended else BEGIN,
            requested_pods=PODS_PER_WORKLOAD,
            gpus_requested=Decimal(PODS_PER_WORKLOAD),
            status_at=BEGIN - timedelta(seconds=number),
        )
        for number in range(count)
    ]
    Workload.objects.bulk_create(workloads, batch_size=1000)
    Attempt.objects.bulk_create(
        (Attempt(workload=each, number=1, status=each.status) for each in workloads),
        batch_size=1000,
    )
    running = workloads[:unended:10]
    Pod.objects.bulk_create(
        (
            Pod(
                workload=each,
                attempt=1,
                uid=str(number),
                name=f"{each.name}-{number}",
                phase="Running",
                node=f"node-{(index // 2 + number) % max(1, unended // 50):04}",
                gpus=1,
                is_ready=True,
            )
            for index, each in enumerate(running)
            for number in range(PODS_PER_WORKLOAD)
        ),
        batch_size=1000,
    )
    Position.objects.create(pk=1, value=1)
    return running


def choose_status(number: int, unended: int) -> str:
    """Return the status of a workload: one of ten that have not ended runs."""
    if number >= unended:
        return "Completed"
    return "Pending" if number % 10 else "Running"


def change_pods(rng: random.Random, running: list[Workload], count: int) -> None:
    """Change so many pods of other workloads each, as the journal would."""
    ids = [each.pk for each in rng.sample(running, min(count, len(running)))]
    Position.objects.update(value=F("value") + 1)
    position = Position.objects.get().value
    for begin in range(0, len(ids), 500):
        chunk = ids[begin : begin + 500]
        number = rng.randrange(PODS_PER_WORKLOAD)
        Pod.objects.filter(workload__in=chunk, uid=str(number)).update(
            node=f"node-{rng.randrange(2000):04}", is_ready=rng.random() < 0.5
        )
        Workload.objects.filter(pk__in=chunk).update(
            changed=position, running_pods=rng.randrange(PODS_PER_WORKLOAD)
        )


def size_of_record() -> int:
    """Return the bytes of all rows of the record."""
    rows = (*StateBlock.objects.all(), *StateDelta.objects.all())
    return sum(len(bytes(row.data)) for row in rows)


def read_moment(cast: Cast, at: datetime) -> None:
    """Read a moment as the page does."""
    bounds = load_record_bounds()
    assert bounds is not None
    past = load_past_state(at, bounds)
    assert past is not None
    build_past_view(past.state, load_sight(cast.alice), PastFocus(), 50)


def replay_record(at: datetime) -> State:
    """Read a moment out of everything since the beginning, without later snapshots."""
    blocks = [decode_block(bytes(row.data)) for row in StateBlock.objects.order_by("begin")]
    state = State.from_records(blocks[0].records)
    deltas = [delta for block in blocks for delta in block.deltas]
    deltas += [decode_delta(bytes(row.data)) for row in StateDelta.objects.order_by("at")]
    for delta in deltas:
        if delta.at <= at.timestamp():
            apply_delta(state, delta)
    return state


if __name__ == "__main__":
    raise SystemExit(main())
