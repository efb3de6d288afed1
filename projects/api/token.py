"""`POST /api/v1/token`: an access token for credentials."""

from collections.abc import Mapping
from typing import Annotated, Any

from django.contrib.auth import authenticate
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from msgspec import field, structs
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import NotAllowed, UserError
from console.rest_bodies import RestBody, describe_field, parse_body
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


class TokenBody(RestBody):
    """Credentials; an older grant calls client id and secret app id and secret."""

    grant_type: Annotated[str, describe_field(enum=[*_PROGRAM_GRANTS, "password"])] = ""
    client_id: Annotated[
        str, describe_field("Of a service account; app_token also calls it AppId.")
    ] = field(default="", name="clientID")
    client_secret: Annotated[
        str, describe_field("Its secret; app_token also calls it AppSecret.")
    ] = ""
    username: str = ""
    password: str = ""


_REST_NAMES = {each.encode_name.lower(): each.encode_name for each in structs.fields(TokenBody)}
_OLDER_NAMES = {"appid": "clientID", "appsecret": "clientSecret"}


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
        request=schemas.body_content(TokenBody, "grantType"),
        responses={200: schemas.json_response(schemas.TOKEN)}
        | schemas.error_responses(400, 403, 429),
        auth=[],
        tags=["token"],
    )
    def post(self, request: Request) -> Response:
        credentials = _parse_credentials(request.data)
        grant = credentials.grant_type
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
            claimed = credentials.username if grant == "password" else credentials.client_id
            audit.record_failed_sign_in(claimed, f"For a token: {refusal.text}")
            raise
        user.personal_key = key
        token_addresses.record_token_use(user)
        token, seconds = tokens.issue_token(user, key)
        return secret_response(
            {"accessToken": token, "tokenType": "Bearer", "expiresIn": seconds}, 200
        )


def _parse_credentials(data: Any) -> TokenBody:
    """Parse a body by its names without regard to case; what is no text says nothing."""
    if not isinstance(data, Mapping):
        raise UserError("The body must be a JSON object with grantType and credentials.")
    texts = {str(name).lower(): text for name, text in data.items() if isinstance(text, str)}
    given = {_OLDER_NAMES[name]: text for name, text in texts.items() if name in _OLDER_NAMES}
    given |= {
        _REST_NAMES[name]: text for name, text in texts.items() if text and name in _REST_NAMES
    }
    return parse_body(TokenBody, given)


def _require_texts(**values: str) -> None:
    for label, value in values.items():
        if not value:
            raise UserError(f"{label} must be given, as a text.", field=label)


def _authenticate_program(
    request: Request, credentials: TokenBody
) -> tuple[User, PersonalKey | None]:
    """Authenticate by the client id and secret of a service account or an access key."""
    client_id, secret = credentials.client_id, credentials.client_secret
    _require_texts(clientID=client_id, clientSecret=secret)
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


def _authenticate_person(request: Request, credentials: TokenBody) -> User:
    username, password = credentials.username, credentials.password
    _require_texts(username=username, password=password)
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
