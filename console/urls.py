"""The URL configuration: each app brings its own addresses."""

from django.urls import include, path

handler400 = "console.errors.bad_request"
handler403 = "console.errors.permission_denied"
handler404 = "console.errors.page_not_found"
handler500 = "console.errors.server_error"

urlpatterns = [
    path("", include("console.health")),
    path("", include("console.metrics.views")),
    path("", include("projects.urls")),
    path("", include("clusters.urls")),
    path("", include("environments.urls")),
    path("", include("workloads.urls")),
    path("api/v1/", include("projects.api.urls")),
    path("api/v1/", include("clusters.api.urls")),
    path("api/v1/", include("environments.api.urls")),
    path("api/v2/", include("workloads.api.policy_urls")),
    path("api/v1/", include("workloads.api.urls")),
    # The last address of the whole API: its clients read JSON only, and so get a 404 as JSON.
    path("api/", include("workloads.api.unknown_urls")),
]
