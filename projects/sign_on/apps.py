"""The app of single sign-on."""

from django.apps import AppConfig


class SignOn(AppConfig):
    name = "projects.sign_on"

    def ready(self) -> None:
        from projects.sign_on import signals

        signals.connect_handlers()
