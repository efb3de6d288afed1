"""Values as frames: they come back equal, large buffers are not copied, pickles are guarded."""

import collections
import datetime
import math
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster_delivery.wire import MalformedFrames, decode, encode


class Sample(NamedTuple):
    """An element with a name for each part."""

    image: Any
    label: int


def transfer(value: object) -> Any:
    """Return what a value becomes on its way, out of memory that is not the sender's."""
    return decode([bytearray(frame) for frame in encode(value)])


scalars = st.none() | st.booleans() | st.integers() | st.text() | st.binary(max_size=9000)
values = st.recursive(
    scalars | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.tuples(st.integers()), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=30)
@given(values)
def test_plain_values_come_back_equal_and_of_the_same_type(value: object) -> None:
    assert repr(transfer(value)) == repr(value)


@pytest.mark.parametrize(
    "value",
    [
        datetime.date(2026, 1, 1),
        {1, 2},
        collections.OrderedDict(a=np.arange(5000)),
        Sample(b"x" * 5000, 3),
        collections.Counter("abc"),
        1 + 2j,
    ],
)
def test_other_values_come_back_too(value: object) -> None:
    arrived = transfer(value)
    assert type(arrived) is type(value)
    assert repr(arrived) == repr(value)


def test_what_is_no_number_stays_so() -> None:
    assert math.isnan(transfer(math.nan))
    assert transfer([math.inf, -math.inf]) == [math.inf, -math.inf]


@pytest.mark.parametrize("dtype", ["u1", "<i4", ">i4", "<f2", "f8", "c16", "?", "U5", "M8[ns]"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (50, 70), (2, 0, 3)])
def test_arrays_come_back_equal(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(math.prod(shape), dtype="i8").reshape(shape).astype(dtype)
    arrived = transfer(array)
    assert arrived.dtype == array.dtype
    assert arrived.shape == array.shape
    assert (arrived == array).all()


def test_order_and_strides_do_not_matter() -> None:
    base = np.arange(60_000, dtype="f4").reshape(200, 300)
    for array in (base.T, base[::2, ::-1], np.asfortranarray(base), base[:, 5]):
        assert (transfer(array) == array).all()


def test_objects_and_records_in_arrays_come_back() -> None:
    records = np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i4"), ("b", "f8")])
    assert (transfer(records) == records).all()
    assert transfer(np.array([None, "a"], dtype=object)).tolist() == [None, "a"]


def test_large_buffers_are_not_copied() -> None:
    array = np.zeros(1_000_000, dtype="u1")
    frames = encode({"image": array, "label": 7})
    array[5] = 9
    assert bytes(frames[2])[5] == 9
    received = [bytearray(frame) for frame in frames]
    arrived = decode(received)["image"]
    received[2][6] = 8
    assert arrived[6] == 8


def test_a_copy_does_not_change_with_the_value() -> None:
    array = np.zeros(1_000_000, dtype="u1")
    frames = encode(array, copy=True)
    array[5] = 9
    assert decode(frames)[5] == 0


def test_what_comes_can_be_written_to() -> None:
    frames = [bytes(frame) for frame in encode([np.zeros(10), np.zeros(10_000)])]
    for array in decode(frames):
        array += 1


def test_tensors_need_no_pickle(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = encode([np.zeros(10), {"a": np.ones(10_000)}, "text", b"bytes"])
    monkeypatch.setattr(pickle, "loads", None)
    decode(frames)


def test_a_pickle_that_was_changed_is_not_loaded() -> None:
    frames = encode({1, 2, 3})
    frames[1] = bytearray(pickle.dumps(Explosive()).ljust(len(frames[1]), b"\0"))
    with pytest.raises(MalformedFrames):
        decode(frames)


class Explosive:
    """What must not be unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return exit, (3,)


@settings(max_examples=30)
@given(st.lists(st.binary(max_size=300), max_size=4))
def test_garbage_is_refused(frames: list[bytes]) -> None:
    with pytest.raises(MalformedFrames):
        decode([b"[" + frame for frame in frames])


@pytest.mark.parametrize(
    "description",
    [
        b'["a","f8",[1000000000000],"C",[0,0,4096]]',
        b'["a","O",[1],"C",[0,0,8]]',
        b'["a","f8",[2],"C",[7,0,16]]',
        b'["b",false,[0,-1,8]]',
        b'["b",false,[0,0,9000]]',
        b"[" * 5000 + b"]" * 5000,
        b'["l",' * 100 + b"1" + b"]" * 100,
    ],
)
def test_descriptions_that_fit_no_buffer_are_refused(description: bytes) -> None:
    with pytest.raises(MalformedFrames):
        decode([description, bytes(4096)])
