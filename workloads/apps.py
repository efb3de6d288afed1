from django.apps import AppConfig
from django.utils.module_loading import import_string

from environments import judging


class Workloads(AppConfig):
    name = "workloads"

    def ready(self) -> None:
        # By name, for the rules know models, and these are not there before.
        for kind, judge in import_string("workloads.asset_rules.JUDGES").items():
            judging.appoint(kind, judge)
        judging.appoint("policy", import_string("workloads.policy_editing.judge"))
        import_string("environments.policy_fields.appoint")(
            import_string("workloads.policy_editing.speech")()
        )
