"""NEW ENVIRONMENT and NEW COMPUTE RESOURCE inside the wizard."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from environments.models import ComputeResource, DataSource, Environment, Policy, Template
from tests.cast import Cast
from tests.workloads.wizarding import Walk, form_of

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def asset_url(walk: Walk, kind: str) -> str:
    return f"/workloads/new/{walk.draft.pk}/assets/{kind}"


def test_the_new_environment_is_chosen_and_nothing_typed_is_lost(cast: Cast) -> None:
    walk = Walk(cast).send_start().send(go="environment", workers="7", working_dir="/typed")
    assert walk.step == "environment"
    given = {"name": "pytorch-dt", "image": "team/dt", "scope": f"project:{cast.team_a.pk}"}
    walk.page = walk.client.post(asset_url(walk, "environment"), given, follow=True)
    made = Environment.objects.get(name="pytorch-dt")
    assert (made.project, made.created_by, made.architecture, made.framework) == (
        cast.team_a,
        cast.bob,
        "Distributed",
        "PyTorch",
    )
    assert walk.step == "setup"
    assert re.search(rf'value="{made.pk}"[^>]* checked', walk.text)
    assert 'value="7"' in walk.text
    assert 'value="/typed"' in walk.text


def test_in_place_only_the_cards_are_drawn_anew(cast: Cast) -> None:
    walk = Walk(cast).send_start()
    dialog = walk.client.get(asset_url(walk, "environment"), headers=HTMX)
    assert "CREATE ENVIRONMENT" in dialog.content.decode()
    assert "<html" not in dialog.content.decode()
    given = {"name": "pytorch-dt", "image": "team/dt", "scope": f"project:{cast.team_a.pk}"}
    answer = walk.client.post(asset_url(walk, "environment"), given, headers=HTMX)
    assert answer.status_code == 200
    assert (answer["HX-Retarget"], answer["HX-Reswap"]) == ("#environment-choice", "outerHTML")
    assert "muster:close" in answer["HX-Trigger-After-Settle"]
    assert re.search(
        rf'value="{Environment.objects.get(name="pytorch-dt").pk}"[^>]* checked',
        answer.content.decode(),
    )


def test_a_new_compute_resource_is_chosen(cast: Cast) -> None:
    walk = Walk(cast).send_start()
    given = {
        "name": "fifth",
        "gpu_devices": "1",
        "gpu_share": "portion",
        "gpu_percent": "20",
        "scope": f"project:{cast.team_a.pk}",
    }
    walk.client.post(asset_url(walk, "compute"), given)
    made = ComputeResource.objects.get(name="fifth")
    assert str(made.gpu_portion) == "0.200"
    assert walk.draft.data["setup"]["compute_choice"] == [str(made.pk)]


def test_what_policies_and_the_project_preset_stays_beside_the_new_asset(cast: Cast) -> None:
    cast.team_a.default_preemptible = False
    cast.team_a.save()
    Policy.objects.create(name="fast", rules={"priority": {"default": "high"}})
    walk = Walk(cast).send_start()
    given = {"name": "mine", "image": "team/x", "scope": f"project:{cast.team_a.pk}"}
    walk.client.post(asset_url(walk, "environment"), given, headers=HTMX)
    typed = form_of(walk.see("setup").page)
    assert (typed["priority"], typed["preemptibility"]) == (["high"], ["non-preemptible"])


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"name": ""}, "name", "Give it a name"),
        ({"image": ""}, "image", "The image must be given"),
        ({"image": "No Image"}, "image", "must be an image name"),
        ({"command": "'"}, "command", "must have matching quotes"),
        ({"scope": "tenant"}, "scope", "Choose who can use it"),
        (
            {"variables-0-name": "9", "variables-0-value": "x"},
            "variables-0-name",
            "must start with a letter",
        ),
    ],
)
def test_its_errors_stand_beside_their_fields(
    cast: Cast, changes: dict[str, str], field: str, words: str
) -> None:
    walk = Walk(cast).send_start()
    given = {"name": "mine", "image": "team/x", "scope": f"project:{cast.team_a.pk}"}
    answer = walk.client.post(asset_url(walk, "environment"), given | changes, headers=HTMX)
    assert answer.status_code == 422
    assert re.search(rf'id="(asset|id)_{field}_error">.*{words}', answer.content.decode())
    assert not Environment.objects.filter(is_built_in=False).exists()


def test_a_name_that_is_there_is_refused_beside_it(cast: Cast) -> None:
    Environment.objects.create(name="mine", image="x", project=cast.team_a)
    walk = Walk(cast).send_start()
    answer = walk.client.post(
        asset_url(walk, "environment"),
        {"name": "mine", "image": "x", "scope": f"project:{cast.team_a.pk}"},
    )
    assert answer.status_code == 422
    assert "There is one called mine already: Project team-a." in answer.content.decode()


def test_environments_of_another_architecture_are_not_offered(cast: Cast) -> None:
    assert "allreduce-single" not in Walk(cast).send_start().text
    assert "allreduce-single" in Walk(cast).send_start(architecture="Standard").text


def test_another_projects_assets_are_not_offered(cast: Cast) -> None:
    Environment.objects.create(name="of-team-b", image="x", project=cast.team_b)
    assert "of-team-b" not in Walk(cast, "alice").send_start(project=str(cast.team_a.pk)).text


def test_the_setup_page_asks_as_much_with_200_assets(cast: Cast) -> None:
    walk = Walk(cast).send_start()
    counts = []
    for number in range(2):
        with CaptureQueriesContext(connection) as captured:
            walk.see("setup")
        counts.append(len(captured))
        names = [f"asset-{number}-{each}" for each in range(200)]
        Environment.objects.bulk_create(
            Environment(name=name, image="x", framework="PyTorch", project=cast.team_a)
            for name in names
        )
        ComputeResource.objects.bulk_create(
            ComputeResource(name=name, project=cast.team_a) for name in names
        )
        of_nfs = {
            "kind": "nfs",
            "origin": {"server": "x", "export": "/x"},
            "path": "/x",
            "project": cast.team_a,
        }
        DataSource.objects.bulk_create(DataSource(name=name, **of_nfs) for name in names)
        Template.objects.bulk_create(Template(name=name, project=cast.team_a) for name in names)
    assert "asset-0-199" in walk.text
    assert counts[0] == counts[1] <= 19
