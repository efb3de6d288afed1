"""PyTorch's loaders, delivered: the same batches as without data workers."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.delivery.processes import Forge, Script, Workload
from tests.torch import TORCH, needs_torch

pytestmark = needs_torch

HEAD = """
import json, os, random
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from torch.utils.data import IterableDataset, get_worker_info
import muster_delivery as delivery

RANK, WORLD = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))

class Numbers(Dataset):
    def __init__(self, count=20):
        self.count = count
    def __len__(self):
        return self.count
    def __getitem__(self, index):
        if os.environ["MUSTER_DELIVERY_ROLE"] == "rank":
            raise AssertionError("a rank loads nothing")
        return torch.tensor(index), torch.rand(()), random.random()

def tell(loader, epochs=2, set_epoch=None):
    for epoch in range(epochs):
        if set_epoch:
            set_epoch(epoch)
        batches = [[b[0].tolist(), [round(x, 4) for x in b[1].tolist()]] for b in loader]
        print("epoch", json.dumps(batches))
    delivery.unregister(loader)
"""

SHUFFLED = (
    HEAD
    + """
if seed := os.environ.get("SEED"):
    torch.manual_seed(int(seed))
else:
    torch.seed()
loader = delivery.register(DataLoader(Numbers(), batch_size=3, shuffle=True, num_workers=2))
print("attributes", loader.batch_size, len(loader.dataset), len(loader))
tell(loader)
"""
)

DISTRIBUTED = (
    HEAD
    + """
dataset = Numbers(21)
sampler = DistributedSampler(dataset, num_replicas=WORLD, rank=RANK, shuffle=True, seed=3)
loader = delivery.register(DataLoader(dataset, batch_size=4, sampler=sampler))
print("plan", json.dumps([[int(i) for i in sampler] for e in (0, 1) if not sampler.set_epoch(e)]))
sampler.set_epoch(0)
print("length", len(loader))
tell(loader, set_epoch=loader.sampler.set_epoch)
"""
)

ITERABLE = (
    HEAD
    + """
class Stream(IterableDataset):
    def __iter__(self):
        assert os.environ["MUSTER_DELIVERY_ROLE"] == "worker"
        info = get_worker_info()
        for number in range(info.id, 23, info.num_workers):
            yield torch.tensor(number), torch.rand(())

loader = delivery.register(DataLoader(Stream(), batch_size=3, num_workers=2))
tell(loader)
"""
)


def read_epochs(script: Script) -> list[list[list[list[float]]]]:
    """Return the batches of each epoch that a rank has printed."""
    lines = [line for line in script.log.splitlines() if line.startswith("epoch ")]
    return [json.loads(line.removeprefix("epoch ")) for line in lines]


@pytest.fixture(scope="module")
def forge() -> Iterator[Forge]:
    """One process that has loaded torch, for all scripts here."""
    forge = Forge(TORCH)
    yield forge
    forge.close()


@dataclass(frozen=True)
class Size:
    """How large a workload is."""

    workers: int = 1
    world: int = 1
    units: int = 0


def run_workload(
    forge: Forge, folder: Path, script: str, size: Size, **variables: str
) -> list[Script]:
    """Run a script to its end on all data workers and ranks; return the ranks."""
    folder.mkdir(exist_ok=True)
    plan = Workload(
        folder, script, size.workers, size.world, size.units, forge, variables=variables
    )
    with plan as workload:
        workers = workload.start_workers()
        ranks = workload.start_ranks()
        assert [rank.wait() for rank in ranks] == [0] * size.world
        assert [worker.wait() for worker in workers] == [0] * size.workers
    return ranks


def test_shuffling_and_augmentation_depend_on_the_seed_alone(forge: Forge, tmp_path: Path) -> None:
    one = run_workload(forge, tmp_path / "one", SHUFFLED, Size())[0]
    three = run_workload(forge, tmp_path / "three", SHUFFLED, Size(workers=3, units=9))[0]
    assert "attributes 3 20 7\n" in one.log
    first, second = read_epochs(one)
    assert read_epochs(three) == [first, second]
    for epoch in (first, second):
        assert sorted(number for batch in epoch for number in batch[0]) == list(range(20))
    assert first != second
    seeded = run_workload(forge, tmp_path / "seeded", SHUFFLED, Size(), SEED="7")[0]
    assert read_epochs(seeded)[0] != first
    augmented, again = (
        {n: value for b in epoch for n, value in zip(*b, strict=True)} for epoch in (first, second)
    )
    assert len(set(augmented.values())) == 20
    assert all(augmented[number] != again[number] for number in again)


def test_a_distributed_sampler_deals_out_as_without_delivery(forge: Forge, tmp_path: Path) -> None:
    ranks = run_workload(forge, tmp_path, DISTRIBUTED, Size(workers=2, world=2, units=8))
    for rank in ranks:
        line = next(line for line in rank.log.splitlines() if line.startswith("plan "))
        plan = json.loads(line.removeprefix("plan "))
        epochs = read_epochs(rank)
        assert [[n for batch in epoch for n in batch[0]] for epoch in epochs] == plan
        assert "length 3\n" in rank.log


def test_shards_of_an_iterable_dataset_take_turns(forge: Forge, tmp_path: Path) -> None:
    (rank,) = run_workload(forge, tmp_path, ITERABLE, Size(workers=3))
    first, second = read_epochs(rank)
    numbers = [batch[0] for batch in first]
    assert numbers == [
        [0, 2, 4],
        [1, 3, 5],
        [6, 8, 10],
        [7, 9, 11],
        [12, 14, 16],
        [13, 15, 17],
        [18, 20, 22],
        [19, 21],
    ]
    assert [batch[0] for batch in second] == numbers
    assert first != second


ELASTIC = (
    HEAD
    + """
dataset = Numbers(61)
sampler = DistributedSampler(dataset, num_replicas=WORLD, rank=RANK, shuffle=True, seed=3)
loader = delivery.register(DataLoader(dataset, batch_size=4, sampler=sampler))
if state := os.environ.get("LOAD"):
    loader.load_state_dict(json.loads(state))
else:
    loader.set_epoch(2)
for number, batch in enumerate(loader, start=1):
    print("batch", json.dumps(batch[0].tolist()), flush=True)
    if str(number) == os.environ.get("STOP"):
        print("state", json.dumps(loader.state_dict()), flush=True)
        break
else:
    print("next", loader.state_dict()["epoch"])
    delivery.unregister(loader)
"""
)

WORKER = (
    HEAD
    + """
import threading

class Described(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        info = get_worker_info()
        return {"index": index, "init": self.init, "workers": info.num_workers,
                "cuda": os.environ["CUDA_VISIBLE_DEVICES"] or "none",
                "started": torch.cuda.is_initialized()}

dataset = Described()

def prepare(worker):
    get_worker_info().dataset.init = f"worker {worker}"

loader = DataLoader(dataset, batch_size=None, num_workers=2, worker_init_fn=prepare)
loader = delivery.register(loader)
for batch in loader:
    print("element", json.dumps(batch))
delivery.unregister(loader)
"""
)


SAMPLED = (
    HEAD
    + """
class Endless(Dataset):
    def __getitem__(self, index):
        return torch.tensor(index)

loader = DataLoader(Endless(), batch_size=2, sampler=[5, 3, 8])
loader = delivery.register(loader)
print("batches", len(loader), [batch.tolist() for batch in loader])
delivery.unregister(loader)
"""
)


def test_a_dataset_with_a_sampler_of_its_own_needs_no_length(forge: Forge, tmp_path: Path) -> None:
    (rank,) = run_workload(forge, tmp_path, SAMPLED, Size())
    assert "batches 2 [[5, 3], [8]]\n" in rank.log


def read_numbers(script: Script) -> list[list[int]]:
    """Return the batches that a rank of ELASTIC has printed."""
    lines = [line for line in script.log.splitlines() if line.startswith("batch ")]
    return [json.loads(line.removeprefix("batch ")) for line in lines]


def test_a_sampler_is_dealt_out_anew_when_ranks_come_within_an_epoch(
    forge: Forge, tmp_path: Path
) -> None:
    with Workload(tmp_path, ELASTIC, 2, 2, forge=forge) as workload:
        workers = workload.start_workers()
        ranks = workload.start_ranks(STOP="3")
        states = [rank.await_text(r"^state (\{.*\})$")[1] for rank in ranks]
        assert [rank.wait() for rank in ranks] == [0, 0]
        others = workload.start_ranks(world=3, LOAD=states[0])
        assert [rank.wait() for rank in others] == [0, 0, 0]
        assert [worker.wait() for worker in workers] == [0, 0]
    first, second = ([read_numbers(rank) for rank in group] for group in (ranks, others))
    delivered = [n for batches in (*first, *second) for batch in batches for n in batch]
    # The sampler of two ranks pads 61 to 62.
    assert sorted(set(delivered)) == list(range(61))
    assert len(delivered) == 62
    assert len({len(batches) for batches in second}) == 1
    assert all("next 3\n" in rank.log for rank in others)


def test_a_data_worker_is_a_worker_of_torch_without_a_gpu(forge: Forge, tmp_path: Path) -> None:
    (rank,) = run_workload(forge, tmp_path, WORKER, Size())
    lines = [line for line in rank.log.splitlines() if line.startswith("element ")]
    assert [json.loads(line.removeprefix("element ")) for line in lines] == [
        {"index": index, "init": "worker 0", "workers": 1, "cuda": "none", "started": False}
        for index in range(4)
    ]
