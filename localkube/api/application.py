"""The ASGI application: who asks, what for, and one answer or one `Status` for every request that
comes in.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from localkube import KUBERNETES, errors, resources
from localkube.api import access, bodies, health, negotiation, routes, yaml_text
from localkube.api.access import Target
from localkube.api.deleting import Deleter
from localkube.api.delivery import Delivery, Send
from localkube.api.discovery import Discovery
from localkube.api.exchange import Call, Receive, Response
from localkube.api.logs import Logs
from localkube.api.metrics import Metrics
from localkube.api.openapi import OpenApi
from localkube.api.reading import Reader
from localkube.api.reviews import Reviews
from localkube.api.scaling import Scaler
from localkube.api.watching import Watches
from localkube.api.writing import Writer
from localkube.errors import ApiError
from localkube.machine import Machine
from localkube.objects import Objects
from localkube.resources import NODE_METRICS, POD_METRICS
from localkube.resources.resource import Resource

log = logging.getLogger("localkube.api")


TOO_MANY = "Too many requests, please try again later."


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may be asked at once; beyond it a client is told to try again."""

    requests: int = 400
    """Those that are neither watches nor followed logs, as a real server's --max-requests-inflight.
    """
    watches: int = 1_000
    followed_logs: int = 500


class Application:
    """The API over one cluster's objects and machine; `token` is the administrator's."""

    def __init__(
        self,
        objects: Objects,
        machine: Machine,
        token: str,
        version: str = KUBERNETES,
        bounds: Bounds = Bounds(),
    ) -> None:
        self._token = token
        self._version = version
        self._bounds = bounds
        self._in_flight = 0
        self._delivery = Delivery()
        reader = bodies.Reader()
        metrics = Metrics(objects, machine)
        self._reader = Reader(objects, {POD_METRICS: metrics.pods, NODE_METRICS: metrics.nodes})
        self._watches = Watches(objects, bounds.watches)
        self._writer = Writer(objects, reader)
        self._deleter = Deleter(objects, reader)
        self._scaler = Scaler(objects, reader)
        self._logs = Logs(objects, machine, bounds.followed_logs)
        self._reviews = Reviews(reader)
        self._discovery = Discovery(resources.served())
        self._openapi = OpenApi(resources.served(), version)

    def end_streams(self) -> None:
        """End every watch and followed log; the server is about to stop."""
        self._delivery.end_streams()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request. Whatever goes wrong becomes a Status; the server goes on."""
        self._in_flight += 1
        counted = True
        warnings: list[str] = []
        try:
            response = await self._answer(scope, receive, warnings)
            if response.live:
                self._in_flight -= 1
                counted = False
            gzip = "gzip" in _header(scope, b"accept-encoding")
            head = scope["method"] == "HEAD"
            await self._delivery.send(
                response, send, receive, head=head, gzip=gzip, warnings=warnings
            )
        except bodies.ClientGone:
            log.debug(
                "%s %s: the client went before its request was whole",
                scope["method"],
                scope["path"],
            )
        finally:
            self._in_flight -= counted

    async def _answer(
        self, scope: dict[str, Any], receive: Receive, warnings: list[str]
    ) -> Response:
        """The response, or the refusal as one."""
        try:
            if self._in_flight > self._bounds.requests:
                raise errors.too_many_requests(TOO_MANY)
            call = Call.of(scope, receive)
            call.warnings = warnings
            return await self._dispatch(call)
        except ApiError as refusal:
            return _refusal(refusal, _header(scope, b"accept"))
        except bodies.ClientGone:
            raise
        except Exception:  # the loop's edge: one request's defect must not take the others down
            log.exception("%s %s failed", scope["method"], scope["path"])
            return _refusal(
                errors.internal("an internal error occurred; the server's log says which"), ""
            )

    async def _dispatch(self, call: Call) -> Response:
        access.authenticate(call, self._token)
        target = routes.target_of(call.parts)
        if target is None:
            access.authorize(call, "", None)
            return self._answer_path(call)
        verb = routes.verb_of(call, target)
        access.authorize(call, verb, target)
        if self._reviews.serves(target):
            return await self._reviews.create(call, target)
        resource = routes.resolve(target)
        routes.check_verb(resource, target, verb, call.method)
        if target.subresource:
            return await self._answer_subresource(call, resource, target, verb)
        return await self._answer_resource(call, resource, target, verb)

    def _answer_path(self, call: Call) -> Response:
        first = call.parts[0] if call.parts else ""
        if first in ("healthz", "livez", "readyz"):
            return health.answer_health(call)
        if first in ("api", "apis"):
            return self._discovery.answer(call)
        if first == "openapi":
            return self._openapi.answer(call)
        if call.parts not in ((), ("version",)):
            raise errors.no_such_path()
        if call.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed()
        return health.answer_version(self._version) if call.parts else health.answer_root()

    async def _answer_resource(
        self, call: Call, resource: Resource, target: Target, verb: str
    ) -> Response:
        home, name = target.namespace or "", target.name
        answers: dict[str, Callable[[], Awaitable[Response]]] = {
            "get": lambda: self._reader.get(call, resource, home, name),
            "list": lambda: self._reader.list(call, resource, target.namespace),
            "watch": lambda: self._watches.watch(call, resource, target.namespace),
            "create": lambda: self._writer.create(call, resource, home, name),
            "update": lambda: self._writer.update(call, resource, home, name, ""),
            "patch": lambda: self._writer.patch(call, resource, home, name, ""),
            "delete": lambda: self._deleter.delete(call, resource, home, name),
            "deletecollection": lambda: self._deleter.delete_collection(
                call, resource, target.namespace
            ),
        }
        return await answers[verb]()

    async def _answer_subresource(
        self, call: Call, resource: Resource, target: Target, verb: str
    ) -> Response:
        home, name, subresource = target.namespace or "", target.name, target.subresource
        if subresource == "log":
            return await self._logs.read(call, home, name)
        if subresource == "scale":
            return await self._scaler.answer(call, resource, home, name, verb)
        if subresource == "eviction":
            return await self._deleter.evict(call, resource, home, name)
        answers: dict[str, Callable[[], Awaitable[Response]]] = {
            "get": lambda: self._reader.get(call, resource, home, name),
            "update": lambda: self._writer.update(call, resource, home, name, subresource),
            "patch": lambda: self._writer.patch(call, resource, home, name, subresource),
        }
        return await answers[verb]()


def _header(scope: dict[str, Any], name: bytes) -> str:
    return ",".join(value.decode("latin-1") for key, value in scope["headers"] if key == name)


def _refusal(refusal: ApiError, accept: str) -> Response:
    """A Status, as YAML for who accepts nothing else."""
    headers = [("retry-after", str(refusal.retry_after))] if refusal.retry_after is not None else []
    if refusal.code == 413:
        headers.append(("connection", "close"))
    try:
        accepted = negotiation.choose(accept)
    except ApiError:
        accepted = negotiation.Accepted()
    if accepted.yaml:
        return Response(refusal.code, yaml_text.dump(refusal.status()), "application/yaml", headers)
    return Response(refusal.code, msgspec.json.encode(refusal.status()) + b"\n", headers=headers)
