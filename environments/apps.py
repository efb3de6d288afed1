from django.apps import AppConfig


class Environments(AppConfig):
    name = "environments"
