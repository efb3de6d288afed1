"""The app of single sign-on, which handles allauth's signals."""

from typing import Any

from django.apps import AppConfig


class SignOn(AppConfig):
    name = "projects.sign_on"

    def ready(self) -> None:
        from allauth.socialaccount.signals import social_account_added

        social_account_added.connect(_handle_connection, dispatch_uid="muster.connected")


def _handle_connection(request: Any, sociallogin: Any, **_: Any) -> None:
    from django.contrib import messages

    from projects.sign_on import accounts

    accounts.record_connection(sociallogin.user, sociallogin.claims)
    messages.success(request, "Your user is connected. You can sign in either way from now on.")
