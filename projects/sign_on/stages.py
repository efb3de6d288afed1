"""What stands between the first proof of who one is and the session: the second factor."""

from allauth.account.stages import LoginStage
from django.http import HttpResponse
from django.shortcuts import redirect

from projects import second_factor


class SecondFactor(LoginStage):  # type: ignore[misc]
    """Asked of everybody who has one, however they came in."""

    key = "second-factor"
    urlname = "sign-in-code"

    def handle(self) -> tuple[HttpResponse | None, bool]:
        if second_factor.is_set(self.login.user):
            self.state["password"] = self.login.user.get_session_auth_hash()
            return redirect(self.urlname), True
        return None, True

    def is_void(self) -> bool:
        """Whether who has shown the first proof may not come in by it any more."""
        user = self.login.user
        return (
            user is None
            or not user.is_active
            or self.state.get("password") != user.get_session_auth_hash()
        )
