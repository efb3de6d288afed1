"""The addresses of the REST API of clusters, nodes, node pools and projects."""

from django.urls import path

from clusters.api.clusters import ClustersView, ClusterTestView, ClusterView, ConnectionTestView
from clusters.api.node_pools import NodePoolsCountView, NodePoolsView, NodePoolView
from clusters.api.node_telemetry import NodesTelemetryView
from clusters.api.nodes import NodesCountView, NodesView
from clusters.api.project_names import ProjectNameView
from clusters.api.projects import ProjectResourcesView, ProjectsView, ProjectView
from projects.api.name_availability import PATH as NAME_PATH

urlpatterns = [
    path("clusters", ClustersView.as_view(), name="api-clusters"),
    path("clusters/test", ConnectionTestView.as_view(), name="api-clusters-test"),
    path("clusters/<uuid:pk>", ClusterView.as_view(), name="api-cluster"),
    path("clusters/<uuid:pk>/test", ClusterTestView.as_view(), name="api-cluster-test"),
    path("org-unit/projects", ProjectsView.as_view(), name="api-projects"),
    path(f"org-unit/projects/{NAME_PATH}", ProjectNameView.as_view(), name="api-projects-name"),
    path("org-unit/projects/<int:pk>", ProjectView.as_view(), name="api-project"),
    path(
        "org-unit/projects/<int:pk>/resources",
        ProjectResourcesView.as_view(),
        name="api-project-resources",
    ),
    path("node-pools", NodePoolsView.as_view(), name="api-node-pools"),
    path("node-pools/count", NodePoolsCountView.as_view(), name="api-node-pools-count"),
    path("node-pools/<int:pk>", NodePoolView.as_view(), name="api-node-pool"),
    path("nodes/count", NodesCountView.as_view(), name="api-nodes-count"),
    path("nodes/telemetry", NodesTelemetryView.as_view(), name="api-nodes-telemetry"),
    path("nodes", NodesView.as_view(), name="api-nodes"),
]
