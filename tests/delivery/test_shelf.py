"""The shelf of a data worker: what it refuses and what it drops."""

from pathlib import Path

from muster_delivery.shelf import BatchKey, BatchShelf
from muster_delivery.sources.source import LoadedBatch

MEBIBYTE = 1 << 20


def build_batch(size: int = MEBIBYTE) -> LoadedBatch:
    """Return a batch of so many bytes, and some for its description."""
    return LoadedBatch(bytes(size), 1)


def build_key(number: int, epoch: int = 0) -> BatchKey:
    """Return what a batch is kept by."""
    return ("batch", epoch, number)


def list_files(folder: Path) -> list[Path]:
    """Return the files of batches."""
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_shelf_without_room_for_the_last_batch_is_full_until_there_is_room() -> None:
    shelf = BatchShelf(None, 3 * MEBIBYTE, 0)
    assert shelf.keep(build_key(0), build_batch())
    assert shelf.fill < 0.4
    assert not shelf.keep(build_key(1), build_batch(2 * MEBIBYTE))
    assert shelf.fill == 1
    shelf.take(build_key(0))
    assert shelf.fill == 0


def test_a_batch_that_never_has_room_leaves_a_shelf_full_for_its_like() -> None:
    shelf = BatchShelf(None, MEBIBYTE, 0)
    assert not shelf.keep(build_key(0), build_batch(2 * MEBIBYTE))
    assert shelf.fill == 1
    assert shelf.keep(build_key(1), build_batch(MEBIBYTE // 2))
    assert shelf.fill < 0.6


def test_what_is_of_earlier_epochs_is_dropped_from_the_disk_too(tmp_path: Path) -> None:
    shelf = BatchShelf(tmp_path, 0, 10 * MEBIBYTE)
    for epoch in range(2):
        assert shelf.keep(build_key(7, epoch), build_batch())
    assert len(list_files(tmp_path)) == 2
    shelf.drop_epochs_before(1)
    assert len(list_files(tmp_path)) == 1
    assert shelf.list_keys() == [build_key(7, 1)]
    assert shelf.take(build_key(7, 1)) is not None
    assert list_files(tmp_path) == []
