from django.apps import AppConfig
from django.utils.module_loading import import_string

from environments import asset_validators


class Workloads(AppConfig):
    name = "workloads"

    def ready(self) -> None:
        # Imported here by name: the rules import models, which are not loaded before `ready`.
        for kind, judge in import_string("workloads.asset_rules.JUDGES").items():
            asset_validators.register_validator(kind, judge)
        asset_validators.register_validator(
            "policy", import_string("workloads.policy_editing.find_policy_problems")
        )
        import_string("environments.policy_fields.register_definitions")(
            import_string("workloads.policy_editing.describe_catalogue")()
        )
