"""The wizard, step by step."""

import json
import re
import shlex

import pytest
from django.test import Client
from django.utils.html import escape

from environments.models import Environment
from tests.cast import Cast, a_spec
from tests.workloads.wizarding import Walk, form_of, key_of
from workloads import actions
from workloads.models import Draft, Workload
from workloads.specs import MasterChanges, decode_spec
from workloads.views import drafting
from workloads.views.drafting import MOST_DRAFTS, MOST_EMPTY_DRAFTS

pytestmark = pytest.mark.django_db


def test_the_walk_ends_in_a_submitted_workload(cast: Cast) -> None:
    walk = Walk(cast).send_start().send_setup()
    assert walk.step == "master"
    assert walk.send().step == "review"
    walk.send()
    made = Workload.objects.get()
    spec = decode_spec(made.spec)
    assert (made.name, made.project, made.submitted_by, spec.workers, spec.pod_count) == (
        "train1",
        cast.team_a,
        cast.bob,
        2,
        3,
    )
    assert spec.setup == a_spec(cast.team_a).setup
    assert spec.master == MasterChanges()
    assert spec.is_preemptible
    assert walk.page.request["PATH_INFO"] == "/workloads"


def test_cluster_project_and_template_stand_preselected(cast: Cast) -> None:
    text = Walk(cast).text
    assert f'<option value="{cast.team_a.pk}" selected>' in text
    assert "team-b" not in text
    assert re.search(r'name="template" value="scratch"[^>]* checked', text)


def test_the_project_used_last_stands_preselected(cast: Cast) -> None:
    actions.submit(a_spec(cast.team_b), project=cast.team_b, user=cast.alice)
    assert f'<option value="{cast.team_b.pk}" selected>' in Walk(cast, "alice").text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "Give the workload a name."),
        ("Train1", "must be lower-case letters"),
        ("1train", "start with a letter"),
        ("a" * 51, "at most 50 characters"),
        ("train_1", "must be lower-case letters"),
    ],
)
def test_a_name_that_cannot_be_is_refused_beside_its_field(
    cast: Cast, name: str, words: str
) -> None:
    walk = Walk(cast).send_start(name=name)
    assert walk.page.status_code == 422
    assert re.search(rf'id="id_name_error">.*{words}', walk.text)


def test_a_taken_name_comes_with_a_free_one(cast: Cast) -> None:
    actions.submit(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    walk = Walk(cast).send_start()
    assert walk.page.status_code == 422
    assert "The name train1 is taken in project team-a" in walk.text
    assert walk.send(take="train1-2").step == "setup"
    assert walk.draft.data["start"]["name"] == ["train1-2"]


def test_a_name_taken_meanwhile_opens_the_first_step(cast: Cast) -> None:
    walk = Walk(cast).send_start().send_setup().send()
    actions.submit(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    walk.send()
    assert walk.page.status_code == 422
    assert "train1-2 is free." in walk.text
    assert Workload.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"environment_choice": ""}, "environment_choice", "Choose an environment"),
        ({"compute_choice": ""}, "compute_choice", "Choose a compute resource"),
        ({"workers": "0"}, "id_workers", "must be a whole number from 1"),
        ({"workers": "many"}, "id_workers", "must be a whole number, such as 4"),
        ({"workers": ""}, "id_workers", "Say how many workers"),
        ({"image": "Not An Image"}, "id_image", "must be an image name"),
        ({"command": "sh -c 'x"}, "id_command", "must have matching quotes"),
        ({"min_pods": "4"}, "id_min_pods", "must be from 1 to the number of pods"),
        ({"max_pods": "2"}, "id_max_pods", "must be from the number of pods"),
        ({"max_restarts": "3"}, "id_max_restarts", "is for elastic workloads"),
        ({"node_pools": "fast fast"}, "id_node_pools", "must be given once only"),
        ({"node_pools": "default"}, "id_node_pools", "Name no pool"),
        ({"topology_required": "required"}, "id_topology_key", "must be given"),
        ({"backoff_limit": "101"}, "id_backoff_limit", "from 0 to 100"),
        ({"grace_seconds": "301"}, "id_grace_seconds", "at most 300 seconds"),
        ({"compute_choice": "custom", "cpu_request": "100MB"}, "id_cpu_request", "without the B"),
        (
            {"compute_choice": "custom", "gpu_share": "portion", "gpu_percent": ""},
            "id_gpu_percent",
            "Say how much",
        ),
        (
            {"compute_choice": "custom", "gpu_share": "portion", "gpu_percent": "101"},
            "id_gpu_percent",
            "at most 100",
        ),
        (
            {"variables__0__name": "RANK", "variables__0__value": "1"},
            "id_variables-0-name",
            "is set by the training operator",
        ),
        (
            {"volumes__4__path": "relative", "volumes__4__name": "data"},
            "id_volumes-4-path",
            "must start with /",
        ),
        (
            {"volumes__0__kind": "newPvc", "volumes__0__path": "/a"},
            "id_volumes-0-size",
            "must be given",
        ),
        (
            {"volumes__0__kind": "git", "volumes__0__path": "/a"},
            "id_volumes-0-repository",
            "must be given",
        ),
        (
            {"volumes__0__kind": "git", "volumes__0__repository": "https://user:secret@x/y"},
            "id_volumes-0-repository",
            "must not hold a user or a password",
        ),
        (
            {"volumes__0__kind": "s3", "volumes__0__bucket": "B"},
            "id_volumes-0-bucket",
            "must be 3 to 63",
        ),
        (
            {
                "volumes__0__kind": "newPvc",
                "volumes__0__size": "1Gi",
                "volumes__0__lifetime": "ephemeral",
                "volumes__0__access": "rank-0-writes",
            },
            "id_volumes-0-access",
            "each pod has one of its own",
        ),
        ({"labels__0__key": "muster.dev/x"}, "id_labels-0-key", "is set by Muster"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(
    cast: Cast, changes: dict[str, str], field: str, words: str
) -> None:
    walk = Walk(cast).send_start().send_setup(**changes)
    assert walk.page.status_code == 422
    assert re.search(rf'id="{field}_error">.*{re.escape(words)}', walk.text)
    for name, value in changes.items():
        assert walk.draft.data["setup"][name.replace("__", "-")] == [value]


def test_a_refresh_shows_what_was_typed_and_judges_nothing(cast: Cast) -> None:
    walk = (
        Walk(cast)
        .send_start()
        .send_setup(workers="many", command="a <b>", volumes__2__path="nowhere")
        .see("setup")
    )
    assert walk.page.status_code == 200
    assert 'value="many"' in walk.text
    assert "a &lt;b&gt;" in walk.text
    assert 'value="nowhere"' in walk.text
    assert "mu-error" not in walk.text


def test_what_is_being_typed_is_stored_unjudged(cast: Cast) -> None:
    walk = Walk(cast)
    answer = walk.client.post(
        f"{walk.page.request['PATH_INFO']}/typed", {"name": "half-a-na", "at": "5"}
    )
    assert answer.status_code == 200
    assert 'value="half-a-na"' in walk.see("start").text


def test_what_was_sent_earlier_and_comes_later_changes_nothing(cast: Cast) -> None:
    walk = Walk(cast)
    for name, at in (("new", "7"), ("old", "6")):
        walk.client.post(f"{walk.page.request['PATH_INFO']}/typed", {"name": name, "at": at})
    assert walk.draft.data["start"]["name"] == ["new"]


def test_a_step_counts_up_from_what_another_machine_stored(cast: Cast) -> None:
    walk = Walk(cast)
    walk.client.post(f"{walk.page.request['PATH_INFO']}/typed", {"name": "a", "at": "19000000000"})
    assert form_of(walk.see("start").page)["at"] == ["19000000000"]


def test_a_button_stores_its_form_though_another_clock_was_ahead(cast: Cast) -> None:
    walk = Walk(cast)
    typed = f"{walk.page.request['PATH_INFO']}/typed"
    page = form_of(walk.page)["page"]
    walk.client.post(typed, {"name": "ahead", "at": "1900", "page": page})
    walk.send_start(name="typed-last", at="1800")
    assert walk.draft.data["start"]["name"] == ["typed-last"]
    # Nor does what was sent before the button take its place.
    walk.client.post(typed, {"name": "sent-before", "at": "1799"})
    assert walk.draft.data["start"]["name"] == ["typed-last"]
    assert walk.draft.data["at"]["start"] == 1901


def test_back_and_forward_lose_nothing(cast: Cast) -> None:
    walk = Walk(cast).send_start().send_setup(working_dir="/work").send(go="back")
    assert walk.step == "setup"
    assert 'value="/work"' in walk.text
    assert walk.send().step == "master"
    assert walk.see("review").step == "review"


def test_a_step_opens_only_after_those_before_it(cast: Cast) -> None:
    assert Walk(cast).see("review").step == "start"


def test_finished_steps_are_links(cast: Cast) -> None:
    walk = Walk(cast).send_start()
    assert f'href="/workloads/new/{walk.draft.pk}/start"' in walk.text
    assert f'href="/workloads/new/{walk.draft.pk}/review"' not in walk.text


def test_workers_only_and_standard_have_no_master_step(cast: Cast) -> None:
    assert Walk(cast).send_start(configuration="workers-only").send_setup().step == "review"
    standard = Walk(cast).send_start(architecture="Standard")
    assert (
        standard.send_setup(
            environment_choice=key_of("allreduce-single"), runs="3", parallelism="2"
        ).step
        == "review"
    )


def test_the_master_differs_only_in_what_is_changed(cast: Cast) -> None:
    walk = (
        Walk(cast)
        .send_start()
        .send_setup()
        .send(differs=["cpu_request"], cpu_request="2", image="other/image")
    )
    walk.send()
    assert decode_spec(Workload.objects.get().spec).master == MasterChanges(cpu_request="2")


def test_the_masters_problems_stand_beside_its_fields(cast: Cast) -> None:
    walk = (
        Walk(cast).send_start().send_setup().send(differs=["memory_request"], memory_request="lots")
    )
    assert walk.page.status_code == 422
    assert re.search(r'id="id_memory_request_error">.*For the master: ', walk.text)


def test_the_master_follows_workers_that_change_later(cast: Cast) -> None:
    walk = (
        Walk(cast)
        .send_start()
        .send_setup()
        .send(differs=["cpu_request"], cpu_request="2")
        .see("setup")
    )
    walk.send_setup(image="other/image").send().send()
    spec = decode_spec(Workload.objects.get().spec)
    assert (spec.master_setup.environment.image, spec.master_setup.compute.cpu_request) == (
        "other/image",
        "2",
    )


def test_rows_come_and_go_without_scripts(cast: Cast) -> None:
    walk = (
        Walk(cast).send_start().send(add="variables").send(variables__0__name="A", add="variables")
    )
    assert 'name="variables-1-name"' in walk.text
    walk.send(remove="variables-0")
    assert 'name="variables-0-name"' not in walk.text.replace("variables-__n__", "")
    assert 'name="variables-1-name"' in walk.text


def test_the_review_shows_pods_objects_and_the_rest_call(cast: Cast) -> None:
    walk = Walk(cast).send_start().send_setup().send()
    assert "<strong>3 pods</strong>, <strong>0.3 GPUs</strong>" in walk.text
    assert "kind: PyTorchJob" in walk.text
    call = walk.page.context["curl"]
    words = shlex.split(call)
    body = json.loads(words[words.index("-d") + 1])
    assert body["name"] == "train1"
    assert "Authorization: Bearer $TOKEN" in words
    command = walk.page.context["command"]
    assert shlex.split(command)[:6] == ["muster", "submit", "pytorch", "train1", "-p", "team-a"]
    assert escape(command) in walk.text


def test_a_second_click_submits_nothing(cast: Cast) -> None:
    walk = Walk(cast).send_start().send_setup().send()
    address = walk.page.request["PATH_INFO"]
    walk.send()
    assert walk.client.post(address).status_code == 302
    assert Workload.objects.count() == 1


def test_a_draft_is_its_owners_only(cast: Cast) -> None:
    walk = Walk(cast)
    other = Client()
    other.force_login(cast.alice)
    below = f"/workloads/new/{walk.draft.pk}"
    assert other.get(f"{below}/start").status_code == 404
    assert other.post(f"{below}/start/typed").status_code == 404
    assert other.get(f"{below}/assets/environment").status_code == 404


def test_two_tabs_are_two_drafts(cast: Cast) -> None:
    first, second = Walk(cast), Walk(cast)
    for walk, name in ((first, "exp-a"), (second, "exp-b")):
        walk.send_start(name=name, configuration="workers-only").send_setup()
    for walk in (first, second):
        walk.send()
    assert {each.name for each in Workload.objects.all()} == {"exp-a", "exp-b"}


def test_a_step_that_another_tab_changed_is_kept_shown_and_stored_on_purpose(cast: Cast) -> None:
    late = Walk(cast)
    other = Walk(cast)
    for _ in range(2):
        other.page = other.client.get(late.page.request["PATH_INFO"])
        other.send(name="theirs", go="here")
    typed = {"name": "mine", "at": "5"} | {
        key: form_of(late.page)[key] for key in ("page", "started_from")
    }
    answer = late.client.post(f"{late.page.request['PATH_INFO']}/typed", typed)
    assert answer.status_code == 412
    late.send(name="mine")
    assert late.page.status_code == 409
    assert late.draft.data["start"]["name"] == ["theirs"]
    assert form_of(late.page)["name"] == ["mine"]
    assert "by you, in another tab or window" in late.text
    assert "<strong>Name</strong>: was empty, is now <q>theirs</q>" in late.text
    late.send(anyway="1")
    assert late.step == "start"
    assert late.draft.data["start"]["name"] == ["mine"]


def test_a_step_that_another_tab_changed_and_then_took_away_leads_to_the_review(
    cast: Cast,
) -> None:
    late = Walk(cast).send_start().send_setup()
    other = Walk(cast)
    below = f"/workloads/new/{late.draft.pk}"
    other.page = other.client.get(f"{below}/master")
    other.send(differs="working_dir", working_dir="/theirs", go="here")
    other.page = other.client.get(f"{below}/start")
    other.send(configuration="workers-only")
    assert late.send(differs="working_dir", working_dir="/mine").step == "review"
    assert "The step Master was not stored: in another tab or window you chose" in late.text
    assert late.draft.data["master"]["working_dir"] == ["/theirs"]


def test_what_a_page_stored_itself_is_no_difference(cast: Cast) -> None:
    own, other = Walk(cast), Walk(cast)
    typed = f"{own.page.request['PATH_INFO']}/typed"
    form = form_of(own.page)
    form["started_from"] = [own.client.post(typed, form | {"name": ["before"]}).text]
    # A button in another tab that changes nothing takes the step from nobody.
    other.page = other.client.get(own.page.request["PATH_INFO"])
    other.send(go="here")
    answer = own.client.post(typed, form | {"name": ["mine"]})
    assert answer.status_code == 200
    form["started_from"] = [answer.text]
    other.page = other.client.get(own.page.request["PATH_INFO"])
    other.send(name="theirs", go="here")
    own.page = own.client.post(own.page.request["PATH_INFO"], form | {"name": ["again"]})
    assert own.page.status_code == 409
    assert "<strong>Name</strong>: was <q>mine</q>, is now <q>theirs</q>" in own.text


def test_a_page_may_change_what_it_stored_itself(cast: Cast) -> None:
    walk = Walk(cast)
    shown = form_of(walk.page) | {"architecture": ["Standard"]}
    typed = f"{walk.page.request['PATH_INFO']}/typed"
    for name in ("a", "ab"):
        answer = walk.client.post(typed, shown | {"name": [name]})
        assert answer.status_code == 200
    walk.send_start(name="not a name")
    assert walk.page.status_code == 422
    # A save of the page before that comes late, and the page with the errors, are one.
    assert walk.client.post(typed, shown | {"name": ["abc"], "at": ["0"]}).status_code == 200
    assert walk.send_start(name="abcd").step == "setup"


def test_another_tab_that_leaves_a_step_as_it_was_is_no_conflict(cast: Cast) -> None:
    first, second = Walk(cast), Walk(cast)
    for step, walk_on in (
        ("setup", first.send_start),
        ("master", first.send_setup),
        ("review", first.send),
    ):
        second.page = second.client.get(first.page.request["PATH_INFO"])
        second.send(go="here")
        assert walk_on().step == step


def test_the_wizard_opened_again_and_again_leaves_few_drafts_and_those_with_input(
    cast: Cast,
) -> None:
    typed = Walk(cast).send_start().draft
    walk = Walk(cast)
    for _ in range(MOST_DRAFTS):
        walk.client.get("/workloads/new")
    assert Draft.objects.filter(data={}).count() == MOST_EMPTY_DRAFTS
    assert Draft.objects.filter(pk=typed.pk).exists()


def test_what_is_typed_into_a_submitted_draft_is_not_said_to_be_saved(cast: Cast) -> None:
    walk = Walk(cast).send_start().send_setup().send()
    below = f"/workloads/new/{walk.draft.pk}"
    walk.send()
    assert walk.client.post(f"{below}/setup/typed", {"command": "x", "at": "5"}).status_code == 409


@pytest.mark.parametrize("step", ["setup", "review"])
def test_a_submitted_draft_leads_to_the_workload_that_it_became(cast: Cast, step: str) -> None:
    walk = Walk(cast).send_start().send_setup().send()
    address = f"/workloads/new/{walk.draft.pk}/{step}"
    walk.send()
    for answer in (
        walk.client.get(address, follow=True),
        walk.client.post(address, {"command": "x"}, follow=True),
    ):
        assert answer.request["PATH_INFO"] == "/workloads"
        assert "This was submitted already as train1." in answer.content.decode()


def test_a_submission_that_comes_while_another_is_made_names_its_workload(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = Walk(cast).send_start().send_setup().send()
    read_before = walk.draft
    walk.send()
    Workload.objects.update(name="renamed")
    monkeypatch.setattr(drafting, "get_draft", lambda request, key: read_before)
    answer = walk.client.post(f"/workloads/new/{read_before.pk}/review", follow=True)
    assert "This was submitted already as renamed." in answer.content.decode()
    assert Workload.objects.count() == 1


def test_an_environment_that_changes_after_the_review_is_shown_before_it_is_launched(
    cast: Cast,
) -> None:
    walk = Walk(cast).send_start().send_setup().send()
    Environment.objects.filter(name="allreduce").update(image="team/other:9")
    walk.send()
    assert walk.page.status_code == 409
    assert "Not submitted: it is not what the page showed before" in walk.text
    assert "<code>team/other:9</code>" in walk.text
    assert not Workload.objects.exists()
    walk.send()
    spec = decode_spec(Workload.objects.get().spec)
    assert spec.setup.environment.image == "team/other:9"


def test_a_draft_that_changes_in_another_tab_is_reviewed_again(cast: Cast) -> None:
    walk = Walk(cast).send_start().send_setup().send()
    below = f"/workloads/new/{walk.draft.pk}"
    typed = walk.draft.data["setup"] | {"workers": ["7"]}
    walk.client.post(f"{below}/setup/typed", typed)
    assert walk.send().page.status_code == 409
    walk.send()
    assert decode_spec(Workload.objects.get().spec).workers == 7


def test_what_is_stored_while_a_draft_is_submitted_is_reviewed_first(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = Walk(cast).send_start().send_setup().send()
    read_before, later = walk.draft, walk.draft
    later.data["setup"]["workers"] = ["7"]
    later.save()
    monkeypatch.setattr(drafting, "get_draft", lambda request, key: read_before)
    assert walk.send().page.status_code == 409
    assert walk.page.context["spec"].workers == 7
    assert not Workload.objects.exists()


def test_a_review_that_does_not_say_what_it_showed_is_shown_again(cast: Cast) -> None:
    walk = Walk(cast).send_start().send_setup().send()
    assert walk.client.post(walk.page.request["PATH_INFO"]).status_code == 409
    assert not Workload.objects.exists()


def test_an_environment_deleted_after_the_review_opens_its_step(cast: Cast) -> None:
    walk = Walk(cast).send_start().send_setup().send()
    Environment.objects.filter(name="allreduce").delete()
    walk.send()
    assert walk.page.status_code == 422
    assert "environment_choice_error" in walk.text


def test_a_viewer_is_told_why_not(cast: Cast) -> None:
    walk = Walk(cast, "vera")
    assert walk.page.status_code == 403
    assert "You may launch workloads in no project" in walk.text


def test_somebody_elses_project_cannot_be_chosen(cast: Cast) -> None:
    walk = Walk(cast).send_start(project=str(cast.team_b.pk))
    assert walk.page.status_code == 422
    assert Workload.objects.count() == 0
