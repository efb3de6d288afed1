"""What a workload was made from: remembered with it, shown with it, and chosen again for a copy."""

import re
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.errors import Clash
from environments import actions as assets
from environments.credentials import secret_name
from environments.models import ComputeResource, Credential, DataSource, Environment
from projects.models import Project
from projects.scopes import project_scope
from tests.api.calling import Caller, a_body
from tests.cast import Cast, a_spec
from tests.workloads.wizarding import Walk, key_of
from workloads import actions, asset_uses
from workloads.asset_references import AssetReference
from workloads.models import UsedAsset, Workload
from workloads.specs import Environment as Environment_
from workloads.specs import MasterChanges, Setup, Variable, VariableSource, decode_spec

pytestmark = pytest.mark.django_db
CREDENTIAL = {"kind": "generic", "public": {"keys": ["TOKEN"]}, "secret": '{"TOKEN": "s3cret"}'}


def create_assets(project: Project) -> tuple[Environment, ComputeResource]:
    """An environment and a compute resource of a project."""
    environment = Environment.objects.create(
        name="mine", image="team/mine:1", command="run it", framework="PyTorch", project=project
    )
    size = ComputeResource.objects.create(
        name="fifth", gpu_devices=1, gpu_portion=Decimal("0.2"), project=project
    )
    return environment, size


def submit_by_wizard(cast: Cast, **changes: Any) -> Workload:
    """A workload that bob made in the wizard."""
    Walk(cast).send_start().send_setup(**changes).send().send()
    return Workload.objects.latest("created_at")


def rows(workload: Workload) -> list[tuple[str, str, int, str]]:
    return list(workload.assets.order_by("kind").values_list("kind", "name", "version", "part"))


def submit_with_assets(cast: Cast) -> tuple[Environment, ComputeResource, Workload]:
    environment, size = create_assets(cast.team_a)
    return (
        environment,
        size,
        submit_by_wizard(cast, environment_choice=str(environment.pk), compute_choice=str(size.pk)),
    )


def change_asset(asset: Environment | ComputeResource, cast: Cast, **values: Any) -> None:
    assets.change(asset, values, scope=project_scope(cast.team_a), user=cast.bob)


def test_a_workload_of_the_wizard_remembers_its_assets(cast: Cast) -> None:
    _, _, workload = submit_with_assets(cast)
    assert rows(workload) == [("compute", "fifth", 1, ""), ("environment", "mine", 1, "")]


def test_own_values_are_made_from_nothing(cast: Cast) -> None:
    workload = submit_by_wizard(
        cast, environment_choice="custom", image="team/own", compute_choice="custom"
    )
    assert rows(workload) == []


def test_what_was_refused_remembers_nothing(cast: Cast) -> None:
    submit_with_assets(cast)
    walk = Walk(cast).send_start(name="train1")
    assert walk.page.status_code == 422
    assert UsedAsset.objects.values("workload").distinct().count() == 1


def test_a_change_of_an_asset_changes_no_workload(cast: Cast) -> None:
    environment, size, workload = submit_with_assets(cast)
    before = Workload.objects.filter(pk=workload.pk).values().get()
    change_asset(environment, cast, image="team/other:2")
    change_asset(size, cast, gpu_devices=8, gpu_portion=None)
    assert Workload.objects.filter(pk=workload.pk).values().get() == before
    assert decode_spec(workload.spec).setup.environment.image == "team/mine:1"


def fetch_details(cast: Cast, workload: Workload, user: str = "bob") -> str:
    client = Client()
    client.force_login(getattr(cast, user))
    return re.sub(r"\s+", " ", client.get(f"/workloads/{workload.pk}/details").content.decode())


def test_the_details_name_the_version_and_whether_it_changed(cast: Cast) -> None:
    environment, size, workload = submit_with_assets(cast)
    change_asset(environment, cast, image="team/other:2")
    text = fetch_details(cast, workload)
    assert (
        f'<a href="/environments/{environment.pk}">mine</a>, version 1 (it has changed since)'
        in text
    )
    assert f'<a href="/compute-resources/{size.pk}">fifth</a>, version 1</dd>' in text


def test_an_asset_that_is_gone_keeps_its_name_without_a_link(cast: Cast) -> None:
    environment, _, workload = submit_with_assets(cast)
    assets.remove(environment, cast.bob)
    text = fetch_details(cast, workload)
    assert "<dd>mine, version 1</dd>" in text


def test_an_asset_that_the_reader_may_not_see_is_no_link(cast: Cast) -> None:
    environment, _, workload = submit_with_assets(cast)
    Environment.objects.filter(pk=environment.pk).update(project=cast.team_b)
    text = fetch_details(cast, workload)
    assert str(environment.pk) not in text


def test_a_credential_is_remembered_whoever_named_its_secret(cast: Cast) -> None:
    credential = Credential.objects.create(name="wandb", project=cast.team_a, **CREDENTIAL)
    secret = {"name": secret_name(credential), "key": "TOKEN"}
    body = a_body(cast, environmentVariables=[{"name": "WANDB", "secret": secret}])
    answer = Caller(cast.bob)("POST", "/workloads/distributed", body, 202)
    assert rows(Workload.objects.get(pk=answer["workloadId"])) == [("credential", "wandb", 1, "")]


def test_a_credential_of_the_master_alone_is_its_part(cast: Cast) -> None:
    credential = Credential.objects.create(name="wandb", project=cast.team_a, **CREDENTIAL)
    variable = Variable(
        "WANDB", source=VariableSource.SECRET, object_name=secret_name(credential), key="TOKEN"
    )
    spec = a_spec(cast.team_a, master=MasterChanges(variables=(variable,)))
    assert rows(actions.submit(spec, project=cast.team_a, user=cast.bob)) == [
        ("credential", "wandb", 1, "master")
    ]


def test_another_projects_credential_is_not_told(cast: Cast) -> None:
    credential = Credential.objects.create(name="theirs", project=cast.team_b, **CREDENTIAL)
    variable = Variable(
        "WANDB", source=VariableSource.SECRET, object_name=secret_name(credential), key="TOKEN"
    )
    spec = a_spec(cast.team_a, master=MasterChanges(variables=(variable,)))
    assert rows(actions.submit(spec, project=cast.team_a, user=cast.bob)) == []


def a_registry(server: str, name: str = "pulls", **scope: Any) -> Credential:
    public = {"server": server, "username": "robot"}
    return Credential.objects.create(
        name=name, kind="registry", public=public, secret='{"password": "s3cret"}', **scope
    )


@pytest.mark.parametrize(
    ("server", "image", "is_used"),
    [
        ("registry.example.com:5000", "registry.example.com:5000/team/train:1", True),
        ("registry.example.com/team", "registry.example.com/team/train@sha256:" + 64 * "0", True),
        ("registry.example.com/other", "registry.example.com/team/train", False),
        ("registry.example.com", "registry.example.com.evil/team/train", False),
        ("docker.io", "team/train", True),
        ("index.docker.io", "python:3.12", True),
        ("docker.io", "registry-1.docker.io/team/train", True),
        ("registry.example.com", "team/train", False),
        ("localhost", "localhost/train", True),
    ],
)
def test_the_registry_that_an_image_is_pulled_from_is_remembered(
    cast: Cast, server: str, image: str, is_used: bool
) -> None:
    a_registry(server, project=cast.team_a)
    a_registry(server, "theirs", project=cast.team_b)
    spec = a_spec(cast.team_a, setup=Setup(Environment_(image)))
    workload = actions.submit(spec, project=cast.team_a, user=cast.bob)
    assert rows(workload) == ([("credential", "pulls", 1, "")] if is_used else [])


def test_the_registry_of_a_workload_is_not_deleted_under_it(cast: Cast) -> None:
    registry = a_registry("registry.example.com", project=cast.team_a)
    master = MasterChanges(image="registry.example.com/lead")
    workload = actions.submit(
        a_spec(cast.team_a, "train7", master=master), project=cast.team_a, user=cast.bob
    )
    assert rows(workload) == [("credential", "pulls", 1, "master")]
    with pytest.raises(Clash, match="it is used by workload train7"):
        assets.remove(registry, cast.alice)


def test_an_asset_of_workers_and_master_is_remembered_once(cast: Cast) -> None:
    environment, _ = create_assets(cast.team_a)
    twice = [
        asset_uses.build_asset_reference(environment, "master"),
        asset_uses.build_asset_reference(environment),
    ]
    assert rows(
        actions.submit(a_spec(cast.team_a), project=cast.team_a, user=cast.bob, assets=twice)
    ) == [("environment", "mine", 1, "")]


def test_users_of_an_asset_are_those_that_one_may_see(cast: Cast) -> None:
    environment = Environment.objects.create(name="everybodys", image="x")
    for number, project in enumerate((cast.team_a, cast.team_a, cast.team_b)):
        chosen = [AssetReference("environment", environment.pk, environment.name, 1)]
        actions.submit(
            a_spec(project, f"train{number}"), project=project, user=cast.alice, assets=chosen
        )
    assert [each.name for each in asset_uses.list_workloads_using(environment.pk, cast.bob)] == [
        "train1",
        "train0",
    ]
    assert asset_uses.count_workloads([environment.pk], cast.bob) == {environment.pk: 2}
    assert asset_uses.count_workloads([environment.pk]) == {environment.pk: 3}


def test_counting_uses_asks_once_however_many_there_are(cast: Cast) -> None:
    environments = [
        Environment.objects.create(name=f"env-{number}", image="x") for number in range(20)
    ]
    workload = actions.submit(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    UsedAsset.objects.bulk_create(
        UsedAsset(workload=workload, kind="environment", asset=each.pk, name=each.name)
        for each in environments
    )
    cast.bob.refresh_from_db()
    assert cast.bob.rights.everything
    with CaptureQueriesContext(connection) as captured:
        counted = asset_uses.count_workloads([each.pk for each in environments], cast.bob)
    assert (len(counted), len(captured)) == (20, 1)


def open_copy(cast: Cast, workload: Workload) -> Walk:
    return Walk(cast, query=f"?copy={workload.pk}")


def test_a_copy_chooses_the_same_assets(cast: Cast) -> None:
    environment, size, workload = submit_with_assets(cast)
    # As good as the one that was used, and not the one that was.
    Environment.objects.create(
        name="also", image="team/mine:1", command="run it", framework="PyTorch", project=cast.team_a
    )
    setup = open_copy(cast, workload).draft.data["setup"]
    assert (setup["environment_choice"], setup["compute_choice"]) == (
        [str(environment.pk)],
        [str(size.pk)],
    )


def test_a_copy_keeps_its_environment_and_what_it_gave_then(cast: Cast) -> None:
    environment, _, workload = submit_with_assets(cast)
    change_asset(environment, cast, image="team/other:2")
    walk = open_copy(cast, workload)
    setup = walk.draft.data["setup"]
    assert (setup["environment_choice"], setup["image"]) == ([str(environment.pk)], ["team/mine:1"])


def test_a_copy_says_which_asset_has_changed(cast: Cast) -> None:
    _, size, workload = submit_with_assets(cast)
    change_asset(size, cast, gpu_devices=8, gpu_portion=None)
    walk = open_copy(cast, workload)
    assert walk.draft.data["setup"]["compute_choice"] == ["custom"]
    assert (
        "The compute resource fifth has changed since: what it gave stands in the form as own "
        "values." in walk.text
    )


def test_a_copy_says_which_asset_is_not_for_use_any_more(cast: Cast) -> None:
    environment, _, workload = submit_with_assets(cast)
    assets.remove(environment, cast.bob)
    walk = open_copy(cast, workload)
    assert walk.draft.data["setup"]["environment_choice"] == ["custom"]
    assert "The environment mine is not for use here any more" in walk.text


def test_a_copy_chooses_its_data_sources(cast: Cast) -> None:
    source = DataSource.objects.create(
        name="images",
        kind="nfs",
        origin={"server": "nfs.example.com", "export": "/images"},
        path="/images",
        project=cast.team_a,
    )
    workload = submit_by_wizard(
        cast, data_sources=[str(source.pk)], **{f"source_path-{source.pk}": "/elsewhere"}
    )
    setup = open_copy(cast, workload).draft.data["setup"]
    assert setup["data_sources"] == [str(source.pk)]
    assert setup[f"source_path-{source.pk}"] == ["/elsewhere"]
    assert not any(name.startswith("volumes-") for name in setup)


def test_built_in_assets_are_remembered_as_well(cast: Cast) -> None:
    workload = submit_by_wizard(cast)
    assert [name for _, name, _, _ in rows(workload)] == ["small-fraction", "allreduce"]
    assert str(workload.assets.get(kind="environment").asset) == key_of("allreduce")
