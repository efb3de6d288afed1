from django.apps import AppConfig


class Console(AppConfig):
    name = "console"
