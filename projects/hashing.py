"""How passwords are kept. A good hash takes a tenth of a gigabyte on purpose, so only a few are
made at once.
"""

import threading
from typing import Any

from django.contrib.auth.hashers import Argon2PasswordHasher

MAX_CONCURRENT = 4
hash_slots = threading.BoundedSemaphore(MAX_CONCURRENT)
"""Anybody may try to sign in: without turns, a hundred attempts at once would take all memory."""


class Argon2(Argon2PasswordHasher):
    """Argon2, a few at once."""

    def encode(self, *arguments: Any, **named: Any) -> str:
        with hash_slots:
            return super().encode(*arguments, **named)

    def verify(self, *arguments: Any, **named: Any) -> bool:
        with hash_slots:
            return super().verify(*arguments, **named)
