"""The second factor: codes of an authenticator app (TOTP) and recovery codes.

Built on allauth, with stricter rules. A code works once, in all processes: the time step of the
last code is stored with the secret.
"""

import base64
import io
from collections.abc import Sequence

import qrcode
from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth as totp
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.utils import timezone
from qrcode.image.svg import SvgPathFillImage

from console.errors import UserError
from console.reencryption import Renewal
from projects import access, audit, granting, present_password, sessions, throttle
from projects.audit import Event
from projects.models import User
from projects.permissions import Entity, Verb

WRONG_CODE = "This code is not right. Enter the one that your app shows now; each is good once."
ENCRYPTED_KEYS = ("secret", "seed")
"""What allauth has encrypted in the data of an authenticator."""

_TOTP, _RECOVERY_CODES = Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES


def is_set(user: User) -> bool:
    return bool(Authenticator.objects.filter(user=user, type=_TOTP).exists())


def is_missing(user: User | AnonymousUser) -> bool:
    """Tell whether the user must set up a second factor before anything else.

    Users of single sign-on are asked for theirs there.
    """
    return (
        isinstance(user, User)
        and settings.OPTIONS.require_second_factor
        and user.has_usable_password()
        and not is_set(user)
    )


def generate_totp_secret() -> str:
    """Return a new secret for an authenticator app."""
    return str(totp.generate_totp_secret())


def render_qr_code(user: User, secret: str) -> str:
    """Return the secret as a QR code, in a data URL of an SVG image."""
    image = io.BytesIO()
    qrcode.make(
        get_adapter().build_totp_url(user, secret), image_factory=SvgPathFillImage, border=3
    ).save(image)
    return f"data:image/svg+xml;base64,{base64.b64encode(image.getvalue()).decode()}"


def set_up_factor(user: User, secret: str, code: str) -> Sequence[str]:
    """Turn the second factor on and return the recovery codes, which are not shown again.

    Raises UserError for a wrong code, and NotAllowed where the password was reset meanwhile.
    """
    with transaction.atomic():
        # The user's row is locked: of two set-ups at once the second must see the first one's.
        present_password.lock_user(user)
        if is_set(user):
            raise UserError(
                "You have a second factor already. Remove it first, to set up another one."
            )
        authenticator = totp.TOTP.activate(user, secret).instance
        if not _spend_code(authenticator, code):
            raise UserError(WRONG_CODE, field="code")
        audit.record(
            Event.UPDATE,
            "user",
            by=user,
            id=user.pk,
            name=user.username,
            text="Set up a second factor.",
        )
        return _create_recovery_codes(user)


def use_code(user: User, code: str) -> bool:
    """Tell whether the code is valid and unused, and mark it as used.

    Accepts a code of the app or a recovery code.
    """
    with transaction.atomic():
        # Locked: of two requests that send the same code at once, only one spends it.
        rows = {
            row.type: row for row in Authenticator.objects.select_for_update().filter(user=user)
        }
        if _TOTP not in rows:
            return False
        return _spend_code(rows[_TOTP], code) or (
            _RECOVERY_CODES in rows
            and bool(RecoveryCodes(rows[_RECOVERY_CODES]).validate_code(code))
        )


def require_code(user: User, code: str, address: str) -> None:
    """Check a code that a person typed, and use it.

    Raises UserError for a wrong code, and TooManyAttempts after too many of them.
    """
    attempt_name = f"second factor:{user.pk}"
    # Six digits can be guessed from many addresses: attempts from all of them count together too.
    # Both are counted or neither: what is refused at one address tries nothing.
    with transaction.atomic():
        attempts = [
            throttle.record_attempt(attempt_name, each) for each in (throttle.ANY_ADDRESS, address)
        ]
    if not use_code(user, code):
        raise UserError(WRONG_CODE, field="code")
    for attempt in attempts:
        throttle.record_success(attempt)


def replace_recovery_codes(user: User) -> Sequence[str]:
    """Return new recovery codes, which are not shown again; the old ones are void."""
    with transaction.atomic():
        # Locked as in `set_up_factor`: otherwise two at once would both create codes.
        User.objects.select_for_update().get(pk=user.pk)
        if not is_set(user):
            raise UserError("Set up a second factor first: recovery codes stand in for it.")
        audit.record(
            Event.UPDATE,
            "user",
            by=user,
            id=user.pk,
            name=user.username,
            text="Made new recovery codes.",
        )
        return _create_recovery_codes(user)


def count_recovery_codes(user: User) -> int:
    """Return the number of unused recovery codes."""
    row = Authenticator.objects.filter(user=user, type=_RECOVERY_CODES).first()
    return len(RecoveryCodes(row).get_unused_codes()) if row is not None else 0


def remove_factor(user: User) -> None:
    """Turn the second factor off at the user's own wish."""
    with transaction.atomic():
        if Authenticator.objects.filter(user=user).delete()[0]:
            audit.record(
                Event.UPDATE,
                "user",
                by=user,
                id=user.pk,
                name=user.username,
                text="Removed their second factor.",
            )


def reset_factor(user: User, by: User) -> None:
    """Turn the second factor off for a user who lost it, and sign them out everywhere."""
    access.require(by, Verb.EDIT, Entity.USERS)
    granting.require_not_above(user, by)
    with transaction.atomic():
        if not Authenticator.objects.filter(user=user).delete()[0]:
            raise UserError(f"{user} has no second factor.")
        sessions.end_all_sessions(user)
        audit.record(
            Event.UPDATE,
            "user",
            by=by,
            id=user.pk,
            name=user.username,
            text="Reset the second factor.",
        )


def _spend_code(row: Authenticator, code: str) -> bool:
    secret = get_adapter().decrypt(row.data["secret"])
    # allauth remembers used codes in the cache, which each process has for itself: the time step of
    # the last code is stored with the row instead, and only later steps are accepted.
    for counter in totp.yield_hotp_counters_from_time():
        expected = totp.format_hotp_value(totp.hotp_value(secret, counter))
        if counter > row.data.get("spent", -1) and compare_user_code(
            actual=code, expected=expected
        ):
            row.data["spent"] = counter
            row.last_used_at = timezone.now()
            row.save(update_fields=["data", "last_used_at"])
            return True
    return False


def _create_recovery_codes(user: User) -> Sequence[str]:
    Authenticator.objects.filter(user=user, type=_RECOVERY_CODES).delete()
    return list(RecoveryCodes.activate(user).generate_codes())


def renew_secrets(renewal: Renewal) -> None:
    """Encrypt anew, by the newest key, the secrets of all second factors."""
    for pk in list(Authenticator.objects.order_by("pk").values_list("pk", flat=True)):
        with transaction.atomic():
            row = (
                Authenticator.objects.select_for_update(of=("self",))
                .select_related("user")
                .filter(pk=pk)
                .first()
            )
            if row is None:
                continue
            label = f"second factor of {row.user.username}"
            for key in ENCRYPTED_KEYS:
                token = row.data.get(key)
                if token and (new := renewal.renew(token, label)) != token:
                    row.data[key] = new
                    renewal.renewed += 1
            row.save(update_fields=["data"])
