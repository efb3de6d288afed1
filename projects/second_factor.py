"""The second factor: codes of an authenticator app (TOTP), and recovery codes for who has lost it.
allauth's, with the rules added here.

A code is good once, in all processes: the step of the clock that it was for is remembered with the
secret.
"""

import base64
import io
from collections.abc import Sequence

from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth as totp
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.utils import timezone

from console.errors import UserError
from projects import access, audit, granting, sessions, throttle
from projects.audit import Event
from projects.models import User
from projects.permissions import Entity, Verb

WRONG_CODE = "This code is not right. Enter the one that your app shows now; each is good once."
_TOTP, _RECOVERY_CODES = Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES


def is_set(user: User) -> bool:
    return bool(Authenticator.objects.filter(user=user, type=_TOTP).exists())


def is_missing(user: User | AnonymousUser) -> bool:
    """Whether the user has to set one up before anything else. Who comes by single sign-on is asked
    for theirs there.
    """
    return (
        isinstance(user, User)
        and settings.OPTIONS.require_second_factor
        and user.has_usable_password()
        and not is_set(user)
    )


def generate_totp_secret() -> str:
    """A new secret, for an authenticator app."""
    return str(totp.generate_totp_secret())


def render_qr_code(user: User, secret: str) -> str:
    """The secret as a QR code: the address of an image, which holds it all."""
    # Few pages need it, and it takes a while to load.
    import qrcode
    from qrcode.image.svg import SvgPathFillImage

    drawn = io.BytesIO()
    qrcode.make(
        get_adapter().build_totp_url(user, secret), image_factory=SvgPathFillImage, border=3
    ).save(drawn)
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn.getvalue()).decode()}"


def set_up_factor(user: User, secret: str, code: str) -> Sequence[str]:
    """From now on the user is asked for codes. The recovery codes, told here only. Raises UserError
    for a code that is not right.
    """
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        if is_set(user):
            raise UserError(
                "You have a second factor already. Remove it first, to set up another one."
            )
        found = totp.TOTP.activate(user, secret).instance
        if not _spend_code(found, code):
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
    """Whether it is a code of the user's app, or one of their recovery codes, that was not used
    before. It is used now.
    """
    with transaction.atomic():
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
    """The same for a person who types. Raises UserError for a code that is not right, and TooMany
    after too many of them.
    """
    counted = f"second factor:{user.pk}"
    throttle.record_attempt(counted, throttle.ANY_ADDRESS)
    throttle.record_attempt(counted, address)
    if not use_code(user, code):
        raise UserError(WRONG_CODE, field="code")
    throttle.record_success(counted, throttle.ANY_ADDRESS)
    throttle.record_success(counted, address)


def replace_recovery_codes(user: User) -> Sequence[str]:
    """Other recovery codes, told here only; those before are void."""
    with transaction.atomic():
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
    """Recovery codes that were not used yet."""
    row = Authenticator.objects.filter(user=user, type=_RECOVERY_CODES).first()
    return len(RecoveryCodes(row).get_unused_codes()) if row is not None else 0


def remove_factor(user: User) -> None:
    """The user's own wish: they are not asked for codes any more."""
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
    """For who has lost it: an administrator takes it away, and the user is signed out
    everywhere.
    """
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
