"""Reviews: who may do what, and whose a token is. They are answered and never stored."""

from collections.abc import Callable
from typing import Any

from localkube import clock, errors
from localkube.api import bodies
from localkube.api.access import (
    ADMIN_GROUPS,
    ADMIN_USER,
    AUTHENTICATED_GROUP,
    MASTERS_GROUP,
    Target,
    is_admin,
    is_token,
)
from localkube.api.http_messages import ApiCall, Response, json_response
from localkube.errors import Cause
from localkube.metadata import Object

AUTHORIZATION = "authorization.k8s.io"
AUTHENTICATION = "authentication.k8s.io"

REVIEW_KINDS = {
    (AUTHORIZATION, "v1", "selfsubjectaccessreviews"): "SelfSubjectAccessReview",
    (AUTHORIZATION, "v1", "selfsubjectrulesreviews"): "SelfSubjectRulesReview",
    (AUTHORIZATION, "v1", "subjectaccessreviews"): "SubjectAccessReview",
    (AUTHORIZATION, "v1", "localsubjectaccessreviews"): "LocalSubjectAccessReview",
    (AUTHENTICATION, "v1", "selfsubjectreviews"): "SelfSubjectReview",
    (AUTHENTICATION, "v1", "tokenreviews"): "TokenReview",
}
"""Kind by group, version and plural."""

NAMESPACED_KINDS = ("LocalSubjectAccessReview",)

PUBLIC_URLS = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
DISCOVERY_URLS = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *PUBLIC_URLS]


class ReviewHandler:
    """Answers the creation of a review."""

    def __init__(self, reader: bodies.BodyReader, token: str) -> None:
        self._body_reader = reader
        self._token = token

    def is_review(self, target: Target) -> bool:
        return (target.group, target.version, target.plural) in REVIEW_KINDS

    async def create(self, call: ApiCall, target: Target) -> Response:
        """Answer a review.

        Raises ApiError: 400 for a body that is no such review, 405 for anything but a POST to the
        collection, 422.
        """
        kind = REVIEW_KINDS[target.group, target.version, target.plural]
        is_namespaced = target.namespace is not None
        if call.method != "POST" or target.name or is_namespaced != (kind in NAMESPACED_KINDS):
            raise errors.method_not_allowed_error()
        raw = await self._body_reader.read_body(call)
        review = await bodies.decode_body(raw, bodies.get_media_type(call), kind)
        if (
            not isinstance(review, dict)
            or review.get("kind", kind) != kind
            or not isinstance(review.get("spec") or {}, dict)
        ):
            raise errors.bad_request_error(
                f"the object provided is unrecognized (must be of type {kind}): "
                f"({bodies.summarize_body(raw)})"
            )
        answers: dict[str, Callable[[ApiCall, Object], Object]] = {
            "SelfSubjectAccessReview": _review_own_access,
            "SelfSubjectRulesReview": _review_rules,
            "SubjectAccessReview": _review_access,
            "LocalSubjectAccessReview": lambda _, spec: _review_local_access(spec, target),
            "SelfSubjectReview": _review_identity,
            "TokenReview": lambda _, spec: self._review_token(spec),
        }
        head = {"kind": kind, "apiVersion": f"{target.group}/{target.version}"}
        return json_response(head | answers[kind](call, review.get("spec") or {}), 201)

    def _review_token(self, spec: Object) -> Object:
        """Say whose a token is (apiserver `registry/authentication/tokenreview`)."""
        token = spec.get("token") or ""
        if not isinstance(token, str) or not token:
            raise errors.bad_request_error("token is required for TokenReview in authentication")
        status: Object = {"user": {}, "error": "invalid bearer token"}
        if is_token(token, self._token):
            user = {"username": ADMIN_USER, "uid": ADMIN_USER, "groups": list(ADMIN_GROUPS)}
            status = {"authenticated": True, "user": user}
        return {"metadata": {}, "spec": spec, "status": status}


def _review_own_access(call: ApiCall, spec: Object) -> Object:
    _check_attributes("SelfSubjectAccessReview", spec, [])
    return _build_access_answer(spec, {}, is_allowed=is_admin(call))


def _review_access(call: ApiCall, spec: Object) -> Object:
    _check_attributes("SubjectAccessReview", spec, _find_subject_problems(spec))
    return _build_access_answer(spec, {}, is_allowed=_is_admin_subject(spec))


def _review_local_access(spec: Object, target: Target) -> Object:
    causes = _find_subject_problems(spec)
    resource = spec.get("resourceAttributes")
    namespace = resource.get("namespace") if isinstance(resource, dict) else None
    if resource is not None and namespace != target.namespace:
        field = "spec.resourceAttributes.namespace"
        value = f'"{str(namespace or "")[:64]}"'
        causes.append(errors.invalid_cause(field, value, "must match metadata.namespace"))
    _check_attributes("LocalSubjectAccessReview", spec, causes)
    metadata = {"namespace": target.namespace}
    return _build_access_answer(spec, metadata, is_allowed=_is_admin_subject(spec))


def _find_subject_problems(spec: Object) -> list[Cause]:
    if spec.get("user") or spec.get("groups"):
        return []
    message = "at least one of user or group must be specified"
    return [errors.invalid_cause("spec.user", '""', message)]


def _is_admin_subject(spec: Object) -> bool:
    groups = spec.get("groups")
    return isinstance(groups, list) and MASTERS_GROUP in groups


def _check_attributes(kind: str, spec: Object, causes: list[Cause]) -> None:
    """Check that a review is about one thing, and has no other `causes`. Raises ApiError 422."""
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (path is None):
        message = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes = [errors.invalid_cause("spec.resourceAttributes", "null", message), *causes]
    if causes:
        raise errors.invalid_error(AUTHORIZATION, kind, "", causes)


def _build_access_answer(spec: Object, metadata: Object, *, is_allowed: bool) -> Object:
    status: Object = {"allowed": is_allowed}
    if is_allowed:
        status["reason"] = "the owner of this cluster may do everything"
    return {"metadata": metadata, "spec": spec, "status": status}


def _review_rules(call: ApiCall, spec: Object) -> Object:
    if not spec.get("namespace"):
        raise errors.bad_request_error("no namespace on request")
    return {"metadata": {}, "spec": {}, "status": _build_rules_status(call)}


def _build_rules_status(call: ApiCall) -> Object:
    resource_rules: list[dict[str, Any]] = []
    path_rules: list[dict[str, Any]] = []
    if AUTHENTICATED_GROUP in call.groups:
        resource_rules = [
            {
                "verbs": ["create"],
                "apiGroups": [AUTHORIZATION],
                "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            },
            {
                "verbs": ["create"],
                "apiGroups": [AUTHENTICATION],
                "resources": ["selfsubjectreviews"],
            },
        ]
        path_rules = [{"verbs": ["get"], "nonResourceURLs": DISCOVERY_URLS}]
    if is_admin(call):
        resource_rules.append({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
        path_rules.append({"verbs": ["*"], "nonResourceURLs": ["*"]})
    return {"resourceRules": resource_rules, "nonResourceRules": path_rules, "incomplete": False}


def _review_identity(call: ApiCall, spec: Object) -> Object:
    user: Object = {"username": call.user, "groups": list(call.groups)}
    if call.user == ADMIN_USER:
        # Whom the administrator impersonates is known by name alone.
        user["uid"] = ADMIN_USER
    return {"metadata": {"creationTimestamp": clock.format_time()}, "status": {"userInfo": user}}
