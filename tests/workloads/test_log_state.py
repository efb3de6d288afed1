"""What the page of logs says beside the lines: which pods there are, whether more may come, and why
there is nothing to read.
"""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.cast import Cast
from tests.workloads import pods
from tests.workloads.log_rows import HOSTILE, a_log, number_lines, window
from workloads.models import Event, Log, Pod, Workload

SENT = {"metadata": {"name": "train1"}}
"""A job without which nobody asks why it waits."""
HELD = {
    "involvedObject": {"kind": "PodGroup", "name": "train1"},
    "type": "Warning",
    "reason": "Unschedulable",
    "message": "no node has 8 GPUs",
}


@pytest.fixture
def workload(cast: Cast) -> Workload:
    return pods.a_workload(cast.team_a)


@pytest.fixture
def bob(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.bob)
    return client


def load_state(client: Client, workload: Workload, **query: object) -> dict[str, Any]:
    return window(client, workload, **({"attempt": 1} | query))[0]


def becomes(workload: Workload, status: str, **fields: object) -> None:
    Workload.objects.filter(pk=workload.pk).update(
        status=status, changed=workload.changed + 1, **fields
    )
    workload.refresh_from_db()


def a_pod(workload: Workload, rank: int = 0, **fields: object) -> Pod:
    return Pod.objects.create(
        workload=workload, attempt=1, uid=f"uid-{rank}", name=f"train1-{rank}", rank=rank, **fields
    )


@pytest.mark.parametrize(
    ("status", "fields", "expected_text"),
    [
        ("Creating", {}, "There is no pod yet. It is being sent to its cluster."),
        (
            "Creating",
            {"trouble": "The cluster does not answer."},
            "There is no pod yet. The cluster does not answer.",
        ),
        ("Pending", {"reason": "No node has room."}, "There is no pod yet. No node has room."),
        ("Pending", {}, "There is no pod yet. The cluster has not said why yet."),
        ("Resuming", {}, "There is no pod yet. It is being sent to its cluster again."),
        ("Initializing", {}, "There is no pod yet. Its pods have their places and are starting."),
        ("Running", {}, "There is no pod yet. Every pod that it needs is up."),
        ("Degraded", {"reason": "A pod was evicted."}, "There is no pod yet. A pod was evicted."),
        ("Stopping", {}, "Its pods are being removed."),
        ("Deleting", {}, "It is being removed."),
    ],
)
def test_before_there_is_a_pod_the_page_waits_and_says_why(
    bob: Client, workload: Workload, status: str, fields: dict[str, str], expected_text: str
) -> None:
    becomes(workload, status, **fields)
    state = load_state(bob, workload)
    assert state["nothing"] == expected_text
    assert (state["over"], state["settled"], state["order"], state["tabs"]) == (
        False,
        False,
        [],
        {},
    )


def test_the_diagnosis_is_said_where_there_is_one(bob: Client, workload: Workload) -> None:
    becomes(
        workload, "Pending", job=SENT, pod_group={"metadata": {"name": "train1"}}, requested_pods=1
    )
    Event.objects.create(
        workload=workload,
        attempt=1,
        kind=Event.Kind.CLUSTER,
        is_warning=True,
        reason="Unschedulable",
        text="no node has 8 GPUs",
        subject_kind="PodGroup",
        subject="train1",
    )
    page = bob.get(f"/workloads/{workload.pk}/logs").content.decode()
    why = load_state(bob, workload)["nothing"].removeprefix("There is no pod yet. ")
    assert why != "The cluster has not said why yet."
    assert why in page, "as the page says above"


def test_pods_that_have_not_begun_are_told_with_their_names(
    bob: Client, workload: Workload
) -> None:
    becomes(workload, "Initializing")
    pod = a_pod(workload, phase="Pending")
    state = load_state(bob, workload)
    assert (
        state["nothing"]
        == "No pod has begun to write yet. Its pods have their places and are starting."
    )
    assert state["order"] == [pod.pk]
    assert state["tabs"][str(pod.pk)].startswith("<span")
    assert "train1-0" in state["tabs"][str(pod.pk)]


def test_a_log_that_is_empty_so_far_is_not_over(bob: Client, workload: Workload) -> None:
    becomes(workload, "Running")
    log = a_log(workload, [], state=Log.State.CAPTURING)
    assert (load_state(bob, workload)["nothing"], load_state(bob, workload)["over"]) == (
        "Nothing was written yet.",
        False,
    )
    assert (
        load_state(bob, workload, log=log.pk)["nothing"],
        load_state(bob, workload, log=log.pk)["over"],
    ) == (
        "Nothing was written yet.",
        False,
    )


@pytest.mark.parametrize("status", ["Completed", "Failed", "Stopped"])
def test_at_rest_it_says_what_there_was(bob: Client, workload: Workload, status: str) -> None:
    becomes(workload, status)
    state = load_state(bob, workload)
    assert (state["over"], state["settled"], state["nothing"]) == (
        True,
        True,
        "It had no pod, and so wrote nothing.",
    )
    pod = a_pod(workload, phase="Failed")
    state = load_state(bob, workload)
    assert (state["over"], state["settled"], state["nothing"]) == (
        False,
        False,
        "It has ended, and what it wrote is being fetched.",
    )
    Pod.objects.filter(pk=pod.pk).update(logs_kept=True)
    state = load_state(bob, workload)
    assert (state["over"], state["settled"], state["nothing"]) == (True, True, "It wrote nothing.")


@pytest.mark.parametrize(
    ("status", "attempt", "released", "over"),
    [
        ("Running", 1, False, False),
        ("Completed", 1, False, True),
        ("Running", 2, False, True),
        ("Deleting", 1, True, True),
    ],
    ids=["goes on", "ended", "an attempt before", "deleted"],
)
@pytest.mark.parametrize("state", [Log.State.CAPTURING, Log.State.COMPLETE])
def test_it_is_over_when_no_pod_can_come_and_all_is_read(
    bob: Client,
    workload: Workload,
    status: str,
    attempt: int,
    released: bool,
    over: bool,
    state: str,
) -> None:
    log = a_log(workload, number_lines(3), state=state)
    becomes(workload, status, attempt=attempt, released_at=timezone.now() if released else None)
    is_read = state == Log.State.COMPLETE
    assert load_state(bob, workload)["over"] is (over and is_read)
    one = load_state(bob, workload, log=log.pk)
    assert (one["over"], one["settled"]) == (is_read, over and is_read), (
        "the log alone is over when it is read; its tabs are not"
    )


def test_what_is_read_on_from_a_place_says_nothing_of_how_things_stand(
    bob: Client, workload: Workload
) -> None:
    log = a_log(workload, number_lines(3))
    assert "order" not in window(bob, workload, log=log.pk, after="")[0]


def test_the_tabs_are_those_of_the_page(bob: Client, workload: Workload) -> None:
    becomes(workload, "Running")
    logs = [a_log(workload, number_lines(1), rank=rank) for rank in range(2)]
    Pod.objects.filter(pk=logs[0].pod_id).update(phase="Succeeded")
    a_pod(workload, 2)
    for query in ({"attempt": 1}, {"log": logs[1].pk}, {"log": logs[1].pk, "pane": 1}):
        page = bob.get(
            f"/workloads/{workload.pk}/logs", query, headers={"HX-Request": "true"}
        ).content.decode()
        head = window(bob, workload, **query)[0]
        assert len(head["order"]) == len(head["tabs"]) == 3
        places = [page.index(head["tabs"][str(pod)]) for pod in head["order"]]
        assert places == sorted(places)


def test_names_of_pods_are_text(bob: Client, workload: Workload) -> None:
    a_log(workload, number_lines(1))
    Pod.objects.update(name=HOSTILE[0].decode())
    state = load_state(bob, workload)
    assert "<script" not in "".join(state["tabs"].values())
