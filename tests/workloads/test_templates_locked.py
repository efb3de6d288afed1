"""What a template locks stays as it is there, whatever is sent."""

import re

import pytest

from environments import actions as assets
from environments.models import Template
from tests.cast import Cast
from tests.workloads.templated import save_template, start_from_template, submit_and_decode
from tests.workloads.wizarding import Walk, form_of
from workloads.forms import template_locks
from workloads.forms.setup_form import SetupForm
from workloads.models import Workload
from workloads.specs import Configuration, Framework

pytestmark = pytest.mark.django_db


def test_a_locked_field_is_shown_as_such_and_is_not_sent(cast: Cast) -> None:
    walk = start_from_template(
        cast,
        save_template(
            cast,
            "image",
            "environment_choice",
            "variables",
            **{"variables-0-name": "A", "variables-0-value": "1"},
        ),
    )
    assert walk.text.count("Set by the template mine.") == 3
    assert re.search(r'name="image"[^>]* disabled', walk.text)
    assert "disabled" in walk.text.split('data-rows="variables"')[1].split(">")[0]
    assert not {"image", "environment_choice", "variables-0-name"} & form_of(walk.page).keys()


@pytest.mark.parametrize(
    ("locked", "tampered"),
    [
        ("image", {"image": "evil/image"}),
        ("environment_choice", {"environment_choice": "custom"}),
        (
            "compute_choice",
            {
                "compute_choice": "custom",
                "gpu_devices": "8",
                "gpu_share": "whole",
                "cpu_request": "64",
            },
        ),
        ("workers", {"workers": "100"}),
        ("variables", {"variables-0-name": "B", "variables-0-value": "2"}),
        ("section:environment", {"command": "sh -c 'evil'", "security": "x", "host_network": "on"}),
        (
            "volumes",
            {"volumes-0-kind": "hostPath", "volumes-0-source": "/", "volumes-0-path": "/host"},
        ),
        ("priority", {"priority": "very-high"}),
        ("preemptibility", {"preemptibility": "non-preemptible"}),
        ("radar", {"radar": "no"}),
        ("section:radar", {"hang_seconds": "60", "restarts_without_faulty_node": "on"}),
    ],
)
def test_a_tampered_request_takes_the_templates_value(
    cast: Cast, locked: str, tampered: dict[str, str]
) -> None:
    template = save_template(cast, locked)
    untouched = submit_and_decode(start_from_template(cast, template))
    Workload.objects.all().delete()
    walk = start_from_template(cast, template)
    page = form_of(walk.page)["page"][0]
    typed = tampered | {"at": "1", "page": page}
    walk.client.post(f"{walk.page.request['PATH_INFO']}/typed", typed)
    assert submit_and_decode(walk.send(**tampered)) == untouched


def test_the_configuration_can_be_locked(cast: Cast) -> None:
    walk = (
        Walk(cast, "alice")
        .send_start(configuration="workers-only", project=str(cast.team_a.pk))
        .send_setup()
    )
    given = {"name": "mine", "scope": "tenant", "locked": ["configuration"]}
    walk.client.post(f"/workloads/new/{walk.draft.pk}/template", given)
    again = start_from_template(cast, Template.objects.get())
    again.see("start").send(configuration="workers-and-master")
    assert submit_and_decode(again).configuration is Configuration.WORKERS_ONLY


@pytest.mark.parametrize("locked", ["image", "master"])
def test_what_is_locked_is_so_for_the_master(cast: Cast, locked: str) -> None:
    walk = start_from_template(cast, save_template(cast, locked)).send()
    assert walk.step == "master"
    assert "Set by the template mine." in walk.text
    spec = submit_and_decode(walk.send(differs=["image"], image="evil/image"))
    assert spec.master_setup.environment.image == "team/mine:1"


def test_an_older_draft_keeps_the_template_that_it_was_filled_in_with(cast: Cast) -> None:
    template = save_template(cast, "image")
    walk = start_from_template(cast, template)
    form = template.form | {"setup": template.form["setup"] | {"image": ["team/newer:2"]}}
    assets.change(template, {"form": form}, scope=template.scope, user=cast.alice)
    assert submit_and_decode(walk).setup.environment.image == "team/mine:1"
    assert Workload.objects.get().assets.get(kind="template").version == 1


def test_deleting_a_template_takes_nothing_from_who_started_from_it(cast: Cast) -> None:
    template = save_template(cast)
    walk = start_from_template(cast, template)
    assets.remove(template, cast.alice)
    walk = walk.send()
    assert walk.step == "start"
    assert walk.send(template="scratch").step == "setup"
    assert 'value="team/mine:1"' in walk.text


def test_every_field_of_the_setup_can_be_locked() -> None:
    """What a person can type, an administrator can decide."""
    names = {
        name
        for framework in (None, *Framework)
        for name in SetupForm({}, environments=[], resources=[], framework=framework).fields
    }
    assert [
        name
        for name in names
        if not any(name in lock.names for lock in template_locks.LOCKS.values())
    ] == []
