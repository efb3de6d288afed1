from django.apps import AppConfig


class Clusters(AppConfig):
    name = "clusters"
