"""What can happen to a request on its way to a cluster and back. Each is for `Proxy.choose`; what
does not fit a request passes it on.
"""

import base64
import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.clusters.kube.faults import Request, status
from tests.faults.proxy import Answer, Mishap, Passage, pass_unchanged

HTML = b"<!doctype html><title>Bad gateway</title><h1>The sign-in page of somebody's proxy</h1>"


def delay_answer(seconds: float) -> Mishap:
    """Delay the answer."""

    def mishap(passage: Passage) -> None:
        if not passage.exchange.over.wait(seconds):
            passage.pass_on()

    return mishap


def silent(passage: Passage) -> None:
    """Take the request, and never answer: a half open connection."""
    passage.exchange.silence()


def silent_after_the_head(passage: Passage) -> None:
    """Begin the answer, and then send nothing."""
    passage.exchange.head(200, "Transfer-Encoding: chunked")
    passage.exchange.silence()


def reset_connection(passage: Passage) -> None:
    """Reset the connection before the cluster gets the request."""
    passage.exchange.reset()


def lose_answer(passage: Passage) -> None:
    """Let the request take effect, and lose the answer."""
    if not passage.is_stream:
        passage.ask()
    passage.exchange.reset()


def reset_in_body(passage: Passage) -> None:
    """Reset the connection in the middle of the body."""

    def half(lines: Iterator[bytes]) -> Iterator[bytes]:
        for line in lines:
            yield line[: len(line) // 2]
            raise ConnectionError

    if passage.is_stream:
        _broken(passage, half)
        return
    answer = passage.ask()
    passage.exchange.head(answer.status, f"Content-Length: {len(answer.body)}")
    passage.exchange.send(answer.body[: len(answer.body) // 2])
    passage.exchange.reset()


def close_in_body(passage: Passage) -> None:
    """The connection is closed in good order in the middle of the body; a watch ends after its
    first change.
    """

    def yield_first_line(lines: Iterator[bytes]) -> Iterator[bytes]:
        for line in lines:
            yield line
            return

    if passage.is_stream:
        passage.stream(yield_first_line)
        return
    answer = passage.ask()
    passage.exchange.head(answer.status, f"Content-Length: {len(answer.body)}")
    passage.exchange.send(answer.body[: len(answer.body) // 2])
    passage.exchange.close()


def refuse_request(code: int, reason: str, *headers: str) -> Mishap:
    """Refuse the request with a Status."""
    return lambda passage: passage.exchange.answer(code, status(code, reason), *headers)


def answer_html(code: int) -> Mishap:
    """Answer with an HTML page, as a proxy in between would."""
    return lambda passage: passage.reply(Answer(code, "text/html", HTML))


def truncate_json(passage: Passage) -> None:
    """Answer with the first half of the JSON."""
    if passage.is_stream:
        _broken(passage, lambda lines: (line[: len(line) // 2] + b"\n" for line in lines))
        return
    answer = passage.ask()
    passage.reply(Answer(answer.status, answer.type, answer.body[: len(answer.body) // 2]))


def change_frames(changed: Callable[[Iterator[bytes]], Iterator[bytes]]) -> Mishap:
    """Change the frames of a watch; anything else passes."""
    return lambda passage: passage.stream(changed) if passage.is_watch else passage.pass_on()


def double_changes(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Send every change twice."""
    return (line for each in lines for line in (each, each))


def swap_changes(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Send each second change before the first."""
    while (first := next(lines, None)) is not None:
        second = next(lines, None)
        if second is not None:
            yield second
        yield first


def repeated_late(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Repeat every change after the next one."""
    before = b""
    for line in lines:
        yield line + before
        before = line


def bookmarks(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Only how far it is, and never what happened: what a broken cache in between makes of a
    watch.
    """
    for line in lines:
        frame = json.loads(line)
        if frame["type"] == "ERROR":
            yield line
            return
        version = frame["object"]["metadata"]["resourceVersion"]
        yield (
            json.dumps(
                {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version}}}
            ).encode()
            + b"\n"
        )


def append_error(code: int, reason: str) -> Callable[[Iterator[bytes]], Iterator[bytes]]:
    """Send an ERROR frame after the first change, or at once if there is none."""

    def yield_with_error(lines: Iterator[bytes]) -> Iterator[bytes]:
        if code != 410:
            yield next(lines, b"")
        yield b'{"type": "ERROR", "object": ' + status(code, reason) + b"}\n"

    return yield_with_error


def expire_list(is_fresh: bool) -> Mishap:
    """Let the second page of a list expire; `is_fresh` offers to go on without consistency."""

    def mishap(passage: Passage) -> None:
        token = passage.request.query.get("continue")
        if token is None:
            shorten_pages(1)(passage)
            return
        offer: dict[str, Any] = {"metadata": {"continue": _inconsistent(token)}} if is_fresh else {}
        if is_fresh and _reads(token)["rv"] == -1:
            passage.pass_on()
            return
        passage.exchange.answer(410, status(410, "Expired", **offer))

    return mishap


def shorten_pages(limit: int) -> Mishap:
    """Send shorter pages than requested."""
    return lambda passage: (
        passage.reply(passage.ask(limit=str(limit))) if passage.is_list else passage.pass_on()
    )


def empty_first_page(passage: Passage) -> None:
    """Send an empty first page with a token; its content follows on the next one."""
    token = passage.request.query.get("continue", "")
    if token in passage.proxy.kept:
        passage.reply(Answer(200, "application/json", passage.proxy.kept.pop(token)))
        return
    if not passage.is_list or token:
        passage.pass_on()
        return
    answer = passage.ask()
    if answer.status != 200:
        passage.reply(answer)
        return
    whole = json.loads(answer.body)
    mine = f"kept-{len(passage.proxy.requests)}"
    passage.proxy.kept[mine] = answer.body
    empty = {"kind": whole["kind"], "apiVersion": whole["apiVersion"], "items": None}
    version = whole["metadata"]["resourceVersion"]
    passage.reply(
        Answer(
            200,
            "application/json",
            json.dumps(
                {**empty, "metadata": {"resourceVersion": version, "continue": mine}}
            ).encode(),
        )
    )


def by_chance(
    chance: random.Random, share: float, mishaps: Sequence[Mishap]
) -> Callable[[Request], Mishap]:
    """What happens to each request: one of these to so many of them. A list that was begun with an
    empty page goes on in any case.
    """

    def choose(request: Request) -> Mishap:
        if request.query.get("continue", "").startswith("kept-"):
            return empty_first_page
        return chance.choice(mishaps) if chance.random() < share else pass_unchanged

    return choose


def _broken(passage: Passage, changed: Callable[[Iterator[bytes]], Iterator[bytes]]) -> None:
    try:
        passage.stream(changed)
    except ConnectionError:
        if passage.exchange.open:
            passage.exchange.reset()


def _reads(token: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    return found


def _inconsistent(token: str) -> str:
    raw = json.dumps({**_reads(token), "rv": -1}).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


FAULTS: dict[str, Mishap] = {
    "late": delay_answer(0.01),
    "silent": silent,
    "silent after the head": silent_after_the_head,
    "reset": reset_connection,
    "lost": lose_answer,
    "cut": reset_in_body,
    "ended": close_in_body,
    "401": refuse_request(401, "Unauthorized"),
    "403": refuse_request(403, "Forbidden"),
    "404": refuse_request(404, "NotFound"),
    "409": refuse_request(409, "Conflict"),
    "410": refuse_request(410, "Expired"),
    "429": refuse_request(429, "TooManyRequests", "Retry-After: 1"),
    "500": refuse_request(500, "InternalError"),
    "503": answer_html(503),
    "sign-in page": answer_html(200),
    "truncated": truncate_json,
    "doubled": change_frames(double_changes),
    "swapped": change_frames(swap_changes),
    "repeated late": change_frames(repeated_late),
    "bookmarks": change_frames(bookmarks),
    "410 in the watch": change_frames(append_error(410, "Expired")),
    "401 in the watch": change_frames(append_error(401, "Unauthorized")),
    "500 in the watch": change_frames(append_error(500, "InternalError")),
    "expired": expire_list(is_fresh=False),
    "expired, fresh": expire_list(is_fresh=True),
    "short pages": shorten_pages(1),
    "empty page": empty_first_page,
}
"""Everything that can happen to a request, by name."""
