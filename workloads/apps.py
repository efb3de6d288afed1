from django.apps import AppConfig


class Workloads(AppConfig):
    name = "workloads"

    def ready(self) -> None:
        from clusters import seams as of_clusters
        from console.metrics import shared
        from environments import seams as of_environments
        from projects import seams as of_projects
        from workloads import (
            asset_rules,
            asset_uses,
            cluster_removal,
            journal_figures,
            policy_editing,
            project_removal,
        )
        from workloads.api import template_bodies
        from workloads.overview import project_page
        from workloads.queries import frameworks, node_capacity, node_pods, removal_blockers
        from workloads.recording import turns  # noqa: F401 - workers know its step from here on

        shared.SHARED_FIGURES.register(journal_figures)
        of_projects.PROJECT_CONTENTS.register(project_removal)
        of_projects.QUOTA_USAGE.register(removal_blockers)
        of_projects.PROJECT_OVERVIEW.register(project_page)
        of_clusters.CLUSTER_WORKLOADS.register(cluster_removal)
        of_clusters.NODE_POOL_USERS.register(removal_blockers)
        of_clusters.NODE_CAPACITIES.register(node_capacity)
        of_clusters.NODE_PODS.register(node_pods)
        of_clusters.FRAMEWORKS.register(frameworks)
        of_environments.ASSET_USES.register(asset_uses)
        of_environments.TEMPLATE_BODIES.register(template_bodies)
        of_environments.ASSET_RULES.register(asset_rules)
        of_environments.POLICY_RULES.register(policy_editing)
