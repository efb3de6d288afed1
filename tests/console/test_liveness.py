"""Beat's scheduler: it starts whatever its schedule file is like, and goes on where it ended."""

import json
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from celery import Celery
from celery.beat import ScheduleEntry

from console.liveness import AliveScheduler

EVERY = {"sweep": timedelta(seconds=10), "retain": timedelta(hours=1)}
DAMAGE = {
    "empty": b"",
    "zeros": bytes(4096),
    "half of it": b'{"sweep": "2026-01-01T00:0',
    "not text": b"\xff\xfe\x00",
    "another version's": pickle.dumps({"entries": {}, "__version__": "5.7.0"}),
    "a list": b"[]",
    "no moment": b'{"sweep": "yesterday"}',
    "no moment there is": b'{"sweep": 1e300}',
    "without a zone": b'{"sweep": "2026-01-01T00:00:00"}',
    "deep": b"[" * 100_000,
}


@pytest.fixture
def schedule_file(tmp_path: Path) -> Path:
    return tmp_path / "beat-schedule.json"


def build_scheduler(schedule_file: Path) -> AliveScheduler:
    app = Celery("of-a-test", set_as_current=False)
    app.conf.update(
        timezone="UTC",
        beat_schedule_filename=str(schedule_file),
        beat_schedule={name: {"task": name, "schedule": every} for name, every in EVERY.items()},
    )
    return AliveScheduler(app)


def find_entry(scheduler: AliveScheduler, name: str) -> ScheduleEntry:
    entry = scheduler.schedule[name]
    assert isinstance(entry, ScheduleEntry)
    return entry


def count_seconds_to_wait(scheduler: AliveScheduler, name: str) -> float:
    """Return in how many seconds the step is asked for."""
    is_due, seconds = find_entry(scheduler, name).is_due()
    return 0.0 if is_due else seconds


@pytest.mark.parametrize("content", DAMAGE.values(), ids=list(DAMAGE))
def test_a_damaged_schedule_file_is_named_and_begun_anew(
    schedule_file: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    schedule_file.write_bytes(content)
    scheduler = build_scheduler(schedule_file)
    assert f"{schedule_file} cannot be read and is begun anew: it is damaged" in caplog.text
    assert set(scheduler.schedule) == set(EVERY)
    assert 0 < count_seconds_to_wait(scheduler, "sweep") <= 10
    caplog.clear()
    build_scheduler(schedule_file)
    assert caplog.text == ""


def test_a_first_start_is_no_damage(schedule_file: Path, caplog: pytest.LogCaptureFixture) -> None:
    scheduler = build_scheduler(schedule_file)
    assert caplog.text == ""
    assert 0 < count_seconds_to_wait(scheduler, "sweep") <= 10
    assert set(json.loads(schedule_file.read_text())) == set(EVERY)


def test_a_restart_puts_nothing_off(schedule_file: Path) -> None:
    scheduler = build_scheduler(schedule_file)
    find_entry(scheduler, "retain").last_run_at = datetime.now(UTC) - timedelta(minutes=50)
    scheduler.close()
    assert 540 < count_seconds_to_wait(build_scheduler(schedule_file), "retain") <= 600


def test_a_clock_that_was_ahead_keeps_no_step_waiting(schedule_file: Path) -> None:
    ahead = datetime.now(UTC) + timedelta(days=400)
    schedule_file.write_text(json.dumps({"sweep": ahead.isoformat()}))
    assert count_seconds_to_wait(build_scheduler(schedule_file), "sweep") <= 10


def test_steps_that_there_are_no_more_are_left_out(schedule_file: Path) -> None:
    schedule_file.write_text(json.dumps({"gone": datetime.now(UTC).isoformat()}))
    assert set(build_scheduler(schedule_file).schedule) == set(EVERY)
    assert set(json.loads(schedule_file.read_text())) == set(EVERY)


def test_a_schedule_file_that_cannot_be_written_is_named_and_ends_nothing(
    schedule_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    schedule_file.mkdir()
    scheduler = build_scheduler(schedule_file)
    scheduler.close()
    assert f"{schedule_file} cannot be read and is begun anew: Is a directory" in caplog.text
    assert f"{schedule_file} is not written" in caplog.text
    assert set(scheduler.schedule) == set(EVERY)
