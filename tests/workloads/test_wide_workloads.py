"""The pages of a workload of 2,000 pods: what they send is bounded, what they ask of the database
does not grow, and what is cut says so and leads to the rest.
"""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.cast import Cast
from tests.workloads.table_rows import NOON
from tests.workloads.wide_workloads import MOST_BYTES, PODS, a_wide_workload
from workloads.models import Event, Workload

PAGES = ("", "/details", "/timeline", "/logs", "/pods", "/head", "/events")
FEW = 120
"""Pods of a workload that has more than one page of them, too."""


@pytest.fixture
def bob(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.bob)
    return client


def get(client: Client, workload: Workload, path: str, **headers: str) -> str:
    answer = client.get(f"/workloads/{workload.pk}{path}", headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def count_queries(client: Client, workload: Workload, path: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        get(client, workload, path)
    return len(queries)


def list_ranks(html: str) -> list[int]:
    return [int(found) for found in re.findall(r">wide-worker-(\d+)</th>", html)]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_sends_and_asks_no_more_for_very_many_pods(
    cast: Cast, client: Client, path: str
) -> None:
    few, many = a_wide_workload(cast.team_a, FEW), a_wide_workload(cast.team_b)
    client.force_login(cast.alice)
    assert len(get(client, many, path).encode()) < MOST_BYTES
    assert count_queries(client, many, path) == count_queries(client, few, path)


def test_the_pods_are_turned_over_by_rank_and_the_page_says_how_many_there_are(
    cast: Cast, bob: Client
) -> None:
    workload = a_wide_workload(cast.team_a)
    first = get(bob, workload, "/pods")
    assert list_ranks(first) == list(range(100))
    assert f"Pods 1 to 100 of {PODS:,}" in first
    following = re.search(r'rel="next"[^>]*href="(.*?)"', first)
    assert following is not None
    second = bob.get(following[1].replace("&amp;", "&")).content.decode()
    assert list_ranks(second) == list(range(100, 200))
    assert list_ranks(get(bob, workload, "/pods?from=1900")) == list(range(1900, PODS))
    assert 'rel="next"' not in get(bob, workload, "/pods?from=1900")


def test_any_pod_is_found_by_rank_name_node_and_status(cast: Cast, bob: Client) -> None:
    workload = a_wide_workload(cast.team_a)
    workload.pods.filter(rank=1777).update(status="OOMKilled", node="far-away")
    for query in ("q=worker-1777", "q=far-away", "status=OOMKilled"):
        assert list_ranks(get(bob, workload, f"/pods?{query}")) == [1777]
    assert 1777 in list_ranks(get(bob, workload, "/pods?q=1777"))
    assert f"Running ({PODS - 1})" in get(bob, workload, "/pods")
    assert f"None of its {PODS:,} pods fits" in get(bob, workload, "/pods?q=nothing-like-it")


def test_the_dialog_keeps_its_page_and_search_when_it_is_refreshed(cast: Cast, bob: Client) -> None:
    workload = a_wide_workload(cast.team_a)
    html = get(bob, workload, "/pods?q=worker-1&status=Running&from=100", **{"HX-Request": "true"})
    refreshed = re.search(r'data-refresh="[^"]*"\s+hx-get="(.*?)"', html)
    assert refreshed is not None
    assert refreshed[1].endswith("/pods?q=worker-1&amp;status=Running&amp;from=100")


def test_a_few_pods_have_no_search(cast: Cast, bob: Client) -> None:
    html = get(bob, a_wide_workload(cast.team_a, 3), "/pods")
    assert list_ranks(html) == [0, 1, 2]
    assert "Find pods" not in html


def test_the_history_is_filtered_by_any_of_very_many_pods(cast: Cast, bob: Client) -> None:
    workload = a_wide_workload(cast.team_a)
    Event.objects.create(
        workload=workload, attempt=1, at=NOON, kind="cluster", text="cold", subject="wide-worker-9"
    )
    html = get(bob, workload, "")
    # A name is typed: no list could have all of them.
    assert '<input type="search" name="pod"' in html
    assert html.count("wide-worker-") < 60
    assert "cold" in get(bob, workload, "?pod=wide-worker-9")
    assert "cold" not in get(bob, workload, "?pod=wide-worker-8")
