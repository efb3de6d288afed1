from django.apps import AppConfig

from environments import judging
from workloads import asset_rules


class Workloads(AppConfig):
    name = "workloads"

    def ready(self) -> None:
        for kind, judge in asset_rules.JUDGES.items():
            judging.appoint(kind, judge)
