"""Whether a name is free, for whoever may give it."""

from typing import Any

import pytest

from environments.models import Environment
from projects.models import Department, Project
from tests.api.calling import Caller
from tests.cast import Cast, a_spec
from workloads import journal


def ask_name(caller: Caller, path: str, query: str, status: int = 200) -> Any:
    return caller("GET", f"{path}/name-availability?{query}", status=status)


def test_a_workload_has_its_name_once_in_a_project(cast: Cast) -> None:
    journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    bob, project = Caller(cast.bob), f"projectId={cast.team_a.pk}"
    assert ask_name(bob, "/workloads", f"name=other&{project}") == {
        "name": "other",
        "available": True,
    }
    answer = ask_name(bob, "/workloads", f"name=train1&{project}")
    assert (answer["available"], answer["suggestion"]) == (False, "train1-2")
    answer = ask_name(bob, "/workloads", f"name=Train_1&{project}")
    assert (answer["available"], "lower-case" in answer["message"]) == (False, True)
    # It is of another team, or one may only look on there.
    ask_name(Caller(cast.mallory), "/workloads", f"name=train1&{project}", 400)
    ask_name(Caller(cast.vera), "/workloads", f"name=train1&{project}", 403)
    assert ask_name(Caller(cast.alice), "/workloads", f"name=train1&projectId={cast.team_b.pk}")[
        "available"
    ]


def test_projects_and_departments_have_theirs_once(cast: Cast) -> None:
    alice = Caller(cast.alice)
    for path, taken in (("/org-unit/projects", "team-a"), ("/org-unit/departments", "research")):
        assert ask_name(alice, path, "name=vision") == {"name": "vision", "available": True}
        answer = ask_name(alice, path, f"name={taken}")
        assert (answer["available"], "already" in answer["message"]) == (False, True)
        ask_name(Caller(cast.mallory), path, f"name={taken}", 403)
        assert ask_name(alice, path, f"name={'x' * 100}")["available"] is False
    Department.objects.create(name="old", deleted_at=cast.research.created_at)
    assert ask_name(alice, "/org-unit/departments", "name=old")["available"] is True
    assert Project.objects.count() == 2


def test_an_asset_has_its_name_once_in_a_scope(cast: Cast) -> None:
    Environment.objects.create(name="mine", project=cast.team_a, image="a")
    bob, path = Caller(cast.bob), "/asset/environment"
    here = f"scope=project&projectId={cast.team_a.pk}"
    assert ask_name(bob, path, f"name=mine&{here}")["available"] is False
    assert ask_name(bob, path, f"name=%20mine%0A&{here}")["available"] is False
    assert ask_name(bob, path, f"name=other&{here}")["available"] is True
    assert ask_name(Caller(cast.alice), path, "name=mine&scope=tenant")["available"] is True
    assert (
        ask_name(bob, "/asset/compute", f"name=mine&projectId={cast.team_a.pk}")["available"]
        is True
    )
    assert ask_name(bob, "/workload-templates", f"name=mine&{here}")["available"] is True
    ask_name(Caller(cast.mallory), path, f"name=mine&{here}", 404)
    ask_name(Caller(cast.alice), path, "name=mine&scope=department&departmentId=99999", 404)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "name=",
        f"name={'x' * 254}",
        "name=%00",
        "name=x&scope=moon",
        "name=x&scope=project",
        "name=x&scope=project&projectId=abc",
        "name=x&scope=cluster&clusterId=1",
    ],
)
def test_what_cannot_be_asked_is_told(cast: Cast, query: str) -> None:
    assert ask_name(Caller(cast.alice), "/asset/environment", query, 400)["message"]
    ask_name(Caller(cast.alice), "/workloads", query, 400)
