"""The addresses of this room."""

from django.urls import path

from clusters.api.clusters import ClustersView

urlpatterns = [path("clusters", ClustersView.as_view(), name="api-clusters")]
