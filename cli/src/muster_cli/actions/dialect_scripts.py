"""The programs that speak other systems' command lines: written to a folder, listed, removed."""

import contextlib
import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from muster_cli.errors import CliError, NotFound, UsageProblem

DIALECTS = {"runai": "muster_cli.dialects.runai", "arena": "muster_cli.dialects.arena"}
"""Each program by its name, with the module that it runs."""
MARK = b"# Made by `muster dialect install`: "
MODE = 0o755
READ_BYTES = 512


@dataclass(frozen=True, slots=True)
class DialectScript:
    """A program of this name in a folder, and whether it is one of ours."""

    name: str
    path: Path
    is_ours: bool


def build_script(name: str) -> bytes:
    """Return the program that speaks a dialect with the Python that runs this."""
    if not sys.executable:
        raise CliError("Python does not say where it is.", "Start muster by its own script.")
    # -P: else a file of the folder that it is started in, such as json.py, would be imported.
    call = f"exec {shlex.quote(sys.executable)} -P -m {DIALECTS[name]}"
    return b"#!/bin/sh\n" + MARK + f'{name}, spoken by Muster.\n{call} "$@"\n'.encode()


def install_scripts(folder: Path, names: list[str], *, is_forced: bool) -> list[Path]:
    """Write the programs of dialects into a folder; return their paths.

    Nothing is written where another file has one of the names. Raises UsageProblem and CliError.
    """
    paths = [folder / name for name in names]
    others = [each for each in paths if os.path.lexists(each) and not is_our_script(each)]
    if others and not is_forced:
        raise UsageProblem(
            f"{', '.join(map(str, others))} exists, and is not one of Muster's.",
            "Choose another folder, or say --force to replace it.",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, path in zip(names, paths, strict=True):
            _write_program(path, build_script(name))
    except OSError as error:
        raise CliError(f"{folder} cannot be written to: {error.strerror}.") from None
    return paths


def _write_program(path: Path, content: bytes) -> None:
    """Write a program in one step; a link of its name is replaced, and not what it leads to."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        # Whoever installs for others may have a strict umask.
        draft.chmod(MODE)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def is_our_script(path: Path) -> bool:
    """Tell whether a file is a program that `install_scripts` wrote."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return MARK in file.read(READ_BYTES)
    except OSError:
        return False


def list_scripts(folder: Path | None) -> list[DialectScript]:
    """Return the programs of these names in a folder, or those on PATH."""
    paths = {name: folder / name if folder else Path(shutil.which(name) or "") for name in DIALECTS}
    return [
        DialectScript(name, path, is_our_script(path))
        for name, path in paths.items()
        if path.is_file()
    ]


def remove_scripts(folder: Path) -> list[Path]:
    """Remove the programs that were installed into a folder. Raises NotFound and CliError."""
    paths = [folder / name for name in DIALECTS if is_our_script(folder / name)]
    if not paths:
        raise NotFound(f"Nothing of Muster's is in {folder}.", "`muster dialect list` shows it.")
    try:
        for path in paths:
            path.unlink()
    except OSError as error:
        raise CliError(f"{folder} cannot be changed: {error.strerror}.") from None
    return paths


def describe_path_trouble(path: Path) -> str:
    """Say why typing a program's name does not run it; "" where it does."""
    program = shutil.which(path.name)
    if program is not None and os.path.realpath(program) == os.path.realpath(path):
        return ""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    if os.path.realpath(path.parent) not in map(os.path.realpath, filter(None, folders)):
        folder = shlex.quote(str(path.parent.resolve()))
        return f'{path.parent} is not on the PATH: export PATH={folder}:"$PATH"'
    if program is None:
        return f"{path} cannot be run: its folder, or its filesystem, takes no programs."
    return f"{program} comes first on the PATH: `{path.name}` runs that one."
