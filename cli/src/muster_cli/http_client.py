"""HTTP to one server: bounded answers, connections that are used again, words for what fails."""

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import quote, urlsplit

from muster_cli import VERSION
from muster_cli.errors import Refused, Unreachable, UsageProblem

TIMEOUT_SECONDS = 60.0
STREAM_TIMEOUT_SECONDS = 120.0
"""How long a followed log may be silent before it is asked for again: the server may be gone."""
ANSWER_SECONDS = 300.0
"""How long a whole answer may take: one that comes byte by byte keeps every single read short."""
LARGEST_ANSWER = 64 << 20
READ_BYTES = 1 << 16
IDLE_SECONDS = 2.0
"""A connection that rested longer may have been closed by the server, and is not used again."""
VERSION_HEADER = "Muster-Version"
FOREIGN_HINT = (
    "Look whether this is the address of Muster (`muster config list`), and whether a proxy before "
    "it changes answers."
)
"""What to do about an answer that has not the shape of Muster's."""


class AnswerObject(dict[str, Any]):
    """An object in an answer; reading a value that it has not raises Refused."""

    def __missing__(self, name: str) -> NoReturn:
        raise Refused(
            200, f"The server's answer is not understood: it has no {name}.", (), FOREIGN_HINT
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server answered."""

    status: int
    headers: http.client.HTTPMessage
    content: bytes

    @property
    def is_json(self) -> bool:
        """Tell whether the answer begins as REST's do, and not as a page."""
        return self.content[:100].lstrip()[:1] in (b"{", b"[")

    def parse(self) -> Any:
        """Return the JSON of the answer; None where it is empty. Raises Refused."""
        if not self.content:
            return None
        try:
            return json.loads(self.content, object_pairs_hook=AnswerObject)
        except (ValueError, RecursionError):
            raise Refused(
                self.status,
                "The server's answer is not JSON: this is no Muster, or a proxy.",
                (),
                FOREIGN_HINT,
            ) from None


class HttpClient:
    """Requests to one server, one after the other; each thread has its own."""

    def __init__(self, server: str, ca_file: str = "") -> None:
        self.server = server
        self._ca_file = ca_file
        self._connection: http.client.HTTPConnection | None = None
        self._used_at = 0.0

    def request(
        self, method: str, target: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request and read the whole answer. Raises Unreachable."""
        try:
            response = self._send(method, target, body, headers or {}, TIMEOUT_SECONDS)
            content = self.read_content(response, LARGEST_ANSWER)
        except (OSError, http.client.HTTPException, Unreachable) as error:
            self.close()
            raise self._describe_failure(error, was_sent=True) from None
        if len(content) > LARGEST_ANSWER:
            self.close()
            raise Refused(response.status, "The server's answer is too large.")
        self._used_at = time.monotonic()
        return Answer(response.status, response.headers, content)

    def read_content(self, response: http.client.HTTPResponse, most: int) -> bytes:
        """Return the content of an answer; of a longer one a byte more than `most`.

        Raises Unreachable where it takes too long, and IncompleteRead where it breaks off.
        """
        promised, deadline = response.length, time.monotonic() + ANSWER_SECONDS
        content = bytearray()
        while len(content) <= most and len(content) != promised:
            part = response.read1(min(READ_BYTES, most + 1 - len(content)))
            content += part
            if not part:
                if promised is not None:
                    raise http.client.IncompleteRead(bytes(content), promised - len(content))
                break
            if time.monotonic() > deadline:
                raise Unreachable(
                    f"The answer of {self.server} is not whole after {ANSWER_SECONDS:.0f} s.",
                    "Try again. The network or a proxy between may be slow.",
                    was_sent=True,
                )
        response.close()
        return bytes(content)

    @contextmanager
    def stream(
        self, method: str, target: str, headers: Mapping[str, str]
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request and give the answer to be read while it comes.

        The connection ends with it. Raises Unreachable.
        """
        self.close()
        try:
            response = self._send(method, target, None, headers, STREAM_TIMEOUT_SECONDS)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise self._describe_failure(error, was_sent=True) from None
        try:
            yield response
        except (OSError, http.client.HTTPException) as error:
            raise self._describe_failure(error, was_sent=True) from None
        finally:
            self.close()

    def close(self) -> None:
        """End the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _send(
        self, method: str, target: str, body: Any, headers: Mapping[str, str], timeout: float
    ) -> http.client.HTTPResponse:
        if time.monotonic() - self._used_at > IDLE_SECONDS:
            self.close()
        connection = self._connection or self._connect(timeout)
        data = None if body is None else json.dumps(body).encode()
        sent = {"User-Agent": f"muster/{VERSION}", "Accept": "application/json", **headers}
        if data is not None:
            sent["Content-Type"] = "application/json"
        self._connection = connection
        connection.request(method, self._prefix + target, data, sent)
        return connection.getresponse()

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        address = urlsplit(self.server)
        self._prefix = quote(address.path.rstrip("/"), safe="/%")
        connection = (
            http.client.HTTPSConnection(
                address.hostname or "", address.port, timeout=timeout, context=self._trust()
            )
            if address.scheme == "https"
            else http.client.HTTPConnection(address.hostname or "", address.port, timeout=timeout)
        )
        try:
            connection.connect()
        except OSError as error:
            raise self._describe_failure(error, was_sent=False) from None
        return connection

    def _trust(self) -> Any:
        try:
            # http.client has loaded ssl already; a Python that is built without it has no HTTPS.
            ssl = http.client.ssl  # type: ignore[attr-defined]
            context = ssl.create_default_context(cafile=self._ca_file or None)
        except OSError as error:
            if not self._ca_file:
                raise
            raise UsageProblem(
                f"The certificates in {self._ca_file} cannot be read: {_describe_file(error)}.",
                "Name another file by MUSTER_CA_FILE, `muster config set ca-file FILE`, or "
                "`muster login --ca-file FILE`.",
            ) from None
        # Python 3.13 and later refuse certificates without key identifiers, which curl takes.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context

    def _describe_failure(self, error: Exception, *, was_sent: bool) -> Unreachable:
        if isinstance(error, Unreachable):
            return error
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return Unreachable(
                f"The certificate of {self.server} cannot be trusted.",
                "Where your organisation has an authority of its own, name its file: "
                "`muster config set ca-file FILE`.",
            )
        if isinstance(error, http.client.IncompleteRead):
            return Unreachable(
                f"The answer of {self.server} broke off.",
                "Try again. A proxy between may have ended it.",
                was_sent=was_sent,
            )
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return Unreachable(
            f"{self.server} did not answer: {reason}.",
            "Check the address (`muster config list`) and your network.",
            was_sent=was_sent,
        )


def _describe_file(error: OSError) -> str:
    """Return what is wrong with a file of certificates."""
    # The words of OpenSSL are about its own source.
    is_unreadable = type(error).__module__ != "ssl"
    return (error.strerror or "") if is_unreadable else "it has no certificates in PEM"
