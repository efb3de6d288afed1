"""What stands in the bodies about access, read and told: texts, whole numbers, scopes, roles. Keys
that are not known are passed over.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from console.errors import Invalid
from projects import actions
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
    Permission,
    Role,
    Verb,
)
from projects.scopes import Level, Scope, Scoped
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
"""What Run:ai's API calls our entities, where it has other words; it is taken, and ours are told.
"""
LONGEST_LIFE = 3650
TENANT_ID = 1
"""There is one."""
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
"""The number of each role of the table, which clients of Run:ai's API name roles by. They stay:
programs keep them.
"""
CUSTOM_FROM = 1000
"""Added to the row's id of a custom role."""
_ROLE_KEYS = {number: key for key, number in ROLE_IDS.items()}


class Body:
    """A JSON object. Raises Invalid, naming the key, for a value that is missing or of another
    type.
    """

    def __init__(self, data: Any) -> None:
        if not isinstance(data, Mapping):
            raise Invalid([("", "The body must be a JSON object.")])
        self._data = data

    def has(self, name: str) -> bool:
        """Whether something is said; null is as good as nothing."""
        return self._data.get(name) is not None

    def text(self, name: str, *, otherwise: str | None = None, most: int = 253) -> str:
        """Required where `otherwise` is not given."""
        value = self._data.get(name)
        if value is None and otherwise is not None:
            return otherwise
        if not isinstance(value, str) or (not value and otherwise is None) or len(value) > most:
            raise Invalid([(name, f"{name} must be a text of at most {most} characters.")])
        return value

    def texts(self, name: str) -> Sequence[str]:
        value = self._data.get(name)
        if (
            not isinstance(value, list)
            or not all(isinstance(each, str) for each in value)
            or len(value) > 200
        ):
            raise Invalid([(name, f"{name} must be a list of texts.")])
        return value

    def flag(self, name: str) -> bool | None:
        value = self._data.get(name)
        if value is not None and not isinstance(value, bool):
            raise Invalid([(name, f"{name} must be true or false.")])
        return value

    def whole(self, name: str, least: int, most: int) -> int | None:
        value = self._data.get(name)
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most
        ):
            raise Invalid([(name, f"{name} must be a whole number from {least} to {most}.")])
        return value

    def role(self) -> str:
        """The key of roleId, which is a role's id or its key. Whether there is such a role is for
        others to say.
        """
        value = self._data.get("roleId")
        if (
            isinstance(value, bool)
            or not isinstance(value, int | str)
            or not 0 < len(str(value)) <= 40
        ):
            raise Invalid(
                [
                    (
                        "roleId",
                        (
                            "roleId must be the id or the key of a role; GET "
                            "/api/v1/authorization/roles lists them."
                        ),
                    )
                ]
            )
        return role_key(str(value))

    def life(self) -> datetime | None:
        """When something ends: expiresInDays from now; None is never."""
        days = self.whole("expiresInDays", 1, LONGEST_LIFE)
        return None if days is None else actions.expiry(str(days))

    def scope(self) -> Scope:
        level = self.text("scopeType")
        if level not in list(Level):
            raise Invalid([("scopeType", f"scopeType must be one of {', '.join(Level)}.")])
        try:
            return Scope.read(level if level == Level.TENANT else f"{level}:{self.text('scopeId')}")
        except ValueError:
            raise Invalid([("scopeId", f"scopeId must be the id of a {level}.")]) from None


def permissions_of(rows: Any) -> Sequence[str]:
    """The texts of permissions out of [{resourceType, actions}]. Raises Invalid."""
    wrong = Invalid(
        [
            (
                "permissions",
                (
                    "permissions must be a list of {resourceType, actions}, each with actions of "
                    "a list."
                ),
            )
        ]
    )
    if not isinstance(rows, list) or len(rows) > 100:
        raise wrong
    found = []
    for row in rows:
        if not isinstance(row, Mapping) or not isinstance(row.get("actions"), list):
            raise wrong
        for action in row["actions"][:20]:
            found.append(str(permission_of(str(row.get("resourceType", "")), str(action))))
    return found


def permission_of(entity: str, action: str) -> Permission:
    """Of a resourceType and an action, ours or Run:ai's word for it. Raises Invalid."""
    try:
        return Permission.read(f"{_ENTITIES.get(entity, entity)}:{_VERBS[action]}")
    except (KeyError, ValueError):
        raise Invalid(
            [("resourceType", f"There is no permission to {action[:40]} {entity[:40]}.")]
        ) from None


def permissions(found: frozenset[Permission]) -> list[dict[str, Any]]:
    """As [{resourceType, actions}]."""
    entities = sorted({each.entity for each in found})
    return [
        {
            "resourceType": entity.value,
            "actions": [
                word for verb, word in ACTIONS.items() if Permission(entity, verb) in found
            ],
        }
        for entity in entities
    ]


def role_id(key: str) -> int:
    """The number of a role, by its key. A role that is not in the table any more has 0."""
    name, _, number = key.partition(":")
    return CUSTOM_FROM + int(number) if name == "custom" else ROLE_IDS.get(key, 0)


def role_key(text: str) -> str:
    """The key of a role out of its key or its number; "" for what can be neither. Whether there is
    such a role is for others to say.
    """
    if _is_number(text):
        return (
            f"custom:{int(text) - CUSTOM_FROM}"
            if int(text) > CUSTOM_FROM
            else _ROLE_KEYS.get(int(text), "")
        )
    name, _, number = text.partition(":")
    return text if name != "custom" or _is_number(number) else ""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def role(found: Role) -> dict[str, Any]:
    """A role of the table."""
    return {
        "id": role_id(found.key),
        "key": found.key,
        "name": found.label,
        "description": found.about,
        "kind": "predefined",
        "custom": False,
        "permissions": permissions(found.permissions),
    }


def custom_role(found: CustomRole, permitted: frozenset[Permission]) -> dict[str, Any]:
    return {
        "id": CUSTOM_FROM + found.pk,
        "key": f"custom:{found.pk}",
        "name": found.name,
        "description": found.description,
        "kind": "custom",
        "custom": True,
        "permissions": permissions(permitted),
        "version": found.version,
        "createdBy": str(found.created_by or ""),
        "createdAt": found.created_at.isoformat(),
        "updatedAt": found.updated_at.isoformat(),
    }


def rule(found: AccessRule) -> dict[str, Any]:
    subject = found.subject
    return {
        "id": found.pk,
        "tenantId": TENANT_ID,
        "subjectType": kind_of(subject),
        "subjectId": str(subject),
        "roleId": role_id(found.role_key),
        "roleKey": found.role_key,
        "roleName": found.role_label,
        **_scope(found),
        "createdBy": str(found.created_by or ""),
        "createdAt": found.created_at.isoformat(),
        # A rule is made and taken away, and never changed.
        "updatedAt": found.created_at.isoformat(),
    }


def user(found: User) -> dict[str, Any]:
    return {
        "id": str(found.pk),
        "username": found.username,
        "email": found.email,
        "isLocal": not getattr(found, "is_sso", False),
        "isActive": found.is_active,
        "mustChangePassword": found.must_change_password,
        "lastLogin": _moment(found.last_login),
        "createdAt": found.date_joined.isoformat(),
    }


def account(found: ServiceAccount) -> dict[str, Any]:
    return {
        "id": str(found.pk),
        "name": found.name,
        "clientId": found.client_id,
        "enabled": True,
        "tenantId": str(TENANT_ID),
        **_scope(found),
        "expiresAt": _moment(found.expires_at),
        "lastLogin": _moment(found.last_used_at),
        "createdBy": str(found.created_by or ""),
        "createdAt": found.created_at.isoformat(),
    }


def key(found: PersonalKey) -> dict[str, Any]:
    return {
        "id": str(found.pk),
        "name": found.name,
        "clientId": found.client_id,
        "expiresAt": _moment(found.expires_at),
        "lastLogin": _moment(found.last_used_at),
        "createdAt": found.created_at.isoformat(),
    }


def anybodys_key(found: PersonalKey) -> dict[str, Any]:
    """A key as an administrator sees it."""
    return key(found) | {"createdBy": found.user.username}


def _scope(row: Scoped) -> dict[str, str]:
    scope = row.scope
    return {
        "scopeType": scope.level.value,
        "scopeId": "" if scope.id is None else str(scope.id),
        "scopeName": row.scope_words,
    }


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


MOMENT_OR_NULL = {"type": ["string", "null"], "format": "date-time"}
PERMISSIONS = schemas.array(
    schemas.obj(
        ["resourceType", "actions"],
        resourceType=schemas.TEXT,
        actions=schemas.array(schemas.words(*ACTIONS.values())),
    )
)
ROLE = schemas.obj(
    ["id", "name", "permissions"],
    id=schemas.WHOLE,
    key=schemas.said(schemas.TEXT, "The same in words, taken wherever an id is: viewer, custom:3."),
    name=schemas.TEXT,
    description=schemas.TEXT,
    kind=schemas.words("predefined", "custom"),
    custom=schemas.FLAG,
    permissions=PERMISSIONS,
    version=schemas.said(
        schemas.WHOLE,
        "Of a custom role: send it with a change, and it is refused where somebody else was first.",
    ),
    createdBy=schemas.TEXT,
    createdAt=schemas.MOMENT,
    updatedAt=schemas.MOMENT,
)
ROLE_REQUEST = schemas.obj(
    ["name", "permissions"],
    name=schemas.TEXT,
    description=schemas.TEXT,
    permissions=PERMISSIONS,
    version=schemas.WHOLE,
)
_SCOPE = {
    "scopeType": schemas.words(*Level),
    "scopeId": schemas.said(
        schemas.TEXT, "The id of the cluster, department or project; nothing for the tenant."
    ),
}
_ROLE_ID = schemas.said({"type": ["integer", "string"]}, "A role's id, or its key.")
RULE_REQUEST = schemas.obj(
    ["subjectId", "subjectType", "roleId", "scopeType"],
    subjectType=schemas.words("user", "group", "service-account", "app"),
    subjectId=schemas.said(
        schemas.TEXT, "A user's or a group's name, a service account's name or client id."
    ),
    roleId=_ROLE_ID,
    **_SCOPE,
)
RULE = schemas.obj(
    ["id", "subjectType", "subjectId", "roleId", "scopeType"],
    id=schemas.WHOLE,
    tenantId=schemas.WHOLE,
    subjectType=schemas.words("user", "group", "service-account"),
    subjectId=schemas.TEXT,
    roleId=schemas.WHOLE,
    roleKey=schemas.TEXT,
    roleName=schemas.TEXT,
    **_SCOPE,
    scopeName=schemas.TEXT,
    createdBy=schemas.TEXT,
    createdAt=schemas.MOMENT,
    updatedAt=schemas.MOMENT,
)
USER = schemas.obj(
    ["id", "username"],
    id=schemas.TEXT,
    username=schemas.TEXT,
    email=schemas.TEXT,
    isLocal=schemas.FLAG,
    isActive=schemas.FLAG,
    mustChangePassword=schemas.FLAG,
    lastLogin=MOMENT_OR_NULL,
    createdAt=schemas.MOMENT,
    temporaryPassword=schemas.said(
        schemas.TEXT, "In the answer that makes it, and never again; tempPassword is the same."
    ),
    tempPassword=schemas.TEXT,
)
_LIFE = schemas.said(
    schemas.WHOLE | {"minimum": 1, "maximum": LONGEST_LIFE},
    "After how many days it ends; never where it is not given.",
)
_SECRET = schemas.said(schemas.TEXT, "In the answer that makes it, and never again.")
ACCOUNT_REQUEST = schemas.obj(
    ["name"],
    name=schemas.TEXT,
    **_SCOPE,
    roleId=schemas.said(_ROLE_ID, "Its first access rule, in its scope."),
    expiresInDays=_LIFE,
)
ACCOUNT = schemas.obj(
    ["id", "name", "clientId"],
    id=schemas.TEXT,
    name=schemas.TEXT,
    clientId=schemas.TEXT,
    clientSecret=_SECRET,
    enabled=schemas.FLAG,
    tenantId=schemas.TEXT,
    **_SCOPE,
    scopeName=schemas.TEXT,
    expiresAt=MOMENT_OR_NULL,
    lastLogin=MOMENT_OR_NULL,
    createdBy=schemas.TEXT,
    createdAt=schemas.MOMENT,
)
KEY_REQUEST = schemas.obj(["name"], name=schemas.TEXT, expiresInDays=_LIFE)
KEY = schemas.obj(
    ["id", "name", "clientId"],
    id=schemas.TEXT,
    name=schemas.TEXT,
    clientId=schemas.TEXT,
    clientSecret=_SECRET,
    expiresAt=MOMENT_OR_NULL,
    lastLogin=MOMENT_OR_NULL,
    createdAt=schemas.MOMENT,
)
ANYBODYS_KEY = schemas.obj(
    ["id", "name", "clientId", "createdBy"],
    id=schemas.TEXT,
    name=schemas.TEXT,
    clientId=schemas.TEXT,
    createdBy=schemas.said(schemas.TEXT, "The user's name."),
    expiresAt=MOMENT_OR_NULL,
    lastLogin=MOMENT_OR_NULL,
    createdAt=schemas.MOMENT,
)
