"""The addresses of the pages about clusters, node pools and projects."""

from django.urls import URLPattern, URLResolver, path

from clusters.views import cluster_changes, clusters, node_pools, nodes, projects

urlpatterns: list[URLPattern | URLResolver] = [
    path("clusters", clusters.clusters, name="clusters"),
    path("clusters/new", cluster_changes.cluster_new, name="cluster-new"),
    path("clusters/<uuid:pk>", clusters.cluster, name="cluster"),
    path("clusters/<uuid:pk>/checks", clusters.checks, name="cluster-checks"),
    path("clusters/<uuid:pk>/check", cluster_changes.cluster_check, name="cluster-check"),
    path("clusters/<uuid:pk>/edit", cluster_changes.cluster_edit, name="cluster-edit"),
    path("clusters/<uuid:pk>/enable", cluster_changes.cluster_enable, name="cluster-enable"),
    path("clusters/<uuid:pk>/disable", cluster_changes.cluster_disable, name="cluster-disable"),
    path("clusters/<uuid:pk>/remove", cluster_changes.cluster_remove, name="cluster-remove"),
    path("clusters/<uuid:pk>/nodes/<path:name>", nodes.node, name="cluster-node"),
    path("help/single-trust", clusters.single_trust, name="single-trust"),
    path("node-pools", node_pools.pools, name="node-pools"),
    path("node-pools/new", node_pools.pool_new, name="node-pool-new"),
    path("node-pools/<int:pk>", node_pools.pool, name="node-pool"),
    path("node-pools/<int:pk>/edit", node_pools.pool_edit, name="node-pool-edit"),
    path("node-pools/<int:pk>/delete", node_pools.pool_delete, name="node-pool-delete"),
    path("projects/new", projects.project_new, name="project-new"),
    path("projects/<int:pk>/edit", projects.project_edit, name="project-edit"),
    path("projects/<int:pk>/delete", projects.project_delete, name="project-delete"),
]
