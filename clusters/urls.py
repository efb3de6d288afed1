"""The addresses of this room."""

from django.urls import URLPattern, URLResolver, path

from clusters.views import clusters, projects

urlpatterns: list[URLPattern | URLResolver] = [
    path("clusters", clusters.clusters, name="clusters"),
    path("clusters/<uuid:pk>", clusters.cluster, name="cluster"),
    path("help/single-trust", clusters.single_trust, name="single-trust"),
    path("projects/new", projects.project_new, name="project-new"),
    path("projects/<int:pk>/edit", projects.project_edit, name="project-edit"),
]
