from django.apps import AppConfig


class Projects(AppConfig):
    name = "projects"
    verbose_name = "Projects and people"
