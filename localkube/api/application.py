"""The ASGI application: authenticate, route, and answer each request with a response."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from localkube import KUBERNETES_VERSION, errors, resources
from localkube.api import access, bodies, health, negotiation, routes, yaml_text
from localkube.api.access import Target
from localkube.api.binding import BindingHandler
from localkube.api.deleting import DeleteHandler
from localkube.api.discovery import DiscoveryHandler
from localkube.api.http_messages import ABORT, ApiCall, Receive, Response
from localkube.api.logs import LogHandler
from localkube.api.metrics import MetricsSource
from localkube.api.openapi import OpenApiHandler
from localkube.api.reading import ReadHandler
from localkube.api.response_delivery import ResponseSender, Send
from localkube.api.reviews import ReviewHandler
from localkube.api.scaling import ScaleHandler
from localkube.api.watching import WatchHandler
from localkube.api.writing import WriteHandler
from localkube.errors import ApiError
from localkube.machine import Machine
from localkube.objects import Objects
from localkube.resources import NODE_METRICS, POD_METRICS
from localkube.resources.resource import Resource

log = logging.getLogger("localkube.api")


TOO_MANY_REQUESTS = "Too many requests, please try again later."


@dataclass(frozen=True, slots=True)
class ConcurrencyLimits:
    """How many requests may run at once; beyond it a client is told to try again."""

    requests: int = 400
    """Most requests that are neither watches nor followed logs, as a real server's
    --max-requests-inflight.
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
        version: str = KUBERNETES_VERSION,
        limits: ConcurrencyLimits = ConcurrencyLimits(),
    ) -> None:
        self._token = token
        self._version = version
        self._limits = limits
        self._requests_in_flight = 0
        self._delivery = ResponseSender()
        reader = bodies.BodyReader()
        metrics = MetricsSource(objects, machine)
        self._reader = ReadHandler(
            objects,
            {POD_METRICS: metrics.list_pod_metrics, NODE_METRICS: metrics.list_node_metrics},
        )
        self._watches = WatchHandler(objects, limits.watches)
        self._writer = WriteHandler(objects, reader)
        self._deleter = DeleteHandler(objects, reader)
        self._binder = BindingHandler(objects, reader)
        self._scaler = ScaleHandler(objects, reader)
        self._logs = LogHandler(objects, machine, limits.followed_logs)
        self._reviews = ReviewHandler(reader, token)
        self._discovery = DiscoveryHandler(resources.list_served())
        self._openapi = OpenApiHandler(resources.list_served(), version)

    def end_streams(self) -> None:
        """End every watch and followed log, since the server is about to stop."""
        self._delivery.end_streams()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request. Any error becomes a Status; the server goes on."""
        self._requests_in_flight += 1
        is_counted = True
        warnings: list[str] = []
        try:
            response = await self._answer_request(scope, receive, warnings)
            if response.live:
                # Watches and followed logs have bounds of their own, as on a real server.
                self._requests_in_flight -= 1
                is_counted = False
            gzip = "gzip" in _read_header(scope, b"accept-encoding")
            head = scope["method"] == "HEAD"
            await self._delivery.send(
                response,
                send,
                receive,
                head=head,
                gzip=gzip,
                warnings=warnings,
                abort=scope.get("state", {}).get(ABORT),
            )
        except bodies.ClientGone:
            log.debug(
                "%s %s: the client went before its request was whole",
                scope["method"],
                scope["path"],
            )
        finally:
            self._requests_in_flight -= is_counted

    async def _answer_request(
        self, scope: dict[str, Any], receive: Receive, warnings: list[str]
    ) -> Response:
        """Return the response, or the error as a response."""
        try:
            if self._requests_in_flight > self._limits.requests:
                raise errors.too_many_requests_error(TOO_MANY_REQUESTS)
            call = ApiCall.from_scope(scope, receive)
            call.warnings = warnings
            return await self._dispatch(call)
        except ApiError as refusal:
            return _build_refusal(refusal, _read_header(scope, b"accept"))
        except bodies.ClientGone:
            raise
        except Exception:  # the loop's edge: a defect in one request must not stop the server
            log.exception("%s %s failed", scope["method"], scope["path"])
            return _build_refusal(
                errors.internal_error("an internal error occurred; the server's log says which"), ""
            )

    async def _dispatch(self, call: ApiCall) -> Response:
        access.authenticate(call, self._token)
        target = routes.parse_target(call.parts)
        if target is None:
            access.authorize(call, "", None)
            return self._answer_path(call)
        verb = routes.choose_verb(call, target)
        access.authorize(call, verb, target)
        if self._reviews.is_review(target):
            return await self._reviews.create(call, target)
        resource = routes.resolve_resource(target)
        routes.check_verb(resource, target, verb, call.method)
        if target.subresource:
            return await self._answer_subresource(call, resource, target, verb)
        return await self._answer_resource(call, resource, target, verb)

    def _answer_path(self, call: ApiCall) -> Response:
        first = call.parts[0] if call.parts else ""
        if first in ("healthz", "livez", "readyz"):
            return health.answer_health(call)
        if first in ("api", "apis"):
            return self._discovery.answer(call)
        if first == "openapi":
            return self._openapi.answer(call)
        if call.parts not in ((), ("version",)):
            raise errors.no_such_path_error()
        if call.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed_error()
        return health.answer_version(self._version) if call.parts else health.answer_root()

    async def _answer_resource(
        self, call: ApiCall, resource: Resource, target: Target, verb: str
    ) -> Response:
        namespace, name = target.namespace or "", target.name
        answers: dict[str, Callable[[], Awaitable[Response]]] = {
            "get": lambda: self._reader.get(call, resource, namespace, name),
            "list": lambda: self._reader.list(call, resource, target.namespace),
            "watch": lambda: self._watches.watch(call, resource, target.namespace),
            "create": lambda: self._writer.create(call, resource, namespace, name),
            "update": lambda: self._writer.update(call, resource, namespace, name, ""),
            "patch": lambda: self._writer.patch(call, resource, namespace, name, ""),
            "delete": lambda: self._deleter.delete(call, resource, namespace, name),
            "deletecollection": lambda: self._deleter.delete_collection(
                call, resource, target.namespace
            ),
        }
        return await answers[verb]()

    async def _answer_subresource(
        self, call: ApiCall, resource: Resource, target: Target, verb: str
    ) -> Response:
        namespace, name, subresource = target.namespace or "", target.name, target.subresource
        if subresource == "log":
            return await self._logs.read_log(call, namespace, name)
        if subresource == "scale":
            return await self._scaler.answer(call, resource, namespace, name, verb)
        if subresource == "binding":
            return await self._binder.bind(call, namespace, name)
        if subresource == "eviction":
            return await self._deleter.evict(call, resource, namespace, name)
        answers: dict[str, Callable[[], Awaitable[Response]]] = {
            "get": lambda: self._reader.get(call, resource, namespace, name),
            "update": lambda: self._writer.update(call, resource, namespace, name, subresource),
            "patch": lambda: self._writer.patch(call, resource, namespace, name, subresource),
        }
        return await answers[verb]()


def _read_header(scope: dict[str, Any], name: bytes) -> str:
    return ",".join(value.decode("latin-1") for key, value in scope["headers"] if key == name)


def _build_refusal(refusal: ApiError, accept: str) -> Response:
    """Build the response of an error, a Status.

    It is YAML for a client that accepts nothing else.
    """
    headers = [("retry-after", str(refusal.retry_after))] if refusal.retry_after is not None else []
    if refusal.code == 413:
        headers.append(("connection", "close"))
    try:
        accepted = negotiation.choose_media(accept)
    except ApiError:
        accepted = negotiation.AcceptedMedia()
    if accepted.yaml:
        return Response(
            refusal.code, yaml_text.dump_yaml(refusal.status()), "application/yaml", headers
        )
    return Response(refusal.code, msgspec.json.encode(refusal.status()) + b"\n", headers=headers)
