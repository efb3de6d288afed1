"""The check that a password is still the one that somebody signed in with."""

from console.errors import NotAllowed
from projects.models import User


def lock_user(authenticated: User) -> User:
    """Lock and return the row of a user who is about to get another way in.

    Call it in the transaction that makes the way in. A reset of the password writes the row, so it
    finds whatever was made before it. Raises NotAllowed where the user is deactivated or the
    password is another one by now: whoever knew one that was reset makes nothing that outlives it.
    """
    current = User.objects.select_for_update().get(pk=authenticated.pk)
    if not current.is_active or current.password != authenticated.password:
        raise NotAllowed(
            "Your password was changed, or you were deactivated, a moment ago. Sign in again."
        )
    return current
