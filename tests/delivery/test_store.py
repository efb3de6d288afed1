"""Prepared batches: bounded in memory and on disk, and whoever has no room waits."""

import threading
import time
from pathlib import Path

import pytest

from muster_delivery.store import BatchStore, StoreFull


def build_frames(number: int, size: int = 1000) -> list[bytes]:
    """Return the frames of a batch of so many bytes."""
    return [bytes([number]) * (size // 2), b"", bytes([number]) * (size - size // 2)]


def test_batches_come_out_as_they_went_in_from_memory_and_disk(tmp_path: Path) -> None:
    store = BatchStore(3000, tmp_path, 100_000)
    for number in range(20):
        assert store.put(("epoch", number), build_frames(number))
    assert (store.memory_used, store.disk_used, len(store)) == (3000, 17_000, 20)
    for number in range(20):
        assert store.pop(("epoch", number)) == build_frames(number)
        assert store.pop(("epoch", number)) is None
    assert (store.memory_used, store.disk_used, len(store)) == (0, 0, 0)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_full_store_makes_wait_until_a_batch_is_taken() -> None:
    store = BatchStore(2000)
    assert store.put(0, build_frames(0))
    assert store.put(1, build_frames(1))
    assert not store.put(2, build_frames(2), timeout=0)
    was_kept: list[bool] = []
    waiting = threading.Thread(target=lambda: was_kept.append(store.put(2, build_frames(2))))
    waiting.start()
    time.sleep(0.1)
    assert not was_kept
    store.pop(0)
    waiting.join(60)
    assert was_kept == [True]
    assert store.list_keys() == [1, 2]


def test_closing_lets_whoever_waits_go(tmp_path: Path) -> None:
    store = BatchStore(1000, tmp_path, 1000)
    store.put(0, build_frames(0))
    store.put(1, build_frames(1))
    was_kept: list[bool] = []
    waiting = threading.Thread(target=lambda: was_kept.append(store.put(2, build_frames(2))))
    waiting.start()
    time.sleep(0.1)
    store.close()
    waiting.join(60)
    assert was_kept == [False]
    assert list(tmp_path.iterdir()) == []


def test_a_batch_larger_than_all_is_refused() -> None:
    with pytest.raises(StoreFull, match="larger than the store"):
        BatchStore(999).put(0, build_frames(0))


def test_a_batch_that_is_there_stays() -> None:
    store = BatchStore(10_000)
    store.put(0, build_frames(1))
    assert store.put(0, build_frames(2))
    assert store.pop(0) == build_frames(1)
    assert store.memory_used == 0


def test_a_disk_that_is_full_before_its_bound_is_said(tmp_path: Path) -> None:
    store = BatchStore(1000, tmp_path, 100_000)
    store.put(0, build_frames(0))
    store.put(1, build_frames(1))
    for folder in tmp_path.iterdir():
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    with pytest.raises(OSError, match="No such file"):
        store.put(2, build_frames(2))
    assert not store.put(3, build_frames(3), timeout=0)
    store.pop(0)
    assert store.put(4, build_frames(4), timeout=0)


def test_many_threads_lose_and_double_nothing(tmp_path: Path) -> None:
    store = BatchStore(5000, tmp_path, 5000)
    taken: list[int] = []

    def put_batches(first: int) -> None:
        for number in range(first, 200, 4):
            assert store.put(number, build_frames(number, 900))

    def take_batches() -> None:
        while len(taken) < 200:
            for key in store.list_keys():
                frames = store.pop(key)
                if frames is not None:
                    assert bytes(frames[0][:1]) == bytes([int(str(key))])
                    taken.append(int(str(key)))

    threads = [threading.Thread(target=put_batches, args=(first,)) for first in range(4)]
    threads += [threading.Thread(target=take_batches) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(taken) == list(range(200))
    assert (store.memory_used, store.disk_used) == (0, 0)
