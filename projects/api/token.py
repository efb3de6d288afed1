"""`POST /api/v1/token`: an access token for credentials."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth import authenticate
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import NotAllowed, UserError
from projects import actions, audit, second_factor, throttle, token_addresses, tokens
from projects.api import schemas
from projects.api.base import ApiView, secret_response
from projects.models import PersonalKey, ServiceAccount, User

WRONG_CREDENTIALS = (
    "The credentials are not right. Check them, and that the service account or user still exists."
)
_PROGRAM_GRANTS = ("app_token", "client_credentials")
_UNSUPPORTED_GRANTS = (
    "refresh_token",
    "exchange_token",
    "external_token_exchange",
    "authorization_code",
)


class TokenView(ApiView):
    """Wrong credentials are 403 and not 401: clients take a 401 for something that passes, and try
    the same secret again and again.
    """

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(
        operation_id="create_token",
        description=(
            "Credentials for an access token. The names of the keys are matched without regard to "
            "case."
        ),
        request=schemas.json_content(schemas.TOKEN_REQUEST),
        responses={200: schemas.json_response(schemas.TOKEN)}
        | schemas.error_responses(400, 403, 429),
        auth=[],
        tags=["token"],
    )
    def post(self, request: Request) -> Response:
        credentials = _lowercase_texts(request.data)
        grant = credentials.get("granttype", "")
        if grant in _UNSUPPORTED_GRANTS:
            raise UserError(
                (
                    f"The grantType {grant} is not supported by this version; "
                    f"{', '.join(_PROGRAM_GRANTS)} and password are."
                ),
                field="grantType",
            )
        if grant not in (*_PROGRAM_GRANTS, "password"):
            raise UserError(
                f"grantType must be one of {', '.join(_PROGRAM_GRANTS)} and password.",
                field="grantType",
            )
        try:
            user, key = (
                _authenticate_program(request, credentials)
                if grant in _PROGRAM_GRANTS
                else (_authenticate_person(request, credentials), None)
            )
        except NotAllowed as refusal:
            claimed = credentials.get(
                "username" if grant == "password" else "clientid"
            ) or credentials.get("appid", "")
            audit.record_failed_sign_in(claimed, f"For a token: {refusal.text}")
            raise
        user.personal_key = key
        token_addresses.record_token_use(user)
        token, seconds = tokens.issue_token(user, key)
        return secret_response(
            {"accessToken": token, "tokenType": "Bearer", "expiresIn": seconds}, 200
        )


def _lowercase_texts(body: Any) -> Mapping[str, str]:
    """Return the texts of the body by their names in lower case."""
    if not isinstance(body, Mapping):
        raise UserError("The body must be a JSON object with grantType and credentials.")
    return {str(name).lower(): value for name, value in body.items() if isinstance(value, str)}


def _require_text(credentials: Mapping[str, str], label: str, *names: str) -> str:
    value = next((credentials[name] for name in names if credentials.get(name)), "")
    if not value:
        raise UserError(f"{label} must be given, as a text.", field=label)
    return value


def _authenticate_program(
    request: Request, credentials: Mapping[str, str]
) -> tuple[User, PersonalKey | None]:
    """Authenticate by the client id and secret of a service account or an access key.

    An older grant calls them app id and app secret.
    """
    client_id = _require_text(credentials, "clientID", "clientid", "appid")
    secret = _require_text(credentials, "clientSecret", "clientsecret", "appsecret")
    address = throttle.client_address(request)
    throttle.record_attempt(client_id, address, free=throttle.FREE_FOR_PROGRAM)
    model = PersonalKey if client_id.startswith(PersonalKey.PREFIX) else ServiceAccount
    credential = (
        model._default_manager.select_related("user")
        .filter(client_id=client_id, user__is_active=True)
        .first()
    )
    if credential is None or not actions.is_secret_of(credential, secret):
        raise NotAllowed(WRONG_CREDENTIALS)
    throttle.record_success(client_id, address)
    # Told only to who knows the secret.
    if credential.is_expired:
        assert credential.expires_at is not None
        what = "access key" if isinstance(credential, PersonalKey) else "service account"
        raise NotAllowed(
            f"The {what} {credential.name} expired on "
            f"{credential.expires_at:%-d %b %Y at %H:%M} UTC. Make a new one, and use its secret."
        )
    model._default_manager.filter(pk=credential.pk).update(last_used_at=timezone.now())
    return credential.user, credential if isinstance(credential, PersonalKey) else None


def _authenticate_person(request: Request, credentials: Mapping[str, str]) -> User:
    username, password = (
        _require_text(credentials, "username", "username"),
        _require_text(credentials, "password", "password"),
    )
    address = throttle.client_address(request)
    throttle.record_attempt(username, address)
    user = authenticate(request._request, username=username, password=password)
    if not isinstance(user, User) or user.is_service:
        raise NotAllowed(WRONG_CREDENTIALS)
    throttle.record_success(username, address)
    if user.must_change_password:
        raise NotAllowed(
            "This password has to be changed before it can be used here. Sign in on the page, "
            "and choose a new one."
        )
    if second_factor.is_set(user) or second_factor.is_missing(user):
        raise NotAllowed(
            "This password takes a second factor, which programs do not have. Make an access key "
            "on the account page for them."
        )
    return user
