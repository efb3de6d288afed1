"""Pages of an organisation of 2,000 users and 500 projects: bounded, and what is cut leads on."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.models import Cluster
from environments.models import Environment
from projects.models import AccessRule, Department, Project, User
from projects.permissions import VIEWER
from projects.scopes import department_scope, project_scope
from tests.cast import Cast
from tests.workloads.table_rows import a_workload

MOST_BYTES = 256 << 10
USERS, PROJECTS = 2_000, 500


def add_people(place: Project | Department, count: int, prefix: str) -> None:
    users = User.objects.bulk_create(
        [User(username=f"{prefix}-{n:04}") for n in range(count)], batch_size=500
    )
    scope = project_scope(place) if isinstance(place, Project) else department_scope(place)
    AccessRule.objects.bulk_create(
        [
            AccessRule(
                user=user, role=VIEWER, key=f"user:{user.pk} {VIEWER} {scope}", **scope.columns
            )
            for user in users
        ],
        batch_size=500,
    )


def add_projects(cast: Cast, count: int) -> None:
    Project.objects.bulk_create(
        [
            Project(
                name=f"crowd-{n:04}",
                department=cast.research,
                cluster=cast.cluster,
                namespace=f"muster-crowd-{n}",
                queue=f"crowd-{n}",
            )
            for n in range(count)
        ],
        batch_size=500,
    )


@pytest.fixture
def alice(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.alice)
    return client


def list_people(html: str) -> list[str]:
    return re.findall(r'aria-label="Role of ([^"]*)"', html)


def list_workloads(html: str) -> list[str]:
    return re.findall(r'aria-label="Choose (?!all|columns)([^"]*)"', html)


def test_the_people_of_a_project_are_pages_with_a_search(cast: Cast, alice: Client) -> None:
    add_people(cast.team_a, USERS, "person")
    add_people(cast.team_b, 40, "other")
    sizes, queries = [], []
    for project in (cast.team_a, cast.team_b):
        # What a process asks only once does not count.
        alice.get(f"/projects/{project.pk}")
        with CaptureQueriesContext(connection) as query_log:
            sizes.append(len(alice.get(f"/projects/{project.pk}").content))
        queries.append(len(query_log))
    assert sizes[0] < MOST_BYTES
    assert queries[0] == queries[1]
    html = alice.get(f"/projects/{cast.team_a.pk}").content.decode()
    assert list_people(html)[:3] == ["bob", "person-0000", "person-0001"]
    assert f"25 of {USERS + 2:,}" in html
    following = re.search(r'rel="next"\s+href="([^"]*)"', html)
    assert following is not None
    second = alice.get(following[1].partition("#")[0].replace("&amp;", "&")).content.decode()
    assert list_people(second)[0] == "person-0024"
    found = alice.get(f"/projects/{cast.team_a.pk}?people=person-1777").content.decode()
    assert list_people(found) == ["person-1777"]
    nobody = alice.get(f"/projects/{cast.team_a.pk}?people=nobody-like-it").content.decode()
    assert "Nobody with a role here has a name like this." in nobody


def test_the_people_and_projects_of_a_department_are_pages_with_a_search(
    cast: Cast, alice: Client
) -> None:
    add_projects(cast, PROJECTS)
    address = f"/departments/{cast.research.pk}"
    alice.get(address)
    counts = []
    for prefix in ("person", "other"):
        add_people(cast.research, 600, prefix)
        with CaptureQueriesContext(connection) as queries:
            html = alice.get(address).content.decode()
        counts.append(len(queries))
        assert len(html) < MOST_BYTES
    assert counts[0] == counts[1]
    assert "25 of 1,200" in html
    assert re.search(rf"25 of {cast.research.projects.count()}\b", html)
    found = alice.get(f"{address}?people=person-0577&projects=crowd-0321").content.decode()
    assert "person-0577" in found
    assert "crowd-0321" in found
    assert found.count("<tr>") == 4
    last = alice.get(f"{address}?people=nobody-like-it&projects=none-like-it").content.decode()
    assert "Nobody with a role here has a name like this." in last
    assert "No project of it that you may see has a name like this." in last
    for name, first in (("people", "person-0025"), ("projects", "crowd-0025")):
        link = re.search(rf'rel="next"\s+href="([^"]*{name}-page=[^"]*)"', html)
        assert link is not None
        second = alice.get(link[1].partition("#")[0].replace("&amp;", "&")).content.decode()
        assert first in second


def test_any_of_many_projects_is_typed_into_the_filter_of_workloads(
    cast: Cast, alice: Client
) -> None:
    a_workload(cast.team_a, "elsewhere")
    few = alice.get("/workloads").content.decode()
    assert few.count('name="project"') == Project.objects.count()
    add_projects(cast, PROJECTS)
    last = Project.objects.get(name="crowd-0499")
    a_workload(last, "there")
    html = alice.get("/workloads").content.decode()
    assert html.count('name="project"') == 1
    assert html.count("<option") < 250
    assert "There are too many to list." in html
    for value in ("crowd-0499", str(last.pk)):
        found = alice.get(f"/workloads?project={value}").content.decode()
        assert list_workloads(found) == ["there"]
        assert re.search(rf'value="{value}"\s+checked>\s+crowd-0499', found)
    both = alice.get(f"/workloads?project={last.pk}&project={cast.team_a.name}").content.decode()
    assert sorted(list_workloads(both)) == ["elsewhere", "there"]
    nothing = alice.get("/workloads?project=nothing-like-it").content.decode()
    assert "No workload matches" in nothing


def test_nobody_sees_a_project_by_typing_its_name(cast: Cast, client: Client) -> None:
    a_workload(cast.team_a, "secret")
    client.force_login(cast.mallory)
    html = client.get(f"/workloads?project={cast.team_a.name}&project={cast.team_a.pk}").content
    assert b"Choose secret" not in html


def test_the_form_of_access_rules_takes_any_of_many_scopes(cast: Cast, alice: Client) -> None:
    add_projects(cast, PROJECTS)
    html = alice.get("/access-rules/new").content.decode()
    assert html.count("<option") < 150
    assert "too many to list" in html
    data = {"kind": "user", "subjects": "vera", "role": VIEWER}
    answer = alice.post("/access-rules/new", data | {"scope": "Project crowd-0499"})
    assert answer.status_code == 302
    assert AccessRule.objects.filter(user=cast.vera, project__name="crowd-0499").exists()
    refused = alice.post("/access-rules/new", data | {"scope": "Project nothing-like-it"})
    assert refused.status_code == 422
    assert "There is no such scope where you may do this." in refused.content.decode()
    assert alice.post("/access-rules/new", data | {"scope": "Everybody"}).status_code == 302


def test_the_form_of_an_asset_takes_any_of_many_scopes(cast: Cast, alice: Client) -> None:
    add_projects(cast, PROJECTS)
    last = project_scope(Project.objects.get(name="crowd-0499"))
    html = alice.get("/environments/new").content.decode()
    assert html.count("<option") < 150
    assert "too many to list" in html
    data = {"image": "img", "serves": "Standard:"}
    for name, scope in (("by-name", "Project crowd-0499"), ("by-key", str(last))):
        answer = alice.post("/environments/new", data | {"name": name, "scope": scope})
        assert answer.status_code == 302, answer.content.decode()
        assert Environment.objects.get(name=name).scope == last
    made = Environment.objects.get(name="by-name")
    for address in (f"/environments/{made.pk}/edit", f"/environments/{made.pk}/copy"):
        assert 'name="scope" value="Project crowd-0499"' in alice.get(address).content.decode()
    refused = alice.post("/environments/new", data | {"name": "x", "scope": "Project nothing"})
    assert refused.status_code == 422
    assert "There is no such scope where you may do this." in refused.content.decode()
    assert 'value="Project nothing"' in refused.content.decode()


def test_nobody_makes_an_asset_where_they_may_not(cast: Cast, client: Client) -> None:
    add_projects(cast, PROJECTS)
    client.force_login(cast.bob)
    for scope in ("Project crowd-0001", str(project_scope(cast.team_b)), "Everybody", "tenant"):
        data = {"name": "mine", "image": "img", "serves": "Standard:", "scope": scope}
        assert client.post("/environments/new", data).status_code == 422
    assert not Environment.objects.filter(name="mine").exists()


def test_nobody_names_a_scope_that_they_may_not_give(cast: Cast, client: Client) -> None:
    add_projects(cast, PROJECTS)
    client.force_login(cast.mallory)
    data = {"kind": "user", "subjects": "vera", "role": VIEWER}
    for scope in ("Project crowd-0001", f"Project {cast.team_a.name}", "Everybody"):
        assert client.post("/access-rules/new", data | {"scope": scope}).status_code == 422
    assert not AccessRule.objects.filter(user=cast.vera).exclude(project=cast.team_a).exists()


MANY = 501
"""One more than was ever listed at once."""


def add_departments_and_clusters(cast: Cast) -> Project:
    """Add a department and a cluster for each of many projects; return the last project."""
    departments = Department.objects.bulk_create(
        [Department(name=f"unit-{n:04}") for n in range(MANY)], batch_size=500
    )
    clusters = Cluster.objects.bulk_create(
        [Cluster(name=f"far-{n:04}", server="https://127.0.0.1:1") for n in range(MANY)],
        batch_size=500,
    )
    Project.objects.bulk_create(
        [
            Project(
                name=f"crowd-{n:04}",
                department=departments[n],
                cluster=clusters[n],
                namespace=f"muster-crowd-{n}",
                queue=f"crowd-{n}",
            )
            for n in range(MANY)
        ],
        batch_size=500,
    )
    return Project.objects.get(name=f"crowd-{MANY - 1:04}")


def list_projects(html: str) -> list[str]:
    return re.findall(r'href="/projects/\d+"[^>]*>([^<]*)<', html)


def test_any_of_many_departments_and_clusters_is_typed_into_the_filters_of_projects(
    cast: Cast, alice: Client
) -> None:
    few = alice.get("/projects").content.decode()
    assert "too many to list" not in few
    last = add_departments_and_clusters(cast)
    html = alice.get("/projects").content.decode()
    assert len(html) < MOST_BYTES
    assert html.count("There are too many to list.") == 2
    # A filter brings the choice that a typed name became, beside the rows.
    parts = re.search(r'hx-select-oob="([^"]*)"', html)
    assert parts is not None
    picks = [part for part in parts[1].split(",") if part.startswith("#pick-")]
    assert len(picks) == 2
    assert all(f'id="{each.removeprefix("#")}"' in html for each in picks)
    for name, key, words in (
        ("department", str(last.department_id), last.department.name),
        ("cluster", str(last.cluster_id), last.cluster.name),
    ):
        for value in (key, words, f" {words} "):
            found = alice.get("/projects", {name: value}).content.decode()
            assert list_projects(found) == [last.name], (name, value)
            assert re.search(rf"checked>\s+{words}", found)
    both = alice.get("/projects", {"department": [last.department.name, str(cast.research.pk)]})
    assert set(list_projects(both.content.decode())) >= {last.name, cast.team_a.name}
    for value in ("nothing-like-it", "9" * 40, "\x00"):
        assert alice.get("/projects", {"department": value, "cluster": value}).status_code == 200


def test_nobody_learns_of_a_department_by_typing_its_name(cast: Cast, client: Client) -> None:
    last = add_departments_and_clusters(cast)
    client.force_login(cast.bob)
    html = client.get("/projects", {"department": str(last.department_id)}).content.decode()
    assert last.department.name not in html
    assert last.name not in html


def test_all_projects_that_are_being_removed_are_pages_with_a_search(
    cast: Cast, alice: Client
) -> None:
    add_projects(cast, MANY)
    leaving = Project.objects.filter(name__startswith="crowd-")
    leaving.update(deleted_at=timezone.now())
    html = alice.get("/projects").content.decode()
    assert len(html) < MOST_BYTES
    assert f"25 of {MANY}" in html
    following = re.search(r'rel="next"\s+href="([^"]*leaving-page=[^"]*)"', html)
    assert following is not None
    second = alice.get(following[1].partition("#")[0].replace("&amp;", "&")).content.decode()
    assert "crowd-0025" in second
    found = alice.get("/projects?leaving=crowd-0500").content.decode()
    assert "crowd-0500" in found
    assert "crowd-0001" not in found
    nothing = alice.get("/projects?leaving=nothing-like-it").content.decode()
    assert "No project that is being removed has such a name." in nothing


def test_the_last_of_many_rules_is_explained_and_shown(cast: Cast, client: Client) -> None:
    add_projects(cast, MANY)
    projects = Project.objects.filter(name__startswith="crowd-").order_by("name")
    AccessRule.objects.bulk_create(
        [
            AccessRule(
                user=cast.vera,
                role=VIEWER,
                key=f"user:{cast.vera.pk} {VIEWER} {project_scope(project)}",
                **project_scope(project).columns,
            )
            for project in projects
        ],
        batch_size=500,
    )
    last = projects.last()
    assert last is not None
    client.force_login(cast.vera)
    question = {"permission": "workloads:view"}
    for scope in (str(project_scope(last)), f"Project {last.name}"):
        html = client.get("/why", question | {"scope": scope}).content.decode()
        assert f"in project {last.name}, because you are Viewer there." in html
        assert "Because of this access rule" in html
        assert f'value="Project {last.name}"' in html
    assert html.count("<option") < 300
    assert "There are too many to list" in html
    unknown = client.get("/why", question | {"scope": "Project nothing-like-it"})
    assert unknown.status_code == 422
    assert "There is no such scope that you may see." in unknown.content.decode()
    whole = client.get("/why", question | {"scope": "Everybody"})
    assert whole.status_code == 200
    account = client.get("/account").content.decode()
    assert len(account) < MOST_BYTES
    assert re.search(r"25 of \d+", account)
    assert last.name in client.get(f"/account?rights={last.name}").content.decode()
    following = re.search(r'rel="next"\s+href="([^"]*rights-page=[^"]*)"', account)
    assert following is not None
    second = client.get(following[1].partition("#")[0].replace("&amp;", "&")).content.decode()
    assert "crowd-0026" in second


def test_of_very_many_silent_clusters_a_page_names_two_and_counts_the_others(
    cast: Cast, alice: Client
) -> None:
    Cluster.objects.bulk_create(
        [
            Cluster(name=f"far-{n}", server="https://127.0.0.1:1", unreachable_since=timezone.now())
            for n in range(10)
        ]
    )
    html = alice.get("/workloads").content.decode()
    # The cast's own cluster is the embedded one, and is told of first.
    assert "Single-trust mode" in html
    assert html.count("has not answered since") == 1
    assert re.search(r"9 more clusters\s+do not answer,\s+are not followed or\s+are disabled", html)
