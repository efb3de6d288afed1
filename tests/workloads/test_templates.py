"""A workload is saved as a template, by whom that may be done, and what the page says of it."""

import re
from typing import Any

import pytest
from django.test import Client

from environments.models import Template
from projects.models import AccessRule
from projects.scopes import TENANT, project_scope
from tests.cast import Cast, a_spec
from tests.workloads.templated import (
    fill_wizard,
    save_template,
    start_from_template,
    submit_and_decode,
)
from tests.workloads.wizarding import Walk
from workloads import actions
from workloads.forms import template_locks

pytestmark = pytest.mark.django_db


def test_the_review_saves_a_template_and_stays(cast: Cast) -> None:
    walk = fill_wizard(cast)
    assert f"/workloads/new/{walk.draft.pk}/template" in walk.text
    template = save_template(cast, "image")
    assert (template.project, template.created_by) == (cast.team_a, cast.alice)
    assert (template.architecture, template.framework) == ("Distributed", "PyTorch")
    assert (template.locked, template.form["setup"]["image"]) == (["image"], ["team/mine:1"])
    assert "project" not in template.form["start"]
    assert "name" not in template.form["start"]


def test_a_workload_is_saved_as_a_template(cast: Cast) -> None:
    workload = actions.submit(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    client = Client()
    client.force_login(cast.bob)
    assert (
        f"?copy={workload.pk}&amp;as=template"
        in client.get(f"/workloads/{workload.pk}").content.decode()
    )
    page = client.get(f"/workloads/new?copy={workload.pk}&as=template", follow=True)
    assert page.status_code == 200
    given = {"name": "again", "scope": f"project:{cast.team_a.pk}", "locked": ["section:compute"]}
    assert client.post(page.request["PATH_INFO"], given, follow=True).status_code == 200
    template = Template.objects.get()
    assert set(template.locked) == {each.key for each in template_locks.SECTIONS["compute"][1]}
    assert (
        submit_and_decode(start_from_template(cast, template, name="train2")).setup
        == a_spec(cast.team_a).setup
    )


def test_the_page_says_what_each_thing_would_be_locked_to(cast: Cast) -> None:
    walk = fill_wizard(cast)
    text = walk.client.get(f"/workloads/new/{walk.draft.pk}/template").content.decode()
    assert re.search(r'id="lock-image">\s*team/mine:1', text)
    assert re.search(r'id="lock-compute_choice">\s*small-fraction: 10 % of a GPU', text)
    assert 'id="lock-runs"' not in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": ""}, "Give it a name"),
        ({"scope": "tenant"}, "Choose who can use it"),
        ({"locked": ["nothing"]}, "not for you to choose"),
    ],
)
def test_what_is_wrong_with_it_is_said(cast: Cast, changes: dict[str, Any], words: str) -> None:
    walk = Walk(cast).send_start().send_setup().send()
    given = {"name": "mine", "scope": f"project:{cast.team_a.pk}", "locked": []} | changes
    answer = walk.client.post(f"/workloads/new/{walk.draft.pk}/template", given)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not Template.objects.exists()


def test_a_name_that_is_taken_is_refused_beside_it(cast: Cast) -> None:
    save_template(cast)
    walk = fill_wizard(cast)
    answer = walk.client.post(
        f"/workloads/new/{walk.draft.pk}/template",
        {"name": "mine", "scope": f"project:{cast.team_a.pk}"},
    )
    assert answer.status_code == 422
    assert "There is one called mine already" in answer.content.decode()


def test_who_may_make_no_templates_is_told_who_can(cast: Cast) -> None:
    AccessRule.objects.filter(user=cast.bob).update(role="l2-researcher")
    walk = Walk(cast).send_start().send_setup().send()
    assert "Save as template" not in walk.text
    assert walk.client.get(f"/workloads/new/{walk.draft.pk}/template").status_code == 403
    assert walk.client.get("/templates/design").status_code == 403


def test_a_draft_is_saved_by_its_owner_only(cast: Cast) -> None:
    walk = fill_wizard(cast)
    other = Client()
    other.force_login(cast.bob)
    assert other.get(f"/workloads/new/{walk.draft.pk}/template").status_code == 404
    assert other.get(f"/workloads/new/{walk.draft.pk}/templates").status_code == 404


def test_scopes(cast: Cast) -> None:
    assert (save_template(cast, scope="tenant").scope, save_template(cast, name="other").scope) == (
        TENANT,
        project_scope(cast.team_a),
    )
