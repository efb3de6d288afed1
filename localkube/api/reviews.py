"""Self reviews: may I, what may I, who am I. They are answered and never stored."""

from collections.abc import Callable
from typing import Any

from localkube import clock, errors
from localkube.api import bodies
from localkube.api.access import AUTHENTICATED_GROUP, Target, is_admin
from localkube.api.http_messages import ApiCall, Response, json_response
from localkube.metadata import Object

AUTHORIZATION = "authorization.k8s.io"
AUTHENTICATION = "authentication.k8s.io"

REVIEW_KINDS = {
    (AUTHORIZATION, "v1", "selfsubjectaccessreviews"): "SelfSubjectAccessReview",
    (AUTHORIZATION, "v1", "selfsubjectrulesreviews"): "SelfSubjectRulesReview",
    (AUTHENTICATION, "v1", "selfsubjectreviews"): "SelfSubjectReview",
}
"""Kind by group, version and plural."""

PUBLIC_URLS = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
DISCOVERY_URLS = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *PUBLIC_URLS]


class ReviewHandler:
    """Answers the creation of a review."""

    def __init__(self, reader: bodies.BodyReader) -> None:
        self._body_reader = reader

    def is_review(self, target: Target) -> bool:
        return (target.group, target.version, target.plural) in REVIEW_KINDS

    async def create(self, call: ApiCall, target: Target) -> Response:
        """Answer a review.

        Raises ApiError: 400 for a body that is no such review, 405 for anything but a POST to the
        collection, 422.
        """
        if call.method != "POST" or target.name or target.namespace is not None:
            raise errors.method_not_allowed_error()
        kind = REVIEW_KINDS[target.group, target.version, target.plural]
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
            "SelfSubjectAccessReview": _review_access,
            "SelfSubjectRulesReview": _review_rules,
            "SelfSubjectReview": _review_identity,
        }
        head = {"kind": kind, "apiVersion": f"{target.group}/{target.version}"}
        return json_response(head | answers[kind](call, review.get("spec") or {}), 201)


def _review_access(call: ApiCall, spec: Object) -> Object:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (path is None):
        message = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        cause = errors.invalid_cause("spec.resourceAttributes", "null", message)
        raise errors.invalid_error(AUTHORIZATION, "SelfSubjectAccessReview", "", [cause])
    status: Object = {"allowed": is_admin(call)}
    if is_admin(call):
        status["reason"] = "the owner of this cluster may do everything"
    return {"metadata": {}, "spec": spec, "status": status}


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
    user = {"username": call.user, "uid": call.user, "groups": list(call.groups)}
    return {"metadata": {"creationTimestamp": clock.format_time()}, "status": {"userInfo": user}}
