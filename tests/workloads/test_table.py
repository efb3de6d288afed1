"""The table of workloads: what it shows, to whom, in which order, and with how many queries."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from clusters.models import Node
from projects.models import AccessRule, CustomRole, User
from tests.cast import PASSWORD, Cast
from tests.workloads.table_rows import NOON, a_pod, a_workload, touch_workload
from workloads.models import Position, Workload
from workloads.views import rendering
from workloads.workload_table import TABLE

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'


def as_(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def html(client: Client, query: str = "", **headers: str) -> str:
    answer = client.get(f"{reverse('workloads')}{query}", headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def names(page: str) -> list[str]:
    """Of the rows, in their order."""
    return re.findall(r'id="name-[^>]*>([^<]*)</a>', page)


def link(page: str, rel: str) -> str:
    found = re.search(rf'rel="{rel}" href="([^"]*)"', page)
    return found[1].replace("&amp;", "&") if found else ""


def create_rows(cast: Cast, count: int) -> None:
    """Rows of which many are equal in time and status."""
    Workload.objects.bulk_create(
        Workload(
            project=cast.team_a,
            cluster=cast.cluster,
            name=f"w-{number:03}",
            spec={},
            status=("Running", "Failed")[number % 2],
            created_at=NOON + timedelta(minutes=number // 40),
        )
        for number in range(count)
    )


def test_a_row_tells_what_runs_and_how(cast: Cast) -> None:
    a_workload(
        cast.team_a,
        by=cast.bob,
        running_pods=1,
        gpus_requested="0.3",
        gpus_allocated="0.1",
        ran_seconds=75,
    )
    page = html(as_(cast.vera))
    for text in (
        "train1",
        "Distributed",
        "PyTorch",
        "Running",
        "team-a",
        "bob",
        "Yes",
        "1/3",
        "0.3",
        "0.1",
        "1 min 15 s",
    ):
        assert f">{text}<" in page or text in page, text


def test_frameworks_and_roles_are_called_by_their_names(cast: Cast) -> None:
    workload = a_workload(cast.team_a, framework="TF")
    for role, rank in (("chief", 0), ("worker", 1), ("ps", None)):
        a_pod(workload, role, rank=rank)
    assert '<span class="wl-quiet">TensorFlow</span>' in html(as_(cast.bob))
    pods = as_(cast.bob).get(f"/workloads/{workload.pk}/pods").content.decode()
    assert re.findall(r'<td class="c-role">([^<]*)</td>', pods) == [
        "Chief",
        "Worker 0",
        "Parameter server 0",
    ]


def test_the_project_and_the_nodes_that_one_may_see_are_links(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    Node.objects.create(cluster=cast.cluster, name="here")
    for index, node in enumerate(("here", "gone")):
        a_pod(workload, index=index, node=node)
    node_page = reverse("cluster-node", args=[cast.cluster.pk, "here"])
    reader = User.objects.create_user("reader", password=PASSWORD)
    role = CustomRole.objects.create(name="Reader", permissions=["workloads:view"])
    AccessRule.objects.create(
        user=reader, custom_role=role, project=cast.team_a, created_by=cast.alice
    )
    for user, expected in ((cast.bob, [node_page]), (reader, [])):
        pods = as_(user).get(f"/workloads/{workload.pk}/pods").content.decode()
        assert re.findall(r'<a href="(/clusters/[^"]*)"', pods) == expected
        assert "here" in pods
        head = as_(user).get(f"/workloads/{workload.pk}/head").content.decode()
        assert f'<a href="/projects/{cast.team_a.pk}">team-a</a>' in head
    assert as_(reader).get(node_page).status_code == 404


def test_the_pods_cell_tells_after_the_end_how_they_ended(cast: Cast) -> None:
    a_workload(cast.team_a, status="Completed", ended="3 succeeded")
    assert ">3 succeeded</a>" in html(as_(cast.vera))


def test_somebody_of_another_project_sees_nothing_on_any_road(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    client = as_(cast.mallory)
    assert names(html(client)) == []
    assert names(html(client, f"?project={cast.team_a.pk}")) == []
    assert client.get("/workloads/changes?after=0").status_code == 204
    for path in ("", "/history", "/details", "/head", "/events", "/pods", "/live"):
        assert client.get(f"/workloads/{workload.pk}{path}").status_code == 404, path


def test_somebody_who_is_not_signed_in_is_asked_to(cast: Cast) -> None:
    for path in ("", "/live", "/changes", ".csv"):
        assert Client().get(f"/workloads{path}").status_code == 302, path


@pytest.mark.parametrize("user", ["alice", "vera"])
@pytest.mark.parametrize(
    "sort",
    [
        *("-created", "created", "name", "-name", "status", "-status", "project", "-project"),
        *("cluster", "-department", "image", "-cpu_request", "memory_request", "attempt"),
    ],
)
def test_pages_turn_both_ways_in_every_order_with_equal_values(
    cast: Cast, sort: str, user: str
) -> None:
    create_rows(cast, 120)
    client = as_(getattr(cast, user))
    pages = [html(client, f"?sort={sort}")]
    while following := link(pages[-1], "next"):
        pages.append(client.get(following).content.decode())
    page_names = [names(page) for page in pages]
    assert [len(page) for page in page_names] == [50, 50, 20]
    assert len({name for page in page_names for name in page}) == 120
    back = client.get(link(pages[2], "prev")).content.decode()
    assert names(back) == page_names[1]
    first = client.get(link(back, "prev")).content.decode()
    assert names(first) == page_names[0]
    assert not link(first, "prev")


def test_the_order_is_told_to_screen_readers_and_turned_by_the_same_header(cast: Cast) -> None:
    a_workload(cast.team_a)
    page = html(as_(cast.vera), "?sort=name")
    assert re.search(
        r'data-column="name" scope="col" aria-sort="ascending">'
        r'\s*<a class="wl-sort" href="/workloads\?sort=-name"',
        page,
    )


@pytest.mark.parametrize(
    ("query", "expected_names"),
    [
        ("", ["plain", "other", "mine"]),
        ("?status=Failed", ["other"]),
        ("?status=Failed&status=Running", ["plain", "other", "mine"]),
        ("?status=Nonsense", ["plain", "other", "mine"]),
        ("?framework=none", ["plain"]),
        ("?framework=PyTorch", ["other", "mine"]),
        ("?by=bob", ["mine"]),
        ("?by=nobody", []),
        ("?q=THE", ["other"]),
        ("?q=%25", []),
        ("?age=1h", ["plain"]),
        ("?age=7d&status=Running", ["plain"]),
        ("?project=999999", []),
        ("?project=x", []),
        ("?project=%00&q=%00", ["plain", "other", "mine"]),
        ("?deleted=1", ["gone"]),
    ],
)
def test_filters_and_search_in_the_address(
    cast: Cast, query: str, expected_names: list[str]
) -> None:
    old = timezone.now() - timedelta(days=40)
    a_workload(cast.team_a, "mine", by=cast.bob, created_at=old - timedelta(days=1))
    a_workload(cast.team_a, "other", by=cast.vera, status="Failed", created_at=old)
    a_workload(
        cast.team_a, "plain", architecture="Standard", framework="", created_at=timezone.now()
    )
    a_workload(cast.team_a, "gone", released_at=timezone.now())
    assert names(html(as_(cast.bob), query)) == expected_names


def test_the_filter_stays_in_every_link_of_the_page(cast: Cast) -> None:
    create_rows(cast, 120)
    page = html(as_(cast.vera), "?status=Running&q=w-&sort=name&cols=status")
    for target in (link(page, "next"), re.search(r'href="(/workloads\.csv[^"]*)"', page)[1]):  # type: ignore[index]
        assert "status=Running" in target
        assert "q=w-" in target
        assert "sort=name" in target


def find_columns(page: str) -> list[str]:
    """Return the columns of the heads, which are those of every row."""
    (heads,) = re.findall(r"<thead>(.*?)</thead>", page, re.DOTALL)
    row = re.findall(r"<tr id=.*?</tr>", page, re.DOTALL)[0]
    columns, cells = (re.findall(r'data-column="(.*?)"', part) for part in (heads, row))
    assert columns == cells
    return columns


@pytest.mark.parametrize("query", ["?column=status,created", "?column=status&column=created"])
def test_chosen_columns_are_shown_and_remembered(cast: Cast, query: str) -> None:
    a_workload(cast.team_a)
    client = as_(cast.vera)
    usual = [each.name for each in TABLE.columns if not each.is_extra]
    assert find_columns(html(client)) == ["check", *usual]
    columns = find_columns(html(client, query))
    assert columns == find_columns(html(client)) == ["check", "name", "status", "created"]
    assert find_columns(html(client, "?column=name")) == ["check", "name"]


def test_older_addresses_of_columns_and_pages_are_understood(cast: Cast) -> None:
    create_rows(cast, 120)
    client = as_(cast.vera)
    assert find_columns(html(client, "?cols=status,created")) == [
        "check",
        "name",
        "status",
        "created",
    ]
    following = link(html(client), "next")
    page = client.get(following.replace("cursor=", "page=")).content.decode()
    assert names(page) == names(client.get(following).content.decode())
    assert "page=" not in link(page, "next")


def test_nothing_is_chosen_of_what_is_deleted(cast: Cast) -> None:
    a_workload(cast.team_a, released_at=timezone.now())
    assert "check" not in find_columns(html(as_(cast.vera), "?deleted=1"))


@pytest.mark.parametrize(
    ("query", "user", "advice"),
    [
        ("", "bob", "Launch the first one"),
        ("", "vera", "ask a project&#x27;s administrator"),
        ("?q=x", "bob", "Clear the filters"),
        ("?deleted=1", "bob", "Deleted workloads are listed here"),
    ],
)
def test_an_empty_table_says_what_to_do(cast: Cast, query: str, user: str, advice: str) -> None:
    assert advice in html(as_(getattr(cast, user)), query).replace("'", "&#x27;")


def test_htmx_gets_the_table_alone(cast: Cast) -> None:
    part = html(as_(cast.vera), **{"HX-Request": "true"})
    assert "<html" not in part
    assert 'id="workloads"' in part


def test_hostile_texts_are_shown_as_text(cast: Cast) -> None:
    a_workload(cast.team_a, reason=HOSTILE, ended=HOSTILE[:100], name=HOSTILE[:60])
    page = html(as_(cast.vera), f"?q={HOSTILE[:20]}&by={HOSTILE}")
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_page_takes_as_many_queries_with_fifty_rows_as_with_five(
    cast: Cast, settings: Any
) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    client = as_(cast.vera)
    counts = []
    for rows in (5, 50):
        for number in range(Workload.objects.count(), rows):
            a_workload(cast.team_a, f"w-{number}", by=cast.bob)
        with CaptureQueriesContext(connection) as queries:
            html(client)
        counts.append(len(queries))
        sql = " ".join(each["sql"] for each in queries)
        assert "COUNT(" not in sql
        assert "OFFSET" not in sql
        assert '"workloads_workload"."spec"' not in sql
        # The keys of the page come from an index alone.
        [keys] = [each["sql"] for each in queries if "LIMIT 51" in each["sql"]]
        assert "JOIN" not in keys
    # Three of them say why a viewer cannot launch, and who can help.
    assert counts == [15, 15]


def test_a_row_is_made_once_for_each_change_and_for_all_viewers(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    real = rendering.render_cells

    def render_cells(workload: Workload) -> Any:
        made.append(workload.name)
        return real(workload)

    monkeypatch.setattr(rendering, "render_cells", render_cells)
    workload = a_workload(cast.team_a)
    for user in (cast.bob, cast.vera, cast.alice):
        html(as_(user))
    assert made == ["train1"]
    touch_workload(workload, status="Failed")
    assert "Failed" in html(as_(cast.vera))
    assert made == ["train1"] * 2


def test_a_row_has_nothing_of_its_reader(cast: Cast) -> None:
    a_workload(cast.team_a)
    rows: set[str] = set()
    for user in cast.people:
        if user != cast.mallory:
            row = re.search(r"<tr id=.*?</tr>", html(as_(user)), re.DOTALL)
            assert row
            rows.add(row[0])
    assert len(rows) == 1
    assert "csrf" not in rows.pop()


def test_changes_are_told_once_and_then_there_is_nothing(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    other = a_workload(cast.team_a, "other")
    client = as_(cast.vera)
    before = other.changed
    assert client.get(f"/workloads/changes?after={before}").status_code == 204
    touch_workload(workload, status="Failed")
    answer = client.get(f"/workloads/changes?after={before}").json()
    assert [row["id"] for row in answer["rows"]] == [str(workload.pk)]
    assert "Failed" in answer["rows"][0]["html"]
    assert answer["gone"] == []
    assert client.get(f"/workloads/changes?after={answer['position']}").status_code == 204


@pytest.mark.parametrize(
    "change", [{"status": "Failed"}, {"released_at": timezone.now()}], ids=["no match", "deleted"]
)
def test_what_is_not_looked_at_any_more_is_gone(cast: Cast, change: dict[str, Any]) -> None:
    workload = a_workload(cast.team_a)
    client = as_(cast.vera)
    before = workload.changed
    touch_workload(workload, **change)
    answer = client.get(f"/workloads/changes?after={before}&status=Running").json()
    assert answer["gone"] == [str(workload.pk)]
    assert answer["rows"] == []


def test_too_many_changes_ask_for_a_new_look_and_so_does_a_position_of_the_future(
    cast: Cast,
) -> None:
    create_rows(cast, 200)
    Workload.objects.update(changed=1)
    a_workload(cast.team_a)
    Position.objects.update(value=201)
    client = as_(cast.vera)
    assert client.get("/workloads/changes?after=0").json() == {
        "position": 201,
        "rows": [],
        "gone": [],
        "reset": True,
    }
    assert client.get("/workloads/changes?after=1000").json()["reset"] is True
