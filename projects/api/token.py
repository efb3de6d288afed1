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
from projects.api.base import ApiView, Samples, secret_response
from projects.models import PersonalKey, ServiceAccount, User

WRONG_CREDENTIALS = (
    "The credentials are not right. Check them, and that the service account or user still exists."
)
_PROGRAM_GRANTS = ("app_token", "client_credentials")
_PERSON_GRANTS = ("password", "refresh_token")
_GRANTS = (*_PROGRAM_GRANTS, *_PERSON_GRANTS)
_GRANT_WORDS = f"{', '.join(_GRANTS[:-1])} and {_GRANTS[-1]}"
REFRESH_REFUSAL = (
    "The refresh token is not valid, or not any more: it ends with its time, with a new password, "
    "and where all sessions are ended. Get a new one with the grantType password."
)
_UNSUPPORTED_GRANTS = (
    "exchange_token",
    "external_token_exchange",
    "authorization_code",
)


class TokenBody(RestBody):
    """Credentials; an older grant calls client id and secret app id and secret."""

    grant_type: Annotated[str, describe_field(enum=[*_GRANTS])] = ""
    client_id: Annotated[
        str, describe_field("Of a service account; app_token also calls it AppId.")
    ] = field(default="", name="clientID")
    client_secret: Annotated[
        str, describe_field("Its secret; app_token also calls it AppSecret.")
    ] = ""
    username: str = ""
    password: str = ""
    refresh_token: Annotated[
        str, describe_field("Of the grant refresh_token: that of an earlier answer.")
    ] = ""


_REST_NAMES = {each.encode_name.lower(): each.encode_name for each in structs.fields(TokenBody)}
_OLDER_NAMES = {"appid": "clientID", "appsecret": "clientSecret"}

_SAMPLES: Samples = {
    "POST": {
        "client_credentials": {
            "grantType": "client_credentials",
            "clientID": "sa-...",
            "clientSecret": "...",
        },
        "password": {"grantType": "password", "username": "ada", "password": "..."},
        "refresh_token": {"grantType": "refresh_token", "refreshToken": "..."},
    }
}


class TokenView(ApiView):
    """Wrong credentials are 403 and not 401: clients take a 401 for something that passes, and try
    the same secret again and again.
    """

    samples = _SAMPLES
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
                f"The grantType {grant} is not supported by this version; {_GRANT_WORDS} are.",
                field="grantType",
            )
        if grant not in _GRANTS:
            raise UserError(f"grantType must be one of {_GRANT_WORDS}.", field="grantType")
        if grant == "refresh_token":
            return _build_answer(_refresh(request, credentials), None, credentials.refresh_token)
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
        # A program has its secret, and needs no second one that is as good.
        refresh_token = tokens.issue_refresh_token(user) if grant == "password" else ""
        return _build_answer(user, key, refresh_token)


def _build_answer(user: User, key: PersonalKey | None, refresh_token: str) -> Response:
    user.personal_key = key
    token_addresses.record_token_use(user)
    token, seconds = tokens.issue_token(user, key)
    return secret_response(
        {"accessToken": token, "tokenType": "Bearer", "expiresIn": seconds}
        | ({"refreshToken": refresh_token} if refresh_token else {}),
        200,
    )


def _parse_credentials(data: Any) -> TokenBody:
    """Parse a body by its names without regard to case; what is no text says nothing."""
    if not isinstance(data, Mapping):
        raise UserError("The body must be a JSON object with grantType and credentials.")
    texts = {str(name).lower(): text for name, text in data.items() if isinstance(text, str)}
    fields = {_OLDER_NAMES[name]: text for name, text in texts.items() if name in _OLDER_NAMES}
    fields |= {
        _REST_NAMES[name]: text for name, text in texts.items() if text and name in _REST_NAMES
    }
    return parse_body(TokenBody, fields)


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
    attempt = throttle.record_attempt(
        client_id, throttle.client_address(request), free=throttle.FREE_FOR_PROGRAM
    )
    model = PersonalKey if client_id.startswith(PersonalKey.PREFIX) else ServiceAccount
    credential = (
        model._default_manager.select_related("user")
        .filter(client_id=client_id, user__is_active=True)
        .first()
    )
    if credential is None or not actions.is_secret_of(credential, secret):
        raise NotAllowed(WRONG_CREDENTIALS)
    throttle.record_success(attempt)
    # Told only to who knows the secret.
    if isinstance(credential, ServiceAccount) and not credential.is_enabled:
        raise NotAllowed(
            f"The service account {credential.name} is disabled. Whoever may edit it can enable it "
            "again."
        )
    if credential.is_expired:
        assert credential.expires_at is not None
        kind = "access key" if isinstance(credential, PersonalKey) else "service account"
        raise NotAllowed(
            f"The {kind} {credential.name} expired on "
            f"{credential.expires_at:%-d %b %Y at %H:%M} UTC. Make a new one, and use its secret."
        )
    model._default_manager.filter(pk=credential.pk).update(last_used_at=timezone.now())
    return credential.user, credential if isinstance(credential, PersonalKey) else None


def _authenticate_person(request: Request, credentials: TokenBody) -> User:
    username, password = credentials.username, credentials.password
    _require_texts(username=username, password=password)
    attempt = throttle.record_attempt(username, throttle.client_address(request))
    user = authenticate(request._request, username=username, password=password)
    if not isinstance(user, User) or user.is_service:
        raise NotAllowed(WRONG_CREDENTIALS)
    throttle.record_success(attempt)
    _require_usable_password(user)
    return user


def _refresh(request: Request, credentials: TokenBody) -> User:
    """Return the person whom a refresh token was issued to. Raises NotAllowed."""
    _require_texts(refreshToken=credentials.refresh_token)
    claims = tokens.parse_refresh_token(credentials.refresh_token)
    if claims is None:
        # Signed by nobody, so it says of nobody anything that would be worth recording.
        raise NotAllowed(REFRESH_REFUSAL)
    name, address = f"refresh {claims['sub']}", throttle.client_address(request)
    # It is signed, so it is not guessed; and many programs of a person may refresh at once.
    attempt = throttle.record_attempt(name, address, free=throttle.FREE_FOR_PROGRAM)
    user = tokens.find_refreshed_user(claims)
    try:
        if user is None:
            raise NotAllowed(REFRESH_REFUSAL)
        _require_usable_password(user)
    except NotAllowed as refusal:
        claimed = user or User.objects.filter(pk=int(claims["sub"])).first()
        audit.record_failed_sign_in(
            claimed.username if claimed else name, f"For a token: {refusal.text}", claimed
        )
        raise
    throttle.record_success(attempt)
    return user


def _require_usable_password(user: User) -> None:
    """Check that the user's password is enough for a token. Raises NotAllowed."""
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
