"""Templates that are saved from the wizard, and the wizard started from them."""

import re
from typing import Any

from environments.models import Template
from tests.cast import Cast
from tests.workloads.wizarding import Walk
from workloads.models import Workload
from workloads.specs import decode_spec


def fill_wizard(cast: Cast, user: str = "alice", **changes: Any) -> Walk:
    """Return a walk at the review, with the walk's answers and these changes."""
    walk = (
        Walk(cast, user)
        .send_start(project=str(cast.team_a.pk))
        .send_setup(**({"image": "team/mine:1", "workers": "3"} | changes))
    )
    return walk.send() if walk.step == "master" else walk


def save_template(
    cast: Cast,
    *locked: str,
    name: str = "mine",
    scope: str = "",
    user: str = "alice",
    **changes: Any,
) -> Template:
    """Save a template from the wizard's answers."""
    walk = fill_wizard(cast, user, **changes)
    given = {
        "name": name,
        "description": "about it",
        "scope": scope or f"project:{cast.team_a.pk}",
        "locked": list(locked),
    }
    answer = walk.client.post(f"/workloads/new/{walk.draft.pk}/template", given)
    assert answer.status_code == 302, answer.content.decode()
    return Template.objects.get(name=name)


def start_from_template(cast: Cast, template: Template, user: str = "bob", **start: str) -> Walk:
    """Return a walk at the setup step, started from a template."""
    return Walk(cast, user).send_start(template=str(template.pk), **start)


def submit_and_decode(walk: Walk) -> Any:
    """Walk to the end and return the spec of the new workload."""
    while walk.step != "review":
        assert walk.page.status_code == 200, re.findall(r'_error">.*', walk.text)
        walk.send()
    walk.send()
    return decode_spec(Workload.objects.latest("created_at").spec)
