"""The workload's key: mutual proof that both ends have it, and the keys of one session.

Nothing here sends anything. A key is never shown: neither by repr, nor in an error, nor in a log.
"""

from __future__ import annotations

import hmac
import os
import time
from collections import OrderedDict

NONCE_BYTES = 32
MAC_BYTES = 32
SEAL_BYTES = 8 + MAC_BYTES
LEAST_KEY_BYTES = 16
TICKET_SECONDS = 120.0
"""How far the clocks of two machines may differ, and how long a ticket is good."""
MOST_TICKETS = 100_000


class NotAuthentic(Exception):
    """What came was not sent by a holder of the key, or not in this session."""


class Key:
    """A secret that proves and derives, and is never shown."""

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if len(secret) < LEAST_KEY_BYTES:
            raise ValueError(f"The key of the delivery has fewer than {LEAST_KEY_BYTES} bytes.")
        self._secret = bytes(secret)

    @classmethod
    def parse(cls, text: str) -> Key:
        """Return the key that hexadecimal digits stand for. Raises ValueError without them."""
        try:
            secret = bytes.fromhex(text.strip())
        except ValueError:
            # The original message and its traceback would show digits of the key.
            raise ValueError("The key of the delivery is not made of hexadecimal digits.") from None
        return cls(secret)

    def __repr__(self) -> str:
        return "Key(***)"

    __str__ = __repr__

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("The key of the delivery is not pickled.")

    def sign(self, purpose: bytes, *parts: bytes) -> bytes:
        """Return the MAC of these parts for one purpose; their lengths are signed with them."""
        pieces = [
            each for part in (purpose, *parts) for each in (len(part).to_bytes(8, "big"), part)
        ]
        return hmac.digest(self._secret, b"".join(pieces), "sha256")

    def verify(self, signature: bytes, purpose: bytes, *parts: bytes) -> None:
        """Raise NotAuthentic unless the signature is that of these parts for this purpose."""
        if not hmac.compare_digest(self.sign(purpose, *parts), bytes(signature)):
            raise NotAuthentic("a signature is wrong")

    def derive(self, purpose: bytes, *parts: bytes) -> Key:
        """Return a key for one purpose alone."""
        return Key(self.sign(purpose, *parts))


def create_nonce() -> bytes:
    """Return bytes that nobody has used before."""
    return os.urandom(NONCE_BYTES)


def create_ticket(key: Key) -> tuple[str, str]:
    """Return the name and password with which one connection is let in, once."""
    name = f"{int(time.time())}:{os.urandom(16).hex()}"
    return name, key.sign(b"ticket", name.encode()).hex()


class TicketGate:
    """Let a connection in before it may send anything: each ticket once, and while it is fresh."""

    def __init__(self, key: Key) -> None:
        self._key = key
        self._used: OrderedDict[str, float] = OrderedDict()

    def check(self, name: bytes, password: bytes) -> None:
        """Use up a ticket. Raises NotAuthentic for one that is wrong, old or used."""
        if len(name) > 64 or len(password) != 2 * MAC_BYTES:
            raise NotAuthentic("a ticket has the wrong length")
        try:
            self._key.verify(bytes.fromhex(password.decode("ascii")), b"ticket", name)
            text = name.decode("ascii")
            issued_at = int(text.partition(":")[0])
        except ValueError:
            raise NotAuthentic("a ticket is malformed") from None
        now = time.time()
        if abs(now - issued_at) > TICKET_SECONDS:
            raise NotAuthentic("a ticket is too old, or the clocks of two machines differ")
        while self._used and next(iter(self._used.values())) < now - 3 * TICKET_SECONDS:
            self._used.popitem(last=False)
        if text in self._used:
            raise NotAuthentic("a ticket was used twice")
        if len(self._used) >= MOST_TICKETS:
            raise NotAuthentic("too many connections in a short time")
        self._used[text] = now


class Session:
    """The keys of one connection, one for each direction, with counters against repetition."""

    def __init__(self, key: Key, client_nonce: bytes, server_nonce: bytes, *, is_server: bool):
        to_server = key.derive(b"client to server", client_nonce, server_nonce)
        to_client = key.derive(b"server to client", client_nonce, server_nonce)
        self._sending, self._receiving = (
            (to_client, to_server) if is_server else (to_server, to_client)
        )
        self._sent = self._received = 0

    def seal(self, *parts: bytes) -> bytes:
        """Return the counter and the MAC of the next message that this end sends."""
        self._sent += 1
        counter = self._sent.to_bytes(8, "big")
        return counter + self._sending.sign(b"message", counter, *parts)

    def unseal(self, seal: bytes, *parts: bytes) -> None:
        """Take the next message of the other end. Raises NotAuthentic for any other."""
        if len(seal) != SEAL_BYTES:
            raise NotAuthentic("a seal has the wrong length")
        counter = seal[:8]
        self._receiving.verify(seal[8:], b"message", counter, *parts)
        if int.from_bytes(counter, "big") != self._received + 1:
            raise NotAuthentic("a message was repeated or left out")
        self._received += 1


def prove_server(key: Key, client_nonce: bytes, server_nonce: bytes) -> bytes:
    """Return the server's proof that it has the key."""
    return key.sign(b"server", client_nonce, server_nonce)


def prove_client(key: Key, client_nonce: bytes, server_nonce: bytes) -> bytes:
    """Return the client's proof that it has the key."""
    return key.sign(b"client", client_nonce, server_nonce)
