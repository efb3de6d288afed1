"""The description of a served resource: its names, verbs, columns, field selectors and rules.

To add a kind, add one of these to the registry.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from localkube.errors import Cause
from localkube.metadata import Object

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the Table that `kubectl get` prints.

    `cell` takes the object and returns text, a number or None.
    """

    name: str
    cell: Callable[[Object], Any]
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource such as status, scale or log.

    `kind`, `group` and `version` are what discovery says it speaks.
    """

    verbs: tuple[str, ...]
    kind: str = ""
    group: str = ""
    version: str = ""


STATUS = Subresource(("get", "patch", "update"))


def no_rules(obj: Object, old: Object | None) -> Sequence[Cause]:
    return ()


def no_warnings(obj: Object) -> Sequence[str]:
    return ()


def no_defaults(obj: Object) -> None:
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One served resource. Identity is the instance: the registry holds each exactly once.

    `custom` marks what a CRD would define: those refuse strategic merge, answer a deletion with a
    Status and are named `Kind.group` in errors. `set_defaults` changes a new or updated object in
    place before validation; `validate` gets the object and, on update, the stored one, and returns
    the problems. `schema` names the file under `schemas/` (none: no pruning, no strict check).
    `storage` is the resource whose objects these are, for a second group's view of one store
    (events).
    """

    group: str
    version: str
    plural: str
    kind: str
    columns: tuple[Column, ...] = ()
    namespaced: bool = True
    custom: bool = False
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    field_selectors: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    schema: str = ""
    set_defaults: Callable[[Object], None] = no_defaults
    validate: Callable[[Object, Object | None], Sequence[Cause]] = no_rules
    find_warnings: Callable[[Object], Sequence[str]] = no_warnings
    """Returns warnings for a client that writes a valid object which has no full effect."""
    generation: bool = True
    """False for kinds whose metadata carries no generation.

    These are config maps, secrets, events, leases, nodes, namespaces.
    """
    returns_deleted: bool = False
    """True for kinds whose deletion answers the object and not a Status.

    These are pods, namespaces, services.
    """
    orphans_by_default: bool = False
    """True for batch/v1 Jobs.

    A DELETE without propagationPolicy leaves the pods behind, with a Warning header.
    """
    storage: "Resource | None" = None
    from_stored: Callable[[Object], Object] | None = None
    """With `storage`: converts a stored object into this resource's form."""
    to_stored: Callable[[Object], Object] | None = None
    """With `storage`: converts this resource's form into a stored object."""

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> str:
        """Return the store's name for it: `pods`, `pytorchjobs.kubeflow.org`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources
