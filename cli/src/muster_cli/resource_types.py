"""What an entry of the table of resources says: where REST has a noun, and how its items read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from muster_cli.routes import Route


class Verb(StrEnum):
    """What can be done with a resource."""

    LIST = "list"
    GET = "get"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


ALL_VERBS = frozenset(Verb)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its heading, and where its value is in an item.

    `is_wide` columns are shown by `-o wide` only.
    """

    title: str
    path: str
    is_wide: bool = False
    is_moment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A noun: where REST has it, how its items read, and what can be done with them."""

    noun: str
    title: str
    help: str
    path: str
    items: str
    """The name of the list in an answer; "" where the answer is an array."""
    columns: tuple[Column, ...]
    verbs: frozenset[Verb] = ALL_VERBS
    id: str = "id"
    name: str = "name"
    argument: str = "id"
    """What REST's path calls the id."""
    update_method: str = "PATCH"
    kinds: Mapping[str, str] = field(default_factory=dict)
    """The path below `path` of each kind, where kinds have addresses of their own."""
    kept: tuple[str, ...] = ()
    """What PUT must say again where it is not changed."""
    is_scoped: bool = False
    """Whether it belongs to a scope, which its `meta` names."""
    is_searchable: bool = True
    filters: tuple[str, ...] = ()
    """Query parameters of the list that are options of their own."""
    plural: str = ""
    absent: Mapping[Verb, tuple[str, str]] = field(default_factory=dict)
    """Verbs that REST does not offer, each with why, and what to use instead."""

    @property
    def plural_title(self) -> str:
        """Return what several of them are called."""
        return self.plural or f"{self.title}s"

    @property
    def article_title(self) -> str:
        """Return what one of them is called, with its article."""
        # "a user": the vowel is not heard.
        article = "an" if self.title[0] in "aeio" else "a"
        return f"{article} {self.title}"

    @property
    def is_grouped(self) -> bool:
        """Tell whether the values of an item are below `meta` and `spec`."""
        return self.name.startswith("meta.")

    def get_id(self, item: Mapping[str, Any]) -> str:
        """Return the id of an item."""
        return str(get_value(item, self.id))

    def find_kind(self, item: Mapping[str, Any]) -> str:
        """Return the kind of an item of a list; "" where there is but one."""
        return str(get_value(item, "meta.kind") or "") if self.kinds else ""

    def get_route(self, verb: Verb, kind: str = "") -> Route:
        """Return the route of a verb."""
        path = f"/api/v1/{self.path}" + (f"/{self.kinds[kind]}" if kind else "")
        one = f"{path}/{{id}}"
        match verb:
            case Verb.LIST:
                return Route("GET", path)
            case Verb.GET:
                return Route("GET", one)
            case Verb.CREATE:
                return Route("POST", path)
            case Verb.UPDATE:
                return Route(self.update_method, one)
            case Verb.DELETE:
                return Route("DELETE", one)

    def list_routes(self) -> list[Route]:
        """Return every route that its commands use, `{id}` standing for any argument."""
        kinds = ["", *self.kinds] if self.kinds else [""]
        return [
            self.get_route(verb, kind)
            for kind in kinds
            for verb in self.verbs
            if kind or not self.kinds or verb is Verb.LIST
        ]


def get_value(item: Any, path: str) -> Any:
    """Return what is at a dotted path of an item; None where there is nothing."""
    for name in path.split("."):
        if not isinstance(item, Mapping):
            return None
        item = item.get(name)
    return item
