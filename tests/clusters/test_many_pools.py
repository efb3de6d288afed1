"""The form of a project where there are very many node pools and departments: all can be chosen."""

import pytest
from django.test import Client

from clusters.forms import ProjectChangeForm
from clusters.models import NodePool
from projects import granting
from projects.models import Department, Project
from projects.permissions import DEPARTMENT
from projects.scopes import cluster_scope
from tests.api.calling import Caller
from tests.cast import Cast

MANY = 501


@pytest.fixture
def last(cast: Cast) -> NodePool:
    NodePool.objects.bulk_create(
        [
            NodePool(
                cluster=cast.cluster, name=f"pool-{n:04}", label_key="pool", label_value=str(n)
            )
            for n in range(MANY)
        ],
        batch_size=500,
    )
    return NodePool.objects.get(name=f"pool-{MANY - 1:04}")


@pytest.fixture
def alice(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.alice)
    return client


def send_form(client: Client, project: Project, pools: str) -> str:
    address = f"/projects/{project.pk}/edit"
    page = client.get(address)
    initial = {
        name: value for name, value in page.context["form"].initial.items() if value is not None
    }
    given = initial | {"node_pools": pools, "started_from": page.context["started_from"]}
    return client.post(address, given, follow=True).content.decode()


def test_any_of_many_node_pools_is_typed(cast: Cast, alice: Client, last: NodePool) -> None:
    html = alice.get(f"/projects/{cast.team_a.pk}/edit").content.decode()
    assert "There are too many to list: type the names." in html
    assert html.count('type="checkbox"') < 10
    send_form(alice, cast.team_a, f"{last.name} , pool-0001")
    assert {pool.name for pool in cast.team_a.node_pools.all()} == {last.name, "pool-0001"}
    html = alice.get(f"/projects/{cast.team_a.pk}/edit").content.decode()
    assert f'value="pool-0001, {last.name}"' in html
    # What the control shows is sent back, and is the same.
    send_form(alice, cast.team_a, f"pool-0001, {last.name}")
    assert cast.team_a.node_pools.count() == 2
    refused = send_form(alice, cast.team_a, "pool-0001, nothing-like-it")
    assert "nothing-like-it: not a node pool of the cluster" in refused
    assert 'value="pool-0001, nothing-like-it"' in refused
    send_form(alice, cast.team_a, "")
    assert not cast.team_a.node_pools.exists()


def test_a_new_project_takes_any_of_many(cast: Cast, alice: Client, last: NodePool) -> None:
    data = {
        "name": "wide",
        "department": "research",
        "cluster": str(cast.cluster.pk),
        "gpu_quota": "1",
        "over_quota_weight": "1",
        "node_pools": last.name,
    }
    assert alice.post("/projects/new", data).status_code == 302
    assert [pool.name for pool in Project.objects.get(name="wide").node_pools.all()] == [last.name]


def test_a_program_names_any_of_many(cast: Cast, last: NodePool) -> None:
    address = f"/org-unit/projects/{cast.team_a.pk}"
    Caller(cast.alice)("PATCH", address, {"nodePools": [last.name]}, 200)
    assert [pool.name for pool in cast.team_a.node_pools.all()] == [last.name]
    Caller(cast.alice)("PATCH", address, {"description": "the same"}, 200)
    assert [pool.name for pool in cast.team_a.node_pools.all()] == [last.name]


def test_any_of_many_departments_is_typed_where_none_can_be_made(cast: Cast) -> None:
    departments = Department.objects.bulk_create(
        [Department(name=f"unit-{n:04}") for n in range(MANY)], batch_size=500
    )
    Project.objects.bulk_create(
        [
            Project(
                name=f"of-{each.name}",
                department=each,
                cluster=cast.cluster,
                namespace=f"of-{each.name}",
                queue=f"of-{each.name}",
            )
            for each in departments
        ],
        batch_size=500,
    )
    unit = departments[-1]
    granting.grant_role(
        DEPARTMENT, to=cast.bob, scope=cluster_scope(cast.cluster.pk), by=cast.alice
    )
    given = ProjectChangeForm.values(cast.team_a) | {"department": unit.name}
    form = ProjectChangeForm(given, user=cast.bob, row=cast.team_a)
    html = str(form["department"])
    assert html.count("<option") <= 100
    assert "too many to list" in str(form.fields["department"].help_text)
    assert "department" not in form.errors
