"""Named views of the workload table: each person's own, and addresses that can be passed on."""

import html
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from projects.models import User
from tests.cast import Cast
from tests.workloads.table_rows import a_workload
from workloads import saved_views
from workloads.models import SavedView

QUERY = "status=Running&image=vision&sort=name&column=image,cluster"


def as_(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def open_page(client: Client, address: str = "/workloads", **headers: str) -> str:
    answer = client.get(address, headers=headers, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def save(client: Client, name: str, query: str = QUERY, **fields: Any) -> HttpResponse:
    """Save the table of an address as the page's form does without scripts."""
    page = client.get(f"/workloads/views/new?{query}").content.decode()
    [hidden] = re.findall(r'name="query" value="([^"]*)"', page)
    answer = client.post(
        "/workloads/views/new", {"name": name, "query": html.unescape(hidden), **fields}
    )
    assert isinstance(answer, HttpResponse)
    return answer


def list_tabs(page: str) -> dict[str, str]:
    """Return the addresses of the views by their names."""
    [tabs] = re.findall(r'<nav class="wl-views__list".*?</nav>', page, re.DOTALL)
    links = re.findall(r'<a href="([^"]*)"[^>]*>([^<]*)</a>', tabs, re.DOTALL)
    return {name: html.unescape(address) for address, name in links}


def list_names(page: str) -> list[str]:
    return re.findall(r'id="name-[^>]*>([^<]*)</a>', page)


def list_heads(page: str) -> list[str]:
    [heads] = re.findall(r"<thead>(.*?)</thead>", page, re.DOTALL)
    return re.findall(r'data-column="(.*?)"', heads)


def test_a_view_brings_back_columns_filters_and_order(cast: Cast) -> None:
    for name in ("b", "a"):
        a_workload(cast.team_a, name, image="vision:2")
    a_workload(cast.team_a, "other", image="text:1")
    client = as_(cast.vera)
    answer = save(client, "  Vision   jobs ")
    assert answer.status_code == 302
    page = open_page(client, answer["Location"])
    assert list_names(page) == ["a", "b"]
    assert list_heads(page) == ["check", "name", "cluster", "image"]
    assert list_tabs(page)["Vision jobs"] == answer["Location"]
    assert re.search(r'aria-current="page">Vision jobs', page)
    # What a view shows is not remembered for the table without one.
    assert "image" not in list_heads(open_page(client))


def test_a_view_is_the_persons_own_and_its_address_shows_what_its_reader_may_see(
    cast: Cast,
) -> None:
    a_workload(cast.team_a, "secret", image="vision:2")
    address = save(as_(cast.vera), "Vision")["Location"]
    view = SavedView.objects.get()
    mallory = as_(cast.mallory)
    page = open_page(mallory, address)
    assert "secret" not in page
    assert "No workload matches" in page
    assert list_tabs(page).keys() == {"Workloads", "Deleted"}
    assert list_names(open_page(as_(cast.bob), address)) == ["secret"]
    for path in ("", "/delete"):
        assert mallory.get(f"/workloads/views/{view.pk}{path}").status_code == 404
        assert mallory.post(f"/workloads/views/{view.pk}{path}", {"name": "x"}).status_code == 404
    assert SavedView.objects.get().name == "Vision"


def test_one_of_the_views_is_what_the_table_begins_with(cast: Cast) -> None:
    client = as_(cast.vera)
    assert "view=" not in client.get("/workloads").content.decode().split("<main")[0]
    save(client, "First", is_default="on")
    second = save(client, "Second", is_default="on")["Location"]
    answer = client.get("/workloads")
    assert (answer.status_code, answer["Location"]) == (302, second)
    assert SavedView.objects.get(is_default=True).name == "Second"
    # The table itself stays reachable, and a part of the page is never sent elsewhere.
    every = list_tabs(open_page(client))["Workloads"]
    assert client.get(every).status_code == 200
    assert client.get("/workloads", headers={"HX-Request": "true"}).status_code == 200


def test_a_view_is_renamed_and_replaced(cast: Cast) -> None:
    client = as_(cast.vera)
    save(client, "Vision")
    view = SavedView.objects.get()
    page = client.get(f"/workloads/views/{view.pk}?priority=high").content.decode()
    [query] = re.findall(r'name="query" value="([^"]*)"', page)
    fields = {"name": "Renamed", "query": html.unescape(query)}
    client.post(f"/workloads/views/{view.pk}", fields)
    view.refresh_from_db()
    assert (view.name, "image=vision" in view.query) == ("Renamed", True)
    client.post(f"/workloads/views/{view.pk}", {**fields, "replace": "on"})
    view.refresh_from_db()
    assert "priority=high" in view.query
    assert "vision" not in view.query


def test_a_view_is_deleted_after_a_question(cast: Cast) -> None:
    client = as_(cast.vera)
    address = save(client, "Vision")["Location"]
    view = SavedView.objects.get()
    assert (
        "Delete view Vision?" in client.get(f"/workloads/views/{view.pk}/delete").content.decode()
    )
    client.post(f"/workloads/views/{view.pk}/delete")
    assert not SavedView.objects.exists()
    assert "Vision" not in list_tabs(open_page(client, address))


def test_a_view_keeps_only_what_a_table_has(cast: Cast) -> None:
    client = as_(cast.vera)
    fields = {
        "name": "x",
        "query": "status=Nonsense&evil=<script>&sort=--name&cursor=1&column=z&q=a",
    }
    client.post("/workloads/views/new", fields)
    kept = parse_qs(SavedView.objects.get().query)
    assert kept.keys() == {"q", "sort", "column"}
    assert kept["sort"] == ["-created"]


@pytest.mark.parametrize(
    ("name", "query", "words"),
    [
        ("", QUERY, "required"),
        ("Vision", QUERY, "already"),
        ("x" * 41, QUERY, "40"),
        ("Long", "&".join(f"project={'p' * 148}{number:02}" for number in range(50)), "too long"),
    ],
)
def test_a_refusal_says_why_and_keeps_what_was_typed(
    cast: Cast, name: str, query: str, words: str
) -> None:
    client = as_(cast.vera)
    save(client, "Vision")
    answer = client.post("/workloads/views/new", {"name": name, "query": query})
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert SavedView.objects.count() == 1


def test_there_is_a_bound_on_the_views_of_a_person(cast: Cast) -> None:
    for number in range(saved_views.MAX_VIEWS):
        save(as_(cast.vera), f"view {number}")
    answer = save(as_(cast.vera), "one more")
    assert answer.status_code == 422
    assert "there can be no more" in answer.content.decode()
    assert save(as_(cast.bob), "one more").status_code == 302


def test_views_take_one_query_however_many_there_are(cast: Cast) -> None:
    a_workload(cast.team_a)
    client = as_(cast.vera)
    # A row that is not cached yet takes queries of its own.
    open_page(client, "/workloads")
    counts = []
    for name in ("one", "two", "three"):
        save(client, name)
        with CaptureQueriesContext(connection) as captured:
            open_page(client, "/workloads?view=all")
        counts.append(len(captured))
        with CaptureQueriesContext(connection) as captured:
            open_page(client, "/workloads", **{"HX-Request": "true"})
        assert not any("savedview" in each["sql"] for each in captured)
    assert len(set(counts)) == 1


def test_the_view_stays_in_the_addresses_of_the_page(cast: Cast) -> None:
    for number in range(60):
        a_workload(cast.team_a, f"w-{number}", image="vision")
    client = as_(cast.vera)
    address = save(client, "Vision", "image=vision")["Location"]
    page = open_page(client, address)
    view = str(SavedView.objects.get().pk)
    following = re.findall(r'href="([^"]*cursor=[^"]*)"', page)
    chips = re.findall(r'class="wl-chip" href="([^"]*)"', page)
    assert following
    assert chips
    for each in [*following, *chips]:
        assert parse_qs(urlsplit(html.unescape(each)).query)["view"] == [view]
    assert page.count(f'<input type="hidden" name="view" value="{view}">') == 2
