"""What dies, raises or comes late, and what the log says of it."""

import itertools
import json
import time
from pathlib import Path
from typing import Any

import pytest

from muster_delivery.authentication import Key
from muster_delivery.client import ClientGroup
from tests.delivery.processes import KEY, Workload
from tests.delivery.transport_stage import wait_for_answer, wait_for_change

SCRIPT = """
import json, os, time
import muster_delivery as delivery

PAUSE = float(os.environ.get("PAUSE", "0.02"))
FOLDER = os.environ["FOLDER"]

class Items:
    def __len__(self):
        return int(os.environ.get("COUNT", "40"))
    def __getitem__(self, number):
        time.sleep(PAUSE)
        if "LOADS" in os.environ:
            print("load", number, flush=True)
        if str(number) == os.environ.get("BAD"):
            raise ValueError(f"bad item {number}")
        if os.environ.get("JOB_COMPLETION_INDEX") == "0" and os.path.exists(FOLDER + "/slow"):
            time.sleep(600)
        return bytes(int(os.environ.get("SIZE", "1"))) + bytes([number])

loader = delivery.register(Items())
if state := os.environ.get("LOAD"):
    loader.load_state_dict(json.loads(state))
for batch in loader:
    print("item", batch[-1], round(time.monotonic(), 2), flush=True)
    if str(batch[-1]) == os.environ.get("STOP"):
        print("state", json.dumps(loader.state_dict()), flush=True)
        time.sleep(600)
delivery.unregister(loader)
"""


def read_items(log: str) -> list[int]:
    """Return the items that a rank was handed, in order."""
    return [int(line.split()[1]) for line in log.splitlines() if line.startswith("item ")]


def read_longest_pause(log: str) -> float:
    """Return the longest time between two items of a rank."""
    times = [float(line.split()[2]) for line in log.splitlines() if line.startswith("item ")]
    return max(after - before for before, after in itertools.pairwise(times))


def test_another_worker_takes_over_what_a_killed_one_owed(tmp_path: Path) -> None:
    with Workload(tmp_path, SCRIPT, workers=2, variables={"PAUSE": "0.1"}) as workload:
        workers = workload.start_workers()
        rank = workload.start_rank()
        rank.await_text("^item 9 ")
        workers[0].kill()
        assert rank.wait() == 0
        assert workers[1].wait() == 0
    assert read_items(rank.log) == list(range(40))
    # Far below any timeout of TCP: the lost connection itself is noticed.
    assert read_longest_pause(rank.log) < 30


def test_a_worker_that_stands_still_is_not_waited_for(tmp_path: Path) -> None:
    with Workload(tmp_path, SCRIPT, workers=2, variables={"PAUSE": "0.05"}) as workload:
        workers = workload.start_workers()
        rank = workload.start_rank()
        rank.await_text("^item 9 ")
        workers[0].pause()
        rank.await_text("^item 39 ")
    assert read_items(rank.log) == list(range(40))


def test_a_load_that_hangs_is_given_to_another_worker(tmp_path: Path) -> None:
    with Workload(tmp_path, SCRIPT, workers=2) as workload:
        workload.start_workers()
        rank = workload.start_rank()
        rank.await_text("^item 5 ")
        (tmp_path / "slow").touch()
        rank.await_text("^item 39 ")
    assert read_items(rank.log) == list(range(40))


def test_a_late_worker_helps(tmp_path: Path) -> None:
    with Workload(tmp_path, SCRIPT, workers=2, variables={"PAUSE": "0.1"}) as workload:
        first = workload.start_worker(0)
        rank = workload.start_rank()
        rank.await_text("^item 3 ")
        second = workload.start_worker(1)
        second.await_text("listens$")
        first.pause()
        assert rank.wait() == 0
        assert second.wait() == 0
    assert read_items(rank.log) == list(range(40))


@pytest.mark.parametrize("variable", ["LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"])
def test_of_the_processes_that_a_launcher_starts_in_a_data_worker_one_serves(
    tmp_path: Path, variable: str
) -> None:
    with Workload(tmp_path, SCRIPT, variables={"PAUSE": "0"}) as workload:
        spare = workload.start_worker(0, **{variable: "1"})
        spare.await_text("this one stands by$")
        worker = workload.start_worker(0, **{variable: "0"})
        given: dict[str, Any] = {variable: "1"}
        rank = workload.start_rank(**given)
        assert rank.wait() == 0
        assert worker.wait() == 0
        assert spare.process.poll() is None
    assert read_items(rank.log) == list(range(40))


def test_a_loader_that_raises_fails_worker_and_rank_with_its_line(tmp_path: Path) -> None:
    with Workload(tmp_path, SCRIPT, variables={"BAD": "7"}) as workload:
        (worker,) = workload.start_workers()
        rank = workload.start_rank()
        assert worker.wait() == 86
        assert rank.wait() == 1
    line = next(
        number for number, text in enumerate(SCRIPT.splitlines(), start=1) if "raise Value" in text
    )
    assert worker.events[-1] == {
        "event": "failed",
        "worker": 0,
        "error": "ValueError: bad item 7",
        "where": f"train.py:{line}",
    }
    assert "Traceback" in worker.log
    assert "muster_delivery.errors.LoadFailed: the loader raised on a data worker" in rank.log
    assert "ValueError: bad item 7" in rank.log


def test_a_loader_that_raises_while_units_are_prepared_ends_with_86(tmp_path: Path) -> None:
    with Workload(tmp_path, SCRIPT, units=20, variables={"BAD": "3"}) as workload:
        worker = workload.start_worker(0)
        assert worker.wait() == 86
    assert [event["event"] for event in worker.events][-1] == "failed"


def test_a_checkpoint_is_gone_on_from_and_without_one_the_log_says_so(tmp_path: Path) -> None:
    with Workload(tmp_path, SCRIPT, variables={"STOP": "11"}) as workload:
        workload.start_workers()
        rank = workload.start_rank()
        state = rank.await_text(r"^state (\{.*\})$")[1]
        rank.kill()
        again = workload.start_rank(LOAD=state, STOP="20")
        again.await_text("^state ")
        again.kill()
        anew = workload.start_rank(STOP="30")
        anew.await_text("^state ")
    parsed = json.loads(state)
    assert (parsed["version"], parsed["epoch"], parsed["position"]) == (1, 0, 12)
    assert parsed["delivered"] == 12
    assert read_items(again.log) == list(range(12, 21))
    assert "no checkpoint" not in again.log
    assert read_items(anew.log) == list(range(31))
    assert "muster-delivery: no checkpoint: epoch 0 begins anew\n" in anew.log


LEAVING = """
import time
import muster_delivery as delivery

class Items:
    def __len__(self):
        return 100
    def __getitem__(self, number):
        time.sleep(0.002)
        return bytes([number])

loader = delivery.register(Items())
for epoch in range(400):
    for batch in loader:
        break
print("left", batch[0], loader.state_dict()["epoch"])
delivery.unregister(loader)
"""


def test_a_script_may_leave_its_loops_early_any_number_of_times(tmp_path: Path) -> None:
    with Workload(tmp_path, LEAVING) as workload:
        (worker,) = workload.start_workers()
        rank = workload.start_rank()
        assert rank.wait() == 0
        assert worker.wait() == 0
    assert "left 0 399" in rank.log


MANY_PARTS = """
import muster_delivery as delivery

class Items:
    def __len__(self):
        return 3
    def __getitem__(self, number):
        return [bytes(5000)] * 5000

for batch in delivery.register(Items()):
    print("item")
"""


def test_a_batch_that_no_message_carries_is_said_by_worker_and_rank(tmp_path: Path) -> None:
    with Workload(tmp_path, MANY_PARTS) as workload:
        (worker,) = workload.start_workers()
        rank = workload.start_rank()
        assert worker.wait() == 86
        assert rank.wait() == 1
    text = "A batch has 5,002 large parts; 4,096 can be delivered."
    assert text in worker.events[-1]["error"]
    assert f"ValueError: {text}" in rank.log


def test_a_request_whose_answer_is_too_large_ends_no_data_worker(tmp_path: Path) -> None:
    with Workload(tmp_path, SCRIPT, variables={"PAUSE": "0"}) as workload:
        (worker,) = workload.start_workers()
        group = ClientGroup([("127.0.0.1", workload.ports[0])], Key.parse(KEY))
        group.start()
        try:
            wait_for_change(group, is_connected=True)
            group.send(0, {"id": 1, "op": "x" * ((1 << 20) - 40)})
            assert wait_for_answer(group).header["state"] == "error"
        finally:
            group.close()
        rank = workload.start_rank()
        assert rank.wait() == 0
        assert worker.wait() == 0
    assert "an answer to a rank could not be built: A message" in worker.log
    assert read_items(rank.log) == list(range(40))


COMPLETE = """
import json, os
import muster_delivery as delivery

loader = delivery.register([[number] for number in range(6)])
loader.load_state_dict(json.loads(os.environ["LOAD"]))
print("epoch", loader.state_dict()["epoch"])
loader.set_epoch(3)
print("announced", list(loader))
print("items", list(loader), loader.state_dict()["epoch"])
delivery.unregister(loader)
"""


def test_a_checkpoint_of_a_whole_epoch_goes_on_with_the_next(tmp_path: Path) -> None:
    state = {"version": 1, "epoch": 3, "position": 6, "world": 1, "rank": 0, "seed": 0}
    with Workload(tmp_path, COMPLETE) as workload:
        workload.start_workers()
        rank = workload.start_rank(LOAD=json.dumps(state))
        assert rank.wait() == 0
    items = [[number] for number in range(6)]
    assert rank.log.startswith(f"epoch 4\nannounced []\nitems {items} 5\n")


def test_what_memory_has_no_room_for_lies_on_disk_and_comes_back(tmp_path: Path) -> None:
    variables = {"SIZE": str(8 << 20), "PAUSE": "0", "COUNT": "30"}
    with Workload(tmp_path, SCRIPT, units=30, variables=variables) as workload:
        workload.variables["MUSTER_DELIVERY_MEMORY"] = str(32 << 20)
        (worker,) = workload.start_workers()
        spilled = [path for path in (tmp_path / "spill").rglob("*") if path.is_file()]
        rank = workload.start_rank()
        assert rank.wait() == 0
        assert worker.wait() == 0
    assert len(spilled) == 30 - 3
    assert read_items(rank.log) == list(range(30))


def test_a_batch_with_no_room_is_not_loaded_over_and_over(tmp_path: Path) -> None:
    variables = {"SIZE": str(3 << 20), "PAUSE": "0", "LOADS": "1", "STOP": "5"}
    with Workload(tmp_path, SCRIPT, variables=variables) as workload:
        # One batch is kept, and no second one has room beside it.
        workload.variables["MUSTER_DELIVERY_MEMORY"] = str(5 << 20)
        workload.variables["MUSTER_DELIVERY_SPILL"] = ""
        (worker,) = workload.start_workers()
        workload.start_rank().await_text("^state ")
        # Nobody takes anything any more: in a second hundreds would be loaded for nothing.
        time.sleep(1)
        assert worker.log.count("load ") < 40


def test_a_dataset_that_ends_before_the_units_is_ready_with_what_there_is(tmp_path: Path) -> None:
    with Workload(tmp_path, SCRIPT, workers=2, units=100, variables={"PAUSE": "0"}) as workload:
        workers = workload.start_workers()
    assert [worker.events[-1] for worker in workers] == [
        {"event": "ready", "worker": number, "units": 20, "of": 50, "ended": True}
        for number in range(2)
    ]


def test_progress_is_written_while_units_are_prepared(tmp_path: Path) -> None:
    with Workload(tmp_path, SCRIPT, units=40, variables={"PAUSE": "0.2"}) as workload:
        worker = workload.start_worker(0)
        started = time.monotonic()
        worker.await_text('"event":"preparing"')
        assert time.monotonic() - started >= 2
    first = worker.events[0]
    assert first.keys() == {"event", "worker", "units", "of", "rate"}
    assert 0 < first["units"] < first["of"] == 40


def test_ranks_and_workers_that_registered_different_loaders_are_told(tmp_path: Path) -> None:
    with Workload(tmp_path, SCRIPT) as workload:
        workload.start_workers()
        rank = workload.start_rank(COUNT="39")
        assert rank.wait() == 1
    assert "sequence of 39 there, sequence of 40 here" in rank.log
