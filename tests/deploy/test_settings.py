"""The settings that only an image has: static files that were collected ahead, and a sign of
life.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import LazySettings

from console import alive_file, static_files
from tests.cluster import ROOT
from tests.installation import clean_environment


@pytest.mark.parametrize("name", ["web", "worker"])
def test_a_directory_without_collected_files_is_refused_in_words(tmp_path: Path, name: str) -> None:
    environment = clean_environment(data_dir=tmp_path / "var", static_dir=tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "console", name],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 2
    assert (
        f"MUSTER_STATIC_DIR names {tmp_path}, and no static files were collected there"
        in done.stderr
    )


def test_what_was_collected_ahead_is_not_collected_again(
    tmp_path: Path, settings: LazySettings
) -> None:
    settings.DEBUG = False
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"static_dir": tmp_path})
    settings.STATIC_ROOT = tmp_path
    assert static_files.collect_static_files() is False
    assert list(tmp_path.iterdir()) == []


def test_a_sign_of_life_that_cannot_be_given_ends_nothing(
    tmp_path: Path, settings: LazySettings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.OPTIONS = settings.OPTIONS.model_copy(
        update={"alive_file": tmp_path / "missing" / "alive"}
    )
    alive_file.touch_alive_file()
    assert "the sign of life, cannot be written: No such file or directory" in caplog.text


def test_nothing_is_written_where_no_sign_of_life_is_asked_for(settings: LazySettings) -> None:
    assert settings.OPTIONS.alive_file is None
    alive_file.touch_alive_file()
