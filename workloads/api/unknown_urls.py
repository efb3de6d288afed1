"""The answer at unknown addresses of the API, of whichever version."""

from django.urls import re_path

from workloads.api.api_description import NotFoundView

urlpatterns = [re_path("", NotFoundView.as_view(), name="api-not-there")]
