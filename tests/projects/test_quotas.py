"""A project's quota: how it is filled in, how pages and the REST API tell it."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from projects import tokens
from projects.models import AccessRule, AuditEntry, Project, User
from projects.permissions import DEPARTMENT
from projects.shares import Share, Shares, derive_parent_shares, sum_shares, to_json_number
from tests.cast import Cast
from tests.projects.editing import edit

GIB = 1 << 30
FULL = {
    "department": "research",
    "gpu_quota": "1.5",
    "gpu_limit": "4",
    "over_quota_weight": "2",
    "cpu_quota": "8",
    "cpu_limit": "16",
    "memory_quota": "10",
    "memory_limit": "20.5",
}


def post_edit(client: Client, cast: Cast, given: dict[str, str]) -> Any:
    client.force_login(cast.alice)
    return edit(client, f"/projects/{cast.team_a.pk}/edit", given)


def test_a_quota_is_filled_in_as_people_count(client: Client, cast: Cast) -> None:
    assert post_edit(client, cast, FULL).status_code == 302
    team = Project.objects.get(pk=cast.team_a.pk)
    assert (team.gpu_quota, team.gpu_limit, team.over_quota_weight) == (Decimal("1.5"), 4, 2)
    assert (team.cpu_quota, team.cpu_limit) == (8, 16)
    assert (team.memory_quota, team.memory_limit) == (10 * GIB, 41 * GIB // 2)
    # The form shows what was typed.
    form_page = client.get(f"/projects/{cast.team_a.pk}/edit").content.decode()
    assert all(f'value="{value}"' in form_page for value in ("1.5", "16", "20.5"))
    page = client.get(f"/projects/{cast.team_a.pk}").content.decode()
    for words in ("8 cores", ", at most 16 cores", "10 GiB", ", at most 20.5 GiB", ", at most 4<"):
        assert words in page


@pytest.mark.parametrize(
    ("wrong", "field", "problem"),
    [
        ({"gpu_limit": "1"}, "gpu_limit", "at least the quota, 1.5 GPUs"),
        ({"gpu_quota": ""}, "gpu_quota", "cannot be unlimited"),
        ({"cpu_limit": "0"}, "cpu_limit", "0.001"),
        ({"memory_limit": "9.99"}, "memory_limit", "at least the quota, 10 GiB"),
        ({"over_quota_weight": "-1"}, "over_quota_weight", "0"),
        ({"gpu_quota": "NaN"}, "gpu_quota", "number"),
        ({"memory_quota": "1e99999999 GiB"}, "memory_quota", "number"),
        ({"memory_quota": "1e999999999999"}, "memory_quota", "10,000,000"),
        ({"gpu_quota": "1e99999999"}, "gpu_quota", "10"),
    ],
)
def test_what_cannot_be_is_told_beside_it(
    client: Client, cast: Cast, wrong: dict[str, str], field: str, problem: str
) -> None:
    answer = post_edit(client, cast, FULL | wrong)
    assert answer.status_code == 422
    assert problem in " ".join(answer.context["form"].errors[field])
    assert Project.objects.get(pk=cast.team_a.pk).gpu_limit is None


def test_memory_that_was_left_as_it_was_shown_stays_to_the_byte(client: Client, cast: Cast) -> None:
    Project.objects.filter(pk=cast.team_a.pk).update(memory_quota=10**9, memory_limit=2 * 10**9)
    fields = {
        "department": "research",
        "gpu_quota": "2",
        "memory_quota": "0.93",
        "memory_limit": "1.86",
    }
    assert post_edit(client, cast, fields | {"description": "x"}).status_code == 302
    team = Project.objects.get(pk=cast.team_a.pk)
    assert (team.description, team.memory_quota, team.memory_limit) == ("x", 10**9, 2 * 10**9)
    assert AuditEntry.objects.latest("pk").after == {"description": "x"}
    assert (
        post_edit(client, cast, fields | {"memory_quota": "0.5", "memory_limit": ""}).status_code
        == 302
    )
    team.refresh_from_db()
    assert (team.memory_quota, team.memory_limit) == (GIB // 2, None)


def test_who_may_not_edit_the_cluster_names_no_namespace_in_the_form(
    client: Client, cast: Cast
) -> None:
    carol = User.objects.create(username="carol")
    AccessRule.objects.create(user=carol, department=cast.research, role=DEPARTMENT)
    client.force_login(carol)
    given = FULL | {"name": "team-c", "cluster": str(cast.cluster.pk)}
    answer = client.post("/projects/new", given | {"namespace": "monitoring"})
    assert answer.status_code == 422
    assert "takes the permission to edit clusters" in answer.context["form"].errors["namespace"][0]
    assert client.post("/projects/new", given).status_code == 302


def test_a_limit_of_no_gpus_is_one(client: Client, cast: Cast) -> None:
    assert post_edit(client, cast, FULL | {"gpu_quota": "0", "gpu_limit": "0"}).status_code == 302
    assert Project.objects.get(pk=cast.team_a.pk).gpu_limit == 0


def test_a_form_without_limits_means_none(client: Client, cast: Cast) -> None:
    assert post_edit(client, cast, {"department": "research", "gpu_quota": ""}).status_code == 302
    team = Project.objects.get(pk=cast.team_a.pk)
    assert team.shares == Shares(Share(), Share(), Share())


NAMESPACES = [
    ("kube-system", "cluster&#x27;s own"),
    ("Not_one", "lower-case"),
    ("-x", "no dash"),
    ("x" * 64, "63"),
    ("muster", "Muster&#x27;s own"),
]


@pytest.mark.parametrize(("name", "problem"), NAMESPACES)
def test_a_namespace_that_cannot_be_is_told_in_the_form(
    client: Client, cast: Cast, name: str, problem: str
) -> None:
    client.force_login(cast.alice)
    answer = client.post(
        "/projects/new",
        FULL | {"name": "team-c", "cluster": str(cast.cluster.pk), "namespace": name},
    )
    assert answer.status_code == 422
    assert problem in answer.content.decode()


def test_a_namespace_is_adopted_by_naming_it(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    given = FULL | {"name": "team-c", "cluster": str(cast.cluster.pk)}
    assert "it outlives the project" in client.get("/projects/new").content.decode()
    answer = client.post("/projects/new", given | {"namespace": cast.team_a.namespace})
    assert answer.status_code == 422
    assert "is that of another project" in answer.content.decode()
    assert client.post("/projects/new", given | {"namespace": "shared"}).status_code == 302
    made = Project.objects.get(name="team-c")
    assert (made.namespace, made.is_namespace_adopted) == ("shared", True)


def test_a_project_is_not_named_like_a_departments_queue(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    answer = client.post(
        "/projects/new", FULL | {"name": "department-research", "cluster": str(cast.cluster.pk)}
    )
    assert answer.status_code == 422


def test_what_a_project_holds_stands_beside_its_quota(client: Client, cast: Cast) -> None:
    client.force_login(cast.bob)
    assert "mu-bar" not in client.get("/projects").content.decode()
    Project.objects.filter(pk=cast.team_a.pk).update(
        allocated={"gpu": "0.5", "cpu": "2", "memory": "1"}
    )
    assert (
        '<progress class="mu-bar" max="100" value="25"' in client.get("/projects").content.decode()
    )


def test_why_no_quota_is_enforced_stands_on_the_page(client: Client, cast: Cast) -> None:
    Project.objects.filter(pk=cast.team_a.pk).update(
        sync_note="The KAI scheduler is not installed there."
    )
    client.force_login(cast.bob)
    text = client.get(f"/projects/{cast.team_a.pk}").content.decode()
    assert "Quotas are not enforced here" in text
    assert "The KAI scheduler is not installed there." in text


def test_the_rest_api_tells_the_quota_in_its_units(client: Client, cast: Cast) -> None:
    post_edit(client, cast, FULL)
    answer = client.get(
        "/api/v1/org-unit/projects",
        headers={"authorization": f"Bearer {tokens.issue_token(cast.bob)[0]}"},
    )
    assert answer.json()["projects"][0]["resources"] == [
        {
            "nodePool": {"id": "default", "name": "default"},
            "gpu": {"deserved": 1.5, "limit": 4, "overQuotaWeight": 2},
            "cpu": {"deserved": 8000, "limit": 16000, "overQuotaWeight": 2},
            "memory": {
                "deserved": 10737.41824,
                "limit": 22011.707392,
                "overQuotaWeight": 2,
                "units": "MB",
            },
        }
    ]


def test_what_is_without_limit_is_told_so(client: Client, cast: Cast) -> None:
    Project.objects.filter(pk=cast.team_a.pk).update(gpu_quota=None)
    answer = client.get(
        "/api/v1/org-unit/projects",
        headers={"authorization": f"Bearer {tokens.issue_token(cast.bob)[0]}"},
    )
    assert answer.json()["projects"][0]["resources"][0]["gpu"] == {
        "deserved": None,
        "limit": -1,
        "overQuotaWeight": 1,
    }


def test_shares_add_up() -> None:
    one = Shares(Share(Decimal(1), Decimal(2)), Share(Decimal("0.5")), Share(None))
    assert sum_shares([one, one]) == Shares(Share(Decimal(2)), Share(Decimal(1)), Share(None))
    assert sum_shares([]) == Shares(Share(Decimal(0)), Share(Decimal(0)), Share(Decimal(0)))
    own = Shares(Share(None, Decimal(3), Decimal(2)), Share(Decimal(9)), Share(None))
    assert derive_parent_shares(own, [one, one]) == Shares(
        Share(Decimal(2), Decimal(3), Decimal(2)), Share(Decimal(9)), Share(None)
    )
    assert [to_json_number(Decimal(value)) for value in ("2", "2.0", "0.5")] == [2, 2, 0.5]
