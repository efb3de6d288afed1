"""What is on the line: values as frames, without a copy of large buffers.

The first frame describes the value in JSON, the second has all small buffers, the others are large
buffers as they are. Arrays, tensors, bytes and plain containers of them need no pickle. Anything
else is pickled, and its digest stands in the first frame, which the transport signs: nothing is
unpickled that a holder of the workload's key did not send.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import sys
from collections.abc import Sequence
from typing import Any

from muster_delivery.messages import check_frames
from muster_delivery.store import Buffer

SMALL_BYTES = 4096
"""Smaller buffers share a frame: a frame of its own costs more than the copy."""
ALIGNMENT = 64
DEEPEST = 32
"""Containers in containers; what is deeper is pickled."""
MOST_NODES = 1_000_000
"""Values in a description; a container that would add more is pickled."""
SCALARS = (bool, int, float, str)
TORCH_DTYPES = frozenset(
    ["bool", "uint8", "int8", "int16", "int32", "int64", "bfloat16", "float16", "float32"]
).union(["float64", "complex64", "complex128"])


class MalformedFrames(Exception):
    """Frames are not what `encode` makes."""


def encode(value: object, *, copy: bool = False) -> list[Buffer]:
    """Return the frames of a value; with `copy` they share no memory with it.

    Raises ValueError for a value that no message carries.
    """
    encoder = _Encoder()
    tree = encoder.describe(value, 0)
    description = json.dumps(tree, separators=(",", ":")).encode()
    large = [bytearray(frame) for frame in encoder.large] if copy else encoder.large
    frames = [description, encoder.small, *large]
    check_frames(frames)
    return frames


def decode(frames: Sequence[Buffer]) -> Any:
    """Return the value of frames; it may be changed, as its memory is its own.

    The first frame must have been authenticated. Raises MalformedFrames.
    """
    try:
        tree = json.loads(bytes(frames[0]))
        return _Decoder(frames[1:]).build(tree, 0)
    except MalformedFrames:
        raise
    except (IndexError, KeyError, TypeError, ValueError, RecursionError, AttributeError) as error:
        raise MalformedFrames(f"A batch cannot be decoded: {type(error).__name__}.") from error


class _Encoder:
    """Describes a value as nested lists, and collects its buffers."""

    def __init__(self) -> None:
        self.small = bytearray()
        self.large: list[Buffer] = []
        self._nodes = 1

    def describe(self, value: object, depth: int) -> list[Any]:
        kind = type(value)
        if value is None or kind in SCALARS:
            return ["v", value]
        if depth < DEEPEST and self._reserve_nodes(value):
            if kind is list or kind is tuple:
                items = [self.describe(each, depth + 1) for each in value]  # type: ignore[attr-defined]
                return ["l" if kind is list else "t", items]
            if kind is dict:
                pairs = value.items()  # type: ignore[attr-defined]
                return ["d", [[self.describe(each, depth + 1) for each in pair] for pair in pairs]]
            if isinstance(value, tuple) and hasattr(kind, "_fields"):
                items = [self.describe(each, depth + 1) for each in value]
                return ["n", self.add_pickle(kind), items]
        if kind is bytes or kind is bytearray:
            return ["b", kind is bytearray, self.add_buffer(value)]  # type: ignore[arg-type]
        return self._describe_array(value) or ["p", *self.add_pickle(value)]

    def _reserve_nodes(self, value: object) -> bool:
        """Count what a container holds; False where the description has no room for so many."""
        parts = 2 * len(value) if type(value) is dict else 0
        if isinstance(value, (list, tuple)):
            parts = len(value)
        if self._nodes + parts > MOST_NODES:
            return False
        self._nodes += parts
        return True

    def _describe_array(self, value: object) -> list[Any] | None:
        """Return the description of an array or tensor; None for what is neither."""
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        if torch is not None and type(value) is torch.Tensor and _is_plain(value, torch):
            # Not through NumPy, which lacks bfloat16: torch's own bytes.
            flat = value.detach().contiguous().reshape(-1)  # type: ignore[attr-defined]
            view = _view_tensor(flat, torch)
            dtype = str(flat.dtype).rpartition(".")[2]
            return ["s", dtype, list(value.shape), self.add_buffer(view)]  # type: ignore[attr-defined]
        if numpy is not None and type(value) is numpy.ndarray and value.dtype.kind in "biufcSUmM":  # type: ignore[attr-defined]
            array: Any = value
            order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
            contiguous = array if order == "F" else numpy.ascontiguousarray(array)
            # As bytes: datetimes have no buffer.
            view = (
                memoryview(contiguous.reshape(-1, order=order).view(numpy.uint8))
                if contiguous.size
                else b""
            )
            return ["a", array.dtype.str, list(array.shape), order, self.add_buffer(view)]
        return None

    def add_buffer(self, buffer: Buffer) -> list[int]:
        """Keep a buffer; return its frame, where it begins there and its length."""
        view = memoryview(buffer).cast("B") if len(buffer) else memoryview(b"")
        if view.nbytes >= SMALL_BYTES:
            self.large.append(view)
            return [len(self.large), 0, view.nbytes]
        self.small.extend(bytes(-len(self.small) % ALIGNMENT))
        begin = len(self.small)
        self.small.extend(view)
        return [0, begin, view.nbytes]

    def add_pickle(self, value: object) -> list[Any]:
        """Keep a pickle and its large buffers; return where it lies, its digest, and they."""
        buffers: list[list[int]] = []

        def keep_buffer(buffer: pickle.PickleBuffer) -> bool:
            try:
                raw = buffer.raw()
            except BufferError:
                return True
            if raw.nbytes < SMALL_BYTES:
                return True
            buffers.append(self.add_buffer(raw))
            return False

        file = io.BytesIO()
        pickle.Pickler(file, protocol=5, buffer_callback=keep_buffer).dump(value)
        content = file.getbuffer()
        return [self.add_buffer(content), hashlib.sha256(content).hexdigest(), buffers]


class _Decoder:
    """Builds the value of a description out of the frames."""

    def __init__(self, frames: Sequence[Buffer]) -> None:
        # What the script gets can be written to; only what came from elsewhere than a socket is
        # copied for it.
        self._frames = [
            view if not (view := memoryview(frame)).readonly else memoryview(bytearray(frame))
            for frame in frames
        ]
        self._nodes = 0

    def build(self, node: list[Any], depth: int) -> Any:
        self._nodes += 1
        if self._nodes > MOST_NODES or depth > DEEPEST + 1:
            raise MalformedFrames("A batch has too many parts.")
        kind = node[0]
        if kind == "v":
            return node[1]
        if kind in ("l", "t"):
            items = [self.build(each, depth + 1) for each in node[1]]
            return items if kind == "l" else tuple(items)
        if kind == "d":
            return {self.build(a, depth + 1): self.build(b, depth + 1) for a, b in node[1]}
        if kind == "n":
            named = self._load_pickle(*node[1])
            return named._make(self.build(each, depth + 1) for each in node[2])
        if kind == "b":
            view = self._find_buffer(node[2])
            return bytearray(view) if node[1] else bytes(view)
        if kind == "a":
            return self._build_array(*node[1:])
        if kind == "s":
            return self._build_tensor(*node[1:])
        if kind == "p":
            return self._load_pickle(*node[1:])
        raise MalformedFrames("A batch has a part of an unknown kind.")

    def _find_buffer(self, place: Sequence[int]) -> memoryview:
        frame, begin, length = place
        if min(place) < 0 or begin + length > self._frames[frame].nbytes:
            raise MalformedFrames("A buffer of a batch lies outside of its frame.")
        return self._frames[frame][begin : begin + length]

    def _build_array(self, dtype: str, shape: list[int], order: Any, place: list[int]) -> Any:
        numpy = _import("numpy")
        view = self._find_buffer(place)
        if not view.nbytes:
            return numpy.empty(shape, dtype, order)
        return numpy.frombuffer(view, numpy.uint8).view(dtype).reshape(shape, order=order)

    def _build_tensor(self, dtype: str, shape: list[int], place: list[int]) -> Any:
        torch = _import("torch")
        if dtype not in TORCH_DTYPES:
            raise MalformedFrames("A tensor has an unknown type.")
        view = self._find_buffer(place)
        if not view.nbytes:
            return torch.empty(shape, dtype=getattr(torch, dtype))
        return torch.frombuffer(view, dtype=getattr(torch, dtype)).reshape(shape)

    def _load_pickle(self, place: list[int], digest: str, buffers: list[list[int]]) -> Any:
        content = self._find_buffer(place)
        if hashlib.sha256(content).hexdigest() != digest:
            raise MalformedFrames("A pickled part of a batch was changed on its way.")
        # The digest is of the first frame, which only a holder of the key can have signed.
        return pickle.loads(content, buffers=[self._find_buffer(each) for each in buffers])  # noqa: S301


def _is_plain(tensor: Any, torch: Any) -> bool:
    """Tell whether bytes, type and shape are all that there is to a tensor."""
    return (
        tensor.layout == torch.strided
        and tensor.device.type == "cpu"
        and not tensor.requires_grad
        and not tensor.is_quantized
        and not tensor.is_conj()
        and not tensor.is_neg()
        and str(tensor.dtype).rpartition(".")[2] in TORCH_DTYPES
    )


def _view_tensor(flat: Any, torch: Any) -> Buffer:
    """Return the memory of a contiguous tensor."""
    if not flat.numel():
        return b""
    try:
        return memoryview(flat.view(torch.uint8).numpy())
    except (RuntimeError, TypeError):
        # There is torch without NumPy.
        return bytes(flat.view(torch.uint8).untyped_storage())[: flat.numel() * flat.itemsize]


def _import(name: str) -> Any:
    """Return a package that the batch needs; the script of a rank may import it only now."""
    return __import__(name)
