from django.apps import AppConfig


class Environments(AppConfig):
    name = "environments"

    def ready(self) -> None:
        from clusters.seams import PROJECT_SECRETS
        from environments import cluster_secrets, scope_removal
        from projects.seams import SCOPE_ASSETS

        SCOPE_ASSETS.register(scope_removal)
        PROJECT_SECRETS.register(cluster_secrets)
