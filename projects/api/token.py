"""`POST /api/v1/token`: credentials for an access token."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth import authenticate
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import NotAllowed, UserError
from projects import actions, addresses, audit, second_factor, throttle, tokens
from projects.api import schemas
from projects.api.base import ApiView, once
from projects.models import PersonalKey, ServiceAccount, User

WRONG = (
    "The credentials are not right. Check them, and that the service account or user still exists."
)
_PROGRAM = ("app_token", "client_credentials")
_LATER = ("refresh_token", "exchange_token", "external_token_exchange", "authorization_code")


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
        request=schemas.content(schemas.TOKEN_REQUEST),
        responses={200: schemas.answer(schemas.TOKEN)} | schemas.errors(400, 403, 429),
        auth=[],
        tags=["token"],
    )
    def post(self, request: Request) -> Response:
        given = _texts(request.data)
        grant = given.get("granttype", "")
        if grant in _LATER:
            raise UserError(
                (
                    f"The grantType {grant} is not supported by this version; "
                    f"{', '.join(_PROGRAM)} and password are."
                ),
                field="grantType",
            )
        if grant not in (*_PROGRAM, "password"):
            raise UserError(
                f"grantType must be one of {', '.join(_PROGRAM)} and password.", field="grantType"
            )
        try:
            user, key = (
                _program(request, given) if grant in _PROGRAM else (_person(request, given), None)
            )
        except NotAllowed as refusal:
            claimed = given.get("username" if grant == "password" else "clientid") or given.get(
                "appid", ""
            )
            audit.sign_in_failed(claimed, f"For a token: {refusal.text}")
            raise
        user.personal_key = key
        addresses.token_used(user)
        token, seconds = tokens.issue(user, key)
        return once({"accessToken": token, "tokenType": "Bearer", "expiresIn": seconds}, 200)


def _texts(body: Any) -> Mapping[str, str]:
    """The texts of the body by their names in lower case."""
    if not isinstance(body, Mapping):
        raise UserError("The body must be a JSON object with grantType and credentials.")
    return {str(name).lower(): value for name, value in body.items() if isinstance(value, str)}


def _given(given: Mapping[str, str], shown: str, *names: str) -> str:
    value = next((given[name] for name in names if given.get(name)), "")
    if not value:
        raise UserError(f"{shown} must be given, as a text.", field=shown)
    return value


def _program(request: Request, given: Mapping[str, str]) -> tuple[User, PersonalKey | None]:
    """By client id and secret, which an older way calls app id and secret: of a service account, or
    of a person's access key.
    """
    client_id = _given(given, "clientID", "clientid", "appid")
    secret = _given(given, "clientSecret", "clientsecret", "appsecret")
    address = throttle.address_of(request)
    throttle.attempt(client_id, address, free=throttle.FREE_FOR_PROGRAM)
    model = PersonalKey if client_id.startswith(PersonalKey.PREFIX) else ServiceAccount
    found = (
        model._default_manager.select_related("user")
        .filter(client_id=client_id, user__is_active=True)
        .first()
    )
    if found is None or not actions.is_secret_of(found, secret):
        raise NotAllowed(WRONG)
    throttle.succeeded(client_id, address)
    # Told only to who knows the secret.
    if found.is_expired:
        assert found.expires_at is not None
        what = "access key" if isinstance(found, PersonalKey) else "service account"
        raise NotAllowed(
            f"The {what} {found.name} expired on {found.expires_at:%-d %b %Y at %H:%M} UTC. Make "
            "a new one, and use its secret."
        )
    model._default_manager.filter(pk=found.pk).update(last_used_at=timezone.now())
    return found.user, found if isinstance(found, PersonalKey) else None


def _person(request: Request, given: Mapping[str, str]) -> User:
    username, password = (
        _given(given, "username", "username"),
        _given(given, "password", "password"),
    )
    address = throttle.address_of(request)
    throttle.attempt(username, address)
    user = authenticate(request._request, username=username, password=password)
    if not isinstance(user, User) or user.is_service:
        raise NotAllowed(WRONG)
    throttle.succeeded(username, address)
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
