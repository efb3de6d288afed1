"""REST says what the page of a workload says: why it waits or failed, and what is not done yet."""

import html
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from clusters.models import Cluster, Node
from tests.api.calling import Caller
from tests.cast import Cast
from tests.workloads import objects
from tests.workloads.table_rows import a_pod, a_workload, an_event
from workloads.logbook import log_paths
from workloads.models import Log, Workload
from workloads.queries.explanations import NOT_LOOKED_INTO
from workloads.queries.waiting import MOST_PODS, SAMPLED

JOB = {
    "kind": "PyTorchJob",
    "metadata": {"name": "train1", "uid": "j"},
    "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1}}},
}
SINCE = datetime(2024, 11, 20, 9, 30, tzinfo=UTC)
AS_THEN = "what you see of it is as it was then"
GPUS = {"requests": {"nvidia.com/gpu": "9"}}


@pytest.fixture(autouse=True)
def _clear_cache() -> None:
    cache.clear()


def queue(workload: Workload, index: int = 0, **pod: Any) -> None:
    data = objects.queued_pod("worker", index, owner="j", **pod)
    a_pod(workload, "worker", index, phase="Pending", data=data)


def fail(workload: Workload, index: int, log: bytes = b"") -> None:
    data = objects.ended_pod("worker", index, code=1, owner="j")
    row = a_pod(workload, "worker", index, phase="Failed", data=data)
    if not log:
        return
    path = log_paths.build_log_path(workload.pk, row.uid, "pytorch", 0)
    Log.objects.create(
        pod=row, container="pytorch", path=path, size=len(log), state=Log.State.COMPLETE
    )
    local = log_paths.local_path(path)
    local.parent.mkdir(parents=True, exist_ok=True)
    local.write_bytes(log)


def without_scheduler(cast: Cast) -> Workload:
    """The CRDs of a scheduler are there and the scheduler is not: nobody looks at the pods."""
    workload = a_workload(cast.team_a, status="Pending", job=JOB)
    queue(workload)
    return workload


def without_room(cast: Cast) -> Workload:
    Node.objects.create(cluster=cast.cluster, name="n", is_ready=True, gpus=4, cpu=64, memory=2**38)
    workload = a_workload(cast.team_a, status="Pending", job=JOB, reason="no nodes")
    queue(workload, resources=GPUS)
    return workload


def without_pods(cast: Cast) -> Workload:
    workload = a_workload(cast.team_a, status="Pending", job=JOB)
    about: dict[str, Any] = {"subject": "train1", "subject_kind": "PyTorchJob"}
    an_event(workload, "<b>forbidden</b>", kind="cluster", reason="FailedCreatePod", **about)
    return workload


def with_an_image_that_is_missing(cast: Cast) -> Workload:
    workload = a_workload(cast.team_a, status="Initializing", job=JOB)
    data = objects.starting_pod("worker", 0, "ErrImagePull", "not found", owner="j")
    a_pod(workload, phase="Pending", data=data)
    return workload


def failed_with_a_log(cast: Cast) -> Workload:
    workload = a_workload(cast.team_a, status="Failed", job=JOB, reason="1 replica failed.")
    fail(workload, 0, b"Traceback (most recent call last):\n  File x\nValueError: <b>no</b>\n")
    return workload


def failed_without_pods(cast: Cast) -> Workload:
    condition = objects.condition("Failed", reason="BackoffLimitExceeded", message="too often")
    job = JOB | {"status": {"conditions": [condition]}}
    return a_workload(cast.team_a, status="Failed", job=job, reason="too often")


def not_launched_yet(cast: Cast) -> Workload:
    trouble = "The cluster refuses connections."
    return a_workload(cast.team_a, status="Creating", trouble=trouble)


def not_stopped_yet(cast: Cast) -> Workload:
    reason = "Its last pods are ending."
    return a_workload(cast.team_a, status="Stopping", reason=reason, trouble="It does not answer.")


def missing_a_pod(cast: Cast) -> Workload:
    return a_workload(cast.team_a, status="Degraded", reason="2 of 3 pods are up.")


def stopped_by_itself(cast: Cast) -> Workload:
    return a_workload(cast.team_a, status="Stopped", reason="Stopped: its time limit of 1 h.")


def running(cast: Cast) -> Workload:
    return a_workload(cast.team_a)


CATALOGUE: Mapping[str, Callable[[Cast], Workload]] = {
    make.__name__: make
    for make in (
        without_scheduler,
        without_room,
        without_pods,
        with_an_image_that_is_missing,
        failed_with_a_log,
        failed_without_pods,
        not_launched_yet,
        not_stopped_yet,
        missing_a_pod,
        stopped_by_itself,
        running,
    )
}
_SENTENCES = re.compile(
    r'<p class="(?:mu-alert__title|mu-alert__text|wl-because)">(.*?)</p>'
    r'|<p class="wl-line"><code>(.*?)</code>',
    re.DOTALL,
)


def list_page_sentences(cast: Cast, workload: Workload) -> list[str]:
    """What the head of the page says about the status."""
    client = Client()
    client.force_login(cast.bob)
    page = client.get(f"/workloads/{workload.pk}/head").content.decode()
    sentences = []
    for match in _SENTENCES.finditer(page):
        text = re.sub(r'<span class="pf-v6-screen-reader">.*?</span>', "", match[1] or match[2])
        text = re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL)
        sentences.append(" ".join(html.unescape(text).split()))
    return sentences


def list_rest_texts(answer: Mapping[str, Any]) -> str:
    diagnosis = answer["diagnosis"] or {"help": "", "logLine": ""}
    return " ".join((answer["phaseMessage"], diagnosis["help"], diagnosis["logLine"]))


@pytest.mark.parametrize("state", CATALOGUE)
def test_the_answer_has_each_sentence_of_the_page(cast: Cast, state: str) -> None:
    workload = CATALOGUE[state](cast)
    answer = Caller(cast.bob)("GET", f"/workloads/{workload.pk}")
    sentences = list_page_sentences(cast, workload)
    assert bool(sentences) == bool(answer["phaseMessage"]) == (state != "running")
    for sentence in sentences:
        assert sentence in list_rest_texts(answer)


@pytest.mark.parametrize("state", CATALOGUE)
def test_a_list_says_the_same_as_the_answer_of_one(cast: Cast, state: str) -> None:
    workload = CATALOGUE[state](cast)
    bob = Caller(cast.bob)
    (listed,) = bob("GET", "/workloads")["workloads"]
    assert listed["phaseMessage"] == bob("GET", f"/workloads/{workload.pk}")["phaseMessage"]


def test_what_waits_says_so_to_clients_that_look_for_scheduling_messages(cast: Cast) -> None:
    workload = without_scheduler(cast)
    answer = Caller(cast.bob)("GET", f"/workloads/{workload.pk}")
    (message,) = answer["pendingSchedulingMessages"]
    assert message["userMessage"] == answer["phaseMessage"]
    assert answer["phaseMessage"].startswith("It is queued: the scheduler has not looked")
    assert "may be missing or down" in answer["diagnosis"]["help"]


def test_which_pod_was_first_is_not_guessed_without_the_logs(cast: Cast) -> None:
    workload = failed_with_a_log(cast)
    fail(workload, 1)
    bob = Caller(cast.bob)
    (listed,) = bob("GET", "/workloads")["workloads"]
    assert listed["phaseMessage"] == "1 replica failed."
    assert "Worker 0" in bob("GET", f"/workloads/{workload.pk}")["phaseMessage"]
    Workload.objects.update(reason="")
    assert bob("GET", "/workloads")["workloads"][0]["phaseMessage"] == NOT_LOOKED_INTO


def test_a_wide_failed_workload_leaves_room_for_the_others(cast: Cast) -> None:
    narrow = a_workload(cast.team_a, "narrow", status="Failed", job=JOB)
    fail(narrow, 0)
    wide = a_workload(
        cast.team_a, "wide", minutes=1, status="Failed", job=JOB, requested_pods=10_000
    )
    for index in range(MOST_PODS + 1):
        a_pod(wide, "worker", index, phase="Succeeded", data={})
    texts = {
        each["name"]: each["phaseMessage"]
        for each in Caller(cast.bob)("GET", "/workloads")["workloads"]
    }
    assert "Worker 0" in texts["narrow"]
    assert texts["wide"] == NOT_LOOKED_INTO


@pytest.mark.parametrize(
    ("fields", "words", "age"),
    [
        ({"unreachable_since": SINCE}, "has not answered since 2024-11-20 09:30 UTC", AS_THEN),
        ({"is_enabled": False, "disabled_at": SINCE}, "was disabled by an administrator", AS_THEN),
        (
            {"followed_until": SINCE},
            "has not been written down since 2024-11-20 09:30 UTC",
            "what you see of it may have changed",
        ),
    ],
)
def test_the_age_of_what_is_known_is_said_while_the_cluster_does_not_answer(
    cast: Cast, fields: dict[str, Any], words: str, age: str
) -> None:
    workload, ended = missing_a_pod(cast), a_workload(cast.team_a, "train2", status="Completed")
    Cluster.objects.update(**fields)
    bob = Caller(cast.bob)
    answer = bob("GET", f"/workloads/{workload.pk}")
    assert words in answer["clusterMessage"]
    assert answer["phaseMessage"] == f"2 of 3 pods are up. {answer['clusterMessage']}"
    client = Client()
    client.force_login(cast.bob)
    page = " ".join(client.get(f"/workloads/{workload.pk}").content.decode().split())
    assert words.removesuffix(" 2024-11-20 09:30 UTC") in page
    assert age in page.lower()
    assert age in answer["clusterMessage"].lower()
    assert bob("GET", f"/workloads/{ended.pk}")["clusterMessage"] == ""


def test_a_list_takes_as_many_queries_however_many_wait_or_failed(cast: Cast) -> None:
    bob, counts = Caller(cast.bob), []
    bob("GET", "/workloads")
    for first in (0, 10):
        for number in range(first, first + 10):
            failed = a_workload(cast.team_a, f"failed-{number}", status="Failed", job=JOB)
            fail(failed, 0, b"ValueError: no\n")
            pending = a_workload(cast.team_a, f"pending-{number}", status="Pending", job=JOB)
            queue(pending)
        cache.clear()
        with CaptureQueriesContext(connection) as queries:
            listed = bob("GET", "/workloads?limit=500")["workloads"]
        assert len(listed) == 2 * (first + 10)
        assert all(each["diagnosis"] for each in listed)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 15


def test_a_list_looks_into_a_bounded_number_of_pods(cast: Cast) -> None:
    names = [f"train-{number}" for number in range(MOST_PODS // SAMPLED + 1)]
    for name in names:
        queue(a_workload(cast.team_a, name, status="Pending", job=JOB, requested_pods=SAMPLED))
    listed = Caller(cast.bob)("GET", "/workloads?sortBy=name")["workloads"]
    texts = [each["phaseMessage"] for each in listed]
    assert all(text.startswith("It is queued") for text in texts[:-1])
    assert texts[-1] == NOT_LOOKED_INTO
