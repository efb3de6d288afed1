"""Templates, drafts and policies that counted elastic workers count pods after the migration."""

from importlib import import_module

import pytest
from django.apps import apps

from environments.models import Policy, Template
from tests.cast import Cast
from workloads.models import Draft

migration = import_module("workloads.migrations.0008_elastic_pods")


@pytest.mark.parametrize(
    ("configuration", "typed"),
    [("workers-and-master", ["3"]), ("workers-only", ["2"])],
)
def test_stored_forms_and_rules_gain_the_master(
    cast: Cast, configuration: str, typed: list[str]
) -> None:
    form = {
        "start": {"configuration": [configuration]},
        "setup": {"workers": ["2"], "min_workers": ["2"], "max_workers": [""]},
    }
    Template.objects.create(name="older", form=form, locked=["image", "min_workers"])
    Draft.objects.create(user=cast.alice, data=form)
    Draft.objects.create(user=cast.alice, data={"start": {"name": ["x"]}})
    Policy.objects.create(
        name="older", rules={"elastic.max_workers": {"max": 4}, "workers": {"max": 3}}
    )
    migration.upgrade_rows(apps, None)
    upgraded = {"workers": ["2"], "min_pods": typed, "max_pods": [""]}
    template = Template.objects.get(name="older")
    assert (template.form["setup"], template.locked) == (upgraded, ["image", "min_pods"])
    assert [each.data.get("setup") for each in Draft.objects.order_by("created_at")] == [
        upgraded,
        None,
    ]
    assert Policy.objects.get(name="older").rules == {
        "elastic.max_pods": {"max": 5},
        "workers": {"max": 3},
    }
