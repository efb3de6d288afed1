from django.apps import AppConfig
from django.core import checks

from console.checks import OPTIONS_TAG, check_options
from console.form_messages import replace_messages


class Console(AppConfig):
    name = "console"

    def ready(self) -> None:
        replace_messages()
        checks.register(check_options, OPTIONS_TAG)
