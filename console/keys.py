"""The keys of an installation: one signs sessions and tokens, others encrypt credentials.

They are given by the environment or kept in a file of the data directory.
"""

import json
import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cryptography.fernet import Fernet

from console.options import Options, split_list

KEYS_FILE = "keys.json"


class NoKeys(Exception):
    """There are no usable keys; the text says what to do."""


@dataclass(frozen=True, repr=False)
class Keys:
    """`secret_key` signs; the first of `encryption_keys` encrypts and all of them decrypt."""

    secret_key: str
    encryption_keys: list[str]


def read_keys(options: Options) -> Keys:
    """Return the keys of the environment, else those of the data directory.

    Raises NoKeys; production takes given keys only.
    """
    if options.secret_key and options.encryption_keys:
        return Keys(options.secret_key, _check_given_keys(split_list(options.encryption_keys)))
    if options.production:
        raise NoKeys(
            "In production MUSTER_SECRET_KEY and MUSTER_ENCRYPTION_KEYS must be given. See "
            "docs/production.md."
        )
    file = options.data_dir / KEYS_FILE
    try:
        stored = json.loads(file.read_text())
        given_keys = _check_given_keys(split_list(options.encryption_keys))
        return Keys(
            options.secret_key or str(stored["secret_key"]),
            given_keys or [_check_file_key(each) for each in stored["encryption_keys"]],
        )
    except FileNotFoundError:
        raise NoKeys(
            f"There are no keys in {file}. `make up` makes them, or give MUSTER_SECRET_KEY and "
            "MUSTER_ENCRYPTION_KEYS."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NoKeys(
            f"The keys in {file} cannot be read ({type(error).__name__}). Put the file back from "
            "its backup."
        ) from None


def _check_file_key(key: str) -> str:
    """Return the key unchanged. Raises ValueError or TypeError if it is no Fernet key."""
    Fernet(key)
    return key


def _check_given_keys(encryption_keys: list[str]) -> list[str]:
    """Return the keys unchanged.

    Raises NoKeys, which shows none of them, if one is no Fernet key.
    """
    for number, key in enumerate(encryption_keys, start=1):
        try:
            Fernet(key)
        except ValueError:
            raise NoKeys(
                f"Key {number} of MUSTER_ENCRYPTION_KEYS is no Fernet key (32 bytes in URL-safe "
                "base64). Make one with: "
                'python -c "from cryptography.fernet import Fernet; '
                'print(Fernet.generate_key().decode())"'
            ) from None
    return encryption_keys


def ensure_keys(options: Options) -> bool:
    """Create the data directory's keys if there are none, readable by their owner only.

    Returns True when they are new.
    """
    file = options.data_dir / KEYS_FILE
    options.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if file.exists():
        return False
    content = {
        "secret_key": secrets.token_urlsafe(64),
        "encryption_keys": [Fernet.generate_key().decode()],
    }
    handle, name = tempfile.mkstemp(dir=options.data_dir, prefix=f".{KEYS_FILE}.")
    with os.fdopen(handle, "w") as out:
        json.dump(content, out)
        out.flush()
        os.fsync(out.fileno())
    # A link fails where another process was first, and its keys are then the right ones.
    try:
        os.link(name, file)
    except FileExistsError:
        return False
    finally:
        Path(name).unlink()
    return True
