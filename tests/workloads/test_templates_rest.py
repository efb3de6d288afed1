"""Templates over REST: made, read, deleted, submitted from; what is locked is refused by name."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.models import Cluster
from environments.models import DataSource, Environment, Template
from projects.models import AccessRule
from projects.permissions import VIEWER
from tests.api.calling import Caller, a_body
from tests.cast import Cast
from tests.workloads.templated import save_template
from workloads.models import Workload
from workloads.specs import decode_spec

pytestmark = pytest.mark.django_db


TEMPLATES = "/workload-templates"


def a_template(cast: Cast, name: str = "mine", **more: Any) -> dict[str, Any]:
    spec = {
        "image": "team/mine:1",
        "distributedFramework": "PyTorch",
        "numWorkers": 3,
        "compute": {"gpuDevicesRequest": 1},
    }
    meta = {
        "name": name,
        "description": "about it",
        "scope": "project",
        "projectId": cast.team_a.pk,
    }
    return {"meta": meta, "spec": spec} | more


def test_a_template_is_made_read_and_deleted_over_rest(cast: Cast) -> None:
    bob = Caller(cast.bob)
    answer = bob("POST", TEMPLATES, a_template(cast, locked=["image"]), 202)
    assert (answer["spec"]["image"], answer["spec"]["numWorkers"], answer["locked"]) == (
        "team/mine:1",
        3,
        ["image"],
    )
    assert (
        answer["meta"]["name"],
        answer["meta"]["projectId"],
        answer["distributedFramework"],
    ) == (
        "mine",
        cast.team_a.pk,
        "PyTorch",
    )
    one = f"{TEMPLATES}/{answer['meta']['id']}"
    assert bob("GET", one) == answer
    assert [each["meta"]["name"] for each in bob("GET", TEMPLATES)["entries"]] == ["mine"]
    bob("DELETE", one, status=202)
    bob("GET", one, status=404)


def test_a_template_of_the_page_shows_what_its_assets_give(cast: Cast) -> None:
    template = save_template(cast, image="")
    answer = Caller(cast.bob)("GET", f"{TEMPLATES}/{template.pk}")
    assert answer["spec"]["image"] == "muster/allreduce"
    assert answer["spec"]["compute"]["gpuPortionRequest"] == 0.1


def test_templates_of_other_teams_are_not_there(cast: Cast) -> None:
    template = save_template(cast)
    mallory = Caller(cast.mallory)
    assert mallory("GET", TEMPLATES)["entries"] == []
    mallory("GET", f"{TEMPLATES}/{template.pk}", status=404)
    mallory("DELETE", f"{TEMPLATES}/{template.pk}", status=404)
    vera = Caller(cast.vera)
    assert len(vera("GET", TEMPLATES)["entries"]) == 1
    vera("DELETE", f"{TEMPLATES}/{template.pk}", status=403)
    vera("POST", TEMPLATES, a_template(cast, "other"), status=403)
    assert AccessRule.objects.get(user=cast.vera).role == VIEWER


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"spec": {"image": "Not An Image"}}, "spec.image"),
        ({"spec": {"image": "x", "volumes": []}}, "spec.volumes"),
        ({"spec": None}, "spec"),
        ({"locked": ["everything"]}, "locked"),
        ({"extra": 1}, "extra"),
        ({"meta": {"name": "", "scope": "tenant"}}, "meta.name"),
        ({"meta": {"name": "x"}}, "meta.scope"),
        ({"meta": {"name": "x", "scope": "tenant"}}, "meta.scope"),
        ({"meta": {"name": "x", "scope": "project", "projectId": 10**9}}, "meta.scope"),
    ],
)
def test_what_is_wrong_with_a_body_is_named(
    cast: Cast, changes: dict[str, Any], field: str
) -> None:
    refused = Caller(cast.bob)("POST", TEMPLATES, a_template(cast) | changes, 400)
    assert field in [each["field"] for each in refused["details"]]
    assert not Template.objects.exists()


def test_a_standard_template_has_no_framework(cast: Cast) -> None:
    answer = Caller(cast.bob)(
        "POST",
        TEMPLATES,
        a_template(cast) | {"spec": {"image": "x", "completions": 4, "parallelism": 2}},
        202,
    )
    assert (
        answer["architecture"],
        answer["distributedFramework"],
        answer["spec"]["completions"],
    ) == (
        "Standard",
        None,
        4,
    )


def from_template(cast: Cast, template: Template, **spec: Any) -> dict[str, Any]:
    return a_body(cast) | {"templateId": str(template.pk), "spec": spec}


def test_a_submission_is_merged_over_its_template(cast: Cast) -> None:
    template = save_template(cast)
    body = from_template(cast, template, numWorkers=7, compute={"cpuCoreRequest": 2})
    answer = Caller(cast.bob)("POST", "/workloads/distributed", body, 202)
    spec = decode_spec(Workload.objects.get().spec)
    assert (spec.workers, spec.setup.environment.image, spec.setup.compute.cpu_request) == (
        7,
        "team/mine:1",
        "2",
    )
    assert spec.setup.compute.gpus.portion is not None
    used_kinds = {
        row.kind: row.name for row in Workload.objects.get(pk=answer["workloadId"]).assets.all()
    }
    assert used_kinds == {
        "environment": "allreduce",
        "compute": "small-fraction",
        "template": "mine",
    }


@pytest.mark.parametrize(
    ("locked", "spec", "field"),
    [
        ("image", {"image": "evil/image"}, "spec.image"),
        ("workers", {"numWorkers": 100}, "spec.numWorkers"),
        (
            "compute_choice",
            {"compute": {"gpuDevicesRequest": 8, "gpuPortionRequest": 1.0}},
            "spec.compute",
        ),
        (
            "variables",
            {"environmentVariables": [{"name": "B", "value": "2"}]},
            "spec.environmentVariables",
        ),
        ("preemptibility", {"preemptibility": "non-preemptible"}, "spec.preemptibility"),
        ("radar", {"radar": False}, "spec.radar"),
        ("hang_seconds", {"radarHangSeconds": 60}, "spec.radarHangSeconds"),
    ],
)
def test_a_change_of_what_is_locked_is_refused_by_name(
    cast: Cast, locked: str, spec: dict[str, Any], field: str
) -> None:
    template = save_template(cast, locked)
    bob = Caller(cast.bob)
    refused = bob("POST", "/workloads/distributed", from_template(cast, template, **spec), 400)
    assert [each["field"] for each in refused["details"]] == [field]
    assert "is locked by the template mine" in refused["details"][0]["message"]
    assert not Workload.objects.exists()
    bob("POST", "/workloads/distributed", from_template(cast, template), 202)


def test_a_masters_own_spec_does_not_get_round_a_lock(cast: Cast) -> None:
    template = save_template(cast, "image")
    body = from_template(cast, template) | {
        "masterSpecSameAsWorker": False,
        "masterSpec": {"image": "evil/image"},
    }
    refused = Caller(cast.bob)("POST", "/workloads/distributed", body, 400)
    assert refused["details"][0]["field"] == "spec.image"


@pytest.mark.parametrize("key", ["no-id", "580512c6-817c-495f-b4b4-66de5d214fe8", "theirs"])
def test_a_template_that_cannot_be_used_is_refused(cast: Cast, key: str) -> None:
    theirs = Template.objects.create(name="theirs", project=cast.team_b)
    body = a_body(cast) | {"templateId": str(theirs.pk) if key == "theirs" else key}
    refused = Caller(cast.bob)("POST", "/workloads/distributed", body, 400)
    assert refused["details"][0]["field"] == "templateId"
    assert "theirs" not in refused["message"]


def test_a_template_of_the_other_architecture_is_refused(cast: Cast) -> None:
    body = from_template(cast, save_template(cast), image="x")
    assert (
        "another address"
        in Caller(cast.bob)("POST", "/workloads/trainings", body, 400)["details"][0]["message"]
    )


def test_an_asset_that_is_gone_has_to_be_replaced_by_the_body(cast: Cast) -> None:
    environment = Environment.objects.create(
        name="theirs", image="x", framework="PyTorch", project=cast.team_a
    )
    template = save_template(cast, image="", environment_choice=str(environment.pk))
    Environment.objects.filter(pk=environment.pk).delete()
    bob = Caller(cast.bob)
    refused = bob("POST", "/workloads/distributed", from_template(cast, template), 400)
    assert "The template's environment is not there any more" in refused["details"][0]["message"]
    bob("POST", "/workloads/distributed", from_template(cast, template, image="team/own"), 202)


@pytest.mark.parametrize("others", [0, 1])
def test_only_what_the_asker_may_see_is_named_and_the_rest_is_counted(
    cast: Cast, others: int
) -> None:
    environment = Environment.objects.create(
        name="hush-env", image="x", framework="PyTorch", project=cast.team_b
    )
    sources = [
        DataSource.objects.create(
            name=f"hush-{n}", kind="nfs", path="/x", origin={}, project=cast.team_b
        )
        for n in range(2 + others)
    ]
    template = save_template(cast)
    names = {str(each.pk): each.name for each in (environment, *sources)}
    template.form["setup"] |= {"image": [""], "environment_choice": [str(environment.pk)]}
    template.form["setup"]["data_sources"] = [*map(str, (each.pk for each in sources)), "by hand"]
    template.form["names"] = names
    template.project = None
    template.save()
    if others:
        DataSource.objects.filter(pk=sources[0].pk).update(
            project=None, cluster=Cluster.objects.create(name="other", server="https://x")
        )
        AccessRule.objects.create(
            user=cast.bob, cluster=Cluster.objects.get(name="other"), role=VIEWER
        )
    answer = Caller(cast.bob)("POST", "/workloads/distributed", from_template(cast, template), 400)[
        "message"
    ]
    assert "The template's environment is not there any more, or not for use in team-a." in answer
    assert (
        f"3 {'more ' if others else ''}of the template's data sources are not there any more"
        in answer
    )
    assert ("data source hush-0 is" in answer) == bool(others)
    assert answer.count("hush-") == others
    for_alice = Caller(cast.alice)(
        "POST", "/workloads/distributed", from_template(cast, template), 400
    )["message"]
    assert "environment hush-env is not there any more, or not for use in team-a" in for_alice
    assert "Another data source of the template is" in for_alice


def test_a_list_of_templates_asks_as_much_with_200(cast: Cast) -> None:
    bob = Caller(cast.bob)
    # The first call of all notes where the token is used.
    bob("GET", TEMPLATES)
    counts = []
    for number in range(2):
        with CaptureQueriesContext(connection) as captured:
            bob("GET", f"{TEMPLATES}?limit=200")
        counts.append(len(captured))
        Template.objects.bulk_create(
            Template(name=f"t-{number}-{each}", project=cast.team_a) for each in range(200)
        )
    assert counts[0] == counts[1]


def test_what_clears_nothing_keeps_the_assets(cast: Cast) -> None:
    template = save_template(cast, image="")
    alice, at = Caller(cast.alice), f"{TEMPLATES}/{template.pk}"
    form = template.form
    for paths in (["spec.args"], ["masterSpec"], ["spec.compute.cpuMemoryLimit", "master"]):
        alice("PATCH", at, {"fieldsToClear": paths}, 202)
        template.refresh_from_db()
        assert template.form == form, paths
    alice("PATCH", at, {"fieldsToClear": ["spec.numWorkers"]}, 202)
    template.refresh_from_db()
    assert template.form != form
