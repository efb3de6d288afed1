"""The pages of policies: made by an input for each thing that can be said, told what has no effect,
and shown merged for a project.
"""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from environments.kinds.policies import MAX_PER_SCOPE
from environments.models import Policy
from projects.models import AuditEntry, Project, User
from tests.cast import Cast
from workloads.views.policies import MOST_PROJECTS

pytestmark = pytest.mark.django_db


def client_of(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def a_form(cast: Cast, **rules: str | list[str]) -> dict[str, Any]:
    """What the form sends: names of rules have one underscore between field and attribute
    doubled.
    """
    named = {
        f"rule-{field}-{attribute}": value
        for key, value in rules.items()
        for field, _, attribute in [key.rpartition("__")]
    }
    return {"name": "small-teams", "scope": f"project:{cast.team_b.pk}", "architecture": ""} | named


def error_of(text: str, name: str) -> str:
    found = re.search(rf'id="id_{name}_error">.*?<span>(.*?)</span>', text, re.S)
    return found[1] if found else ""


def test_a_policy_is_made_of_what_is_typed(cast: Cast) -> None:
    mallory = client_of(cast.mallory)
    text = mallory.get("/policies/new").content.decode()
    assert "GPU devices per pod: at most" in text
    assert "rule-host_network-min" not in text
    sent = a_form(
        cast,
        workers__min="2",
        workers__max="1,000",
        image__options="registry.example.com/*\n\npython:3.12",
        priority__options=["low", "medium"],
        host_network__default="no",
        host_network__locked="on",
        variables__default="A=1\nB=x=y",
        labels__required="cost-centre team",
        gpus_portion__max="0.5",
        volumes__options=["pvc"],
        node_pools__default="a b",
        command__locked="on",
    )
    answer = mallory.post("/policies/new", sent)
    assert answer.status_code == 302, error_of(answer.content.decode(), "rule-workers-max")
    policy = Policy.objects.get()
    assert policy.rules == {
        "workers": {"min": 2, "max": 1000},
        "image": {"options": ["registry.example.com/*", "python:3.12"]},
        "command": {"locked": True},
        "variables": {"default": {"A": "1", "B": "x=y"}},
        "gpus.portion": {"max": "0.5"},
        "node_pools": {"default": ["a", "b"]},
        "volumes": {"options": ["pvc"]},
        "labels": {"required": ["cost-centre", "team"]},
        "priority": {"options": ["low", "medium"]},
        "host_network": {"default": False, "locked": True},
    }
    assert (
        AuditEntry.objects.filter(entity="policy", event="create", user=cast.mallory).count() == 1
    )
    again = mallory.get(f"/policies/{policy.pk}/edit").content.decode()
    assert 'name="rule-workers-max" value="1000"' in again
    assert "registry.example.com/*\npython:3.12" in again
    assert mallory.get(f"/policies/{policy.pk}").status_code == 200


@pytest.mark.parametrize(
    ("rules", "name", "words"),
    [
        (
            {"workers__min": "5", "workers__max": "2"},
            "rule-workers-min",
            "must not be above the maximum",
        ),
        ({"workers__max": "many"}, "rule-workers-max", "must be a whole number"),
        ({"cpu_limit__max": "2 cores"}, "rule-cpu_limit-max", "must be a quantity"),
        (
            {"workers__max": "2", "workers__default": "3"},
            "rule-workers-default",
            "must be at most 2 by this very rule",
        ),
        (
            {"workers__locked": "on"},
            "rule-workers-default",
            "must be given, for that is the value that is locked",
        ),
        (
            {"workers__options": "3", "workers__max": "2"},
            "rule-workers-options",
            "none of the options",
        ),
        (
            {"workers__step": "4", "workers__min": "5", "workers__max": "7"},
            "rule-workers-step",
            "no multiple of the step",
        ),
    ],
)
def test_rules_that_cannot_be_are_refused_beside_their_input(
    cast: Cast, rules: dict[str, str], name: str, words: str
) -> None:
    answer = client_of(cast.mallory).post("/policies/new", a_form(cast, **rules))
    assert answer.status_code == 422
    assert words in error_of(answer.content.decode(), name)
    assert not Policy.objects.exists()


def test_what_is_typed_is_shown_as_text(cast: Cast) -> None:
    hostile = "<script>alert(1)</script>"
    mallory = client_of(cast.mallory)
    mallory.post("/policies/new", a_form(cast, image__options=hostile) | {"description": hostile})
    policy = Policy.objects.get()
    for address in (
        f"/policies/{policy.pk}",
        f"/policies/{policy.pk}/edit",
        "/policies",
        f"/policies/effective?project={cast.team_b.pk}",
    ):
        assert hostile not in mallory.get(address).content.decode()


def test_who_may_not_make_policies_is_refused(cast: Cast) -> None:
    assert client_of(cast.bob).post("/policies/new", a_form(cast)).status_code == 403
    theirs = Policy.objects.create(name="theirs", project=cast.team_b)
    assert client_of(cast.bob).get(f"/policies/{theirs.pk}").status_code == 404
    wide = Policy.objects.create(name="wide", department=cast.research)
    assert client_of(cast.mallory).get(f"/policies/{wide.pk}").status_code == 200
    assert (
        client_of(cast.mallory).post(f"/policies/{wide.pk}/edit", a_form(cast)).status_code == 403
    )


def test_a_rule_that_widens_is_taken_and_told_to_have_no_effect(cast: Cast) -> None:
    Policy.objects.create(
        name="base", rules={"workers": {"max": 4}, "backoff_limit": {"default": 1, "locked": True}}
    )
    mallory = client_of(cast.mallory)
    sent = a_form(cast, workers__max="9", backoff_limit__default="2", backoff_limit__locked="on")
    assert mallory.post("/policies/new", sent).status_code == 302
    text = mallory.get(
        f"/policies/{Policy.objects.get(project=cast.team_b).pk}/edit"
    ).content.decode()
    assert "Workers: at most 9 has no effect, for policy base of everybody says at most 4." in text
    assert "does not hold, for it contradicts policy base of everybody" in text


def test_policies_of_other_workloads_leave_no_empty_table(cast: Cast) -> None:
    Policy.objects.create(name="silent", project=cast.team_a)
    text = (
        client_of(cast.vera).get(f"/policies/effective?project={cast.team_a.pk}").content.decode()
    )
    assert "The policies that hold here say nothing of these workloads." in text
    assert "<thead>" not in text


def test_a_scope_has_room_for_so_many_policies(cast: Cast) -> None:
    Policy.objects.bulk_create(
        Policy(name=f"p{number}", project=cast.team_b) for number in range(MAX_PER_SCOPE)
    )
    answer = client_of(cast.mallory).post("/policies/new", a_form(cast))
    assert answer.status_code == 422
    assert f"There are {MAX_PER_SCOPE} policies there already" in answer.content.decode()


def test_the_merged_table_names_the_policy_that_says_each(cast: Cast) -> None:
    base = Policy.objects.create(
        name="base", rules={"workers": {"max": 4}, "image": {"options": ["registry.example.com/*"]}}
    )
    own = Policy.objects.create(
        name="own",
        project=cast.team_a,
        rules={"workers": {"min": 8}, "backoff_limit": {"default": 2}},
    )
    text = (
        client_of(cast.vera).get(f"/policies/effective?project={cast.team_a.pk}").content.decode()
    )
    assert re.search(rf'Workers .*?<td>at most 4</td>.*?href="/policies/{base.pk}"', text, re.S)
    assert re.search(rf'Backoff limit .*?<td>2</td>.*?href="/policies/{own.pk}"', text, re.S)
    assert "Workers: the rule of policy own of project team-a does not hold" in text
    part = (
        client_of(cast.vera)
        .get(f"/policies/effective?project={cast.team_a.pk}", headers={"hx-request": "true"})
        .content.decode()
    )
    assert "<html" not in part
    assert "at most 4" in part


def test_the_merged_table_of_a_project_that_one_may_not_see_is_not_there(cast: Cast) -> None:
    assert (
        client_of(cast.vera).get(f"/policies/effective?project={cast.team_b.pk}").status_code == 404
    )
    assert client_of(cast.vera).get("/policies/effective?project=999999").status_code == 404
    assert client_of(cast.vera).get("/policies/effective").status_code == 200
    stranger = User.objects.create(username="stranger")
    assert (
        "There is no project whose policies you may see."
        in client_of(stranger).get("/policies/effective").content.decode()
    )


def test_the_merged_table_is_that_of_any_of_very_many_projects(cast: Cast) -> None:
    Project.objects.bulk_create(
        Project(
            name=f"a-{n:03}",
            department=cast.research,
            cluster=cast.cluster,
            namespace=f"a-{n}",
            queue=f"a-{n}",
        )
        for n in range(MOST_PROJECTS)
    )
    answer = client_of(cast.alice).get(f"/policies/effective?project={cast.team_b.pk}")
    assert answer.status_code == 200
    assert f'<option value="{cast.team_b.pk}" selected>' in answer.content.decode()


def test_the_merged_table_costs_as_many_queries_however_many_policies(cast: Cast) -> None:
    bob = client_of(cast.bob)

    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            bob.get(f"/policies/effective?project={cast.team_a.pk}")
        return len(found)

    Policy.objects.create(name="one", rules={"workers": {"max": 9}})
    before = queries()
    Policy.objects.bulk_create(
        Policy(name=f"p{number}", department=cast.research, rules={"workers": {"max": 9}})
        for number in range(40)
    )
    assert queries() == before


def test_an_edit_that_somebody_else_was_before_tells_what_changed(cast: Cast) -> None:
    policy = Policy.objects.create(
        name="small-teams", project=cast.team_b, rules={"workers": {"max": 4}}
    )
    mallory = client_of(cast.mallory)
    page = mallory.get(f"/policies/{policy.pk}/edit").content.decode()
    seal = re.search(r'name="started_from" value="([^"]*)"', page)
    assert seal is not None
    Policy.objects.filter(pk=policy.pk).update(rules={"workers": {"max": 3}}, version=2)
    answer = mallory.post(
        f"/policies/{policy.pk}/edit", a_form(cast, workers__max="5") | {"started_from": seal[1]}
    )
    assert answer.status_code == 409
    assert "Workers: at most" in answer.content.decode()
    policy.refresh_from_db()
    assert policy.rules == {"workers": {"max": 3}}
