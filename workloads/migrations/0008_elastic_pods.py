"""Let the minimum and maximum of elastic workloads count pods, where they counted workers.

What was 3 to 5 pods stays 3 to 5: templates, drafts and the rules of policies gain the master. The
specs of workloads are read as they are (`workloads.specs.spec_json`).
"""

from collections.abc import Mapping
from typing import Any

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

NAMES = {"min_workers": "min_pods", "max_workers": "max_pods"}
RULE = "elastic.max_workers"
COUNTS = ("min", "max")


def upgrade_form(form: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what was typed into the wizard with pods instead of workers; None where it has none.

    Both are {step: {name of the field: typed values}}.
    """
    setup = form.get("setup")
    if not isinstance(setup, dict) or NAMES.keys().isdisjoint(setup):
        return None
    start = form.get("start") if isinstance(form.get("start"), dict) else {}
    master = int("workers-only" not in (start.get("configuration") or ()))
    return {**form, "setup": dict(_upgrade_value(*each, master) for each in setup.items())}


def _upgrade_value(name: str, values: Any, master: int) -> tuple[str, Any]:
    if name not in NAMES:
        return name, values
    if isinstance(values, list):
        values = [_add(each, master) for each in values]
    return NAMES[name], values


def _add(typed: Any, master: int) -> Any:
    """Return a typed number plus one for the master; anything else as it was typed."""
    text = str(typed).strip()
    return str(int(text) + master) if text.isascii() and text.isdecimal() else typed


def upgrade_rules(rules: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the rules of a policy with pods instead of workers; None where they have none."""
    if RULE not in rules:
        return None
    upgraded = {name: rule for name, rule in rules.items() if name != RULE}
    rule = rules[RULE]
    if isinstance(rule, dict):
        rule = {
            name: value + 1 if name in COUNTS and type(value) is int else value
            for name, value in rule.items()
        }
    return {**upgraded, "elastic.max_pods": rule}


def upgrade_rows(apps: Apps, _: BaseDatabaseSchemaEditor | None) -> None:
    template = apps.get_model("environments", "Template")
    for row in template.objects.only("form", "locked").iterator():
        form, locked = upgrade_form(row.form), [NAMES.get(each, each) for each in row.locked]
        if form is not None or locked != row.locked:
            template.objects.filter(pk=row.pk).update(form=form or row.form, locked=locked)
    draft = apps.get_model("workloads", "Draft")
    for row in draft.objects.only("data").iterator():
        if (form := upgrade_form(row.data)) is not None:
            draft.objects.filter(pk=row.pk).update(data=form)
    policy = apps.get_model("environments", "Policy")
    for row in policy.objects.only("rules").iterator():
        if (rules := upgrade_rules(row.rules)) is not None:
            policy.objects.filter(pk=row.pk).update(rules=rules)


class Migration(migrations.Migration):
    dependencies = [
        ("workloads", "0007_saved_views"),
        ("environments", "0002_first_release"),
    ]

    operations = [migrations.RunPython(upgrade_rows, migrations.RunPython.noop, elidable=True)]
