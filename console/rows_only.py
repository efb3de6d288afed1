"""The apps for a process that needs nothing but their rows: no seam is provided there."""

from django.apps import AppConfig


class Projects(AppConfig):
    name = "projects"


class Clusters(AppConfig):
    name = "clusters"


class Environments(AppConfig):
    name = "environments"


class Workloads(AppConfig):
    name = "workloads"
