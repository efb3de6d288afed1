"""Bad combinations of settings: each has an id, and a hint that says what to do."""

from pathlib import Path
from typing import Any

import pytest

from console.checks import check_settings
from console.options import Options

GOOD: dict[str, Any] = {
    "production": True,
    "secret_key": "k" * 64,
    "allowed_hosts": "muster.example.org",
    "database_url": "postgres://muster@db/muster",
    "behind_proxy": True,
}


def list_message_ids(web_processes: int = 1, **given: Any) -> list[str]:
    messages = check_settings(
        Options(data_dir=Path("/nowhere"), **{"host": "127.0.0.1", "redis_url": "", **given}),
        web_processes,
    )
    assert all(message.hint for message in messages)
    return [str(message.id) for message in messages]


def test_a_good_production_has_nothing_to_tell() -> None:
    assert list_message_ids(**GOOD) == []


@pytest.mark.parametrize(
    ("change", "ids"),
    [
        ({"secret_key": "short"}, ["muster.E002"]),
        ({"allowed_hosts": ""}, ["muster.E003"]),
        ({"database_url": ""}, ["muster.W003"]),
        ({"host": "0.0.0.0"}, ["muster.W002"]),
        ({"host": "0.0.0.0", "behind_proxy": False}, []),
        ({"host": "0.0.0.0", "behind_proxy": False, "production": False}, ["muster.W001"]),
        ({"host": "localhost"}, []),
        ({"host": "::1"}, []),
    ],
)
def test_what_is_wrong_is_told(change: dict[str, Any], ids: list[str]) -> None:
    assert list_message_ids(**(GOOD | change)) == ids


def test_several_web_processes_need_a_database_for_several() -> None:
    assert list_message_ids(2, **(GOOD | {"database_url": "", "production": False})) == [
        "muster.E001"
    ]
    assert list_message_ids(2, **GOOD) == []
