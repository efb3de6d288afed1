"""Reads the bytes that the script of metrics pages gets."""

import json
import struct
from dataclasses import dataclass
from typing import Any

from django.test import Client

from workloads.metrics.frames import Frame, decode_frames


@dataclass(frozen=True)
class PackedFigures:
    """An answer: its head, and its frames as (source, seconds since 1970, frame)."""

    head: Any
    frames: list[tuple[int, int, Frame]]


def fetch_figures(client: Client, path: str) -> PackedFigures:
    answer = client.get(path)
    assert answer.status_code == 200
    body = answer.content
    (length,) = struct.unpack_from("<I", body)
    head, at, frames = json.loads(body[4 : 4 + length]), 4 + length, []
    while at < len(body):
        source, start, size = struct.unpack_from("<QII", body, at)
        at += 16
        rows = decode_frames(body[at : at + size])
        frames += [(source, start + each.seconds, each) for each in rows]
        at += size
    return PackedFigures(head, frames)
