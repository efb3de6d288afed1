"""Templates: a workload is saved as one, started from one; what is locked stays, on pages and over REST."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from environments import actions as assets
from environments.models import ComputeResource, Environment, Template
from projects.models import AccessRule
from projects.permissions import VIEWER
from projects.scopes import TENANT, of_project
from tests.api.calling import Caller, a_body
from tests.cast import Cast, a_spec
from tests.workloads.wizarding import Walk, form_of, key_of
from workloads import actions
from workloads.forms import locks
from workloads.forms.setup import SetupForm
from workloads.models import Draft, Workload
from workloads.specs import Configuration, from_json

pytestmark = pytest.mark.django_db


def filled(cast: Cast, user: str = "alice", **changes: Any) -> Walk:
    """At the review, with the walk's answers and these."""
    walk = Walk(cast, user).started(project=str(cast.team_a.pk)).set_up(**({"image": "team/mine:1", "workers": "3"} | changes))
    return walk.send() if walk.step == "master" else walk


def saved(cast: Cast, *locked: str, name: str = "mine", scope: str = "", user: str = "alice", **changes: Any) -> Template:
    """A template that somebody made of the wizard's answers."""
    walk = filled(cast, user, **changes)
    given = {"name": name, "description": "about it", "scope": scope or f"project:{cast.team_a.pk}", "locked": list(locked)}
    answer = walk.client.post(f"/workloads/new/{walk.draft.pk}/template", given)
    assert answer.status_code == 302, answer.content.decode()
    return Template.objects.get(name=name)


def used(cast: Cast, template: Template, user: str = "bob", **start: str) -> Walk:
    """At the setup, started from a template."""
    return Walk(cast, user).started(template=str(template.pk), **start)


def the_spec(walk: Walk) -> Any:
    while walk.step != "review":
        assert walk.page.status_code == 200, re.findall(r'_error">.*', walk.text)
        walk.send()
    walk.send()
    return from_json(Workload.objects.latest("created_at").spec)


# ---- Saving one ----


def test_the_review_saves_a_template_and_stays(cast: Cast) -> None:
    walk = filled(cast)
    assert f"/workloads/new/{walk.draft.pk}/template" in walk.text
    template = saved(cast, "image")
    assert (template.project, template.created_by) == (cast.team_a, cast.alice)
    assert (template.architecture, template.framework) == ("Distributed", "PyTorch")
    assert (template.locked, template.form["setup"]["image"]) == (["image"], ["team/mine:1"])
    assert "project" not in template.form["start"]
    assert "name" not in template.form["start"]


def test_a_workload_is_saved_as_a_template(cast: Cast) -> None:
    workload = actions.submit(a_spec(cast.team_a), project=cast.team_a, by=cast.bob)
    client = Client()
    client.force_login(cast.bob)
    assert f"?copy={workload.pk}&amp;as=template" in client.get(f"/workloads/{workload.pk}").content.decode()
    page = client.get(f"/workloads/new?copy={workload.pk}&as=template", follow=True)
    assert page.status_code == 200
    given = {"name": "again", "scope": f"project:{cast.team_a.pk}", "locked": ["section:compute"]}
    assert client.post(page.request["PATH_INFO"], given, follow=True).status_code == 200
    template = Template.objects.get()
    assert set(template.locked) == {each.key for each in locks.SECTIONS["compute"][1]}
    assert the_spec(used(cast, template, name="train2")).setup == a_spec(cast.team_a).setup


def test_the_page_says_what_each_thing_would_be_locked_to(cast: Cast) -> None:
    walk = filled(cast)
    text = walk.client.get(f"/workloads/new/{walk.draft.pk}/template").content.decode()
    assert re.search(r'id="lock-image">\s*team/mine:1', text)
    assert re.search(r'id="lock-compute_choice">\s*small-fraction: 10 % of a GPU', text)
    assert 'id="lock-runs"' not in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"name": ""}, "Give it a name"), ({"scope": "tenant"}, "Choose who can use it"), ({"locked": ["nothing"]}, "Select a valid choice")],
)
def test_what_is_wrong_with_it_is_said(cast: Cast, changes: dict[str, Any], words: str) -> None:
    walk = Walk(cast).started().set_up().send()
    given = {"name": "mine", "scope": f"project:{cast.team_a.pk}", "locked": []} | changes
    answer = walk.client.post(f"/workloads/new/{walk.draft.pk}/template", given)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not Template.objects.exists()


def test_a_name_that_is_taken_is_refused_beside_it(cast: Cast) -> None:
    saved(cast)
    walk = filled(cast)
    answer = walk.client.post(f"/workloads/new/{walk.draft.pk}/template", {"name": "mine", "scope": f"project:{cast.team_a.pk}"})
    assert answer.status_code == 422
    assert "There is one called mine already" in answer.content.decode()


def test_who_may_make_no_templates_is_told_who_can(cast: Cast) -> None:
    AccessRule.objects.filter(user=cast.bob).update(role="l2-researcher")
    walk = Walk(cast).started().set_up().send()
    assert "Save as template" not in walk.text
    assert walk.client.get(f"/workloads/new/{walk.draft.pk}/template").status_code == 403
    assert walk.client.get("/templates/design").status_code == 403


def test_a_draft_is_saved_by_its_owner_only(cast: Cast) -> None:
    walk = filled(cast)
    other = Client()
    other.force_login(cast.bob)
    assert other.get(f"/workloads/new/{walk.draft.pk}/template").status_code == 404
    assert other.get(f"/workloads/new/{walk.draft.pk}/templates").status_code == 404


# ---- Starting from one ----


def test_the_first_step_shows_the_templates_of_the_project(cast: Cast) -> None:
    saved(cast)
    Template.objects.create(name="of-team-b", project=cast.team_b)
    text = Walk(cast).text
    assert re.search(r'name="template" value="scratch"[^>]* checked', text)
    assert "mine" in text
    assert "Distributed, PyTorch, Workers &amp; master" in text
    assert "of-team-b" not in text


def test_a_template_fills_the_steps(cast: Cast) -> None:
    walk = used(cast, saved(cast))
    assert walk.step == "setup"
    assert 'value="team/mine:1"' in walk.text
    spec = the_spec(walk)
    assert (spec.workers, spec.setup.environment.image) == (3, "team/mine:1")
    made = Workload.objects.get().assets.get(kind="template")
    assert (made.name, made.version) == ("mine", 1)


def test_what_is_open_can_be_changed(cast: Cast) -> None:
    spec = the_spec(used(cast, saved(cast, "image")).send(workers="5"))
    assert (spec.workers, spec.setup.environment.image) == (5, "team/mine:1")


def test_the_table_s_use_opens_the_wizard_filled_in(cast: Cast) -> None:
    template = saved(cast, configuration="workers-only")
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
    walk = Walk(cast).started(template=str(theirs.pk))
    assert walk.page.status_code == 422
    assert "That template is not there any more, or not for use in this project." in walk.text


def test_a_template_of_another_kind_is_refused_beside_it(cast: Cast) -> None:
    walk = Walk(cast).started(template=str(saved(cast).pk), architecture="Standard")
    assert walk.page.status_code == 422
    assert "The template mine is for Distributed, PyTorch, Workers &amp; master." in walk.text


def test_back_to_scratch_is_every_field_at_its_default(cast: Cast) -> None:
    walk = used(cast, saved(cast, "image")).see("start").send(template="scratch")
    assert walk.step == "setup"
    assert "team/mine:1" not in walk.text
    assert "Set by the template" not in walk.text


def test_a_refresh_keeps_what_was_typed_over_a_template(cast: Cast) -> None:
    walk = used(cast, saved(cast)).send(workers="many", go="here").see("setup")
    assert 'value="many"' in walk.text


def test_the_cards_follow_the_project_that_is_being_chosen(cast: Cast) -> None:
    saved(cast)
    Template.objects.create(name="of-team-b", project=cast.team_b)
    walk = Walk(cast, "alice")
    at = f"/workloads/new/{walk.draft.pk}/templates?project="
    assert "of-team-b" in walk.client.get(f"{at}{cast.team_b.pk}").content.decode()
    assert "of-team-b" not in walk.client.get(f"{at}{cast.team_a.pk}").content.decode()


# ---- What is locked ----


def test_a_locked_field_is_shown_as_such_and_is_not_sent(cast: Cast) -> None:
    walk = used(cast, saved(cast, "image", "environment_choice", "variables", **{"variables-0-name": "A", "variables-0-value": "1"}))
    assert walk.text.count("Set by the template mine.") == 3
    assert re.search(r'name="image"[^>]* disabled', walk.text)
    assert "disabled" in walk.text.split('data-rows="variables"')[1].split(">")[0]
    assert not {"image", "environment_choice", "variables-0-name"} & form_of(walk.page).keys()


@pytest.mark.parametrize(
    ("locked", "tampered"),
    [
        ("image", {"image": "evil/image"}),
        ("environment_choice", {"environment_choice": "custom"}),
        ("compute_choice", {"compute_choice": "custom", "gpu_devices": "8", "gpu_share": "whole", "cpu_request": "64"}),
        ("workers", {"workers": "100"}),
        ("variables", {"variables-0-name": "B", "variables-0-value": "2"}),
        ("section:environment", {"command": "sh -c 'evil'", "security": "x", "host_network": "on"}),
        ("volumes", {"volumes-0-kind": "hostPath", "volumes-0-source": "/", "volumes-0-path": "/host"}),
        ("priority", {"priority": "very-high"}),
        ("preemptibility", {"preemptibility": "non-preemptible"}),
    ],
)
def test_a_tampered_request_takes_the_templates_value(cast: Cast, locked: str, tampered: dict[str, str]) -> None:
    template = saved(cast, locked)
    untouched = the_spec(used(cast, template))
    Workload.objects.all().delete()
    walk = used(cast, template)
    walk.client.post(f"{walk.page.request['PATH_INFO']}/typed", tampered | {"at": "1"})
    assert the_spec(walk.send(**tampered)) == untouched


def test_the_configuration_can_be_locked(cast: Cast) -> None:
    walk = Walk(cast, "alice").started(configuration="workers-only", project=str(cast.team_a.pk)).set_up()
    given = {"name": "mine", "scope": "tenant", "locked": ["configuration"]}
    walk.client.post(f"/workloads/new/{walk.draft.pk}/template", given)
    again = used(cast, Template.objects.get())
    again.see("start").send(configuration="workers-and-master")
    assert the_spec(again).configuration is Configuration.WORKERS_ONLY


@pytest.mark.parametrize("locked", ["image", "master"])
def test_what_is_locked_is_so_for_the_master(cast: Cast, locked: str) -> None:
    walk = used(cast, saved(cast, locked)).send()
    assert walk.step == "master"
    assert "Set by the template mine." in walk.text
    spec = the_spec(walk.send(differs=["image"], image="evil/image"))
    assert spec.master_setup.environment.image == "team/mine:1"


def test_an_older_draft_keeps_the_template_that_it_was_filled_in_with(cast: Cast) -> None:
    template = saved(cast, "image")
    walk = used(cast, template)
    form = template.form | {"setup": template.form["setup"] | {"image": ["team/newer:2"]}}
    assets.change(template, {"form": form}, scope=template.scope, by=cast.alice)
    assert the_spec(walk).setup.environment.image == "team/mine:1"
    assert Workload.objects.get().assets.get(kind="template").version == 1


def test_deleting_a_template_takes_nothing_from_who_started_from_it(cast: Cast) -> None:
    template = saved(cast)
    walk = used(cast, template)
    assets.remove(template, cast.alice)
    walk = walk.send()
    assert walk.step == "start"
    assert walk.send(template="scratch").step == "setup"
    assert 'value="team/mine:1"' in walk.text


# ---- Assets that a template chooses ----


def test_an_environment_that_cannot_be_used_is_said_and_open(cast: Cast) -> None:
    environment = Environment.objects.create(name="theirs", image="x", framework="PyTorch", project=cast.team_a)
    template = saved(cast, "environment_choice", image="", environment_choice=str(environment.pk))
    Environment.objects.filter(pk=environment.pk).delete()
    walk = used(cast, template)
    assert "The template&#x27;s environment theirs is not there any more, or not for use in team-a. Choose another." in walk.text
    assert walk.send().page.status_code == 422
    assert the_spec(walk.send(environment_choice=key_of("allreduce"))).setup.environment.image == "muster/allreduce"


def test_a_template_holds_the_assets_that_it_names(cast: Cast) -> None:
    size = ComputeResource.objects.create(name="fifth", gpu_devices=1, project=cast.team_a)
    saved(cast, compute_choice=str(size.pk))
    client = Client()
    client.force_login(cast.alice)
    assert client.post(f"/compute-resources/{size.pk}/delete").status_code == 409
    assert ComputeResource.objects.filter(pk=size.pk).exists()


# ---- Changing one ----


def redesigned(cast: Cast, template: Template, user: str = "alice") -> Walk:
    walk = Walk(cast, user)
    walk.page = walk.client.get(f"/templates/{template.pk}/design", follow=True)
    return walk


def to_save(walk: Walk) -> Walk:
    for _ in range(5):
        if walk.step == "template":
            return walk
        walk.send()
    raise AssertionError(walk.text)


def test_a_template_is_made_from_nothing(cast: Cast) -> None:
    walk = Walk(cast, "alice")
    walk.page = walk.client.get("/templates/design", follow=True)
    assert 'name="name"' not in walk.text
    assert 'name="template"' not in walk.text
    walk = to_save(walk.send(architecture="Distributed", project=str(cast.team_a.pk)).set_up())
    walk.page = walk.client.post(walk.page.request["PATH_INFO"], {"name": "new", "scope": "tenant", "locked": ["workers"]}, follow=True)
    assert walk.page.request["PATH_INFO"] == "/templates"
    assert Template.objects.get().locked == ["workers"]
    assert not Workload.objects.exists()


def test_a_template_is_changed_in_the_wizard(cast: Cast) -> None:
    template = saved(cast, "image")
    walk = to_save(redesigned(cast, template).send().send(image="team/newer:2"))
    text = walk.text
    assert 'value="mine"' in text
    assert re.search(r'value="image"[^>]* checked', text)
    sealed = re.search(r'name="started_from" value="([^"]+)"', text)
    assert sealed
    given = {"name": "mine", "scope": f"project:{cast.team_a.pk}", "locked": ["workers"], "started_from": sealed[1]}
    assert walk.client.post(walk.page.request["PATH_INFO"], given).status_code == 302
    template.refresh_from_db()
    assert (template.version, template.locked, template.form["setup"]["image"]) == (2, ["workers"], ["team/newer:2"])
    assert not Draft.objects.filter(data__has_key="making").exists()


def test_the_second_of_two_learns_what_changed_meanwhile(cast: Cast) -> None:
    template = saved(cast, "image")
    walk = to_save(redesigned(cast, template).send().send(image="team/newer:2"))
    sealed = re.search(r'name="started_from" value="([^"]+)"', walk.text)
    assert sealed
    form = template.form | {"setup": template.form["setup"] | {"workers": ["9"]}}
    assets.change(template, {"form": form}, scope=template.scope, by=cast.bob)
    given = {"name": "mine", "scope": f"project:{cast.team_a.pk}", "locked": ["image"], "started_from": sealed[1]}
    late = walk.client.post(walk.page.request["PATH_INFO"], given)
    assert late.status_code == 409
    text = late.content.decode()
    assert re.search(r"Workers</strong>: was <q>3</q>, is now <q>9</q>", text)
    assert "by bob" in text
    again = re.search(r'name="started_from" value="([^"]+)"', text)
    assert again
    assert walk.client.post(walk.page.request["PATH_INFO"], given | {"started_from": again[1]}).status_code == 302
    template.refresh_from_db()
    assert (template.version, template.form["setup"]["image"]) == (3, ["team/newer:2"])


def test_a_template_that_is_not_ones_own_to_change(cast: Cast) -> None:
    template = saved(cast, scope="tenant")
    client = Client()
    client.force_login(cast.bob)
    assert client.get(f"/templates/{template.pk}/design").status_code == 403
    AccessRule.objects.filter(user=cast.mallory).delete()
    client.force_login(cast.mallory)
    assert client.get(f"/templates/{template.pk}/design").status_code == 404


def test_a_copied_workload_starts_from_its_template_while_that_is_as_it_was(cast: Cast) -> None:
    template = saved(cast, "image")
    the_spec(used(cast, template))
    query = f"?copy={Workload.objects.get().pk}"
    assert Walk(cast, query=query).draft.data["template"]["id"] == str(template.pk)
    assets.change(template, {"locked": []}, scope=template.scope, by=cast.alice)
    assert "template" not in Walk(cast, query=query).draft.data


def test_the_first_step_asks_as_much_with_200_templates(cast: Cast) -> None:
    walk = Walk(cast)
    counts = []
    for number in range(2):
        with CaptureQueriesContext(connection) as captured:
            walk.see("start")
        counts.append(len(captured))
        Template.objects.bulk_create(Template(name=f"t-{number}-{each}", project=cast.team_a) for each in range(200))
    assert "t-0-199" in walk.text
    assert counts[0] == counts[1] <= 16


# ---- Over REST ----

TEMPLATES = "/workload-templates"


def a_template(cast: Cast, name: str = "mine", **more: Any) -> dict[str, Any]:
    spec = {"image": "team/mine:1", "distributedFramework": "PyTorch", "numWorkers": 3, "compute": {"gpuDevicesRequest": 1}}
    meta = {"name": name, "description": "about it", "scope": "project", "projectId": cast.team_a.pk}
    return {"meta": meta, "spec": spec} | more


def test_a_template_is_made_read_and_deleted_over_rest(cast: Cast) -> None:
    bob = Caller(cast.bob)
    told = bob("POST", TEMPLATES, a_template(cast, locked=["image"]), 202)
    assert (told["spec"]["image"], told["spec"]["numWorkers"], told["locked"]) == ("team/mine:1", 3, ["image"])
    assert (told["meta"]["name"], told["meta"]["projectId"], told["distributedFramework"]) == ("mine", cast.team_a.pk, "PyTorch")
    one = f"{TEMPLATES}/{told['meta']['id']}"
    assert bob("GET", one) == told
    assert [each["meta"]["name"] for each in bob("GET", TEMPLATES)["templates"]] == ["mine"]
    bob("DELETE", one, status=202)
    bob("GET", one, status=404)


def test_a_template_of_the_page_shows_what_its_assets_give(cast: Cast) -> None:
    template = saved(cast, image="")
    told = Caller(cast.bob)("GET", f"{TEMPLATES}/{template.pk}")
    assert told["spec"]["image"] == "muster/allreduce"
    assert told["spec"]["compute"]["gpuPortionRequest"] == 0.1


def test_templates_of_other_teams_are_not_there(cast: Cast) -> None:
    template = saved(cast)
    mallory = Caller(cast.mallory)
    assert mallory("GET", TEMPLATES)["templates"] == []
    mallory("GET", f"{TEMPLATES}/{template.pk}", status=404)
    mallory("DELETE", f"{TEMPLATES}/{template.pk}", status=404)
    vera = Caller(cast.vera)
    assert len(vera("GET", TEMPLATES)["templates"]) == 1
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
def test_what_is_wrong_with_a_body_is_named(cast: Cast, changes: dict[str, Any], field: str) -> None:
    refused = Caller(cast.bob)("POST", TEMPLATES, a_template(cast) | changes, 400)
    assert field in [each["field"] for each in refused["details"]]
    assert not Template.objects.exists()


def test_a_standard_template_has_no_framework(cast: Cast) -> None:
    told = Caller(cast.bob)("POST", TEMPLATES, a_template(cast) | {"spec": {"image": "x", "completions": 4, "parallelism": 2}}, 202)
    assert (told["architecture"], told["distributedFramework"], told["spec"]["completions"]) == ("Standard", None, 4)


def from_template(cast: Cast, template: Template, **spec: Any) -> dict[str, Any]:
    return a_body(cast) | {"templateId": str(template.pk), "spec": spec}


def test_a_submission_is_merged_over_its_template(cast: Cast) -> None:
    template = saved(cast)
    body = from_template(cast, template, numWorkers=7, compute={"cpuCoreRequest": 2})
    told = Caller(cast.bob)("POST", "/workloads/distributed", body, 202)
    spec = from_json(Workload.objects.get().spec)
    assert (spec.workers, spec.setup.environment.image, spec.setup.compute.cpu_request) == (7, "team/mine:1", "2")
    assert spec.setup.compute.gpus.portion is not None
    used_kinds = {row.kind: row.name for row in Workload.objects.get(pk=told["workloadId"]).assets.all()}
    assert used_kinds == {"environment": "allreduce", "compute": "small-fraction", "template": "mine"}


@pytest.mark.parametrize(
    ("locked", "spec", "field"),
    [
        ("image", {"image": "evil/image"}, "spec.image"),
        ("workers", {"numWorkers": 100}, "spec.numWorkers"),
        ("compute_choice", {"compute": {"gpuDevicesRequest": 8, "gpuPortionRequest": 1.0}}, "spec.compute"),
        ("variables", {"environmentVariables": [{"name": "B", "value": "2"}]}, "spec.environmentVariables"),
        ("preemptibility", {"preemptibility": "non-preemptible"}, "spec.preemptibility"),
    ],
)
def test_a_change_of_what_is_locked_is_refused_by_name(cast: Cast, locked: str, spec: dict[str, Any], field: str) -> None:
    template = saved(cast, locked)
    bob = Caller(cast.bob)
    refused = bob("POST", "/workloads/distributed", from_template(cast, template, **spec), 400)
    assert [each["field"] for each in refused["details"]] == [field]
    assert "is locked by the template mine" in refused["details"][0]["message"]
    assert not Workload.objects.exists()
    bob("POST", "/workloads/distributed", from_template(cast, template), 202)


def test_a_masters_own_spec_does_not_get_round_a_lock(cast: Cast) -> None:
    template = saved(cast, "image")
    body = from_template(cast, template) | {"masterSpecSameAsWorker": False, "masterSpec": {"image": "evil/image"}}
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
    body = from_template(cast, saved(cast), image="x")
    assert "another address" in Caller(cast.bob)("POST", "/workloads/trainings", body, 400)["details"][0]["message"]


def test_an_asset_that_is_gone_has_to_be_replaced_by_the_body(cast: Cast) -> None:
    environment = Environment.objects.create(name="theirs", image="x", framework="PyTorch", project=cast.team_a)
    template = saved(cast, image="", environment_choice=str(environment.pk))
    Environment.objects.filter(pk=environment.pk).delete()
    bob = Caller(cast.bob)
    refused = bob("POST", "/workloads/distributed", from_template(cast, template), 400)
    assert "environment theirs is not there any more" in refused["details"][0]["message"]
    bob("POST", "/workloads/distributed", from_template(cast, template, image="team/own"), 202)


def test_a_list_of_templates_asks_as_much_with_200(cast: Cast) -> None:
    bob = Caller(cast.bob)
    # The first call of all notes where the token is used.
    bob("GET", TEMPLATES)
    counts = []
    for number in range(2):
        with CaptureQueriesContext(connection) as captured:
            bob("GET", f"{TEMPLATES}?limit=200")
        counts.append(len(captured))
        Template.objects.bulk_create(Template(name=f"t-{number}-{each}", project=cast.team_a) for each in range(200))
    assert counts[0] == counts[1]


def test_every_field_of_the_setup_can_be_locked() -> None:
    """What a person can type, an administrator can decide."""
    held = {name for lock in locks.LOCKS.values() for name in lock.typed}
    assert set(SetupForm.base_fields) - held == set()


def test_scopes(cast: Cast) -> None:
    assert (saved(cast, scope="tenant").scope, saved(cast, name="other").scope) == (TENANT, of_project(cast.team_a))
