"""The tables of assets: searched, filtered, sorted, as CSV, with where each is used, and with the
same few queries however long.
"""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from environments.models import (
    Asset,
    ComputeResource,
    Credential,
    DataSource,
    Environment,
    Policy,
    Template,
)
from projects.models import AccessRule, Department, Project, User
from projects.permissions import PROJECT
from projects.scopes import TENANT, cluster_scope, department_scope, project_scope
from tests.cast import Cast, a_spec
from tests.environments.assets import BY_NAME, ONE_OF_EACH, SECRET, Sample, client_of
from workloads import journal
from workloads.models import UsedAsset

pytestmark = pytest.mark.django_db
EACH_KIND = pytest.mark.parametrize("sample", ONE_OF_EACH, ids=str)
ROWS: dict[str, tuple[type[Asset], dict[str, Any]]] = {
    "environments": (Environment, {"image": "x"}),
    "compute-resources": (ComputeResource, {}),
    "data-sources": (
        DataSource,
        {"kind": "git", "origin": {"repository": "https://a/b"}, "path": "/x"},
    ),
    "credentials": (
        Credential,
        {"kind": "generic", "public": {"keys": ["a"]}, "secret": '{"a": "b"}'},
    ),
    "templates": (Template, {}),
    "policies": (Policy, {}),
}


@EACH_KIND
def test_it_is_searched_filtered_and_sorted(cast: Cast, sample: Sample) -> None:
    sample.make(project_scope(cast.team_a), cast.alice, "alpha")
    sample.make(TENANT, cast.alice, "beta", description="Bold words")
    client, path = client_of(cast.bob), f"/{sample.kind.path}"

    def names(query: str) -> list[str]:
        return [row.name for row in client.get(f"{path}?{query}").context["listing"].rows]

    assert names("") == ["alpha", "beta"]
    assert names("sort=-name") == ["beta", "alpha"]
    assert names("sort=-updated") == ["beta", "alpha"]
    assert names("q=BOLD") == ["beta"]
    assert names("scope=tenant") == ["beta"]
    assert names("scope=project") == ["alpha"]
    assert names("scope=cluster") == []
    assert "Nothing matches" in client.get(f"{path}?q=nowhere").content.decode()


@pytest.mark.parametrize(
    ("path", "query", "count"),
    [
        ("environments", "architecture=Standard", 0),
        ("environments", "architecture=Distributed", 1),
        ("environments", "q=team/x", 1),
        ("data-sources", "kind=git", 1),
        ("data-sources", "kind=nfs", 0),
        ("credentials", "kind=registry", 1),
        ("credentials", "kind=generic", 0),
    ],
)
def test_each_kind_has_its_own_filters(cast: Cast, path: str, query: str, count: int) -> None:
    sample = next(each for each in ONE_OF_EACH if each.kind.path == path)
    sample.make(TENANT, cast.alice)
    assert len(client_of(cast.bob).get(f"/{path}?{query}").context["listing"].rows) == count


@EACH_KIND
def test_csv_has_every_row_and_every_column(cast: Cast, sample: Sample) -> None:
    sample.make(TENANT, cast.alice, "=1+1")
    answer = client_of(cast.bob).get(f"/{sample.kind.path}?format=csv")
    assert answer["Content-Type"].startswith("text/csv")
    head, line = answer.content.decode().splitlines()
    assert head.startswith(sample.kind.noun.capitalize())
    assert line.startswith("'=1+1,")
    assert "Everybody" in line
    assert "alice" in line
    assert SECRET not in answer.content.decode()


@pytest.mark.parametrize("path", sorted(ROWS))
def test_a_long_table_takes_the_same_queries(cast: Cast, path: str) -> None:
    model, values = ROWS[path]
    client = client_of(cast.bob)

    def queries(address: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(address).status_code == 200
        return len(captured)

    def create_rows(number: int) -> None:
        made = [
            model(
                name=f"more-{number}-{each:04}", project=cast.team_a, created_by=cast.bob, **values
            )
            for each in range(number)
        ]
        model.objects.bulk_create(made)

    create_rows(60)
    before = [
        queries(f"/{path}"),
        queries(f"/{path}?sort=-updated&q=more"),
        queries(f"/{path}?format=csv"),
    ]
    create_rows(1000)
    after = [
        queries(f"/{path}"),
        queries(f"/{path}?sort=-updated&q=more"),
        queries(f"/{path}?format=csv"),
    ]
    assert after[:2] == before[:2]
    assert after[2] <= before[2] + 3 * 3
    assert max(after[:2]) <= 14


def someone(name: str, **where: Any) -> User:
    user = User.objects.create(username=name)
    AccessRule.objects.create(user=user, role=PROJECT, **where)
    return user


@EACH_KIND
def test_what_belongs_above_and_below_is_seen_and_what_is_beside_is_not(
    cast: Cast, sample: Sample
) -> None:
    other = Department.objects.create(name="other")
    team_c = Project.objects.create(
        name="team-c",
        department=other,
        cluster=cast.cluster,
        namespace="muster-team-c",
        queue="team-c",
        gpu_quota=1,
    )
    scopes = {
        "tenant": TENANT,
        "cluster": cluster_scope(cast.cluster.pk),
        "research": department_scope(cast.research),
        "other": department_scope(other),
        "team-a": project_scope(cast.team_a),
        "team-b": project_scope(cast.team_b),
        "team-c": project_scope(team_c),
    }
    for name, scope in scopes.items():
        sample.make(scope, cast.alice, name)
    names_by_user = {
        someone("of-a", project=cast.team_a): {"tenant", "cluster", "research", "team-a"},
        someone("of-research", department=cast.research): {
            "tenant",
            "cluster",
            "research",
            "team-a",
            "team-b",
        },
        someone("of-cluster", cluster=cast.cluster): set(scopes),
        someone("of-nothing-yet", department=Department.objects.create(name="empty")): {"tenant"},
        User.objects.create(username="nobody"): set(),
        cast.alice: set(scopes),
    }
    for user, wanted in names_by_user.items():
        rows = client_of(user).get(f"/{sample.kind.path}").context["listing"].rows
        assert {row.name for row in rows} == wanted, user


def test_where_assets_are_used_is_counted_as_far_as_one_may_see(cast: Cast) -> None:
    environment = BY_NAME["environment"].make(TENANT, cast.alice, "common")
    for project, by in ((cast.team_a, cast.bob), (cast.team_b, cast.mallory)):
        workload = journal.create_workload(
            a_spec(project, f"train-of-{project.name}"), project=project, user=by
        )
        UsedAsset.objects.create(
            workload=workload, kind="environment", asset=environment.pk, name="common", version=1
        )

    def count_uses(user: User) -> int:
        row = client_of(user).get("/environments").context["listing"].rows[0]
        return int(row.workloads)

    assert (count_uses(cast.bob), count_uses(cast.mallory), count_uses(cast.alice)) == (1, 1, 2)
    page = client_of(cast.bob).get(f"/environments/{environment.pk}").content.decode()
    assert "train-of-team-a" in page
    assert "train-of-team-b" not in page
