"""From a method and a path to a verb on a resource. Nothing is done here; what is not served is
refused.
"""

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
    """What a path names, or None for one that is no resource's: discovery, health, nonsense."""
    if parts[:1] == ("api",) and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ("apis",) and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if "" in parts:
        return None
    namespace: str | None = None
    if (
        rest[0] == "namespaces"
        and len(rest) >= 3
        and not (len(rest) == 3 and rest[2] in NAMESPACE_SUBRESOURCES)
    ):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    return Target(group, version, rest[0], namespace, *rest[1:])


def choose_verb(call: ApiCall, target: Target) -> str:
    """The verb that RBAC would check; for a method that has none, the method in lower case."""
    verbs = NAMED_VERBS if target.name else COLLECTION_VERBS
    verb = verbs.get(call.method, call.method.lower())
    return "watch" if verb == "list" and call.query.flag("watch") else verb


def resolve_resource(target: Target) -> Resource:
    """The served resource that a target names. Raises ApiError 404 for an unknown one, or for a
    scope that it does not have.
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
    """Refuse what the resource does not do, with the code that a real server gives for it
    (control-plane facts, item 10).
    """
    if target.subresource:
        allowed = resource.subresources[target.subresource].verbs
        if verb not in allowed:
            raise errors.method_not_allowed_error()
        return
    if not target.name and method not in COLLECTION_VERBS:
        raise (
            errors.bad_request_error("name must be provided")
            if resource.custom and method in NAMED_VERBS
            else errors.method_not_allowed_error()
        )
    if verb not in resource.verbs or (verb == "watch" and method == "HEAD"):
        raise errors.method_not_allowed_error()
    if method == "POST" and target.name and not resource.custom:
        raise errors.method_not_allowed_error()
    if resource.namespaced and target.namespace is None and verb not in ("list", "watch"):
        raise errors.method_not_allowed_error()
