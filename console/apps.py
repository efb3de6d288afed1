from django.apps import AppConfig
from django.core import checks

from console.checks import OPTIONS_TAG, check_options


class Console(AppConfig):
    name = "console"

    def ready(self) -> None:
        checks.register(check_options, OPTIONS_TAG)
