"""Which pod of a job one is, and the word that describes it."""

from typing import Any

import pytest

from tests.workloads.job_states import LAUNCHER, NODE
from tests.workloads.objects import (
    Object,
    ended_pod,
    pod,
    pod_of_batch_job,
    queued_pod,
    starting_pod,
)
from workloads.pod_views import build_pod_view, rank_pods


def test_roles_and_ranks_of_other_frameworks() -> None:
    chief = [
        build_pod_view(pod(role, index))
        for role, index in (("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0))
    ]
    assert [(rank, each.title) for rank, each in rank_pods(chief)] == [
        (0, "the chief"),
        (1, "worker 0"),
        (2, "worker 1"),
        (None, "ps 0"),
    ]
    mpi = [
        build_pod_view(pod_of_batch_job(pod(), labels=LAUNCHER)),
        build_pod_view(pod("worker", 0)),
        build_pod_view(pod("worker", 1)),
    ]
    assert [(rank, each.title) for rank, each in rank_pods(mpi)] == [
        (0, "worker 0"),
        (1, "worker 1"),
        (None, "the launcher"),
    ]
    (node,) = rank_pods([build_pod_view(pod_of_batch_job(pod(), labels=NODE, job="train1-node-0"))])
    assert (node[0], node[1].title) == (0, "worker 0")


def rank_of(view_: Any) -> dict[str, int | None]:
    return {each.name: rank for rank, each in view_}


def test_ranks_are_those_the_operator_gives() -> None:
    pods = [pod("worker", 1), pod("worker", 0), pod("master")]
    assert rank_of(rank_pods([build_pod_view(each) for each in pods])) == {
        "train1-master-0": 0,
        "train1-worker-0": 1,
        "train1-worker-1": 2,
    }
    assert rank_of(rank_pods([build_pod_view(each) for each in pods[:2]])) == {
        "train1-worker-0": 0,
        "train1-worker-1": 1,
    }


VIEWS = [
    (queued_pod(message="no room"), "Pending", "no room"),
    (starting_pod(), "Initializing", ""),
    (starting_pod(reason="ErrImagePull", message="denied"), "ErrImagePull", "denied"),
    (pod(), "Running", ""),
    (pod(terminating=True), "Terminating", ""),
    (ended_pod(), "Completed", ""),
    (ended_pod(code=3), "Error", "exit code 3"),
    (ended_pod(code=137, end={"reason": "OOMKilled"}), "OOMKilled", "exit code 137"),
    (ended_pod(code=137, reason="Evicted", message="low on disk"), "Evicted", "low on disk"),
]


@pytest.mark.parametrize(
    ("obj", "status", "reason"), VIEWS, ids=[f"{status}-{reason}" for _, status, reason in VIEWS]
)
def test_a_pod_is_described_in_a_word_and_what_is_behind_it(
    obj: Object, status: str, reason: str
) -> None:
    view = build_pod_view(obj)
    assert (view.status, view.reason) == (status, reason)
