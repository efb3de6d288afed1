"""A template is made and changed in the wizard; the second of two who do so learns what changed
meanwhile.
"""

import re

import pytest
from django.test import Client

from environments import actions as assets
from environments.models import Template
from projects.models import AccessRule
from tests.cast import Cast
from tests.workloads.templated import save_template
from tests.workloads.wizarding import Walk
from workloads.models import Draft, Workload

pytestmark = pytest.mark.django_db


def open_template(cast: Cast, template: Template, user: str = "alice") -> Walk:
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
    walk = to_save(walk.send(architecture="Distributed", project=str(cast.team_a.pk)).send_setup())
    walk.page = walk.client.post(
        walk.page.request["PATH_INFO"],
        {"name": "new", "scope": "tenant", "locked": ["workers"]},
        follow=True,
    )
    assert walk.page.request["PATH_INFO"] == "/templates"
    assert Template.objects.get().locked == ["workers"]
    assert not Workload.objects.exists()


def test_a_template_is_changed_in_the_wizard(cast: Cast) -> None:
    template = save_template(cast, "image")
    walk = to_save(open_template(cast, template).send().send(image="team/newer:2"))
    text = walk.text
    assert 'value="mine"' in text
    assert re.search(r'value="image"[^>]* checked', text)
    sealed = re.search(r'name="started_from" value="([^"]+)"', text)
    assert sealed
    given = {
        "name": "mine",
        "scope": f"project:{cast.team_a.pk}",
        "locked": ["workers"],
        "started_from": sealed[1],
    }
    assert walk.client.post(walk.page.request["PATH_INFO"], given).status_code == 302
    template.refresh_from_db()
    assert (template.version, template.locked, template.form["setup"]["image"]) == (
        2,
        ["workers"],
        ["team/newer:2"],
    )
    assert not Draft.objects.filter(data__has_key="making").exists()


def test_the_second_of_two_learns_what_changed_meanwhile(cast: Cast) -> None:
    template = save_template(cast, "image")
    walk = to_save(open_template(cast, template).send().send(image="team/newer:2"))
    sealed = re.search(r'name="started_from" value="([^"]+)"', walk.text)
    assert sealed
    form = template.form | {"setup": template.form["setup"] | {"workers": ["9"]}}
    assets.change(template, {"form": form}, scope=template.scope, user=cast.bob)
    given = {
        "name": "mine",
        "scope": f"project:{cast.team_a.pk}",
        "locked": ["image"],
        "started_from": sealed[1],
    }
    late = walk.client.post(walk.page.request["PATH_INFO"], given)
    assert late.status_code == 409
    text = late.content.decode()
    assert re.search(r"Workers</strong>: was <q>3</q>, is now <q>9</q>", text)
    assert "by bob" in text
    again = re.search(r'name="started_from" value="([^"]+)"', text)
    assert again
    assert (
        walk.client.post(
            walk.page.request["PATH_INFO"], given | {"started_from": again[1]}
        ).status_code
        == 302
    )
    template.refresh_from_db()
    assert (template.version, template.form["setup"]["image"]) == (3, ["team/newer:2"])


def test_a_template_that_is_not_ones_own_to_change(cast: Cast) -> None:
    template = save_template(cast, scope="tenant")
    client = Client()
    client.force_login(cast.bob)
    assert client.get(f"/templates/{template.pk}/design").status_code == 403
    AccessRule.objects.filter(user=cast.mallory).delete()
    client.force_login(cast.mallory)
    assert client.get(f"/templates/{template.pk}/design").status_code == 404
