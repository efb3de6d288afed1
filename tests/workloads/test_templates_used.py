"""Starting from a template: the cards of the first step, the fields that it fills in, and the
assets that it chooses.
"""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from environments import actions as assets
from environments.models import ComputeResource, Environment, Template
from tests.cast import Cast
from tests.workloads.templated import save_template, start_from_template, submit_and_decode
from tests.workloads.wizarding import Walk, key_of
from workloads.models import Workload

pytestmark = pytest.mark.django_db


def test_the_first_step_shows_the_templates_of_the_project(cast: Cast) -> None:
    save_template(cast)
    Template.objects.create(name="of-team-b", project=cast.team_b)
    text = Walk(cast).text
    assert re.search(r'name="template" value="scratch"[^>]* checked', text)
    assert "mine" in text
    assert "Distributed, PyTorch, Workers &amp; master" in text
    assert "of-team-b" not in text


def test_a_template_fills_the_steps(cast: Cast) -> None:
    walk = start_from_template(cast, save_template(cast))
    assert walk.step == "setup"
    assert 'value="team/mine:1"' in walk.text
    spec = submit_and_decode(walk)
    assert (spec.workers, spec.setup.environment.image) == (3, "team/mine:1")
    made = Workload.objects.get().assets.get(kind="template")
    assert (made.name, made.version) == ("mine", 1)


def test_what_is_open_can_be_changed(cast: Cast) -> None:
    spec = submit_and_decode(
        start_from_template(cast, save_template(cast, "image")).send(workers="5")
    )
    assert (spec.workers, spec.setup.environment.image) == (5, "team/mine:1")


def test_the_table_s_use_opens_the_wizard_filled_in(cast: Cast) -> None:
    template = save_template(cast, configuration="workers-only")
    walk = Walk(cast, query=f"?template={template.pk}")
    assert re.search(rf'value="{template.pk}"[^>]* checked', walk.text)
    assert walk.send(name="train1").step == "setup"
    assert 'value="team/mine:1"' in walk.text


@pytest.mark.parametrize("key", ["no-id", "580512c6-817c-495f-b4b4-66de5d214fe8"])
def test_a_template_that_is_not_there_is_not_found(cast: Cast, key: str) -> None:
    assert Walk(cast, query=f"?template={key}").page.status_code == 404


def test_another_teams_template_is_not_there(cast: Cast) -> None:
    theirs = Template.objects.create(name="theirs", project=cast.team_b)
    assert Walk(cast, query=f"?template={theirs.pk}").page.status_code == 404
    walk = Walk(cast).send_start(template=str(theirs.pk))
    assert walk.page.status_code == 422
    assert "That template is not there any more, or not for use in this project." in walk.text


def test_a_template_of_another_kind_is_refused_beside_it(cast: Cast) -> None:
    walk = Walk(cast).send_start(template=str(save_template(cast).pk), architecture="Standard")
    assert walk.page.status_code == 422
    assert "The template mine is for Distributed, PyTorch, Workers &amp; master." in walk.text


def test_back_to_scratch_is_every_field_at_its_default(cast: Cast) -> None:
    walk = (
        start_from_template(cast, save_template(cast, "image"))
        .see("start")
        .send(template="scratch")
    )
    assert walk.step == "setup"
    assert "team/mine:1" not in walk.text
    assert "Set by the template" not in walk.text


def test_a_refresh_keeps_what_was_typed_over_a_template(cast: Cast) -> None:
    walk = (
        start_from_template(cast, save_template(cast)).send(workers="many", go="here").see("setup")
    )
    assert 'value="many"' in walk.text


def test_the_cards_follow_the_project_that_is_being_chosen(cast: Cast) -> None:
    save_template(cast)
    Template.objects.create(name="of-team-b", project=cast.team_b)
    walk = Walk(cast, "alice")
    at = f"/workloads/new/{walk.draft.pk}/templates?project="
    assert "of-team-b" in walk.client.get(f"{at}{cast.team_b.pk}").content.decode()
    assert "of-team-b" not in walk.client.get(f"{at}{cast.team_a.pk}").content.decode()


def test_an_environment_that_cannot_be_used_is_said_and_open(cast: Cast) -> None:
    environment = Environment.objects.create(
        name="theirs", image="x", framework="PyTorch", project=cast.team_a
    )
    template = save_template(
        cast, "environment_choice", image="", environment_choice=str(environment.pk)
    )
    Environment.objects.filter(pk=environment.pk).delete()
    walk = start_from_template(cast, template)
    assert (
        "The template&#x27;s environment is not there any more, or not for use in team-a. Choose "
        "another." in walk.text
    )
    assert walk.send().page.status_code == 422
    assert (
        submit_and_decode(walk.send(environment_choice=key_of("allreduce"))).setup.environment.image
        == "muster/allreduce"
    )


def test_a_template_holds_the_assets_that_it_names(cast: Cast) -> None:
    size = ComputeResource.objects.create(name="fifth", gpu_devices=1, project=cast.team_a)
    save_template(cast, compute_choice=str(size.pk))
    client = Client()
    client.force_login(cast.alice)
    assert client.post(f"/compute-resources/{size.pk}/delete").status_code == 409
    assert ComputeResource.objects.filter(pk=size.pk).exists()


def test_a_copied_workload_starts_from_its_template_while_that_is_as_it_was(cast: Cast) -> None:
    template = save_template(cast, "image")
    submit_and_decode(start_from_template(cast, template))
    query = f"?copy={Workload.objects.get().pk}"
    assert Walk(cast, query=query).draft.data["template"]["id"] == str(template.pk)
    assets.change(template, {"locked": []}, scope=template.scope, user=cast.alice)
    assert "template" not in Walk(cast, query=query).draft.data


def test_the_first_step_asks_as_much_with_200_templates(cast: Cast) -> None:
    walk = Walk(cast)
    counts = []
    for number in range(2):
        with CaptureQueriesContext(connection) as captured:
            walk.see("start")
        counts.append(len(captured))
        Template.objects.bulk_create(
            Template(name=f"t-{number}-{each}", project=cast.team_a) for each in range(200)
        )
    assert "t-0-199" in walk.text
    assert counts[0] == counts[1] <= 19
