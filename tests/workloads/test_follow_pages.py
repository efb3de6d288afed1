"""A page of a first listing that cannot be written at once: its objects are there soon after."""

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError

from clusters import connections as clients
from clusters.capabilities import Capabilities
from clusters.kube.resources import PODS
from clusters.models import Cluster
from tests.cast import Cast, a_spec, make_cast
from tests.clusters.kube.faults import Exchange, FaultServer, watch
from tests.clusters.scripted import build_kubeconfig
from tests.workloads.cluster_objects import ClusterObjects
from tests.workloads.test_follow import wait_until
from workloads import journal
from workloads.following.cluster_follower import WRITE_TRIES, ClusterFollower
from workloads.following.sources import Item, ListPage
from workloads.models import Pod

pytestmark = pytest.mark.django_db(transaction=True)


class FailingFollower(ClusterFollower):
    """Fails to write the first batches that have a page of pods."""

    def __init__(self, cluster_id: uuid.UUID, error: Exception, count: int) -> None:
        super().__init__(cluster_id, Capabilities(served=frozenset({"batch/v1/jobs"})))
        self._error = error
        self.remaining = count

    def _write_batch(self, batch: Sequence[Item]) -> None:
        pages = [each for each in batch if isinstance(each, ListPage) and each.objects]
        if pages and self.remaining:
            self.remaining -= 1
            raise self._error
        super()._write_batch(batch)


@pytest.fixture
def cast() -> Iterator[Cast]:
    yield make_cast()
    clients.close_all()


@contextmanager
def serve_pods(cast: Cast) -> Iterator[FaultServer]:
    """Serve a cluster in which a workload has two pods, one on each page of the listing."""
    workload = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    made = ClusterObjects(workload)
    pages: dict[str, Any] = {"": ([made.pod("master")], "t"), "t": ([made.pod("worker", 0)], "")}

    def answer(exchange: Exchange) -> None:
        query, metadata = exchange.request.query, {"resourceVersion": "5000"}
        if "watch" in query:
            watch()(exchange)
            return
        items: list[Any] = []
        if exchange.request.path == PODS.path():
            items, token = pages[query.get("continue", "")]
            metadata["continue"] = token
        exchange.answer(200, json.dumps({"metadata": metadata, "items": items}).encode())

    with FaultServer(answer) as server:
        Cluster.objects.filter(pk=cast.cluster.pk).update(
            kubeconfig=build_kubeconfig(server), server=server.access.server
        )
        yield server


@contextmanager
def follow_with(follower: ClusterFollower) -> Iterator[None]:
    follower.start()
    try:
        yield
    finally:
        follower.stop()
        follower.join()


def count_lists(server: FaultServer) -> int:
    """Return how many listings of pods have begun."""
    return sum(
        each.path == PODS.path() and not {"watch", "continue"} & each.query.keys()
        for each in list(server.requests)
    )


@pytest.mark.parametrize(
    "build_error",
    [
        lambda: OperationalError("database is locked"),
        lambda: OperationalError("database or disk is full"),
        lambda: RuntimeError("something that nobody foresaw"),
    ],
    ids=["locked", "full", "unforeseen"],
)
def test_a_page_that_could_not_be_written_is_written_again(
    cast: Cast, build_error: Callable[[], Exception]
) -> None:
    with serve_pods(cast) as server:
        follower = FailingFollower(cast.cluster.pk, build_error(), WRITE_TRIES - 1)
        with follow_with(follower):
            wait_until(lambda: Pod.objects.count() == 2)
        assert follower.remaining == 0
        assert count_lists(server) == 1


def test_a_page_that_cannot_be_written_is_listed_again(cast: Cast) -> None:
    with serve_pods(cast) as server:
        follower = FailingFollower(cast.cluster.pk, RuntimeError("unforeseen"), WRITE_TRIES)
        with follow_with(follower):
            wait_until(lambda: Pod.objects.count() == 2)
        assert not Pod.objects.exclude(vanished_at=None).exists()
        assert count_lists(server) == 2
