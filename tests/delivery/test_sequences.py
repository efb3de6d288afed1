"""Sequences without torch, delivered to ranks by data workers in processes of their own."""

import json
from pathlib import Path

from tests.delivery.processes import Workload

SCRIPT = """
import json, os, sys, time
import muster_delivery as delivery

class Squares:
    def __len__(self):
        return 24
    def __getitem__(self, number):
        if os.environ["MUSTER_DELIVERY_ROLE"] == "rank":
            raise AssertionError("a rank loads nothing")
        time.sleep(0.01)
        return number * number

loader = delivery.register(Squares())
assert os.environ["MUSTER_DELIVERY_ROLE"] == "rank"
print("length", len(loader))
for epoch in range(2):
    print("epoch", json.dumps(list(loader)))
delivery.unregister(loader)
print("end")
"""


def test_one_rank_gets_all_items_in_order(tmp_path: Path) -> None:
    with Workload(tmp_path, SCRIPT, workers=2) as workload:
        workers = workload.start_workers()
        rank = workload.start_rank()
        assert rank.wait() == 0
        assert [worker.wait() for worker in workers] == [0, 0]
    squares = [number * number for number in range(24)]
    assert rank.log.startswith(
        f"length 24\nepoch {json.dumps(squares)}\nepoch {json.dumps(squares)}\n"
    )
    assert "end" in rank.log
    assert rank.events[-1]["delivered"] == 48


def test_ranks_get_each_item_once(tmp_path: Path) -> None:
    with Workload(tmp_path, SCRIPT, workers=2, world=3, units=10) as workload:
        workers = workload.start_workers()
        ranks = workload.start_ranks()
        assert [rank.wait() for rank in ranks] == [0, 0, 0]
        assert [worker.wait() for worker in workers] == [0, 0]
    for number, rank in enumerate(ranks):
        assert f"epoch {json.dumps([n * n for n in range(number, 24, 3)])}\n" in rank.log
    ready = [event for worker in workers for event in worker.events if event["event"] == "ready"]
    assert [(event["units"], event["of"]) for event in ready] == [(5, 5), (5, 5)]
