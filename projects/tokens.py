"""Access tokens of the REST API: signed, short-lived, and bound to a password or secret.

A token ends with the password or secret that it was issued for, and a person's with their sessions
where all are ended. A refresh token gets access tokens and opens nothing itself.
"""

import hashlib
import time
from collections.abc import Mapping
from typing import Any

import jwt
from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from projects import token_addresses
from projects.models import PersonalKey, ServiceAccount, User

ALGORITHM = "HS256"
MAX_TOKEN_LENGTH = 4096
ACCESS, REFRESH = "muster.tokens.key", "muster.tokens.refresh"
"""What a token is for: each has a signing key of its own, so that none passes for the other."""
INVALID_TOKEN = (
    "The access token is not valid, or not any more. Get a new one from POST /api/v1/token."  # noqa: S105
)


def issue_token(user: User, key: PersonalKey | None = None) -> tuple[str, int]:
    """Return a token for a user and its lifetime in seconds.

    It ends no later than the personal key or the service account expires. Its claims are digits and
    hexadecimal letters only: some clients decode them with the standard base64 alphabet.
    """
    now, life = int(time.time()), settings.OPTIONS.token_seconds
    way_in = key or _find_account(user)
    if way_in is not None and way_in.expires_at is not None:
        life = max(0, min(life, int(way_in.expires_at.timestamp()) - now))
    claims = {"sub": str(user.pk), "iat": now, "exp": now + life, "bound": _fingerprint(user, key)}
    return jwt.encode(
        claims if key is None else claims | {"key": str(key.pk)}, _derive_signing_key(), ALGORITHM
    ), life


def issue_refresh_token(user: User) -> str:
    """Return a refresh token for a person; "" where the settings give none.

    It ends with the password, where all sessions are ended, and at a time that no refresh moves.
    """
    life = settings.OPTIONS.refresh_token_seconds
    if not life:
        return ""
    now = int(time.time())
    claims = {
        "sub": str(user.pk),
        "iat": now,
        "exp": now + life,
        "bound": _fingerprint_person(user),
    }
    return jwt.encode(claims, _derive_signing_key(REFRESH), ALGORITHM)


def parse_refresh_token(token: str) -> Mapping[str, Any] | None:
    """Return the claims of a refresh token that is ours and not over; None for anything else."""
    if len(token) > MAX_TOKEN_LENGTH or not token.isascii():
        return None
    try:
        claims: Mapping[str, Any] = jwt.decode(
            token,
            _derive_signing_key(REFRESH),
            [ALGORITHM],
            options={"require": ["sub", "iat", "exp", "bound"]},
        )
    except jwt.InvalidTokenError:
        return None
    # The settings of now hold: shorter ones end what was issued for longer, and 0 all.
    is_over = claims["iat"] + settings.OPTIONS.refresh_token_seconds <= time.time()
    return None if is_over else claims


def find_refreshed_user(claims: Mapping[str, Any]) -> User | None:
    """Return the person of a refresh token; None where it has ended with password or sessions."""
    user = User.objects.filter(pk=int(claims["sub"]), is_active=True, is_service=False).first()
    if user is None or not constant_time_compare(str(claims["bound"]), _fingerprint_person(user)):
        return None
    return user


def authenticate_token(token: str) -> User:
    """Return the user of a token, with `personal_key` set to the key it was issued for.

    Raises AuthenticationFailed for a token that is forged, expired, or void by a new password or
    secret, by a deleted key, or by the end of all sessions.
    """
    try:
        claims = jwt.decode(
            token, _derive_signing_key(), [ALGORITHM], options={"require": ["sub", "exp", "bound"]}
        )
    except jwt.ExpiredSignatureError:
        raise AuthenticationFailed(
            "The access token has expired. Get a new one from POST /api/v1/token."
        ) from None
    except jwt.InvalidTokenError:
        raise AuthenticationFailed(INVALID_TOKEN) from None
    user = (
        User.objects.select_related("service_account")
        .filter(pk=int(claims["sub"]), is_active=True)
        .first()
    )
    key = (
        PersonalKey.objects.filter(pk=int(claims["key"]), user=user).first()
        if user is not None and "key" in claims
        else None
    )
    if (
        user is None
        or ("key" in claims and key is None)
        or not constant_time_compare(str(claims["bound"]), _fingerprint(user, key))
    ):
        raise AuthenticationFailed(INVALID_TOKEN)
    way_in = key or _find_account(user)
    if isinstance(way_in, ServiceAccount) and not way_in.is_enabled:
        raise AuthenticationFailed(
            f"The service account {way_in.name} is disabled, and its tokens with it. Whoever may "
            "edit it can enable it again."
        )
    if way_in is not None and way_in.is_expired:
        raise AuthenticationFailed(
            f"{way_in.name} has expired, and its tokens with it. Make a new one."
        )
    user.personal_key = key
    return user


class BearerToken(BaseAuthentication):
    """Authenticate by `Authorization: Bearer <token>`.

    Nothing else opens the API: a browser's session does not, so no foreign page can use it.
    """

    def authenticate(self, request: Request) -> tuple[User, None] | None:
        kind, _, token = get_authorization_header(request).partition(b" ")
        if kind.lower() != b"bearer":
            return None
        if len(token) > MAX_TOKEN_LENGTH or not token.isascii():
            raise AuthenticationFailed(INVALID_TOKEN)
        user = authenticate_token(token.decode("ascii").strip())
        token_addresses.record_token_use(user)
        return user, None

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="Muster"'


class BearerTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The description of `BearerToken` in the OpenAPI schema."""

    target_class = BearerToken
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "A token from POST /api/v1/token.",
        }


def _fingerprint(user: User, key: PersonalKey | None) -> str:
    """Return a value that changes with the credential that the token was issued for.

    That is the secret of a personal key or of a service account, or what a person proved.
    """
    if key is not None:
        return salted_hmac(
            "muster.tokens.bound.key", f"{key.client_id}\n{key.secret_hash}"
        ).hexdigest()
    account = _find_account(user)
    if account is None:
        return _fingerprint_person(user)
    return salted_hmac("muster.tokens.bound", f"{user.password}\n{account.secret_hash}").hexdigest()


def _fingerprint_person(user: User) -> str:
    """Return a value that changes with the password, and where all sessions are ended.

    Somebody of single sign-on has no password that a new one could end a stolen token with.
    """
    return salted_hmac(
        "muster.tokens.bound.person", f"{user.password}\n{user.sign_outs}"
    ).hexdigest()


def _find_account(user: User) -> ServiceAccount | None:
    account: ServiceAccount | None = getattr(user, "service_account", None)
    return account


def _derive_signing_key(purpose: str = ACCESS) -> bytes:
    return hashlib.sha256(f"{purpose}\n{settings.SECRET_KEY}".encode()).digest()
