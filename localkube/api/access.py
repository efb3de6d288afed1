"""Who asks, and may they? One token, one administrator; everybody else is anonymous, and whom the
administrator plays has no rights.
"""

import hmac
from dataclasses import dataclass

from localkube import errors
from localkube.api.http_messages import ApiCall
from localkube.errors import ApiError

ADMIN_USER = "localkube-admin"
MASTERS_GROUP = "system:masters"
AUTHENTICATED_GROUP = "system:authenticated"
ANONYMOUS_USER = "system:anonymous"
UNAUTHENTICATED_GROUP = "system:unauthenticated"

PUBLIC_PATHS = ("version", "healthz", "livez", "readyz")
"""What a real server's default roles let anybody read (ClusterRole system:public-info-viewer)."""
DISCOVERY_PATHS = ("api", "apis", "openapi", *PUBLIC_PATHS)
"""What they let every authenticated user read (ClusterRole system:discovery)."""
SELF_REVIEWS = ("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews")


@dataclass(frozen=True, slots=True)
class Target:
    """What a path below /api or /apis names; `namespace` is None when the path has none, `name` and
    `subresource` are "" then.
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
    scheme, _, given = credentials.partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(
        given.strip().encode(), token.encode()
    ):
        raise errors.unauthorized_error()
    call.user, call.groups = ADMIN_USER, (MASTERS_GROUP, AUTHENTICATED_GROUP)
    played = call.headers.get("impersonate-user")
    if played:
        groups = tuple(
            group for group in call.headers.get("impersonate-group", "").split(",") if group
        )
        call.user, call.groups = played, (*groups, AUTHENTICATED_GROUP)


def is_admin(call: ApiCall) -> bool:
    return MASTERS_GROUP in call.groups


def authorize(call: ApiCall, verb: str, target: Target | None) -> None:
    """Raises ApiError 403, worded as RBAC words it, unless the caller may do this. `target` is None
    for a path that is no resource.
    """
    if is_admin(call):
        return
    known = AUTHENTICATED_GROUP in call.groups
    if target is None:
        first = call.parts[0] if call.parts else ""
        if call.method in ("GET", "HEAD") and first in (DISCOVERY_PATHS if known else PUBLIC_PATHS):
            return
        raise ApiError(
            403,
            "Forbidden",
            f'forbidden: User "{call.user}" cannot {call.method.lower()} path "{call.path}"',
            {},
        )
    if known and verb == "create" and target.plural in SELF_REVIEWS:
        return
    what = target.plural + (f"/{target.subresource}" if target.subresource else "")
    where = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
    why = (
        f'User "{call.user}" cannot {verb} resource "{what}" in API group "{target.group}" {where}'
    )
    raise errors.forbidden_error(target.group, target.plural, target.name, why)
