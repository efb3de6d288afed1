"""What deploy/Dockerfile does, read from it and done in a directory: there is no container engine
here, but the same files and commands.
"""

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import ROOT
from tests.installation import clean_environment

DOCKERFILE = ROOT / "deploy" / "Dockerfile"


@dataclass(frozen=True)
class Instruction:
    """One line of a stage: COPY, RUN, ENV ... and what follows it."""

    stage: int
    name: str
    rest: str

    @property
    def words(self) -> list[str]:
        return [word for word in shlex.split(self.rest) if not word.startswith("--")]


def instructions() -> list[Instruction]:
    """The Dockerfile's lines, without comments, continued ones joined. Stage 0 is what comes before
    the first FROM.
    """
    lines = [
        line for line in DOCKERFILE.read_text().splitlines() if not line.lstrip().startswith("#")
    ]
    found: list[Instruction] = []
    stage = 0
    for line in re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines():
        if line.strip():
            name, _, rest = line.partition(" ")
            stage += name == "FROM"
            found.append(Instruction(stage, name, rest.strip()))
    return found


def list_sent_names() -> set[str]:
    """The names at the top of the repository that .dockerignore lets through to the builder."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines, "everything is left out that is not named"
    return {line[1:] for line in lines if line.startswith("!")}


def environment() -> dict[str, str]:
    """What ENV sets in the last stage."""
    stages = instructions()
    last = max(each.stage for each in stages)
    pairs = (
        word for each in stages if each.stage == last and each.name == "ENV" for word in each.words
    )
    return dict(pair.split("=", 1) for pair in pairs)


class Image:
    """The image's files below `root`: /app, /data and /tmp of it. The interpreter and its packages
    are this test's.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("app", "data", "tmp"):
            (root / name).mkdir(parents=True)

    def build(self) -> "Image":
        """Copy and run what the Dockerfile copies and runs for the application; its packages are
        installed already.
        """
        for each in instructions():
            if each.stage == 1 and each.name == "COPY":
                *sources, target = each.words
                for source in sources:
                    self._copy(source, target)
            elif each.name == "RUN" and "collectstatic" in each.rest:
                done = subprocess.run(
                    ["sh", "-euc", self.here(each.rest)],
                    cwd=self.root / "app",
                    env=clean_environment(),
                    capture_output=True,
                    text=True,
                )
                assert done.returncode == 0, done.stdout + done.stderr
        return self

    def environment(self, **options: object) -> dict[str, str]:
        """That of a container: the image's own variables, and these MUSTER_ settings."""
        mine = {name: self.here(value) for name, value in environment().items() if name != "PATH"}
        given = {f"MUSTER_{name.upper()}": str(value) for name, value in options.items()}
        return (
            clean_environment()
            | {"TMPDIR": str(self.root / "tmp"), "HOME": "/nonexistent"}
            | mine
            | given
        )

    def here(self, text: str) -> str:
        """A text with the image's directories, with those of this machine instead."""
        here = re.sub(r"(?<![\w.])/(app|data|tmp)\b", lambda found: str(self.root / found[1]), text)
        # Last, for this machine's own may lie below a directory of one of those names.
        return here.replace("/venv/bin/python", sys.executable)

    def _copy(self, source: str, target: str) -> None:
        into = self.root / "app" / target
        if (ROOT / source).is_dir():
            shutil.copytree(
                ROOT / source, into, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
            )
        else:
            shutil.copy2(ROOT / source, into)
