"""The addresses of policies in version 2 of the API."""

from django.urls import path

from workloads.api.policies import PolicyView
from workloads.specs import Architecture

urlpatterns = [
    path("policy/distributed", PolicyView.as_view(), name="api-policy-distributed"),
    path(
        "policy/trainings",
        PolicyView.as_view(architecture=Architecture.STANDARD, policy_name="trainings"),
        name="api-policy-trainings",
    ),
]
