"""Batches that are too much for a description, indices that are none, and files that are lost."""

from pathlib import Path
from typing import Any

import pytest

from muster_delivery.authentication import Key, Session
from muster_delivery.errors import DeliveryError
from muster_delivery.messages import build_message
from muster_delivery.plan import LARGEST_INDEX, encode_index
from muster_delivery.shelf import BatchShelf
from muster_delivery.sources.source import LoadedBatch
from muster_delivery.wire import MOST_NODES, decode, encode

KEY = ("batch", 0, 7)


def build_tokens(rows: int, length: int) -> list[list[int]]:
    """Return rows of numbers, as a tokenizer without tensors makes them."""
    return [list(range(length)) for _ in range(rows)]


@pytest.mark.parametrize(
    "value",
    [
        build_tokens(512, 2048),
        list(range(MOST_NODES + 1)),
        {"ids": tuple(range(MOST_NODES)), "labels": build_tokens(2, 3)},
        dict.fromkeys(range(MOST_NODES)),
    ],
    ids=["rows", "list", "dict of a tuple", "dict"],
)
def test_a_batch_of_more_values_than_a_description_has_comes_back(value: Any) -> None:
    frames = encode(value)
    assert decode(frames) == value


def test_values_that_a_description_has_room_for_are_not_pickled() -> None:
    frames = encode(build_tokens(4, 1000))
    assert b'"p"' not in bytes(frames[0])


@pytest.mark.parametrize("index", [b"key", {"place": 1}, {1, 2}, [1, b"key"], 1j])
def test_an_index_that_would_come_back_as_something_else_is_refused(index: Any) -> None:
    with pytest.raises(DeliveryError, match="neither numbers nor texts nor lists or tuples"):
        encode_index(index)


def ask_for_ever_more(letter: str) -> None:
    """Build requests for batches of more and more elements, whose keys are of this letter."""
    session = Session(Key(bytes(32)), b"", b"", is_server=False)
    for count in range(1000, 20_000, 100):
        text = encode_index([letter * 100] * count)
        build_message(session, {"op": "load", "index": text, "number": 1 << 53})


@pytest.mark.parametrize("letter", ["x", '"', "ü", "\\"], ids=["plain", "quote", "far", "slash"])
def test_an_index_that_no_request_has_room_for_is_refused(letter: str) -> None:
    with pytest.raises(DeliveryError, match=f"{LARGEST_INDEX:,} can be asked of a data worker"):
        ask_for_ever_more(letter)


def test_a_prepared_batch_whose_file_is_lost_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shelf = BatchShelf(tmp_path, 0, 1 << 20)
    for spoil in (lambda path: path.write_bytes(b"x"), Path.unlink):
        assert shelf.keep(KEY, LoadedBatch(bytes(5000), 3))
        [file] = [path for path in tmp_path.rglob("*") if path.is_file()]
        spoil(file)
        assert shelf.take(KEY) is None
        assert not shelf.has_batch(KEY)
        assert shelf.fill == 0
    assert capsys.readouterr().err.count("a prepared batch is lost, and is loaded again") == 2
    assert shelf.keep(KEY, LoadedBatch(bytes(5000), 3))
    assert shelf.take(KEY) is not None
