from django.apps import AppConfig


class Workloads(AppConfig):
    name = "workloads"
