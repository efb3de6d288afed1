"""The disk under everything is full: what is asked for is done or refused in words, never half, and
all goes on when there is room.
"""

import urllib.error
from pathlib import Path
from typing import Any

import pytest

from tests.faults.disks import fill_disk
from tests.faults.stories import SHORT
from tests.installation import PROCESSES, Installation, all_over, eventually
from tests.rest import Program, Reader, Refused

PASSWORD = "correct horse battery"
FULL = "The disk of the database is full."
LONG_TEXT = {"command": "/bin/sleep", "args": f"0 # {'x' * 8000}"}
MOST = 400
"""Submissions that a database may still find room for in what it had taken already."""


def until_refused(program: Program, disk: Path, **spec: Any) -> list[str]:
    """Submit on a disk that gets no room; the names that were taken before one was refused, which
    is the last. `spec` is part of what is submitted.
    """
    for number in range(MOST):
        fill_disk(disk)
        try:
            program.submit(f"tight-{number}", **LONG_TEXT | spec)
        except Refused as refusal:
            if refusal.status != 507 or FULL not in str(refusal):
                raise
            return [f"tight-{before}" for before in range(number + 1)]
    raise AssertionError(f"{MOST} submissions found room")


def refused_on_a_page(reader: Reader, workload: str, disk: Path) -> urllib.error.HTTPError:
    """Run and stop it on a disk that gets no room, until a page refuses: the database may find room
    again in what it had taken.
    """
    for number in range(MOST):
        fill_disk(disk)
        try:
            reader.post(f"/workloads/{workload}/{('run', 'stop')[number % 2]}")
        except urllib.error.HTTPError as refusal:
            return refusal
    raise AssertionError(f"{MOST} changes found room")


@pytest.mark.timeout(900)
def test_on_a_full_disk_a_submission_is_made_or_refused_in_words(disk: Path) -> None:
    with Installation(disk / "var", admin_password=PASSWORD).migrated() as installation:
        eventually(lambda: set(installation.pids()) == PROCESSES)
        program, reader = Program(installation.url, PASSWORD), Reader(installation.url, PASSWORD)
        there = program.submit("there", **SHORT)
        all_over(lambda: [now] if (now := program.phase(there)) != "Completed" else [], within=180)
        *taken, refused = until_refused(program, disk)
        assert "there" in reader.page("/workloads?q=there")
        answer = refused_on_a_page(reader, there, disk)
        assert (answer.code, FULL in answer.read().decode()) == (507, True)
        (disk / "filler").unlink()
        again = program.submit(refused, **SHORT)
        all_over(lambda: [now] if (now := program.phase(again)) != "Completed" else [], within=360)
        assert set(program.listed()) == {"there", *taken, refused}
        program.delete(there)
        eventually(lambda: "there" in program.listed(deleted="true"))
        assert installation.manage("shell", "--no-imports", "-c", INTEGRITY) == "ok\n"


INTEGRITY = (
    "from django.db import connection\nwith connection.cursor() as c:\n    print(c.execute('PRAGMA "
    "integrity_check').fetchone()[0])"
)
