"""Leases: one process works for a cluster, whatever the clocks of their machines say."""

import threading
import time
import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from clusters.capabilities import Capabilities
from clusters.leases import LeaseHolder, LeaseKind
from clusters.models import Cluster
from tests.cast import NOWHERE

pytestmark = pytest.mark.django_db(transaction=True)


class WorkThatEnds:
    """Work whose threads end when `may_end` is set."""

    def __init__(self, cluster_id: uuid.UUID, capabilities: Capabilities) -> None:
        self.may_end = threading.Event()
        self.may_end.set()

    def start(self) -> None:
        pass

    def update_capabilities(self, capabilities: Capabilities) -> None:
        pass

    def stop(self) -> None:
        pass

    def join(self) -> None:
        assert self.may_end.wait(60)


class Clock:
    """The clocks that leases read: `now` seconds have passed, the wall clock is `ahead`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds, self.ahead = 1000.0, 0.0
        begin = timezone.now()
        monkeypatch.setattr(time, "monotonic", lambda: self.seconds)
        monkeypatch.setattr(
            timezone, "now", lambda: begin + timedelta(seconds=self.seconds + self.ahead)
        )


def build_holder(name: str) -> LeaseHolder[WorkThatEnds]:
    return LeaseHolder(LeaseKind.FOLLOW, WorkThatEnds, name)


def add_cluster(name: str) -> Cluster:
    return Cluster.objects.create(name=name, server="https://127.0.0.1:1", kubeconfig=NOWHERE)


@pytest.mark.parametrize("ahead", [-3600.0, -360.0, 0.0, 360.0, 3600.0])
def test_two_machines_whose_clocks_differ_do_not_both_work(
    monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    cluster, clock = add_cluster("one"), Clock(monkeypatch)
    first, second = build_holder("first"), build_holder("second")
    for _ in range(30):
        for holder, clock.ahead in ((first, 0.0), (second, ahead)):
            holder.tick()
        clock.seconds += 2
    assert sorted(len(each.clusters) for each in (first, second)) == [0, 1]
    followed_by = Cluster.objects.get(pk=cluster.pk).followed_by
    assert {each.holder for each in (first, second) if each.clusters} == {followed_by}


def test_a_lease_taken_meanwhile_ends_the_work_even_if_it_ran_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, clock = add_cluster("one"), Clock(monkeypatch)
    holder = build_holder("first")
    holder.tick()
    (work,) = holder.works
    past = timezone.now() - timedelta(seconds=1)
    Cluster.objects.update(followed_by="other", followed_until=past)
    clock.seconds += 2
    holder.tick()
    assert holder.works == []
    # The lease is not taken again before the threads of the work have ended.
    holder._ending[cluster.pk].join()
    holder.tick()
    assert holder.clusters == {cluster.pk}
    assert holder.works != [work]


def test_work_that_ends_slowly_lets_the_other_leases_be_renewed() -> None:
    slow, other = add_cluster("slow"), add_cluster("other")
    holder = build_holder("first")
    holder.tick()
    work = holder._leases[slow.pk].work
    work.may_end.clear()
    slow.kubeconfig = NOWHERE + "\n# changed\n"
    slow.save(update_fields=["kubeconfig"])
    holder.tick()
    holder.tick()
    assert holder.clusters == {other.pk}
    assert Cluster.objects.get(pk=slow.pk).followed_by == "first"
    work.may_end.set()
    while work in holder.works or holder.clusters != {slow.pk, other.pk}:
        holder.tick()
