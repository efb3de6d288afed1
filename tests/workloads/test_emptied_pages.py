"""A later page of a table whose rows have all left: it says so, and not that there is nothing."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from console.pagination import PAGE_SIZE
from environments.models import Environment
from tests.cast import Cast
from tests.workloads.table_rows import a_workload
from workloads.models import Workload

LEFT = "There is nothing on this page any more"


def create_workloads(cast: Cast) -> None:
    for number in range(PAGE_SIZE + 2):
        a_workload(cast.team_a, f"row-{number:03}", minutes=-number)


def create_environments(cast: Cast) -> None:
    Environment.objects.bulk_create(
        Environment(name=f"row-{number:03}", image="any", architecture="Standard")
        for number in range(PAGE_SIZE + 2)
    )


def delete_workloads(names: list[str]) -> None:
    Workload.objects.filter(name__in=names).update(released_at=timezone.now())


def delete_environments(names: list[str]) -> None:
    Environment.objects.filter(name__in=names).delete()


TABLES = {
    "workloads": (create_workloads, delete_workloads),
    "environments": (create_environments, delete_environments),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_later_page_whose_rows_have_left_leads_to_the_first(cast: Cast, kind: str) -> None:
    create, delete = TABLES[kind]
    address = f"/{kind}?q=row-"
    create(cast)
    client = Client()
    client.force_login(cast.alice)
    next_link = re.search(r'rel="next"\s+href="([^"]*)"', load_page(client, address))
    assert next_link is not None
    query = next_link[1].replace("&amp;", "&").partition("?")[2]
    later = f"/{kind}?{query}"
    assert "row-051" in load_page(client, later)
    delete(["row-050", "row-051"])
    page = load_page(client, later)
    assert LEFT in page
    assert "No workload" not in page
    assert "Nothing matches" not in page
    # A new row has its place on the first page, and not here.
    assert " data-first" not in page
    first = re.search(r'href="([^"]*)"[^>]*>\s*Go to the first page', page)
    assert first is not None
    assert first[1].endswith("?q=row-")


@pytest.mark.parametrize("path", ["/workloads", "/environments"])
def test_a_table_without_rows_does_not_speak_of_a_page(cast: Cast, path: str) -> None:
    client = Client()
    client.force_login(cast.alice)
    assert LEFT not in load_page(client, f"{path}?q=no-such-name")


def load_page(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()
