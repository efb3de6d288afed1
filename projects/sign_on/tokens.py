"""Validation of ID tokens.

One is trusted only with the signature of one of the issuer's keys, for us, now, and as the answer
to this sign-in.
"""

from typing import Any

import jwt
from django.utils.crypto import constant_time_compare

from projects.sign_on import discovery
from projects.sign_on.discovery import ProviderError

ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)
"""Signatures by a key that only the issuer has: no "none", and none by a shared secret."""
MAX_TOKEN_CHARS = 64 << 10
LEEWAY_SECONDS = 60
"""Seconds that two clocks may differ by."""


def verify_id_token(
    token: object, description: dict[str, Any], *, client_id: str, nonce: str
) -> dict[str, Any]:
    """Return the claims of an ID token. Raises ProviderError for one that is not valid."""
    if not isinstance(token, str) or not 0 < len(token) <= MAX_TOKEN_CHARS:
        raise ProviderError("It sent no ID token.")
    try:
        # The header is not verified yet, so it only chooses among ALGORITHMS (RFC 8725, 3.1).
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in ALGORITHMS:
            raise ProviderError(
                "Its ID token is signed in a way that is not accepted "
                f"({str(header.get('alg'))[:20]!r})."
            )
        claims: dict[str, Any] = jwt.decode(
            token,
            _get_signing_key(discovery.fetch_keys(description), header),
            algorithms=[header["alg"]],
            audience=client_id,
            issuer=description["issuer"],
            leeway=LEEWAY_SECONDS,
            options={"require": ["iss", "sub", "aud", "exp", "iat"]},
        )
    except (jwt.ImmatureSignatureError, jwt.ExpiredSignatureError) as error:
        raise ProviderError(
            f"Its ID token is not valid now: {error}. Compare its clock with that of this machine."
        ) from None
    except jwt.PyJWTError as error:
        raise ProviderError(f"Its ID token is not valid: {str(error)[:200]}.") from None
    # OpenID Connect Core, 3.1.3.7, steps 5 and 11: the authorized party, and the nonce.
    if claims.get("azp", client_id) != client_id:
        raise ProviderError("Its ID token was issued to another client.")
    if not nonce or not constant_time_compare(str(claims.get("nonce", "")), nonce):
        raise ProviderError(
            "Its ID token does not belong to this attempt to sign in (the nonce differs)."
        )
    if not isinstance(claims["sub"], str) or not claims["sub"] or not claims["sub"].isprintable():
        raise ProviderError("Its ID token names nobody.")
    return claims


def _get_signing_key(keys: list[dict[str, Any]], header: dict[str, Any]) -> jwt.PyJWK:
    """Return the key that the header names; it may be left out where there is one key only.

    Raises ProviderError.
    """
    key_id = header.get("kid")
    matching = [key for key in keys if key.get("kid") == key_id] if key_id is not None else keys
    if len(matching) != 1:
        raise ProviderError("Its ID token is signed with a key that the issuer does not publish.")
    if matching[0].get("alg", header["alg"]) != header["alg"]:
        raise ProviderError("Its ID token is signed in another way than the issuer's key is for.")
    return jwt.PyJWK(matching[0], algorithm=header["alg"])
