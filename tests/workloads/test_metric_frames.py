"""Figures as bytes: what is encoded comes back, and what is no frame is said so."""

import contextlib
import math
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.metrics.catalogue import METRICS, METRICS_BY_NAME
from workloads.metrics import frames
from workloads.metrics.frames import (
    DamagedFrames,
    decode_frames,
    encode_frame,
    merge_frames,
    pack_rows,
    unpack_frames,
)

GPU_USE = METRICS_BY_NAME["gpu_use"].code
UNUSED = METRICS_BY_NAME["gpus_unused"].code
MEMORY = METRICS_BY_NAME["memory"].code
PRESENCE = METRICS_BY_NAME["presence"].code
XID, ECC_ERRORS = METRICS_BY_NAME["xid"].code, METRICS_BY_NAME["ecc_errors"].code

figures = st.dictionaries(
    st.integers(1, 2**32),
    st.dictionaries(
        st.sampled_from([metric.code for metric in METRICS]), st.floats(0, 1e15), min_size=1
    ),
    min_size=1,
    max_size=20,
)


def as_figures(frame: frames.Frame) -> dict[int, dict[int, float]]:
    found: dict[int, dict[int, float]] = {}
    for code in frame.codes:
        for key, value in zip(frame.ids, frame.list_values(code), strict=True):
            if not math.isnan(value):
                found.setdefault(key, {})[code] = value
    return found


@given(st.lists(st.tuples(st.integers(0, 3599), figures), max_size=4))
def test_what_was_encoded_comes_back(
    moments: list[tuple[int, dict[int, dict[int, float]]]],
) -> None:
    data = b"".join(encode_frame(seconds, found) for seconds, found in moments)
    decoded = list(decode_frames(data))
    assert [frame.seconds for frame in decoded] == [seconds for seconds, _ in moments]
    for frame, (_, found) in zip(decoded, moments, strict=True):
        back = as_figures(frame)
        assert {key: set(values) for key, values in back.items()} == {
            key: set(values) for key, values in found.items()
        }
        for key, values in found.items():
            for code, value in values.items():
                assert back[key][code] == pytest.approx(value, rel=0.004, abs=1e-37)


@pytest.mark.parametrize("value", [0.0, 1.0, 50.0, 99.5, 100.0, 0.25])
def test_round_values_stay_as_they_are(value: float) -> None:
    [frame] = decode_frames(encode_frame(0, {1: {GPU_USE: value}}))
    assert list(frame.values) == [value]


def test_the_smallest_use_is_not_none() -> None:
    [frame] = decode_frames(encode_frame(0, {1: {GPU_USE: 0.001}}))
    assert frame.values[0] > 0


def test_a_pod_of_six_figures_takes_few_bytes() -> None:
    assert len(encode_frame(0, {1: dict.fromkeys(range(6), 1.0)})) == 28
    assert len(encode_frame(0, {key: dict.fromkeys(range(6), 1.0) for key in range(512)})) < 8300


def test_faults_that_no_pod_has_take_no_bytes() -> None:
    pods = {1: {GPU_USE: 0.0, XID: 0.0, ECC_ERRORS: 0.0}, 2: {GPU_USE: 0.0, XID: 0.0}}
    assert encode_frame(0, pods, keeps_zero_faults=False) == encode_frame(
        0, {key: {GPU_USE: 0.0} for key in pods}
    )
    assert encode_frame(0, {1: {XID: 0.0}}, keeps_zero_faults=False) == b""
    [frame] = decode_frames(encode_frame(0, pods))
    assert as_figures(frame) == pods
    pods[2][XID] = 79.0
    [frame] = decode_frames(encode_frame(0, pods, keeps_zero_faults=False))
    assert as_figures(frame) == {1: {GPU_USE: 0.0, XID: 0.0}, 2: {GPU_USE: 0.0, XID: 79.0}}


def test_ids_that_are_far_apart_are_left_out() -> None:
    [frame] = decode_frames(encode_frame(0, {1: {0: 1.0}, 1 << 40: {0: 2.0}}))
    assert list(frame.ids) == [1]


@given(st.binary(max_size=200))
def test_other_bytes_are_no_frames(data: bytes) -> None:
    with contextlib.suppress(DamagedFrames):
        list(decode_frames(data))


@pytest.mark.parametrize("cut", range(1, 28))
def test_a_frame_that_is_cut_off_is_damaged(cut: int) -> None:
    data = encode_frame(0, {1: dict.fromkeys(range(6), 1.0)})
    with pytest.raises(DamagedFrames):
        list(decode_frames(data[:-cut]))


def test_every_code_has_its_bit_in_the_head_of_a_frame() -> None:
    assert [metric.code for metric in METRICS] == list(range(len(METRICS)))
    assert METRICS[-1].code < 32


def merge(*moments: dict[int, dict[int, float]]) -> dict[int, dict[int, float]]:
    decoded = [frame for each in moments for frame in decode_frames(encode_frame(0, each))]
    [merged] = decode_frames(merge_frames(decoded, 120))
    assert merged.seconds == 120
    return as_figures(merged)


def test_frames_are_merged_by_the_mean_and_idleness_by_the_least() -> None:
    assert merge(
        {1: {GPU_USE: 0.0, UNUSED: 2.0}, 2: {GPU_USE: 40.0, UNUSED: 1.0}},
        {1: {GPU_USE: 50.0, UNUSED: 0.0}, 2: {GPU_USE: 60.0, UNUSED: 1.0}},
    ) == {1: {GPU_USE: 25.0, UNUSED: 0.0}, 2: {GPU_USE: 50.0, UNUSED: 1.0}}


def test_a_fault_of_one_moment_is_that_of_the_whole_time() -> None:
    merged = merge(
        {1: {GPU_USE: 50.0}},
        {1: {GPU_USE: 50.0, XID: 79.0, ECC_ERRORS: 2.0}},
        {1: {GPU_USE: 50.0, XID: 31.0, ECC_ERRORS: 0.0}},
    )
    assert merged == {1: {GPU_USE: 50.0, XID: 79.0, ECC_ERRORS: 2.0}}


def test_a_gap_is_no_zero_when_frames_are_merged() -> None:
    merged = merge(
        {1: {GPU_USE: 50.0}}, {2: {GPU_USE: 10.0, MEMORY: 1024.0}}, {1: {MEMORY: 2048.0}}
    )
    shares = [merged[source].pop(PRESENCE) for source in (1, 2)]
    assert shares == pytest.approx([2 / 3, 1 / 3], rel=0.004)
    assert merged == {1: {GPU_USE: 50.0, MEMORY: 2048.0}, 2: {GPU_USE: 10.0, MEMORY: 1024.0}}
    assert merge(
        {1: {GPU_USE: 50.0}, 2: {MEMORY: 1.0}}, {1: {GPU_USE: 70.0}, 2: {MEMORY: 1.0}}
    ) == {
        1: {GPU_USE: 60.0},
        2: {MEMORY: 1.0},
    }


def test_a_source_has_the_mean_of_its_own_time_and_its_share_of_the_whole() -> None:
    ended, began = {1: {MEMORY: 100.0}}, {2: {MEMORY: 400.0}}
    minute = merge(ended, ended, ended, {1: {MEMORY: 180.0}, 2: {MEMORY: 400.0}})
    assert minute == {
        1: {MEMORY: 120.0, PRESENCE: 1.0},
        2: {MEMORY: 400.0, PRESENCE: 0.25},
    }
    # The first ran in one minute of two, the second in a quarter of one and in the other.
    both = merge(minute, {2: {MEMORY: 800.0}})
    assert both == {
        1: {MEMORY: 120.0, PRESENCE: 0.5},
        2: {MEMORY: 720.0, PRESENCE: 0.625},
    }
    assert merge(both, both) == both
    assert merge(began, began) == began


def test_a_presence_that_cannot_be_is_none() -> None:
    for share in (0.0, -1.0, 2.0, math.inf):
        assert merge({1: {MEMORY: 8.0, PRESENCE: share}}) == {1: {MEMORY: 8.0}}


@given(st.lists(st.lists(st.tuples(st.integers(0, 59), figures), max_size=4), max_size=4))
def test_what_was_packed_comes_back(
    moments_by_row: list[list[tuple[int, dict[int, dict[int, float]]]]],
) -> None:
    rows = [
        (60 * number, b"".join(encode_frame(seconds, found) for seconds, found in moments))
        for number, moments in enumerate(moments_by_row)
    ]
    whole = b"".join(
        encode_frame(seconds + 60 * number, found)
        for number, moments in enumerate(moments_by_row)
        for seconds, found in moments
    )
    packed = pack_rows(rows)
    if whole:
        assert unpack_frames(packed) == whole
        assert unpack_frames(packed + packed) == whole + whole
    assert unpack_frames(b"") == b""


def test_figures_that_change_little_take_far_fewer_bytes() -> None:
    chance = random.Random(7)
    values = {key: [1e9 * chance.random() for _ in range(16)] for key in range(8)}
    rows = []
    for moment in range(40):
        for each in values.values():
            each[:] = [value * (1 + 0.1 * (chance.random() - 0.5)) for value in each]
        found = {key: dict(enumerate(each)) for key, each in values.items()}
        rows.append((15 * moment, encode_frame(0, found)))
    assert len(pack_rows(rows)) < sum(len(data) for _, data in rows) / 2.5


def test_a_packed_row_that_claims_to_be_huge_is_not_unpacked() -> None:
    frame = encode_frame(0, {1: {GPU_USE: 50.0}})
    packed = pack_rows([(15 * number, frame) for number in range(100)])
    whole = len(unpack_frames(packed))
    unpack_frames(packed, most=whole + 8)
    with pytest.raises(DamagedFrames, match="too large"):
        unpack_frames(packed, most=whole + 7)
    with pytest.raises(DamagedFrames, match="too large"):
        unpack_frames(pack_rows([(0, frame)]) + packed, most=whole + 8)
    with pytest.raises(DamagedFrames, match="too large"):
        unpack_frames(zlib.compress(bytes(frames.MAX_UNPACKED + 1)))


@given(st.binary(max_size=200))
def test_other_bytes_are_no_packed_row(data: bytes) -> None:
    for each in (data, zlib.compress(data), zlib.compress(b"\x01" + data)):
        with contextlib.suppress(DamagedFrames):
            unpack_frames(each)


def test_a_packed_row_that_is_cut_off_is_damaged() -> None:
    data = encode_frame(0, {1: dict.fromkeys(range(6), 1.0)})
    packed = pack_rows([(0, data), (60, data)])
    for end in range(1, len(packed)):
        with pytest.raises(DamagedFrames):
            unpack_frames(packed[:end])


@pytest.mark.parametrize("data", [b"\x00", bytes(16), b"\x00\x00\x01\x00\x01" + bytes(11)])
def test_what_is_no_frame_is_not_packed(data: bytes) -> None:
    with pytest.raises(DamagedFrames):
        pack_rows([(0, data)])


def test_a_frame_of_too_long_after_its_row_is_not_packed() -> None:
    with pytest.raises(DamagedFrames):
        pack_rows([(60, encode_frame(0xFFFF, {1: {GPU_USE: 50.0}}))])
