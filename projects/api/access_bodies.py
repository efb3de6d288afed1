"""Bodies of requests about access: users, roles, access rules, service accounts and keys."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from console.errors import Invalid
from console.rest_bodies import RestBody, describe_field, read_body
from projects import actions
from projects.api.bodies import ACTIONS, parse_permission
from projects.permissions import Entity
from projects.scopes import Level, Scope

MAX_LIFETIME_DAYS = 3650
MAX_ACTIONS = 20

Name = Annotated[str, Meta(min_length=1, max_length=253)]
RoleId = Annotated[
    int | Annotated[str, Meta(min_length=1, max_length=40)],
    describe_field(
        "A role's id, or its key.",
        problem="must be the id or the key of a role; GET /api/v1/authorization/roles lists them",
    ),
]
Lifetime = Annotated[
    int,
    Meta(
        ge=1,
        le=MAX_LIFETIME_DAYS,
        description="After how many days it ends; never where it is not given.",
    ),
]
ScopeId = Annotated[
    str,
    Meta(
        max_length=253,
        description="The id of the cluster, department or project; nothing for the tenant.",
    ),
]


class UserBody(RestBody):
    """A new user."""

    username: Annotated[
        str, Meta(max_length=150, description="Their email address where it is not given.")
    ] = ""
    email: Annotated[str, Meta(max_length=254, description="One of the two has to be given.")] = ""
    reset_password: Annotated[
        bool,
        describe_field(
            "Can only be true: a temporary password has to be changed at the first sign-in."
        ),
    ] = True
    notify: Annotated[bool, describe_field("Can only be false: Muster sends no mail.")] = False


class UserChange(RestBody):
    """What is changed of a user."""

    is_active: bool


class PermissionRow(msgspec.Struct, rename="camel"):
    """What is permitted with one kind of thing."""

    actions: Annotated[
        tuple[Any, ...], describe_field(items={"type": "string", "enum": list(ACTIONS.values())})
    ]
    resource_type: Annotated[Any, describe_field(type="string")] = ""


class RoleBody(RestBody, kw_only=True):
    """A custom role."""

    name: Annotated[str, Meta(min_length=1, max_length=63)]
    description: Annotated[str, Meta(max_length=250)] = ""
    permissions: Annotated[
        Annotated[tuple[PermissionRow, ...], Meta(max_length=100)],
        describe_field(
            problem="must be a list of {resourceType, actions}, each with actions of a list"
        ),
    ]

    def parse_permissions(self) -> Sequence[str]:
        """Return the texts of the permissions. Raises Invalid."""
        return [
            str(parse_permission(str(row.resource_type), str(action), field="actions"))
            for row in self.permissions
            for action in row.actions[:MAX_ACTIONS]
        ]


class RoleChange(RoleBody):
    """A custom role in the place of another."""

    version: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None


class RuleBody(RestBody):
    """An access rule."""

    subject_type: Annotated[Name, describe_field(enum=["user", "group", "service-account", "app"])]
    scope_type: Level
    subject_id: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=150,
            description="A user's or a group's name, a service account's name or client id.",
        ),
    ]
    role_id: RoleId
    scope_id: ScopeId = ""


class KeyBody(RestBody):
    """An access key."""

    name: Name
    expires_in_days: Lifetime | None = None

    @property
    def expires_at(self) -> datetime | None:
        """The moment at which it ends; None is never."""
        days = self.expires_in_days
        return None if days is None else actions.parse_expiry(str(days))


class AccountBody(KeyBody):
    """A service account."""

    scope_type: Level | None = None
    scope_id: ScopeId = ""
    role_id: Annotated[RoleId | None, Meta(description="Its first access rule, in its scope.")] = (
        None
    )


class AccountChange(RestBody):
    """What is changed of a service account."""

    enabled: bool


class RuleChange(RestBody):
    """What is changed of an access rule; what is not given stays.

    The subject can be repeated, as an answer has it, and not be another.
    """

    role_id: RoleId | None = None
    scope_type: Annotated[Level | None, Meta(description="With scopeId, another scope.")] = None
    scope_id: ScopeId | None = None
    subject_type: Annotated[Name | None, describe_field("As it is.")] = None
    subject_id: Annotated[
        Annotated[str, Meta(max_length=150)] | None, describe_field("As it is.")
    ] = None


class PermissionQuestion(RestBody):
    """A question for where something may be done."""

    resource_type: Annotated[Name, describe_field(enum=list(Entity))]
    action: Annotated[str, Meta(max_length=253), describe_field(enum=list(ACTIONS.values()))] = (
        "read"
    )


def parse_new_user(data: object) -> UserBody:
    """Parse the body of a new user. Raises Invalid."""
    reading = read_body(UserBody, data)
    body = reading.value
    if not (body.username or body.email) and not reading.problems:
        reading.refuse("username", "must be a text of at most 150 characters")
    if not body.reset_password:
        reading.refuse(
            "resetPassword",
            "can only be true: a temporary password has to be changed at the first sign-in",
        )
    if body.notify:
        reading.refuse(
            "notify",
            "can only be false: Muster sends no mail. The answer has the password, to be told to "
            "the user",
        )
    return reading.require_valid()


def parse_scope(level: Level | None, key: str) -> Scope:
    """Return the scope that a body names. Raises Invalid."""
    if level is None:
        raise Invalid([("scopeType", f"scopeType must be one of {', '.join(Level)}.")])
    try:
        return Scope.parse(level if level is Level.TENANT else f"{level}:{key}")
    except ValueError:
        raise Invalid([("scopeId", f"scopeId must be the id of a {level}.")]) from None
