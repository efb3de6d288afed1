"""Tokens, kept in a file that only the user may read, and never shown."""

import math
import time
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

from muster_cli import private_files

FILE = "credentials.json"
EARLY_SECONDS = 60
"""A token that ends so soon is as good as ended."""


class Secret:
    """A text that no message, log or traceback shows: `reveal` is the only way to it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self._text)


NO_SECRET = Secret("")


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token, when it ends (seconds after 1970), and whose it is."""

    token: Secret
    expires_at: float
    username: str = ""

    @property
    def is_expired(self) -> bool:
        return time.time() > self.expires_at - EARLY_SECONDS


def find_token(key: str) -> StoredToken | None:
    """Return the token that is stored under a key, also one that has ended."""
    entry = _load_entries().get(key)
    if entry is None or not isinstance(entry.get("token"), str):
        return None
    return StoredToken(
        Secret(entry["token"]),
        _read_end(entry),
        str(entry.get("username") or ""),
    )


def store_token(key: str, token: StoredToken) -> None:
    """Keep a token under a key; those that have ended go."""
    with _lock_entries():
        entries = {
            name: each for name, each in _load_entries().items() if _read_end(each) > time.time()
        }
        entries[key] = {
            "token": token.token.reveal(),
            "expiresAt": int(token.expires_at),
            "username": token.username,
        }
        _save_entries(entries)


def remove_token(key: str) -> bool:
    """Forget a token; tell whether there was one."""
    with _lock_entries():
        entries = _load_entries()
        if entries.pop(key, None) is None:
            return False
        _save_entries(entries)
    return True


def _lock_entries() -> AbstractContextManager[None]:
    return private_files.lock_file(private_files.find_config_folder() / FILE)


def _read_end(entry: dict[str, Any]) -> float:
    """Return when a stored token ends; 0 where that cannot be read."""
    return parse_seconds(entry.get("expiresAt")) or 0.0


def parse_seconds(value: Any) -> float | None:
    """Return the seconds that an answer or a file names; None where they are no finite number."""
    try:
        seconds = float(value) if isinstance(value, int | float) else math.inf
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) else None


def _load_entries() -> dict[str, dict[str, Any]]:
    path = private_files.find_config_folder() / FILE
    if not private_files.is_private(path):
        # Somebody widened it: what others may have read is narrowed at once. One that is mounted
        # into a pod stays as it is.
        with suppress(OSError):
            path.chmod(private_files.PRIVATE)
    tokens = private_files.read_json(path).get("tokens")
    entries = tokens if isinstance(tokens, dict) else {}
    return {name: each for name, each in entries.items() if isinstance(each, dict)}


def _save_entries(entries: dict[str, dict[str, Any]]) -> None:
    private_files.write_json(private_files.find_config_folder() / FILE, {"tokens": entries})
