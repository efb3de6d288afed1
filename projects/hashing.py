"""The password hasher. A good hash takes a tenth of a gigabyte, so few are made at once."""

import threading
from typing import Any

from django.contrib.auth.hashers import Argon2PasswordHasher

MAX_CONCURRENT = 4
"""Hashes that one process makes at the same time."""
hash_slots = threading.BoundedSemaphore(MAX_CONCURRENT)
"""Limits hashing. Anybody may try to sign in: a hundred hashes at once would take all memory."""


class Argon2(Argon2PasswordHasher):
    """Argon2 with at most MAX_CONCURRENT hashes at the same time."""

    def encode(self, *arguments: Any, **named: Any) -> str:
        with hash_slots:
            return super().encode(*arguments, **named)

    def verify(self, *arguments: Any, **named: Any) -> bool:
        with hash_slots:
            return super().verify(*arguments, **named)
