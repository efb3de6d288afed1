from django.apps import AppConfig


class Clusters(AppConfig):
    name = "clusters"

    def ready(self) -> None:
        from clusters import health_figures, tasks
        from console.metrics import shared
        from projects import seams

        shared.SHARED_FIGURES.register(health_figures)
        seams.PROVISION_STEP.register(tasks.provision)
