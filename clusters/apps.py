from django.apps import AppConfig


class Clusters(AppConfig):
    name = "clusters"

    def ready(self) -> None:
        from clusters import tasks
        from projects import seams

        seams.PROVISION_STEP.register(tasks.provision)
