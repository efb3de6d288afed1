"""Answers about access: how they are serialized, and described for the OpenAPI document."""

from collections.abc import Mapping
from typing import Any

from console.errors import Invalid
from console.moments import format_moment
from console.texts import parse_number
from projects.api import schemas
from projects.models import AccessRule, CustomRole, PersonalKey, ServiceAccount, User
from projects.permissions import (
    DEPARTMENT,
    L1,
    L2,
    MANAGER,
    PROJECT,
    SYSTEM,
    VIEWER,
    Entity,
    Permission,
    Role,
    Verb,
)
from projects.scopes import Level, Scoped
from projects.subjects import kind_of

ACTIONS: Mapping[Verb, str] = {
    Verb.VIEW: "read",
    Verb.CREATE: "create",
    Verb.EDIT: "update",
    Verb.DELETE: "delete",
}
"""Our verbs as Run:ai's API calls them."""
_VERBS = {words: verb for verb, words in ACTIONS.items()} | {verb.value: verb for verb in Verb}
_ENTITIES: Mapping[str, str] = {
    "department": "departments",
    "project": "projects",
    "cluster": "clusters",
    "nodes": "clusters",
    "nodepools": "node-pools",
    "access_rules": "access-rules",
    "apps": "service-accounts",
    "service-account": "service-accounts",
    "dashboards-overview": "overview",
    "events-history": "audit",
    "jobs": "workloads",
    "trainings": "workloads",
    **{
        f"{kind}-assets": "data-sources"
        for kind in ("pvc", "git", "host-path", "nfs", "s3", "cm-volume", "secret-volume")
    },
}
"""Run:ai's names of our entities, where they differ.

Both are accepted; answers have ours.
"""
TENANT_ID = 1
"""The id of the only tenant."""
ROLE_IDS: Mapping[str, int] = {
    SYSTEM: 1,
    DEPARTMENT: 2,
    PROJECT: 3,
    MANAGER: 4,
    L1: 5,
    L2: 6,
    "environment-administrator": 7,
    "compute-resource-administrator": 8,
    "data-source-administrator": 9,
    "credential-administrator": 10,
    "template-administrator": 11,
    VIEWER: 12,
}
"""The number of each predefined role, by which clients of Run:ai's API name it.

The numbers never change: programs store them.
"""
CUSTOM_ID_OFFSET = 1000
"""Added to the row's id of a custom role."""
_ROLE_KEYS = {number: key for key, number in ROLE_IDS.items()}


def parse_permission(entity: str, action: str, *, field: str = "action") -> Permission:
    """Parse a resourceType and an action, in our words or Run:ai's. `field` is that of the action.

    Raises Invalid.
    """
    problems, name = [], _ENTITIES.get(entity, entity)
    if name not in set(Entity):
        problems.append(("resourceType", f"resourceType must be one of {', '.join(Entity)}."))
    if action not in _VERBS:
        problems.append((field, f"An action must be one of {', '.join(ACTIONS.values())}."))
    if problems:
        raise Invalid(problems)
    return Permission(Entity(name), _VERBS[action])


def serialize_permissions(granted: frozenset[Permission]) -> list[dict[str, Any]]:
    """Return permissions as [{resourceType, actions}]."""
    entities = sorted({each.entity for each in granted})
    return [
        {
            "resourceType": entity.value,
            "actions": [
                word for verb, word in ACTIONS.items() if Permission(entity, verb) in granted
            ],
        }
        for entity in entities
    ]


def role_id(key: str) -> int:
    """Return the number of a role by its key; 0 for an unknown role."""
    name, _, number = key.partition(":")
    return CUSTOM_ID_OFFSET + int(number) if name == "custom" else ROLE_IDS.get(key, 0)


def parse_role_key(text: str) -> str:
    """Return the key of a role from its key or number; "" for neither.

    It does not check that there is such a role.
    """
    number = parse_number(text)
    if number is not None:
        is_custom = number > CUSTOM_ID_OFFSET
        return f"custom:{number - CUSTOM_ID_OFFSET}" if is_custom else _ROLE_KEYS.get(number, "")
    name, _, row_id = text.partition(":")
    return text if name != "custom" or parse_number(row_id) is not None else ""


def serialize_role(role: Role) -> dict[str, Any]:
    """Return a predefined role as the API answers it."""
    return {
        "id": role_id(role.key),
        "key": role.key,
        "name": role.label,
        "description": role.about,
        "kind": "predefined",
        "custom": False,
        "permissions": serialize_permissions(role.permissions),
    }


def serialize_custom_role(role: CustomRole, permitted: frozenset[Permission]) -> dict[str, Any]:
    return {
        "id": CUSTOM_ID_OFFSET + role.pk,
        "key": f"custom:{role.pk}",
        "name": role.name,
        "description": role.description,
        "kind": "custom",
        "custom": True,
        "permissions": serialize_permissions(permitted),
        "version": role.version,
        "createdBy": str(role.created_by or ""),
        "createdAt": format_moment(role.created_at),
        "updatedAt": format_moment(role.updated_at),
    }


def serialize_rule(rule: AccessRule) -> dict[str, Any]:
    subject = rule.subject
    return {
        "id": rule.pk,
        "tenantId": TENANT_ID,
        "subjectType": kind_of(subject),
        "subjectId": str(subject),
        "roleId": role_id(rule.role_key),
        "roleKey": rule.role_key,
        "roleName": rule.role_label,
        **_serialize_scope(rule),
        "createdBy": str(rule.created_by or ""),
        "createdAt": format_moment(rule.created_at),
        # A rule is made and taken away, and never changed.
        "updatedAt": format_moment(rule.created_at),
    }


def serialize_user(user: User) -> dict[str, Any]:
    return {
        "id": str(user.pk),
        "username": user.username,
        "email": user.email,
        "isLocal": not getattr(user, "is_sso", False),
        "isActive": user.is_active,
        "mustChangePassword": user.must_change_password,
        "lastLogin": format_moment(user.last_login),
        "createdAt": format_moment(user.date_joined),
    }


def serialize_account(account: ServiceAccount) -> dict[str, Any]:
    return {
        "id": str(account.pk),
        "name": account.name,
        "clientId": account.client_id,
        "enabled": account.is_enabled,
        "tenantId": str(TENANT_ID),
        **_serialize_scope(account),
        "expiresAt": format_moment(account.expires_at),
        "lastLogin": format_moment(account.last_used_at),
        "createdBy": str(account.created_by or ""),
        "createdAt": format_moment(account.created_at),
    }


def serialize_key(key: PersonalKey) -> dict[str, Any]:
    return {
        "id": str(key.pk),
        "name": key.name,
        "clientId": key.client_id,
        "expiresAt": format_moment(key.expires_at),
        "lastLogin": format_moment(key.last_used_at),
        "createdAt": format_moment(key.created_at),
    }


def serialize_anybodys_key(key: PersonalKey) -> dict[str, Any]:
    """Return a key as an administrator sees it."""
    return serialize_key(key) | {"createdBy": key.user.username}


def _serialize_scope(row: Scoped) -> dict[str, str]:
    scope = row.scope
    return {
        "scopeType": scope.level.value,
        "scopeId": "" if scope.id is None else str(scope.id),
        "scopeName": row.scope_words,
    }


MOMENT_OR_NULL = {"type": ["string", "null"], "format": "date-time"}
PERMISSIONS = schemas.array_schema(
    schemas.object_schema(
        ["resourceType", "actions"],
        resourceType=schemas.TEXT,
        actions=schemas.array_schema(schemas.enum_schema(*ACTIONS.values())),
    )
)
ROLE = schemas.object_schema(
    ["id", "name", "permissions"],
    id=schemas.INTEGER,
    key=schemas.describe_schema(
        schemas.TEXT, "The same in words, taken wherever an id is: viewer, custom:3."
    ),
    name=schemas.TEXT,
    description=schemas.TEXT,
    kind=schemas.enum_schema("predefined", "custom"),
    custom=schemas.BOOLEAN,
    permissions=PERMISSIONS,
    version=schemas.describe_schema(
        schemas.INTEGER,
        "Of a custom role: send it with a change, and it is refused where somebody else was first.",
    ),
    createdBy=schemas.TEXT,
    createdAt=schemas.MOMENT,
    updatedAt=schemas.MOMENT,
)
_SCOPE = {
    "scopeType": schemas.enum_schema(*Level),
    "scopeId": schemas.describe_schema(
        schemas.TEXT, "The id of the cluster, department or project; nothing for the tenant."
    ),
}
RULE = schemas.object_schema(
    ["id", "subjectType", "subjectId", "roleId", "scopeType"],
    id=schemas.INTEGER,
    tenantId=schemas.INTEGER,
    subjectType=schemas.enum_schema("user", "group", "service-account"),
    subjectId=schemas.TEXT,
    roleId=schemas.INTEGER,
    roleKey=schemas.TEXT,
    roleName=schemas.TEXT,
    **_SCOPE,
    scopeName=schemas.TEXT,
    createdBy=schemas.TEXT,
    createdAt=schemas.MOMENT,
    updatedAt=schemas.MOMENT,
)
USER = schemas.object_schema(
    ["id", "username"],
    id=schemas.TEXT,
    username=schemas.TEXT,
    email=schemas.TEXT,
    isLocal=schemas.BOOLEAN,
    isActive=schemas.BOOLEAN,
    mustChangePassword=schemas.BOOLEAN,
    lastLogin=MOMENT_OR_NULL,
    createdAt=schemas.MOMENT,
    temporaryPassword=schemas.describe_schema(
        schemas.TEXT, "In the answer that makes it, and never again; tempPassword is the same."
    ),
    tempPassword=schemas.TEXT,
)
_SECRET = schemas.describe_schema(schemas.TEXT, "In the answer that makes it, and never again.")
ACCOUNT = schemas.object_schema(
    ["id", "name", "clientId"],
    id=schemas.TEXT,
    name=schemas.TEXT,
    clientId=schemas.TEXT,
    clientSecret=_SECRET,
    enabled=schemas.BOOLEAN,
    tenantId=schemas.TEXT,
    **_SCOPE,
    scopeName=schemas.TEXT,
    expiresAt=MOMENT_OR_NULL,
    lastLogin=MOMENT_OR_NULL,
    createdBy=schemas.TEXT,
    createdAt=schemas.MOMENT,
)
KEY = schemas.object_schema(
    ["id", "name", "clientId"],
    id=schemas.TEXT,
    name=schemas.TEXT,
    clientId=schemas.TEXT,
    clientSecret=_SECRET,
    expiresAt=MOMENT_OR_NULL,
    lastLogin=MOMENT_OR_NULL,
    createdAt=schemas.MOMENT,
)
ANYBODYS_KEY = schemas.object_schema(
    ["id", "name", "clientId", "createdBy"],
    id=schemas.TEXT,
    name=schemas.TEXT,
    clientId=schemas.TEXT,
    createdBy=schemas.describe_schema(schemas.TEXT, "The user's name."),
    expiresAt=MOMENT_OR_NULL,
    lastLogin=MOMENT_OR_NULL,
    createdAt=schemas.MOMENT,
)
