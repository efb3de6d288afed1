"""Where everything is: each room brings its own addresses."""

from django.urls import include, path

urlpatterns = [
    path("", include("console.health")),
    path("", include("projects.urls")),
    path("", include("clusters.urls")),
    path("", include("environments.urls")),
    path("", include("workloads.urls")),
    path("api/v1/", include("projects.api.urls")),
    path("api/v1/", include("clusters.api.urls")),
    path("api/v1/", include("workloads.api.urls")),
]
