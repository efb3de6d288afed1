"""The meaning of image names on a machine that pulls no images.

An image stands for a bundled program, or for nothing when the container brings its command.
"""

import functools
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from localkube.options import MPI_WORKER_COMMAND

PACKAGE = Path(__file__).resolve().parents[1]
IMAGE_TABLE = PACKAGE / "images.toml"

_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?/)?"
_REFERENCE = re.compile(
    rf"({_HOST}{_PART}(?:/{_PART})*)(?::[\w][\w.-]{{0,127}})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{32,})?"
)
"""The grammar of image references (distribution/reference)."""


OWN_PROGRAMS = {MPI_WORKER_COMMAND: "programs/mpi_worker.py"}
"""Commands that are programs of localkube, as paths below the package."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a container runs: `command` as its entry point with `args` after it, before any
    expansion.

    `files` maps paths of the real image to files of this machine; `event_text` is the text of the
    event Pulled.
    """

    command: Sequence[str]
    args: Sequence[str]
    image_id: str
    event_text: str
    files: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BundledImage:
    """One entry of the image table."""

    name: str
    program_path: str
    files: Mapping[str, Path]


class ImageError(Exception):
    """The container cannot start as it is.

    `reason` is its waiting reason; the text says why and what to do.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def resolve_program(image: str, command: Sequence[str], args: Sequence[str]) -> Program:
    """Return the program of a container; its own command wins over a bundled image's.

    Raises ImageError: InvalidImageName for what is no image reference, ErrImagePull for an unknown
    image without a command.
    """
    bundled = load_catalog().get(parse_short_name(image))
    files = bundled.files if bundled else {}
    image_id = f"localkube://{bundled.name}" if bundled else "localkube://host"
    if command and command[0] in OWN_PROGRAMS:
        run = OWN_PROGRAMS[command[0]]
        note = f'Container image "{image}" is not pulled: localkube runs its own {run}'
        return Program([sys.executable, "-I", str(PACKAGE / run)], args, image_id, note, files)
    if command:
        note = (
            f'Container image "{image}" is not pulled: localkube runs the container\'s command on '
            "this machine"
        )
        return Program(command, args, image_id, note, files)
    if bundled:
        note = (
            f'Container image "{image}" already present on machine: it stands for the bundled '
            f"{bundled.program_path}"
        )
        return Program(
            [sys.executable, str(PACKAGE / bundled.program_path)], args, image_id, note, files
        )
    # The other names are those of tutorials: a list of all would hide what is to be done.
    own = sorted(name for name in load_catalog() if name.startswith("muster/"))
    raise ImageError(
        "ErrImagePull",
        f'image "{image}" cannot be pulled: localkube runs commands of this machine, not images: '
        f"give the container a command or use one of: {', '.join(own)}",
    )


def parse_short_name(image: str) -> str:
    """Return an image's name without leading slash, registry, `library/`, tag and digest.

    Raises ImageError InvalidImageName.
    """
    match = _REFERENCE.fullmatch(image.removeprefix("/")) if len(image) <= 512 else None
    if match is None:
        shortened = image[:128]
        raise ImageError(
            "InvalidImageName",
            f'couldn\'t parse image name "{shortened}": invalid reference format',
        )
    name = match.group(1)
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost" or first != first.lower()):
        name = rest
    return name.removeprefix("library/")


@functools.cache
def load_catalog() -> Mapping[str, BundledImage]:
    """Return the bundled images by name; the table is read once."""
    table = tomllib.loads(IMAGE_TABLE.read_text(encoding="utf-8"))["images"]
    return {
        name: BundledImage(name, entry["run"], _resolve_files(entry.get("files", {})))
        for name, entry in table.items()
    }


def _resolve_files(entry: Mapping[str, str]) -> Mapping[str, Path]:
    return {path: PACKAGE / source for path, source in entry.items()}
