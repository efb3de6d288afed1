"""The addresses of this room."""

from django.urls import URLPattern, URLResolver, path

from clusters.views import clusters, managing, node_pools, nodes, projects

urlpatterns: list[URLPattern | URLResolver] = [
    path("clusters", clusters.clusters, name="clusters"),
    path("clusters/new", managing.cluster_new, name="cluster-new"),
    path("clusters/<uuid:pk>", clusters.cluster, name="cluster"),
    path("clusters/<uuid:pk>/checks", clusters.checks, name="cluster-checks"),
    path("clusters/<uuid:pk>/check", managing.cluster_check, name="cluster-check"),
    path("clusters/<uuid:pk>/edit", managing.cluster_edit, name="cluster-edit"),
    path("clusters/<uuid:pk>/enable", managing.cluster_enable, name="cluster-enable"),
    path("clusters/<uuid:pk>/disable", managing.cluster_disable, name="cluster-disable"),
    path("clusters/<uuid:pk>/remove", managing.cluster_remove, name="cluster-remove"),
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
