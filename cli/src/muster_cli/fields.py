"""The fields of a submission, from the data file that is made of the server's catalogue."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "data" / "fields.json"


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework of distributed workloads: its word here, and in REST."""

    command: str
    value: str
    label: str
    master: str


@dataclass(frozen=True, slots=True)
class SubmissionField:
    """A field of `spec`: its flags, its place in the body, and how it is typed."""

    flags: tuple[str, ...]
    place: str
    kind: str
    label: str
    help: str
    is_of_pods: bool
    architecture: str
    frameworks: tuple[str, ...]
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class VolumeField:
    """A kind of volume: its flag, its place in the body, and the type of each key."""

    flag: str
    place: str
    keys: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Everything that a submission can say."""

    server_version: str
    frameworks: Sequence[Framework]
    fields: Sequence[SubmissionField]
    volumes: Sequence[VolumeField]


@cache
def load_catalogue() -> Catalogue:
    """Read the data file."""
    data: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return Catalogue(
        data["serverVersion"],
        [Framework(**each) for each in data["frameworks"]],
        [
            SubmissionField(
                flags=tuple(each["flags"]),
                place=each["place"],
                kind=each["kind"],
                label=each["label"],
                help=each["help"],
                is_of_pods=each["ofPods"],
                architecture=each["architecture"],
                frameworks=tuple(each["frameworks"]),
                choices=tuple(each.get("choices", ())),
                minimum=each.get("minimum"),
                maximum=each.get("maximum"),
            )
            for each in data["fields"]
        ],
        [VolumeField(**each) for each in data["volumes"]],
    )
