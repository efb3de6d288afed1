"""Permissions, and the predefined roles that have them.

The entities and the roles' names follow Run:ai's. Which role has which permission is our choice:
Run:ai publishes theirs as a picture only.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache


class Entity(StrEnum):
    """A kind of object that a permission is about."""

    WORKLOADS = "workloads"
    ENVIRONMENTS = "environments"
    COMPUTE = "compute-resources"
    DATA_SOURCES = "data-sources"
    CREDENTIALS = "credentials"
    TEMPLATES = "templates"
    POLICIES = "policies"
    PROJECTS = "projects"
    DEPARTMENTS = "departments"
    CLUSTERS = "clusters"
    NODE_POOLS = "node-pools"
    ACCESS_RULES = "access-rules"
    SERVICE_ACCOUNTS = "service-accounts"
    OVERVIEW = "overview"
    USERS = "users"
    ROLES = "roles"
    AUDIT = "audit"
    SETTINGS = "settings"

    @property
    def label(self) -> str:
        """Return the entity's name for a sentence."""
        return {"overview": "the overview", "audit": "the audit log"}.get(
            self.value, self.value.replace("-", " ")
        )


class Verb(StrEnum):
    """What is done to an entity."""

    VIEW = "view"
    CREATE = "create"
    EDIT = "edit"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, order=True)
class Permission:
    """One verb on one entity, written "workloads:create"."""

    entity: Entity
    verb: Verb

    def __str__(self) -> str:
        return f"{self.entity}:{self.verb}"

    @property
    def words(self) -> str:
        """Return the permission as it stands after "to" in a sentence."""
        return f"{self.verb} {self.entity.label}"

    @classmethod
    def parse(cls, text: str) -> "Permission":
        """Parse "entity:verb". Raises ValueError."""
        entity, _, verb = text.partition(":")
        return cls(Entity(entity), Verb(verb))


ASSETS = (
    Entity.ENVIRONMENTS,
    Entity.COMPUTE,
    Entity.DATA_SOURCES,
    Entity.CREDENTIALS,
    Entity.TEMPLATES,
)
TENANT_ONLY = frozenset({Entity.USERS, Entity.ROLES, Entity.AUDIT, Entity.SETTINGS})
"""Entities that exist once in an installation. Narrower rules permit nothing of them."""
VIEW_ONLY = frozenset({Entity.OVERVIEW, Entity.AUDIT})
"""Entities that nobody creates or changes."""


def list_permissions_of(entity: Entity) -> tuple[Permission, ...]:
    """Return every permission that exists for an entity."""
    return tuple(
        Permission(entity, verb) for verb in Verb if verb is Verb.VIEW or entity not in VIEW_ONLY
    )


EVERYTHING = frozenset(
    permission for entity in Entity for permission in list_permissions_of(entity)
)


def add_implied(permissions: Iterable[Permission]) -> frozenset[Permission]:
    """Return the permissions with those that they need.

    Every verb needs viewing, launching needs viewing assets and clusters, and everything needs
    viewing projects.
    """
    implied = set(permissions)
    if Permission(Entity.WORKLOADS, Verb.CREATE) in implied:
        implied |= {Permission(entity, Verb.VIEW) for entity in (*ASSETS, Entity.CLUSTERS)}
    implied |= {Permission(permission.entity, Verb.VIEW) for permission in implied}
    return frozenset(implied | {Permission(Entity.PROJECTS, Verb.VIEW)}) if implied else frozenset()


@dataclass(frozen=True, slots=True)
class Role:
    """A named set of permissions. `tenant_only` roles are given in the whole installation only."""

    key: str
    label: str
    about: str
    permissions: frozenset[Permission]
    tenant_only: bool = False

    def permits(self, permission: Permission) -> bool:
        return permission in self.permissions


def _all_permissions(*entities: Entity) -> frozenset[Permission]:
    return frozenset(
        permission for entity in entities for permission in list_permissions_of(entity)
    )


def _view_permissions(*entities: Entity) -> frozenset[Permission]:
    return frozenset(Permission(entity, Verb.VIEW) for entity in entities)


_EVERYBODYS_VIEW = _view_permissions(
    Entity.WORKLOADS,
    *ASSETS,
    Entity.POLICIES,
    Entity.PROJECTS,
    Entity.CLUSTERS,
    Entity.NODE_POOLS,
    Entity.OVERVIEW,
)
"""What everybody in a project may view."""
_WORK_ASSETS = (Entity.ENVIRONMENTS, Entity.COMPUTE, Entity.DATA_SOURCES, Entity.TEMPLATES)
_MEMBERSHIP = (Entity.ACCESS_RULES, Entity.SERVICE_ACCOUNTS)


def _make_role(
    key: str,
    label: str,
    about: str,
    permissions: frozenset[Permission],
    *,
    tenant_only: bool = False,
) -> Role:
    return Role(key, label, about, add_implied(permissions), tenant_only)


def _make_kind_administrator(entity: Entity, noun: str) -> Role:
    key, label = f"{entity.value.removesuffix('s')}-administrator", f"{noun} administrator"
    return _make_role(
        key,
        label,
        f"Manages {entity.label}, and looks at the rest.",
        _EVERYBODYS_VIEW | _all_permissions(entity),
    )


SYSTEM = "system-administrator"
DEPARTMENT = "department-administrator"
PROJECT = "project-administrator"
MANAGER = "research-manager"
L1 = "l1-researcher"
L2 = "l2-researcher"
VIEWER = "viewer"

ROLES: Mapping[str, Role] = {
    role.key: role
    for role in (
        _make_role(
            SYSTEM, "System administrator", "May do everything.", EVERYTHING, tenant_only=True
        ),
        _make_role(
            DEPARTMENT,
            "Department administrator",
            (
                "Manages projects with their quotas, people, assets and workloads; changes the "
                "department."
            ),
            _EVERYBODYS_VIEW
            | _all_permissions(
                Entity.WORKLOADS, *ASSETS, Entity.POLICIES, Entity.PROJECTS, *_MEMBERSHIP
            )
            | {
                Permission(Entity.DEPARTMENTS, Verb.VIEW),
                Permission(Entity.DEPARTMENTS, Verb.EDIT),
            },
        ),
        _make_role(
            PROJECT,
            "Project administrator",
            (
                "Manages a project's people, service accounts, assets, policies and workloads, "
                "but not its quota."
            ),
            _EVERYBODYS_VIEW
            | _all_permissions(Entity.WORKLOADS, *ASSETS, Entity.POLICIES, *_MEMBERSHIP),
        ),
        _make_role(
            MANAGER,
            "Research manager",
            "Manages projects and assets, and looks at workloads.",
            _EVERYBODYS_VIEW | _all_permissions(Entity.PROJECTS, *_WORK_ASSETS),
        ),
        _make_role(
            L1,
            "L1 researcher",
            (
                "Launches workloads, and makes environments, compute resources, data sources and "
                "templates."
            ),
            _EVERYBODYS_VIEW | _all_permissions(Entity.WORKLOADS, *_WORK_ASSETS),
        ),
        _make_role(
            L2,
            "L2 researcher",
            "Launches workloads from the assets that there are.",
            _EVERYBODYS_VIEW | _all_permissions(Entity.WORKLOADS),
        ),
        _make_kind_administrator(Entity.ENVIRONMENTS, "Environment"),
        _make_kind_administrator(Entity.COMPUTE, "Compute resource"),
        _make_kind_administrator(Entity.DATA_SOURCES, "Data source"),
        _make_kind_administrator(Entity.CREDENTIALS, "Credential"),
        _make_kind_administrator(Entity.TEMPLATES, "Template"),
        _make_role(
            VIEWER,
            "Viewer",
            "Looks at everything in its scope, and changes nothing.",
            _EVERYBODYS_VIEW,
        ),
    )
}


@cache
def list_roles_permitting(permission: Permission) -> tuple[Role, ...]:
    """Return the predefined roles that permit it, those with the fewest permissions first."""
    return tuple(
        sorted(
            (role for role in ROLES.values() if role.permits(permission)),
            key=lambda role: len(role.permissions),
        )
    )


def parse_permissions(texts: Iterable[str]) -> frozenset[Permission]:
    """Parse stored permissions, with the implied ones.

    Unknown ones are left out: they permit nothing.
    """
    permissions = set()
    for text in texts:
        try:
            permissions.add(Permission.parse(text))
        except ValueError:
            continue
    return add_implied(permissions & EVERYTHING)
