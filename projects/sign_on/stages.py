"""The stage of a sign-in between the first proof and the session: the second factor."""

from allauth.account.stages import LoginStage
from django.http import HttpResponse
from django.shortcuts import redirect

from projects import second_factor


class SecondFactor(LoginStage):  # type: ignore[misc]
    """Ask everybody who has a second factor for it, however they came in."""

    key = "second-factor"
    urlname = "sign-in-code"

    def handle(self) -> tuple[HttpResponse | None, bool]:
        if second_factor.is_set(self.login.user):
            self.state["password"] = self.login.user.get_session_auth_hash()
            return redirect(self.urlname), True
        return None, True

    def is_void(self) -> bool:
        """Return whether the first proof is not valid any more.

        The user was deleted or deactivated meanwhile, or has another password.
        """
        user = self.login.user
        return (
            user is None
            or not user.is_active
            or self.state.get("password") != user.get_session_auth_hash()
        )
