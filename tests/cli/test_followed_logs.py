"""`muster logs -f` of pods that print much, while processes of the console are killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from console.processes import PROCESS_NAMES
from tests.cast import PASSWORD
from tests.cli.running import CommandLine
from tests.installation import PROCESSES, Installation, eventually
from tests.rest import Program

LINES = 50_000
"""Of each of two pods."""
BATCH = 500
KILLED = ("web", "follow", "web", "capture", "web")
PATIENCE = 1800.0


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    with Installation(
        tmp_path / "var", admin_password=PASSWORD, poll_seconds=5
    ).migrated() as running:
        eventually(lambda: set(running.pids()) == PROCESSES)
        yield running


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_follower_has_each_line_once_over_kills(
    installation: Installation, stranger: CommandLine
) -> None:
    assert set(KILLED) <= set(PROCESS_NAMES)
    program, person = (
        Program(installation.url, PASSWORD),
        stranger.sign_in(installation.url, "admin"),
    )
    place, out = installation.data.parent, stranger.home / "out"
    prints = (
        f'for first in $(seq 1 {BATCH} {LINES}); do seq -f "line %.0f" $first '
        f"$((first + {BATCH - 1})); sleep 0.7; done; : > {place}/$RANK"
    )
    # A job is over with its master, whatever its workers do then.
    waits = f"if [ $RANK = 0 ]; then while [ ! -e {place}/1 ]; do sleep 0.2; done; fi"
    chatty = program.submit(
        "chatty",
        workers=1,
        command="/bin/sh",
        args=f"-c '{prints}; {waits}'",
        restartPolicy="Never",
        cleanPodPolicy="All",
    )
    with (
        out.open("w") as file,
        person.start("logs", chatty, "-f", stdout=file) as followed,
    ):
        for number, name in enumerate(KILLED, 1):
            wanted = 2 * LINES * number // (len(KILLED) + 2)
            _kill_after_lines(installation, name, out, wanted)
        assert followed.wait(PATIENCE) == 0
    assert program.phase(chatty) == "Completed"
    lines = out.read_text().splitlines()
    wanted_texts = [f"line {n}" for n in range(1, LINES + 1)]
    for pod in ("chatty-master-0", "chatty-worker-0"):
        prefix = f"[{pod}] "
        texts = [each.removeprefix(prefix) for each in lines if each.startswith(prefix)]
        lost, doubled = set(wanted_texts) - set(texts), len(texts) - len(set(texts))
        print(f"{pod}: {len(texts):,} lines, {len(lost)} lost, {doubled} doubled")
        assert texts == wanted_texts
    assert len(lines) == 2 * LINES


def _kill_after_lines(installation: Installation, name: str, out: Path, count: int) -> None:
    eventually(lambda: _count_lines(out) > count, within=PATIENCE)
    before = installation.kill_one(name)
    print(f"killed {name} after {_count_lines(out):,} lines")
    eventually(lambda: installation.pids().get(name, before) != before, within=PATIENCE)


def _count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")
