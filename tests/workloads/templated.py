"""Templates made of the wizard's answers, and the wizard started from them."""

import re
from typing import Any

from environments.models import Template
from tests.cast import Cast
from tests.workloads.wizarding import Walk
from workloads.models import Workload
from workloads.specs import decode_spec


def filled(cast: Cast, user: str = "alice", **changes: Any) -> Walk:
    """At the review, with the walk's answers and these."""
    walk = (
        Walk(cast, user)
        .started(project=str(cast.team_a.pk))
        .set_up(**({"image": "team/mine:1", "workers": "3"} | changes))
    )
    return walk.send() if walk.step == "master" else walk


def saved(
    cast: Cast,
    *locked: str,
    name: str = "mine",
    scope: str = "",
    user: str = "alice",
    **changes: Any,
) -> Template:
    """A template that somebody made of the wizard's answers."""
    walk = filled(cast, user, **changes)
    given = {
        "name": name,
        "description": "about it",
        "scope": scope or f"project:{cast.team_a.pk}",
        "locked": list(locked),
    }
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
    return decode_spec(Workload.objects.latest("created_at").spec)
