"""Routes: from a method and a path to a verb on a resource. What is not served is refused."""

from localkube import errors, resources
from localkube.api.access import Target
from localkube.api.http_messages import ApiCall
from localkube.resources import PODS
from localkube.resources.resource import Resource

NAMESPACE_SUBRESOURCES = ("status", "finalize")
INTERACTIVE_SUBRESOURCES = ("attach", "exec", "portforward")
NAMED_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
    "POST": "create",
}
COLLECTION_VERBS = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}


def parse_target(parts: tuple[str, ...]) -> Target | None:
    """Parse what a path names; return None when it is no resource (discovery, health, nonsense)."""
    if parts[:1] == ("api",) and len(parts) >= 3:
        group, version, remaining_parts = "", parts[1], parts[2:]
    elif parts[:1] == ("apis",) and len(parts) >= 4:
        group, version, remaining_parts = parts[1], parts[2], parts[3:]
    else:
        return None
    if "" in parts:
        return None
    namespace: str | None = None
    if (
        remaining_parts[0] == "namespaces"
        and len(remaining_parts) >= 3
        and not (len(remaining_parts) == 3 and remaining_parts[2] in NAMESPACE_SUBRESOURCES)
    ):
        namespace, remaining_parts = remaining_parts[1], remaining_parts[2:]
    if len(remaining_parts) > 3:
        return None
    return Target(group, version, remaining_parts[0], namespace, *remaining_parts[1:])


def choose_verb(call: ApiCall, target: Target) -> str:
    """Return the verb that RBAC would check.

    For a method that has none, it is the method in lower case.
    """
    verbs = NAMED_VERBS if target.name else COLLECTION_VERBS
    verb = verbs.get(call.method, call.method.lower())
    return "watch" if verb == "list" and call.query.flag("watch") else verb


def resolve_resource(target: Target) -> Resource:
    """Return the served resource that a target names.

    Raises ApiError 404 for an unknown resource, or for a scope that it does not have.
    """
    resource = resources.find_by_path(target.group, target.version, target.plural)
    if resource is None:
        raise errors.no_such_path_error()
    if target.namespace is not None and not resource.namespaced:
        raise errors.no_such_path_error()
    if target.namespace is None and resource.namespaced and target.name:
        raise errors.no_such_path_error()
    if target.subresource and target.subresource not in resource.subresources:
        if resource is PODS and target.subresource in INTERACTIVE_SUBRESOURCES:
            raise errors.not_interactive_error(target.subresource)
        raise errors.no_such_path_error()
    return resource


def check_verb(resource: Resource, target: Target, verb: str, method: str) -> None:
    """Check that the resource has the verb.

    Raises ApiError with the code of a real server (control-plane facts, item 10).
    """
    if target.subresource:
        allowed = resource.subresources[target.subresource].verbs
        if verb not in allowed:
            raise errors.method_not_allowed_error()
        return
    if not target.name and method not in COLLECTION_VERBS:
        if resource.custom and method in NAMED_VERBS:
            raise errors.bad_request_error("name must be provided")
        raise errors.method_not_allowed_error()
    if verb not in resource.verbs or (verb == "watch" and method == "HEAD"):
        raise errors.method_not_allowed_error()
    if method == "POST" and target.name and not resource.custom:
        raise errors.method_not_allowed_error()
    if resource.namespaced and target.namespace is None and verb not in ("list", "watch"):
        raise errors.method_not_allowed_error()
