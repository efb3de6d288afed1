"""In which thread the parts of a request run."""

import asyncio
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import override_settings
from django.urls import path
from django.utils.deprecation import MiddlewareMixin

from console.handler import SingleThreadHandler
from console.streams import build_file_response

threads: dict[str, list[int]] = {}
together = threading.Barrier(2)


def record_thread(what: str) -> None:
    threads.setdefault(what, []).append(threading.get_ident())


class Middleware(MiddlewareMixin):
    """Either way, as Django's own are."""

    def process_request(self, request: HttpRequest) -> None:
        record_thread("before")

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        record_thread("after")
        return response


def plain_view(request: HttpRequest) -> HttpResponse:
    """Says how many of the middleware called it, one through the other."""
    record_thread("view")
    return HttpResponse(
        str(
            sum(
                isinstance(frame.f_locals.get("self"), Middleware)
                for frame, _ in traceback.walk_stack(None)
            )
        )
    )


def waiting_view(request: HttpRequest) -> HttpResponse:
    """Answers only while another one is answered, too."""
    record_thread("view")
    together.wait(60)
    return HttpResponse("waited")


async def loop_view(request: HttpRequest) -> HttpResponse:
    record_thread("view")
    await asyncio.sleep(0)
    return HttpResponse("loop")


async def stream_view(request: HttpRequest) -> StreamingHttpResponse:
    async def parts() -> AsyncIterator[bytes]:
        for part in (b"one", b"two"):
            record_thread("part")
            yield part

    return StreamingHttpResponse(parts())


def file_view(request: HttpRequest) -> HttpResponseBase:
    def pieces() -> Iterator[str]:
        for number in range(4):
            record_thread("part")
            yield f"{number},"

    return build_file_response(pieces(), "x.csv", "text/csv")


def failing_view(request: HttpRequest) -> HttpResponse:
    raise ValueError("no")


urlpatterns = [
    path(each.__name__, each)
    for each in (plain_view, waiting_view, loop_view, stream_view, file_view, failing_view)
]


async def send_request(handler: SingleThreadHandler, address: str) -> tuple[int, bytes]:
    """The status and the body."""
    scope = {
        "type": "http",
        "method": "GET",
        "path": address,
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    request_event = asyncio.Event()
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        if request_event.is_set():
            await asyncio.Event().wait()
        request_event.set()
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    await handler(scope, receive, send)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent)


def run(work: Callable[[SingleThreadHandler], Awaitable[Any]]) -> Any:
    async def all_of_it() -> Any:
        record_thread("loop")
        return await work(SingleThreadHandler())

    threads.clear()
    with override_settings(
        ROOT_URLCONF=__name__,
        MIDDLEWARE=[f"{__name__}.Middleware"] * 2,
        ALLOWED_HOSTS=["localhost"],
    ):
        return asyncio.run(all_of_it())


def test_middleware_and_view_are_in_one_thread_and_handed_over_once() -> None:
    assert run(lambda handler: send_request(handler, "/plain_view")) == (200, b"2")
    (thread,) = set(threads["before"] + threads["view"] + threads["after"])
    assert len(threads["before"]) == len(threads["after"]) == 2
    assert thread not in threads["loop"]


def test_requests_at_once_are_in_threads_of_their_own() -> None:
    answers = run(
        lambda handler: asyncio.gather(
            send_request(handler, "/waiting_view"), send_request(handler, "/waiting_view")
        )
    )
    assert answers == [(200, b"waited")] * 2
    assert len(set(threads["view"])) == 2


def test_a_file_of_a_view_in_a_thread_is_made_in_threads_as_it_is_sent() -> None:
    assert run(lambda handler: send_request(handler, "/file_view")) == (200, b"0,1,2,3,")
    assert len(threads["part"]) == 4
    assert not set(threads["part"]) & set(threads["loop"])


def test_what_is_asynchronous_is_run_by_the_loop() -> None:
    assert run(lambda handler: send_request(handler, "/loop_view")) == (200, b"loop")
    assert threads["view"] == threads["loop"]
    assert run(lambda handler: send_request(handler, "/stream_view")) == (200, b"onetwo")
    assert threads["part"] == threads["loop"] * 2


@pytest.mark.django_db
def test_what_goes_wrong_is_an_answer() -> None:
    assert run(lambda handler: send_request(handler, "/failing_view"))[0] == 500
    assert run(lambda handler: send_request(handler, "/nowhere"))[0] == 404
