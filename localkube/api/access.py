"""Authentication and authorization: one token, one administrator.

Everybody else is anonymous, and a user whom the administrator impersonates has no rights.
"""

import hmac
from dataclasses import dataclass

from localkube import errors
from localkube.api.http_messages import ApiCall
from localkube.errors import ApiError

ADMIN_USER = "localkube-admin"
MASTERS_GROUP = "system:masters"
AUTHENTICATED_GROUP = "system:authenticated"
ADMIN_GROUPS = (MASTERS_GROUP, AUTHENTICATED_GROUP)
ANONYMOUS_USER = "system:anonymous"
UNAUTHENTICATED_GROUP = "system:unauthenticated"

PUBLIC_PATHS = ("version", "healthz", "livez", "readyz")
"""Paths that a real server's default roles let anybody read (ClusterRole
system:public-info-viewer).
"""
DISCOVERY_PATHS = ("api", "apis", "openapi", *PUBLIC_PATHS)
"""Paths that they let every authenticated user read (ClusterRole system:discovery)."""
SELF_REVIEWS = ("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews")


@dataclass(frozen=True, slots=True)
class Target:
    """What a path below /api or /apis names.

    `namespace` is None when the path has none; `name` and `subresource` are "" then.
    """

    group: str
    version: str
    plural: str
    namespace: str | None = None
    name: str = ""
    subresource: str = ""


def authenticate(call: ApiCall, token: str) -> None:
    """Set the caller's user and groups. Raises ApiError 401 for credentials that are not ours."""
    credentials = call.headers.get("authorization", "")
    if not credentials:
        call.user, call.groups = ANONYMOUS_USER, (UNAUTHENTICATED_GROUP,)
        return
    scheme, _, given_token = credentials.partition(" ")
    if scheme.lower() != "bearer" or not is_token(given_token.strip(), token):
        raise errors.unauthorized_error()
    call.user, call.groups = ADMIN_USER, ADMIN_GROUPS
    impersonated = call.headers.get("impersonate-user")
    if impersonated:
        groups = tuple(
            group for group in call.headers.get("impersonate-group", "").split(",") if group
        )
        call.user, call.groups = impersonated, (*groups, AUTHENTICATED_GROUP)


def is_token(given_token: str, token: str) -> bool:
    """Return whether a given token is the one of this cluster."""
    # compare_digest takes the same time wherever the tokens differ, so it gives no hint.
    return hmac.compare_digest(given_token.encode(), token.encode())


def is_admin(call: ApiCall) -> bool:
    return MASTERS_GROUP in call.groups


def authorize(call: ApiCall, verb: str, target: Target | None) -> None:
    """Check that the caller may do this. Raises ApiError 403, worded as RBAC words it.

    `target` is None for a path that is no resource.
    """
    if is_admin(call):
        return
    is_authenticated = AUTHENTICATED_GROUP in call.groups
    if target is None:
        first = call.parts[0] if call.parts else ""
        if call.method in ("GET", "HEAD") and first in (
            DISCOVERY_PATHS if is_authenticated else PUBLIC_PATHS
        ):
            return
        raise ApiError(
            403,
            "Forbidden",
            f'forbidden: User "{call.user}" cannot {call.method.lower()} path "{call.path}"',
            {},
        )
    if is_authenticated and verb == "create" and target.plural in SELF_REVIEWS:
        return
    resource_name = target.plural + (f"/{target.subresource}" if target.subresource else "")
    scope = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
    why = (
        f'User "{call.user}" cannot {verb} resource "{resource_name}" '
        f'in API group "{target.group}" {scope}'
    )
    raise errors.forbidden_error(target.group, target.plural, target.name, why)
