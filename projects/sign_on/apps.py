"""The app of single sign-on."""

from django.apps import AppConfig


class SignOn(AppConfig):
    name = "projects.sign_on"
