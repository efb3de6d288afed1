"""What can go wrong with a cluster, named for the reaction wanted. An error that nobody reacts to
differently has no class of its own.

Each text is short and fit to be shown to users: it never holds a credential, a node's address, or a
body that is not a Status. `detail` is for the log: what the server or the library said, cut short.
"""

import email.utils
import math
import re
import time
from collections.abc import Mapping, Sequence

import msgspec

MAX_TEXT = 1_000
"""Characters of a message that are kept. An admission webhook may answer with a whole page."""
MAX_CAUSES = 50
MAX_RETRY_AFTER = 3_600.0
AWAY_STATUSES = frozenset({502, 503, 504})
"""What a proxy answers for a server that is away, and a server that is still starting."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_DENIAL = re.compile(
    r'admission webhook "[^"]{1,253}" denied the request'
    r"|ValidatingAdmissionPolicy '[^']{1,253}' [^:]{0,300}denied request"
)
"""How an API server tells that something in it denied a write, with a code of its choice."""


class KubeError(Exception):
    """A request to a cluster that failed. `status` is the HTTP code, 0 when no answer came."""

    def __init__(
        self, message: str, *, status: int = 0, reason: str = "", detail: str = ""
    ) -> None:
        self.message = limit_text(message)
        self.status = status
        self.reason = limit_text(reason)
        self.detail = limit_text(detail)
        super().__init__(self.message)


class Gone(KubeError):
    """The object, or the namespace it should be in, does not exist. Do not retry; show it
    as gone.
    """


class Conflict(KubeError):
    """Somebody else was first. With `already_exists` the name is taken; otherwise read the object
    again and decide anew.
    """

    @property
    def already_exists(self) -> bool:
        return self.reason == "AlreadyExists"


class Rejected(KubeError):
    """The request is refused, and would be refused again: tell the user. `causes` are (field,
    message), as the server named them.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        reason: str = "",
        detail: str = "",
        causes: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message, status=status, reason=reason, detail=detail)
        self.causes = tuple(
            (limit_text(field), limit_text(text)) for field, text in causes[:MAX_CAUSES]
        )


class NotServed(Rejected):
    """The cluster does not know this kind: an operator or its CRD is not installed, or in another
    version.
    """


class ContainerNotStarted(Rejected):
    """A log cannot be read yet, because its container has not started: retry later."""


class Expired(KubeError):
    """The server no longer remembers that resource version: list again. `continue_token` continues
    a list whose pages are then no longer of one moment.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 410,
        reason: str = "",
        detail: str = "",
        continue_token: str = "",
    ) -> None:
        super().__init__(message, status=status, reason=reason, detail=detail)
        self.continue_token = continue_token


class Unavailable(KubeError):
    """No usable answer: not reached, too slow, broken off, or a server in trouble. Retry, after
    `retry_after` seconds when the server gave that.

    A write that ended so may have happened: read before writing again.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        detail: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, status=status, reason=reason, detail=detail)
        self.retry_after = retry_after


class TooLarge(Unavailable):
    """The answer is longer than the client reads. A shorter page of a list may be read."""


class Unauthorized(KubeError):
    """The credentials are not, or no longer, accepted (401). Only other credentials help."""


class Cause(msgspec.Struct):
    """One entry of Status.details.causes."""

    field: str = ""
    message: str = ""
    reason: str = ""


class Details(msgspec.Struct):
    """Status.details, the parts that somebody reacts to."""

    name: str = ""
    kind: str = ""
    causes: list[Cause] | None = None
    retryAfterSeconds: int = 0  # noqa: N815 - the API's spelling


class ListMeta(msgspec.Struct):
    """The metadata of a Status or a list."""

    continue_: str = msgspec.field(default="", name="continue")
    resourceVersion: str = ""  # noqa: N815 - the API's spelling


class Status(msgspec.Struct):
    """The body of a refusal, and the object of an ERROR frame."""

    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None
    metadata: ListMeta | None = None


_status_decoder = msgspec.json.Decoder(Status)


def limit_text(text: str) -> str:
    """Return the text on one line, without control characters, cut to MAX_TEXT."""
    line = _CONTROL.sub(" ", text[: MAX_TEXT * 2]).strip()
    return line if len(line) <= MAX_TEXT else line[: MAX_TEXT - 1] + "…"


def error_from_answer(status: int, headers: Mapping[str, str], body: bytes) -> KubeError:
    """Return the error that an answer other than 2xx stands for.

    Not every refusal is a Status: a body that is none is ignored.
    """
    answer = parse_status(body)
    return _build_error(status, answer, _parse_retry_after(headers, answer))


def error_from_frame(obj: bytes) -> KubeError:
    """Return the error that the object of a watch's ERROR frame stands for."""
    answer = parse_status(obj)
    return _build_error(answer.code or 500 if answer else 500, answer, None)


def parse_status(body: bytes) -> Status | None:
    """Parse a body as a Status; None when it is not one."""
    try:
        answer = _status_decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return answer if answer.kind == "Status" else None


def _build_error(status: int, answer: Status | None, retry_after: float | None) -> KubeError:
    message = answer.message if answer else ""
    reason = answer.reason if answer else ""
    details = (answer.details if answer else None) or Details()
    if status in (401, 404, 410) and _DENIAL.search(message):
        return _build_rejected(status, message, reason, details)
    if status == 401:
        return Unauthorized(
            "the cluster does not accept the credentials",
            status=status,
            reason=reason,
            detail=message,
        )
    if status == 404:
        return _build_not_found(message, reason, details)
    if status == 409:
        return Conflict(message or "somebody else changed it first", status=status, reason=reason)
    if status == 410:
        token = answer.metadata.continue_ if answer and answer.metadata else ""
        return Expired(
            "the cluster no longer remembers that far back",
            status=status,
            reason=reason,
            detail=message,
            continue_token=token,
        )
    if 400 <= status < 500 and status not in (408, 429):
        return _build_rejected(status, message, reason, details)
    suffix = f" ({reason})" if reason else ""
    text = (
        "the cluster asks to come back later"
        if status == 429
        else f"the cluster answered {status}{suffix}"
    )
    return Unavailable(text, status=status, reason=reason, detail=message, retry_after=retry_after)


def _build_not_found(message: str, reason: str, details: Details) -> KubeError:
    # A path that is not served answers in plain text, or with a Status that names no object.
    if details.name:
        return Gone(message, status=404, reason=reason)
    return NotServed(
        "the cluster does not serve this kind of object",
        status=404,
        reason=reason or "NotServed",
        detail=message,
    )


def _build_rejected(status: int, message: str, reason: str, details: Details) -> Rejected:
    # The server adds a cause of the field `<nil>` to say that it did not check everything.
    causes = [
        (cause.field, cause.message) for cause in details.causes or () if cause.field != "<nil>"
    ]
    kind = ContainerNotStarted if status == 400 and "is waiting to start" in message else Rejected
    return kind(
        message or f"the cluster answered {status}", status=status, reason=reason, causes=causes
    )


def _parse_retry_after(headers: Mapping[str, str], answer: Status | None) -> float | None:
    header = headers.get("Retry-After", "").strip()
    try:
        seconds = float(header)
    except ValueError:
        seconds = _seconds_until(header)
    if not seconds and answer and answer.details:
        seconds = float(answer.details.retryAfterSeconds)
    return min(seconds, MAX_RETRY_AFTER) if seconds > 0 and math.isfinite(seconds) else None


def _seconds_until(date: str) -> float:
    try:
        return email.utils.parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, TypeError, IndexError):
        return 0.0
