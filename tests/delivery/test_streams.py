"""Iterables without torch: one stream, read by one data worker at a time."""

from pathlib import Path

from tests.delivery.processes import Workload

SCRIPT = """
import os, random, time
import muster_delivery as delivery

class Stream:
    batch_size = 4
    def __iter__(self):
        buffer = bytearray(8)
        for number in range(30):
            time.sleep(0.05)
            buffer[:] = bytes([number] * 8)
            yield buffer, random.random()

loader = delivery.register(Stream())
for batch, draw in loader:
    assert len(set(batch)) == 1
    print("item", batch[0], round(draw, 6), flush=True)
delivery.unregister(loader)
"""

LARGE = """
import muster_delivery as delivery

class Stream:
    batch_size = 1
    def __iter__(self):
        for number in range(12):
            yield bytes([number]) * (2 << 20)

for batch in delivery.register(Stream()):
    print("item", batch[0], flush=True)
"""


def test_only_what_was_kept_of_a_stream_counts_as_prepared(tmp_path: Path) -> None:
    with Workload(tmp_path, LARGE, units=10) as workload:
        workload.variables["MUSTER_DELIVERY_MEMORY"] = str(7 << 20)
        workload.variables["MUSTER_DELIVERY_SPILL"] = ""
        (worker,) = workload.start_workers()
        rank = workload.start_rank()
        assert rank.wait() == 0
    assert worker.events[-1] == {
        "event": "ready",
        "worker": 0,
        "units": 3,
        "of": 10,
        "ended": True,
    }
    assert "memory and disk are full" in worker.log
    assert read_items(rank.log) == [f"item {number}" for number in range(12)]


GENERATOR = """
import muster_delivery as delivery
delivery.register(number for number in range(3))
"""


def read_items(log: str) -> list[str]:
    """Return what a rank was handed, in order."""
    return [line for line in log.splitlines() if line.startswith("item ")]


def test_a_stream_is_dealt_out_and_read_again_by_another_worker(tmp_path: Path) -> None:
    with Workload(tmp_path, SCRIPT, workers=2, world=2, units=16) as workload:
        workers = workload.start_workers()
        ranks = workload.start_ranks()
        ranks[0].await_text("^item 12 ")
        workers[0].kill()
        assert [rank.wait() for rank in ranks] == [0, 0]
        assert workers[1].wait() == 0
    items = [read_items(rank.log) for rank in ranks]
    for number, own in enumerate(items):
        assert [int(line.split()[1]) for line in own] == list(range(number, 30, 2))
    # The random numbers do not depend on who has read.
    assert len({line.split()[2] for own in items for line in own}) == 30
    ready = [worker.events[0] for worker in workers]
    assert [(event["units"], event["of"]) for event in ready] == [(16, 16), (0, 0)]


def test_a_generator_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with Workload(tmp_path, GENERATOR) as workload:
        worker = workload.start_worker(0)
        assert worker.wait() == 86
        rank = workload.start_rank()
        assert rank.wait() == 1
    for script in (worker, rank):
        assert "a generator can be read once only: register an object whose" in script.log
