from django.apps import AppConfig
from django.core import checks

from console.checks import TAG, check_options


class Console(AppConfig):
    name = "console"

    def ready(self) -> None:
        checks.register(check_options, TAG)
