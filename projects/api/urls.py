"""The addresses of this room."""

from django.urls import path

from projects.api.projects import ProjectsView
from projects.api.token import TokenView

urlpatterns = [
    path("token", TokenView.as_view(), name="api-token"),
    path("org-unit/projects", ProjectsView.as_view(), name="api-projects"),
]
