"""A workload's details: their parts, the history's filter and pages, the pods, what was asked for,
and what may be done.
"""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from projects.models import User
from tests.cast import Cast, a_spec
from tests.workloads.table_rows import NOON, a_pod, a_workload, an_event
from workloads.models import Attempt, Workload
from workloads.specs import MasterChanges, encode_spec
from workloads.states import Status

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m"


def as_(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def page(user: User, workload: Workload, path: str = "", **headers: str) -> str:
    answer = as_(user).get(f"/workloads/{workload.pk}{path}", headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def texts(html: str) -> list[str]:
    """Of the events, in their order."""
    found = re.findall(r'wl-event__text">(.*?)</p>', html, re.DOTALL)
    return [re.sub(r"<[^>]*>", "", each).strip() for each in found]


def test_the_details_say_what_it_is_and_keep_themselves_fresh(cast: Cast) -> None:
    workload = a_workload(cast.team_a, by=cast.bob, running_pods=2)
    html = page(cast.vera, workload)
    for text in ("train1", "Running", "team-a", "2/3 running", "bob"):
        assert text in html, text
    assert f'data-live-one="/workloads/{workload.pk}/live?after={workload.changed}"' in html


@pytest.mark.parametrize(
    ("statuses", "is_asking"),
    [
        (["Creating", "Resuming", "Stopping", "Deleting"], True),
        (["Running", "Stopped", "Failed", "Completed"], False),
    ],
)
def test_the_head_asks_each_minute_where_a_step_may_be_overdue(
    cast: Cast, statuses: list[str], is_asking: bool
) -> None:
    for status in statuses:
        html = page(cast.vera, a_workload(cast.team_a, status.lower(), status=status), "/head")
        assert ('hx-trigger="muster:changed, every 60s"' in html) == is_asking, status


def test_as_a_side_pane_it_is_the_same_part_without_a_frame(cast: Cast) -> None:
    html = page(cast.vera, a_workload(cast.team_a), "?pane=1", **{"HX-Request": "true"})
    assert "<html" not in html
    assert 'hx-push-url="/workloads' not in html
    assert "data-close" in html


@pytest.mark.parametrize("tab", ["nonsense", "metric"])
def test_a_tab_that_does_not_exist_is_not_found(cast: Cast, tab: str) -> None:
    assert as_(cast.vera).get(f"/workloads/{a_workload(cast.team_a).pk}/{tab}").status_code == 404


@pytest.mark.parametrize(
    ("status", "stop", "run", "delete"),
    [
        (Status.RUNNING, True, False, True),
        (Status.PENDING, True, False, True),
        (Status.STOPPING, False, False, True),
        (Status.STOPPED, False, True, True),
        (Status.FAILED, False, True, True),
        (Status.COMPLETED, False, True, True),
        (Status.DELETING, False, False, False),
    ],
)
def test_only_what_makes_sense_can_be_done_and_the_rest_says_why_not(
    cast: Cast, status: Status, stop: bool, run: bool, delete: bool
) -> None:
    workload = a_workload(cast.team_a, status=status.value)
    html = page(cast.bob, workload)
    for action, possible in (("stop", stop), ("run", run), ("delete", delete)):
        assert (f'action="/workloads/{workload.pk}/{action}"' in html) is possible, action
        assert (
            bool(re.search(rf'id="act-{action}" aria-disabled="true" title="\w[^"]+\."', html))
            is not possible
        ), action
    assert f"/workloads/new?copy={workload.pk}" in html


def test_a_viewer_is_told_who_may(cast: Cast) -> None:
    html = page(cast.vera, a_workload(cast.team_a))
    assert "/stop" not in html
    assert html.count("You are Viewer there; it takes L2 researcher") >= 4


def test_all_attempts_stay_visible(cast: Cast) -> None:
    workload = a_workload(cast.team_a, attempt=2)
    Attempt.objects.create(
        workload=workload,
        number=1,
        status="Failed",
        reason="it fell",
        ended="1 failed, 2 stopped",
        requested_by=cast.bob,
    )
    html = page(cast.vera, workload)
    for words in ("2 attempts", "it fell", "1 failed, 2 stopped", "by bob"):
        assert words in html


def test_the_history_is_in_one_order_of_time_the_newest_first(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    an_event(
        workload, "second", minutes=2, kind="cluster", reason="Pulled", source="kubelet", count=3
    )
    an_event(workload, "first", minutes=1, old="Pending")
    an_event(workload, "third", minutes=3, kind="action", new="", by=cast.bob)
    html = page(cast.vera, workload)
    assert texts(html) == ["third", "Pulled second", "Pending → Running first"]
    for words in ("3 times", "kubelet", "by bob"):
        assert words in html


@pytest.mark.parametrize(
    ("query", "expected_texts"),
    [
        ("kind=cluster", ["warned", "old"]),
        ("kind=cluster&kind=action", ["warned", "old", "did"]),
        ("warnings=1", ["warned"]),
        ("attempt=1", ["old"]),
        ("pod=p-1", ["warned"]),
        ("pod=p-2", []),
        ("kind=nonsense&attempt=x", ["warned", "old", "did", "moved"]),
    ],
)
def test_the_history_can_be_filtered_on_the_page_and_as_a_part(
    cast: Cast, query: str, expected_texts: list[str]
) -> None:
    workload = a_workload(cast.team_a, attempt=2)
    an_event(workload, "moved", minutes=1, new="")
    an_event(workload, "did", minutes=2, kind="action", new="")
    an_event(workload, "old", minutes=3, kind="cluster", new="", attempt=1)
    an_event(workload, "warned", minutes=4, kind="cluster", new="", is_warning=True, subject="p-1")
    for path in (f"?{query}", f"/events?{query}"):
        assert [
            text.removeprefix("Warning: ")
            for text in texts(page(cast.vera, workload, path, **{"HX-Request": "true"}))
        ] == expected_texts


def test_older_events_are_a_link_away_and_the_newest_page_asks_for_itself(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    for number in range(130):
        an_event(workload, f"e-{number}", minutes=number // 10, new="")
    newest = page(cast.vera, workload)
    assert 'hx-trigger="muster:changed"' in newest.split('id="history"')[1][:300]
    older = re.search(r'href="(/workloads/[^"]*)"[^>]*id="older"', newest)
    assert older is not None
    html = as_(cast.vera).get(older[1].replace("&amp;", "&")).content.decode()
    assert sorted(texts(newest) + texts(html)) == sorted(f"e-{number}" for number in range(130))
    assert "muster:changed" not in html.split('id="history"')[1][:300]


def test_hostile_texts_of_the_cluster_are_shown_as_text(cast: Cast) -> None:
    workload = a_workload(cast.team_a, reason=HOSTILE, trouble=HOSTILE, ended=HOSTILE[:80])
    an_event(
        workload,
        HOSTILE,
        reason=HOSTILE,
        source=HOSTILE,
        subject=HOSTILE,
        subject_kind=HOSTILE[:40],
    )
    a_pod(workload, name=HOSTILE, reason=HOSTILE, node=HOSTILE, image=HOSTILE, status=HOSTILE[:60])
    for path in ("", "/details", "/head", "/events", "/pods"):
        html = page(cast.vera, workload, path)
        assert "<script>alert" not in html, path
        assert "<img" not in html, path


def test_the_definition_is_shown_in_words_as_objects_and_as_a_call(cast: Cast) -> None:
    spec = a_spec(cast.team_a, master=MasterChanges(image="other/image", cpu_request="2"))
    html = page(cast.vera, a_workload(cast.team_a, spec=encode_spec(spec)), "/details")
    for words in (
        "muster/allreduce",
        "0.1 of 1 device",
        "kind: PyTorchJob",
        "other/image",
        "2 cores requested",
        "/api/v1/workloads/distributed",
    ):
        assert words in html, words
    assert "Where the master differs" in html


def test_a_definition_that_cannot_be_read_is_said_and_breaks_nothing(cast: Cast) -> None:
    html = page(cast.vera, a_workload(cast.team_a, spec={"version": 99}), "/details")
    assert "cannot read" in html


def test_the_pods_dialog_tells_of_every_pod_of_every_attempt(cast: Cast) -> None:
    workload = a_workload(cast.team_a, attempt=2)
    a_pod(
        workload,
        "worker",
        0,
        node="node-1",
        gpus="0.1",
        restarts=2,
        image="some/image",
        started_at=NOON,
    )
    a_pod(workload, "master", reason="image is missing", status="ErrImagePull", phase="Pending")
    old = a_pod(
        workload,
        "worker",
        0,
        attempt=1,
        name="old-worker",
        phase="Failed",
        status="OOMKilled",
        vanished_at=timezone.now(),
    )
    html = page(cast.vera, workload, "/pods", **{"HX-Request": "true"})
    for text in (
        "node-1",
        "some/image",
        "image is missing",
        "ErrImagePull",
        "OOMKilled",
        "gone from the cluster",
        "Attempt 1 (over)",
    ):
        assert text in html, text
    assert html.index("train1-master-0") < html.index("train1-worker-0") < html.index("old-worker")
    assert f'/workloads/{workload.pk}/logs?pod={old.pk}"' in html
    assert "<html" not in html


def test_no_pods_yet_is_said(cast: Cast) -> None:
    assert "3 pods have not been made yet" in page(cast.vera, a_workload(cast.team_a), "/pods")


def test_the_page_takes_as_many_queries_with_much_history_as_with_little(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    client, counts = as_(cast.vera), []
    for events in (2, 60):
        for number in range(events):
            an_event(workload, f"e-{number}", by=cast.bob)
            a_pod(workload, "worker", number)
        with CaptureQueriesContext(connection) as queries:
            client.get(f"/workloads/{workload.pk}")
        counts.append(len(queries))
    assert counts == [16, 16]


def test_a_page_says_since_when_the_cluster_is_silent(cast: Cast) -> None:
    cast.cluster.unreachable_since = NOON
    cast.cluster.save()
    workload = a_workload(cast.team_a)
    for path in ("/workloads", f"/workloads/{workload.pk}", f"/workloads/{workload.pk}/pods"):
        assert "has not answered since" in as_(cast.vera).get(path).content.decode()


def test_a_deleted_workload_keeps_its_history_and_can_be_copied(cast: Cast) -> None:
    workload: Any = a_workload(cast.team_a, status="Deleting", released_at=timezone.now())
    an_event(workload, "it was")
    html = page(cast.bob, workload)
    assert "it was" in html
    assert "It is deleted" in html
    assert f"?copy={workload.pk}" in html
