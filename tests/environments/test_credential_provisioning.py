"""A credential that came, changed or went is asked for in the namespaces that have it."""

import json

import pytest

from environments import actions
from environments.models import Credential
from projects.scopes import TENANT, department_scope, project_scope
from tests.cast import Cast

VALUES = {
    "name": "it",
    "kind": "generic",
    "public": {"keys": ["a"]},
    "secret": json.dumps({"a": "b"}),
}


@pytest.fixture
def provisioned_ids(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids of the projects that were asked to be provisioned, where a broker would have them."""
    found: list[int] = []
    monkeypatch.setattr(
        "clusters.tasks.provision._send", lambda arguments, *_: found.append(arguments[0])
    )
    return found


def test_the_projects_below_it_follow(
    cast: Cast, provisioned_ids: list[int], django_capture_on_commit_callbacks: object
) -> None:
    def run_on_commit() -> object:
        return django_capture_on_commit_callbacks(execute=True)  # type: ignore[operator]

    both = sorted((cast.team_a.pk, cast.team_b.pk))
    with run_on_commit():  # type: ignore[attr-defined]
        made = actions.create(Credential, VALUES, scope=project_scope(cast.team_a), user=cast.alice)
    assert provisioned_ids == [cast.team_a.pk]
    provisioned_ids.clear()
    with run_on_commit():  # type: ignore[attr-defined]
        actions.change(
            made, {"description": "wider"}, scope=department_scope(cast.research), user=cast.alice
        )
    assert provisioned_ids == both
    provisioned_ids.clear()
    made.refresh_from_db()
    with run_on_commit():  # type: ignore[attr-defined]
        actions.remove(made, cast.alice)
    assert provisioned_ids == both


def test_everybodys_reaches_every_project(
    cast: Cast, provisioned_ids: list[int], django_capture_on_commit_callbacks: object
) -> None:
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        actions.create(Credential, VALUES, scope=TENANT, user=cast.alice)
    assert provisioned_ids == sorted((cast.team_a.pk, cast.team_b.pk))
