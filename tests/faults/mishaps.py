"""What can happen to a request on its way to a cluster and back. Each is for `Proxy.choose`; what
does not fit a request passes it on.
"""

import base64
import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.clusters.kube.faults import Request, status
from tests.faults.proxy import Answer, Mishap, Passage, passes

HTML = b"<!doctype html><title>Bad gateway</title><h1>The sign-in page of somebody's proxy</h1>"


def late(seconds: float) -> Mishap:
    """It takes its time."""

    def mishap(passage: Passage) -> None:
        if not passage.exchange.over.wait(seconds):
            passage.pass_on()

    return mishap


def silent(passage: Passage) -> None:
    """Half open: the request is taken, and nothing ever comes back."""
    passage.exchange.silence()


def silent_after_the_head(passage: Passage) -> None:
    """The answer begins, and then nothing."""
    passage.exchange.head(200, "Transfer-Encoding: chunked")
    passage.exchange.silence()


def reset(passage: Passage) -> None:
    """The connection is reset before the cluster hears of it."""
    passage.exchange.reset()


def lost(passage: Passage) -> None:
    """It takes effect, and the answer is lost."""
    if not passage.is_stream:
        passage.ask()
    passage.exchange.reset()


def cut(passage: Passage) -> None:
    """A reset in the middle of the body."""

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


def ended(passage: Passage) -> None:
    """The connection is closed in good order in the middle of the body; a watch ends after its
    first change.
    """

    def one(lines: Iterator[bytes]) -> Iterator[bytes]:
        for line in lines:
            yield line
            return

    if passage.is_stream:
        passage.stream(one)
        return
    answer = passage.ask()
    passage.exchange.head(answer.status, f"Content-Length: {len(answer.body)}")
    passage.exchange.send(answer.body[: len(answer.body) // 2])
    passage.exchange.close()


def refused(code: int, reason: str, *headers: str) -> Mishap:
    """The server refuses it with a Status."""
    return lambda passage: passage.exchange.answer(code, status(code, reason), *headers)


def html(code: int) -> Mishap:
    """Something between here and there answers with a page."""
    return lambda passage: passage.reply(Answer(code, "text/html", HTML))


def truncated(passage: Passage) -> None:
    """A whole answer with half of the JSON."""
    if passage.is_stream:
        _broken(passage, lambda lines: (line[: len(line) // 2] + b"\n" for line in lines))
        return
    answer = passage.ask()
    passage.reply(Answer(answer.status, answer.type, answer.body[: len(answer.body) // 2]))


def framed(changed: Callable[[Iterator[bytes]], Iterator[bytes]]) -> Mishap:
    """The changes of a watch come so; anything else passes."""
    return lambda passage: passage.stream(changed) if passage.is_watch else passage.pass_on()


def doubled(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Every change twice."""
    return (line for each in lines for line in (each, each))


def swapped(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Each second change before the first."""
    while (first := next(lines, None)) is not None:
        second = next(lines, None)
        if second is not None:
            yield second
        yield first


def repeated_late(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Every change again after the next one."""
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


def then_error(code: int, reason: str) -> Callable[[Iterator[bytes]], Iterator[bytes]]:
    """An ERROR frame after the first change, or at once with none."""

    def changed(lines: Iterator[bytes]) -> Iterator[bytes]:
        if code != 410:
            yield next(lines, b"")
        yield b'{"type": "ERROR", "object": ' + status(code, reason) + b"}\n"

    return changed


def forgotten(is_fresh: bool) -> Mishap:
    """The second page of a list has expired; `is_fresh` offers to go on without consistency."""

    def mishap(passage: Passage) -> None:
        token = passage.request.query.get("continue")
        if token is None:
            paged(1)(passage)
            return
        offer: dict[str, Any] = {"metadata": {"continue": _inconsistent(token)}} if is_fresh else {}
        if is_fresh and _reads(token)["rv"] == -1:
            passage.pass_on()
            return
        passage.exchange.answer(410, status(410, "Expired", **offer))

    return mishap


def paged(limit: int) -> Mishap:
    """Pages are shorter than was asked for."""
    return lambda passage: (
        passage.reply(passage.ask(limit=str(limit))) if passage.is_list else passage.pass_on()
    )


def hollow(passage: Passage) -> None:
    """The first page is empty and has a token; what it should have held comes after it."""
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
            return hollow
        return chance.choice(mishaps) if chance.random() < share else passes

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
    "late": late(0.01),
    "silent": silent,
    "silent after the head": silent_after_the_head,
    "reset": reset,
    "lost": lost,
    "cut": cut,
    "ended": ended,
    "401": refused(401, "Unauthorized"),
    "403": refused(403, "Forbidden"),
    "404": refused(404, "NotFound"),
    "409": refused(409, "Conflict"),
    "410": refused(410, "Expired"),
    "429": refused(429, "TooManyRequests", "Retry-After: 1"),
    "500": refused(500, "InternalError"),
    "503": html(503),
    "sign-in page": html(200),
    "truncated": truncated,
    "doubled": framed(doubled),
    "swapped": framed(swapped),
    "repeated late": framed(repeated_late),
    "bookmarks": framed(bookmarks),
    "410 in the watch": framed(then_error(410, "Expired")),
    "401 in the watch": framed(then_error(401, "Unauthorized")),
    "500 in the watch": framed(then_error(500, "InternalError")),
    "expired": forgotten(is_fresh=False),
    "expired, fresh": forgotten(is_fresh=True),
    "short pages": paged(1),
    "empty page": hollow,
}
"""Everything that can happen to a request, by name."""
