"""The verbs of the API, one request each. They take dictionaries and return dictionaries, or what
the caller's own decoder makes of an object.

Every call raises KubeError and nothing else. `namespace` is None for cluster-scoped kinds, and in
lists for all namespaces.
"""

import dataclasses
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal, TypeVar, overload

import msgspec

from clusters.kube import frames
from clusters.kube.client import Client, Query, Stream
from clusters.kube.errors import Expired, TooLarge, Unavailable
from clusters.kube.frames import OBJECT_DECODER, Object, Page
from clusters.kube.resources import PODS, Resource
from clusters.kube.sockets import Cancellation
from console.moments import format_moment

T = TypeVar("T")
Decoder = msgspec.json.Decoder

FIELD_MANAGER = "muster"
"""The name under which managedFields keeps our writes."""
PAGE_SIZE = 500
SHRINKAGE = 8
"""By what the number of objects is divided after a page that was too large."""
MAX_PAGES = 2_000
"""Pages of one list: a million objects, or 128 GiB. Nobody has as many, so a list that goes on is
broken.
"""
MAX_RESTARTS = 3
"""How often a list begins anew because it took longer than the server remembers."""
LOG_SILENCE = 300.0

Validation = Literal["Ignore", "Warn", "Strict"]
Propagation = Literal["Background", "Foreground", "Orphan"]
PatchType = Literal["merge", "json"]

_PATCH_CONTENT_TYPES: dict[PatchType, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
}
_APPLY_CONTENT_TYPE = "application/apply-patch+yaml"


def create(
    client: Client,
    resource: Resource,
    obj: Object,
    *,
    namespace: str | None = None,
    dry_run: bool = False,
    validation: Validation = "Strict",
    manager: str = FIELD_MANAGER,
    cancellation: Cancellation | None = None,
    warnings: list[str] | None = None,
) -> Object:
    """Create an object and return it as stored, or as it would be on a dry run. A taken name raises
    Conflict with `already_exists`.

    With validation Strict a field that the cluster does not know raises Rejected instead of being
    dropped in silence. `warnings` gets what the cluster warns of.
    """
    query = _build_write_query(dry_run, manager, validation)
    body = client.send(
        "POST",
        resource.path(namespace),
        query=query,
        body=obj,
        cancellation=cancellation,
        warnings=warnings,
    )
    return _parse_object(body)


@overload
def get(
    client: Client, resource: Resource, name: str, *, namespace: str | None = None
) -> Object: ...
@overload
def get(
    client: Client,
    resource: Resource,
    name: str,
    *,
    namespace: str | None = None,
    decoder: Decoder[T],
) -> T: ...
def get(
    client: Client,
    resource: Resource,
    name: str,
    *,
    namespace: str | None = None,
    decoder: Decoder[Any] = OBJECT_DECODER,
) -> Any:
    """Return one object. Raises Gone when it does not exist."""
    return _parse_body(client.send("GET", resource.path(namespace, name)), decoder)


@overload
def list_page(
    client: Client,
    resource: Resource,
    *,
    namespace: str | None = None,
    labels: str = "",
    fields: str = "",
    limit: int = PAGE_SIZE,
    token: str = "",
    cancellation: Cancellation | None = None,
) -> Page[Object]: ...
@overload
def list_page(
    client: Client,
    resource: Resource,
    *,
    namespace: str | None = None,
    labels: str = "",
    fields: str = "",
    limit: int = PAGE_SIZE,
    token: str = "",
    cancellation: Cancellation | None = None,
    decoder: Decoder[T],
) -> Page[T]: ...
def list_page(
    client: Client,
    resource: Resource,
    *,
    namespace: str | None = None,
    labels: str = "",
    fields: str = "",
    limit: int = PAGE_SIZE,
    token: str = "",
    cancellation: Cancellation | None = None,
    decoder: Decoder[Any] = OBJECT_DECODER,
) -> Page[Any]:
    """Return one page of at most `limit` objects. Raises Expired when the server has forgotten that
    list, and TooLarge for one object that is.

    `token` is that of the page before. A page may be short, or empty, and still have a token.
    Objects of a list carry no apiVersion and kind if they are built in.
    """
    path, selectors = resource.path(namespace), _build_selectors(labels, fields)
    page, _ = _fetch_page(client, path, selectors, limit, token, cancellation, decoder)
    return page


def _fetch_page(
    client: Client,
    path: str,
    selectors: Query,
    size: int,
    token: str,
    cancellation: Cancellation | None,
    decoder: Decoder[Any],
) -> tuple[Page[Any], int]:
    """Return a page of at most `size` objects, and how many it was asked for with.

    A page that is too large is asked for again with fewer objects, so that whoever makes large ones
    keeps nobody from the others. Raises as `list_page`.
    """
    while True:
        query: list[tuple[str, str | int | bool]] = [*selectors, ("limit", size)]
        if token:
            query.append(("continue", token))
        try:
            body = client.send("GET", path, query=query, cancellation=cancellation)
        except TooLarge:
            if size == 1:
                raise
            size = max(1, size // SHRINKAGE)
        else:
            return frames.parse_page(body, decoder), size


@overload
def list_all(
    client: Client,
    resource: Resource,
    *,
    namespace: str | None = None,
    labels: str = "",
    fields: str = "",
    limit: int = PAGE_SIZE,
    expired: Literal["go on", "restart"] = "restart",
    cancellation: Cancellation | None = None,
) -> Iterator[Page[Object]]: ...
@overload
def list_all(
    client: Client,
    resource: Resource,
    *,
    namespace: str | None = None,
    labels: str = "",
    fields: str = "",
    limit: int = PAGE_SIZE,
    expired: Literal["go on", "restart"] = "restart",
    cancellation: Cancellation | None = None,
    decoder: Decoder[T],
) -> Iterator[Page[T]]: ...
def list_all(
    client: Client,
    resource: Resource,
    *,
    namespace: str | None = None,
    labels: str = "",
    fields: str = "",
    limit: int = PAGE_SIZE,
    expired: Literal["go on", "restart"] = "restart",
    cancellation: Cancellation | None = None,
    decoder: Decoder[Any] = OBJECT_DECODER,
) -> Iterator[Page[Any]]:
    """Yield all pages of a list, one in memory at a time.

    When the server forgets the list in between, either `go on` with the token that it offers (later
    pages are then not `consistent`) or `restart` (the next page is `first` again: drop what came
    before). Raises Expired after MAX_RESTARTS times, and TooLarge as `list_page`.
    """
    path, selectors = resource.path(namespace), _build_selectors(labels, fields)
    token, first, consistent, restarts, size = "", True, True, 0, limit
    for _ in range(MAX_PAGES):
        try:
            page, size = _fetch_page(client, path, selectors, size, token, cancellation, decoder)
        except Expired as error:
            restarts += 1
            if restarts > MAX_RESTARTS:
                raise
            if expired == "go on" and error.continue_token:
                token, consistent = error.continue_token, False
            else:
                token, first, consistent = "", True, True
            continue
        if page.token and page.token == token:
            break
        yield dataclasses.replace(page, first=first, consistent=consistent)
        token, first, size = page.token, False, min(limit, size * 2)
        if not token:
            return
    raise Unavailable("the cluster's list does not come to an end", status=200)


def patch(
    client: Client,
    resource: Resource,
    name: str,
    change: Object | list[Object],
    *,
    kind: PatchType = "merge",
    namespace: str | None = None,
    subresource: str = "",
    dry_run: bool = False,
    manager: str = FIELD_MANAGER,
) -> Object:
    """Change one object by a merge patch (a dictionary) or a JSON patch (a list of operations).
    Raises Conflict when a resource version in it is stale.
    """
    path = resource.path(namespace, name, subresource)
    return _parse_object(
        client.send(
            "PATCH",
            path,
            query=_build_write_query(dry_run, manager),
            body=change,
            content_type=_PATCH_CONTENT_TYPES[kind],
        )
    )


def apply(
    client: Client,
    resource: Resource,
    name: str,
    obj: Object,
    *,
    namespace: str | None = None,
    force: bool = False,
    dry_run: bool = False,
    validation: Validation = "Strict",
    manager: str = FIELD_MANAGER,
) -> Object:
    """Apply the fields of `obj` on the server, creating it if need be, and own them as `manager`.

    Raises Conflict when another manager owns one of them, unless `force` takes it over. `obj` needs
    apiVersion and kind.
    """
    query: list[tuple[str, str | int | bool]] = [
        *_build_write_query(dry_run, manager, validation),
        ("force", force),
    ]
    return _parse_object(
        client.send(
            "PATCH",
            resource.path(namespace, name),
            query=query,
            body=obj,
            content_type=_APPLY_CONTENT_TYPE,
        )
    )


def delete(
    client: Client,
    resource: Resource,
    name: str,
    *,
    namespace: str | None = None,
    propagation: Propagation = "Background",
    grace_seconds: int | None = None,
    uid: str | None = None,
    dry_run: bool = False,
) -> Object:
    """Begin the deletion of one object. Raises Conflict when it has another uid.

    Returns the object while it lingers, or a Status when it is gone. `grace_seconds` None leaves
    the period to the object.
    """
    body = _build_delete_options(propagation, grace_seconds, uid, dry_run)
    return _parse_object(client.send("DELETE", resource.path(namespace, name), body=body))


def delete_collection(
    client: Client,
    resource: Resource,
    *,
    namespace: str | None,
    labels: str,
    fields: str = "",
    propagation: Propagation = "Background",
    grace_seconds: int | None = None,
    dry_run: bool = False,
) -> Object:
    """Begin the deletion of all objects that match.

    `labels` must be given, "" for every object. It may take the server minutes for thousands.
    """
    body = _build_delete_options(propagation, grace_seconds, None, dry_run)
    return _parse_object(
        client.send(
            "DELETE", resource.path(namespace), query=_build_selectors(labels, fields), body=body
        )
    )


def open_log(
    client: Client,
    namespace: str,
    pod: str,
    *,
    container: str | None = None,
    follow: bool = False,
    tail: int | None = None,
    since_time: datetime | str | None = None,
    previous: bool = False,
    timestamps: bool = False,
    limit_bytes: int | None = None,
    silence_timeout: float = LOG_SILENCE,
    cancellation: Cancellation | None = None,
) -> Stream:
    """Open the log of a container and return its bytes as they arrive; close the stream. Raises
    ContainerNotStarted before the container has started.

    `silence_timeout` is how many seconds a followed log may be quiet before reading raises
    Unavailable: ask again from the last line's time. A quiet log may not even begin to answer;
    `cancellation` ends that wait too. `since_time` as text keeps its nanoseconds.
    """
    since = format_moment(since_time) if isinstance(since_time, datetime) else since_time
    parameters = {
        "container": container,
        "follow": follow or None,
        "tailLines": tail,
        "sinceTime": since,
        "previous": previous or None,
        "timestamps": timestamps or None,
        "limitBytes": limit_bytes,
    }
    query = [(name, value) for name, value in parameters.items() if value is not None]
    patience = silence_timeout if follow else None
    return client.open_stream(
        PODS.path(namespace, pod, "log"),
        query=query,
        answer_timeout=patience,
        silence_timeout=patience or client.timeouts.read,
        cancellation=cancellation,
    )


def _build_selectors(labels: str, fields: str) -> list[tuple[str, str | int | bool]]:
    return [
        (name, value)
        for name, value in (("labelSelector", labels), ("fieldSelector", fields))
        if value
    ]


def _build_write_query(dry_run: bool, manager: str, validation: Validation | None = None) -> Query:
    query: list[tuple[str, str | int | bool]] = [("fieldManager", manager)]
    if dry_run:
        query.append(("dryRun", "All"))
    if validation:
        query.append(("fieldValidation", validation))
    return query


def _build_delete_options(
    propagation: Propagation, grace_seconds: int | None, uid: str | None, dry_run: bool
) -> Object:
    options: Object = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": propagation,
    }
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if uid is not None:
        options["preconditions"] = {"uid": uid}
    if dry_run:
        options["dryRun"] = ["All"]
    return options


def _parse_object(body: bytes) -> Object:
    return _parse_body(body, OBJECT_DECODER)


def _parse_body(body: bytes, decoder: Decoder[T]) -> T:
    try:
        return decoder.decode(body)
    except frames.DECODE_ERRORS as error:
        raise Unavailable(
            "the cluster's answer cannot be read", status=200, detail=str(error)
        ) from error
