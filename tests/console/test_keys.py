"""Keys are made once, kept for their owner, and rotate; production takes given ones only."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from console import encryption, keys
from console.keys import NoKeys
from console.options import Options

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def options(data: Path, **given: Any) -> Options:
    usual: dict[str, Any] = {
        "data_dir": data,
        "secret_key": "",
        "encryption_keys": "",
        "production": False,
    }
    return Options(**(usual | given))


def test_they_are_made_once_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    here = options(tmp_path / "var")
    assert keys.ensure_keys(here) is True
    made = keys.read_keys(here)
    assert keys.ensure_keys(here) is False
    assert keys.read_keys(here) == made
    assert stat.S_IMODE((tmp_path / "var" / "keys.json").stat().st_mode) == 0o600
    assert len(made.secret_key) >= 64


def test_of_many_that_make_them_at_once_one_is_right(tmp_path: Path) -> None:
    here = options(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        made = list(
            pool.map(lambda _: (keys.ensure_keys(here), keys.read_keys(here).secret_key), range(32))
        )
    assert sum(new for new, _ in made) == 1
    assert len({key for _, key in made}) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["keys.json"]


def test_given_ones_come_first(tmp_path: Path) -> None:
    keys.ensure_keys(options(tmp_path))
    assert keys.read_keys(options(tmp_path, secret_key="given")).secret_key == "given"
    assert keys.read_keys(options(tmp_path, encryption_keys=f"{NEW}, {OLD}")).encryption_keys == [
        NEW,
        OLD,
    ]


def test_production_takes_given_ones_only(tmp_path: Path) -> None:
    keys.ensure_keys(options(tmp_path))
    with pytest.raises(NoKeys, match="must be given"):
        keys.read_keys(options(tmp_path, production=True))
    with pytest.raises(NoKeys, match="must be given"):
        keys.read_keys(options(tmp_path, production=True, secret_key="given"))
    assert (
        keys.read_keys(
            options(tmp_path, production=True, secret_key="given", encryption_keys=NEW)
        ).secret_key
        == "given"
    )


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "no json", '{"secret_key": "x", "encryption_keys": 3}']
)
def test_a_file_that_makes_no_sense_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "keys.json").write_text(text)
    with pytest.raises(NoKeys, match=r"keys\.json cannot be read"):
        keys.read_keys(options(tmp_path))


def test_without_keys_it_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(NoKeys, match="make up"):
        keys.read_keys(options(tmp_path))


def test_a_key_that_is_none_is_named_and_not_shown(tmp_path: Path) -> None:
    with pytest.raises(NoKeys, match="Key 2 of MUSTER_ENCRYPTION_KEYS") as refusal:
        keys.read_keys(options(tmp_path, secret_key="x", encryption_keys=f"{NEW},hunter2"))
    assert "hunter2" not in str(refusal.value)


def test_what_an_old_key_encrypted_is_read_after_a_rotation(settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = [OLD]
    kept = encryption.encrypt("a kubeconfig")
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    assert encryption.decrypt(kept) == "a kubeconfig"
    again = encryption.encrypt("a kubeconfig")
    settings.ENCRYPTION_KEYS = [NEW]
    assert encryption.decrypt(again) == "a kubeconfig"
    with pytest.raises(encryption.Unreadable, match="MUSTER_ENCRYPTION_KEYS"):
        encryption.decrypt(kept)
