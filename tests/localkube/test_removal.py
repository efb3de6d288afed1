"""Removing what pods leave: everything goes, and nothing that was not theirs."""

import os
import stat
from pathlib import Path

import pytest

from localkube.kubelet.removal import remove_tree


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Somebody else's directory, with modes of its own."""
    kept = tmp_path / "outside"
    (kept / "below").mkdir(parents=True)
    (kept / "below" / "file").write_text("kept")
    (kept / "below").chmod(0o755)
    return kept


def assert_untouched(outside: Path) -> None:
    assert (outside / "below" / "file").read_text() == "kept"
    assert stat.S_IMODE((outside / "below").stat().st_mode) == 0o755


def test_read_only_parts_go_too(tmp_path: Path) -> None:
    locked = tmp_path / "pod" / "locked" / "deeper"
    locked.mkdir(parents=True)
    (locked / "file").touch(mode=0o400)
    locked.chmod(0o000)
    locked.parent.chmod(0o500)
    remove_tree(tmp_path / "pod")
    assert not (tmp_path / "pod").exists()


def test_links_go_and_what_they_lead_to_stays(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "pod" / "deeper").mkdir(parents=True)
    (tmp_path / "pod" / "deeper" / "link").symlink_to(outside)
    remove_tree(tmp_path / "pod")
    assert not (tmp_path / "pod").exists()
    assert_untouched(outside)


def test_a_link_in_place_of_the_directory_goes_alone(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "scratch").symlink_to(outside)
    remove_tree(tmp_path / "scratch")
    assert not os.path.lexists(tmp_path / "scratch")
    assert_untouched(outside)


def test_directories_deeper_than_any_path_go_too(tmp_path: Path) -> None:
    place = os.open(tmp_path, os.O_RDONLY)
    for name in ["pod", *["d" * 20] * 3000]:
        os.mkdir(name, dir_fd=place)
        below = os.open(name, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    remove_tree(tmp_path / "pod")
    assert list(tmp_path.iterdir()) == []


def test_removing_what_is_not_there_does_nothing(tmp_path: Path) -> None:
    remove_tree(tmp_path / "pod")
    assert list(tmp_path.iterdir()) == []
