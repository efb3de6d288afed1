"""The logs of a workload of very many pods: a few tabs, a search for the others, and parts of what
is merged.
"""

import asyncio
import io
import json
import os
import re
import resource
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.cast import Cast, make_cast
from tests.workloads.log_rows import texts, window
from tests.workloads.test_log_streams import append, collect_lines
from tests.workloads.wide_workloads import MOST_BYTES, a_wide_workload, add_logs
from workloads.logbook import windows
from workloads.logbook.log_files import MOST_OPEN
from workloads.models import Log, Workload

RANKS = 300
"""More than are merged at once."""
LAST = RANKS - 1


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def workload(cast: Cast) -> Workload:
    made = a_wide_workload(cast.team_a, RANKS)
    add_logs(made)
    return made


@pytest.fixture
def bob(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.bob)
    return client


def get_page(client: Client, workload: Workload, query: str = "") -> str:
    answer = client.get(f"/workloads/{workload.pk}/logs{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def get_log(workload: Workload, rank: int) -> Log:
    return Log.objects.select_related("pod").get(pod__workload=workload, pod__rank=rank)


def test_the_tab_and_the_window_are_bounded(bob: Client, workload: Workload) -> None:
    html = get_page(bob, workload)
    assert len(html.encode()) < MOST_BYTES
    assert html.count("data-pod=") == 50
    assert re.search(rf"data-tab-count>50<.*data-pod-count>{RANKS}<", html, re.DOTALL)
    with CaptureQueriesContext(connection) as queries:
        answer = bob.get(reverse("log-window", args=[workload.pk]))
    assert len(queries) <= 9
    assert len(answer.content) < MOST_BYTES // 2
    head = json.loads(answer.content.splitlines()[0])
    assert (head["pods"], len(head["order"])) == (RANKS, 50)


@pytest.mark.parametrize("typed", [str(LAST), f"wide-worker-{LAST}", f"worker-{LAST}"])
def test_any_log_is_found_by_rank_or_name_and_has_a_tab_then(
    bob: Client, workload: Workload, typed: str
) -> None:
    html = get_page(bob, workload, f"?attempt=1&find={typed}")
    assert f'data-query="log={get_log(workload, LAST).pk}"' in html
    assert re.search(r'aria-current="true" title="wide-worker-299', html)
    head, lines = window(bob, workload, log=get_log(workload, LAST).pk)
    assert texts(lines) == [f"line of rank {LAST}"]
    assert get_log(workload, LAST).pod_id in head["order"]


def test_that_no_log_is_found_is_said(bob: Client, workload: Workload) -> None:
    html = get_page(bob, workload, "?attempt=1&find=99999")
    assert "No log in attempt 1 is of 99999." in html


def test_what_cannot_be_merged_at_once_is_said_and_merged_by_parts(
    bob: Client, workload: Workload
) -> None:
    html = get_page(bob, workload)
    assert f"Of {RANKS} logs {windows.MOST_LOGS} are merged at once" in html
    assert "attempt=1&amp;from=256" in html
    _, first = window(bob, workload, attempt=1)
    assert texts(first)[-1] == f"line of rank {windows.MOST_LOGS - 1}"
    _, last = window(bob, workload, attempt=1, **{"from": 256})
    assert texts(last) == [f"line of rank {rank}" for rank in range(256, RANKS)]
    assert 'data-query="attempt=1&amp;from=256"' in get_page(bob, workload, "?attempt=1&from=256")


@contextmanager
def allow_open_files(more: int) -> Iterator[None]:
    """Let this process open so many more files, and hardly any beside."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(each) for each in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + more + 32, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("log-window", {}),
        ("log-window", {"at": "start"}),
        ("log-window", {"since": "60"}),
        ("log-search", {"q": "of rank 9"}),
    ],
)
def test_a_merged_view_has_few_of_its_files_open_at_once(
    bob: Client, workload: Workload, name: str, query: dict[str, str]
) -> None:
    with allow_open_files(MOST_OPEN):
        answer = bob.get(reverse(name, args=[workload.pk]), {"attempt": "1"} | query)
    assert answer.status_code == 200


async def prepare(pods: int, state: str, **more: int) -> tuple[AsyncClient, Workload]:
    cast = await sync_to_async(make_cast)()
    client = AsyncClient()
    await client.aforce_login(cast.bob)
    workload = await sync_to_async(a_wide_workload)(cast.team_a, pods)
    await sync_to_async(add_logs)(workload, state=state, **more)
    return client, workload


@pytest.mark.django_db(transaction=True)
@pytest.mark.anyio
async def test_the_download_of_all_has_the_logs_of_all_pods() -> None:
    client, workload = await prepare(RANKS, Log.State.COMPLETE)
    answer: Any = await client.get(reverse("log-download", args=[workload.pk]), {"attempt": 1})
    content = b"".join([piece async for piece in answer.streaming_content])
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert len(archive.namelist()) == RANKS


@pytest.mark.django_db(transaction=True)
@pytest.mark.anyio
async def test_lines_of_a_pod_beyond_the_first_are_followed() -> None:
    client, workload = await prepare(1_100, Log.State.CAPTURING, files_from=1_099)
    log = await sync_to_async(get_log)(workload, 1_099)
    after = f"{log.pk:x}.{log.size:x}"
    waiting = asyncio.create_task(
        collect_lines(client, workload, {"log": log.pk, "after": after}, until=1)
    )
    await asyncio.to_thread(append, log, ["new"])
    assert (await waiting)[0] == ["new"]
