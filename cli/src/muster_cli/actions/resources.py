"""List, get, create, update and delete of every kind of resource, by its entry in the table."""

from collections.abc import Iterator, Mapping
from typing import Any

from muster_cli.errors import NotFound, UsageProblem
from muster_cli.resource_types import Resource, Verb, get_value
from muster_cli.session import Session

Item = dict[str, Any]


def list_resources(
    session: Session,
    resource: Resource,
    *,
    kind: str = "",
    query: Mapping[str, str | None] | None = None,
    limit: int | None = None,
) -> Iterator[Item]:
    """Yield the items that the caller may see."""
    route = resource.get_route(Verb.LIST, kind)
    yield from session.list_items(route, resource.items, query=query, limit=limit)


def get_resource(session: Session, resource: Resource, reference: str, kind: str = "") -> Item:
    """Return an item by its id or name. Raises NotFound and UsageProblem."""
    entry = find_resource(session, resource, reference, kind)
    if Verb.GET not in resource.verbs:
        return entry
    item: Item = session.call(
        resource.get_route(Verb.GET, kind or resource.find_kind(entry)), id=resource.get_id(entry)
    )
    return item


def find_resource(session: Session, resource: Resource, reference: str, kind: str = "") -> Item:
    """Return the list's entry of an item. Raises NotFound and UsageProblem.

    Several things may have one name in different scopes.
    """
    if not reference.strip():
        raise UsageProblem(
            f"The name of the {resource.title} is empty.", "A variable may be unset."
        )
    query = {"search": reference} if resource.is_searchable else {}
    matches = [
        each
        for each in list_resources(session, resource, kind=kind, query=query)
        if reference == get_value(each, resource.name)
    ]
    if not matches:
        # An id is in no field that a search looks through.
        matches = [
            each
            for each in list_resources(session, resource, kind=kind)
            if reference == resource.get_id(each)
        ]
    if not matches:
        raise NotFound(
            f"There is no {resource.title} {reference} among those that you may see.",
            f"`muster {resource.noun} list` shows them.",
        )
    if len(matches) > 1:
        ids = ", ".join(resource.get_id(each) for each in matches[:10])
        raise UsageProblem(f"Several are called {reference}.", f"Say which by its id: {ids}.")
    return matches[0]


def create_resource(session: Session, resource: Resource, body: Item, kind: str = "") -> Item:
    """Make an item; return it, with what is told only once."""
    if resource.kinds and not kind:
        raise UsageProblem("Say of which kind.", f"--kind is one of {', '.join(resource.kinds)}.")
    item: Item = session.call(resource.get_route(Verb.CREATE, kind), body=body)
    return item


def update_resource(
    session: Session, resource: Resource, reference: str, body: Item, kind: str = ""
) -> Item:
    """Change what the body says of an item; return it."""
    entry = find_resource(session, resource, reference, kind)
    route = resource.get_route(Verb.UPDATE, kind or resource.find_kind(entry))
    if route.method == "PUT":
        # PUT says all: what the caller leaves out stays as it is.
        body = {name: entry[name] for name in resource.kept if name in entry} | body
    item: Item = session.call(route, body=body, id=resource.get_id(entry))
    return item


def delete_resource(session: Session, resource: Resource, reference: str, kind: str = "") -> Item:
    """Delete an item; return the list's entry of what it was."""
    entry = find_resource(session, resource, reference, kind)
    route = resource.get_route(Verb.DELETE, kind or resource.find_kind(entry))
    session.call(route, id=resource.get_id(entry))
    return entry
