"""The handlers of allauth's signals."""

from typing import Any

from allauth.socialaccount.signals import social_account_added
from django.contrib import messages

from projects.sign_on import accounts


def connect_handlers() -> None:
    """Connect the handlers, once however often an app is made ready."""
    social_account_added.connect(_handle_connection, dispatch_uid="muster.connected")


def _handle_connection(request: Any, sociallogin: Any, **_: Any) -> None:
    accounts.record_connection(sociallogin.user, sociallogin.claims)
    messages.success(request, "Your user is connected. You can sign in either way from now on.")
