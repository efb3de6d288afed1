"""A rank's connections to all data workers: requests out, answers in, and who is there."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from muster_delivery.client import Answer, ClientGroup, Event, NotConnected
from muster_delivery.errors import DeliveryError
from muster_delivery.settings import DeliverySettings
from muster_delivery.store import Buffer

RECEIVE_SECONDS = 0.5
"""How often a receiving thread looks whether it shall end."""


class LinkListener(Protocol):
    """Who is told of answers and of workers that come and go; always under the links' lock."""

    def accept_answer(
        self, worker: int, answer: Mapping[str, Any], frames: Sequence[Buffer]
    ) -> None: ...

    def add_worker(self, worker: int) -> None: ...

    def remove_worker(self, worker: int) -> None: ...


class WorkerLink:
    """One data worker as a rank sees it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_ready = False
        """Whether it has answered the greeting of this connection."""
        self.greeting: Mapping[str, Any] = {}
        """Its answer to the last greeting."""
        self.greeting_number: int | None = None
        """The request whose answer makes it ready."""
        self.fill = 0.0
        """How full the store of its batches is, from 0 to 1."""


class WorkerLinks:
    """The links to all data workers, with one thread that receives."""

    def __init__(
        self, settings: DeliverySettings, greet: Callable[[], Mapping[str, object]]
    ) -> None:
        self.changed = threading.Condition()
        """Guards everything here and in the listener, and tells a waiting rank of any change."""
        self.error: DeliveryError | None = None
        self.links = [WorkerLink(number) for number in range(len(settings.workers))]
        self._greet = greet
        self._listener: LinkListener | None = None
        self._numbers = itertools.count(1)
        self._is_closed = False
        self._clients = ClientGroup(settings.workers, settings.key)
        self._clients.start()
        self._thread = threading.Thread(target=self._receive, name="muster-delivery", daemon=True)
        self._thread.start()

    def listen(self, listener: LinkListener | None) -> None:
        """Send what happens from now on to this listener."""
        with self.changed:
            self._listener = listener

    def list_ready(self) -> list[WorkerLink]:
        """Return the links of the workers that are there."""
        return [link for link in self.links if link.is_ready]

    def send(self, worker: int, request: Mapping[str, object]) -> int | None:
        """Send a request; return its number, or None where the worker cannot be reached now."""
        number = next(self._numbers)
        try:
            self._clients.send(worker, {**request, "id": number})
        except NotConnected:
            # Its loss is on its way to us; until then nobody asks it for more.
            self.links[worker].is_ready = False
            return None
        return number

    def withdraw_requests(self, place: Mapping[str, int]) -> None:
        """Let workers drop what the rank at this place has asked for until now."""
        for link in self.list_ready():
            self.send(link.number, {"op": "withdraw", **place})

    def close(self) -> None:
        """End all connections."""
        self._is_closed = True
        self._thread.join()
        self._clients.close()

    def _receive(self) -> None:
        try:
            while not self._is_closed:
                event = self._clients.receive(RECEIVE_SECONDS)
                if event is not None:
                    with self.changed:
                        self._accept_event(event)
                        self.changed.notify_all()
        except Exception as error:  # noqa: BLE001  the rank's own thread raises it
            with self.changed:
                self.error = DeliveryError(f"the delivery failed in this rank: {error!r}")
                self.error.__cause__ = error
                self.changed.notify_all()

    def _accept_event(self, event: Event) -> None:
        if isinstance(event, Answer):
            self._accept_answer(self.links[event.worker], event.header, event.frames)
        else:
            self._accept_change(self.links[event.worker], event.is_connected)

    def _accept_answer(
        self, link: WorkerLink, answer: Mapping[str, Any], frames: Sequence[Buffer]
    ) -> None:
        if isinstance(fill := answer.get("fill"), (int, float)):
            link.fill = float(fill)
        if answer.get("id") == link.greeting_number:
            self._accept_greeting(link, answer)
        elif self._listener is not None:
            self._listener.accept_answer(link.number, answer, frames)

    def _accept_greeting(self, link: WorkerLink, answer: Mapping[str, Any]) -> None:
        link.greeting_number = None
        if "error" in answer:
            self.error = DeliveryError(str(answer["error"]))
            return
        link.greeting = answer
        link.is_ready = True
        if self._listener is not None:
            self._listener.add_worker(link.number)

    def _accept_change(self, link: WorkerLink, is_connected: bool) -> None:
        link.is_ready = False
        link.greeting_number = None
        if self._listener is not None:
            self._listener.remove_worker(link.number)
        if is_connected:
            link.greeting_number = self.send(link.number, self._greet())
