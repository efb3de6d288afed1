"""The poll keeps to the same number of events of an attempt as the follower."""

from collections.abc import Iterator

import pytest
from pytest_django import DjangoAssertNumQueries

from clusters import connections as clients
from clusters.models import Cluster
from tests.cast import Cast, a_spec
from tests.clusters.kube.faults import FaultServer
from tests.clusters.scripted import ClusterScript, build_kubeconfig
from tests.workloads.cluster_objects import ClusterObjects
from workloads import journal, tasks
from workloads.models import Event

ROOM = 5


@pytest.fixture
def script(cast: Cast) -> Iterator[ClusterScript]:
    """What the cluster of the cast answers."""
    script = ClusterScript()
    with FaultServer(script) as server:
        Cluster.objects.filter(pk=cast.cluster.pk).update(
            kubeconfig=build_kubeconfig(server), server=server.access.server
        )
        yield script
        clients.close_all()


def make_workload(cast: Cast, name: str, stored: int) -> ClusterObjects:
    """Create a workload of which so many events have a row."""
    workload = journal.create_workload(
        a_spec(cast.team_a, name), project=cast.team_a, user=cast.bob
    )
    Event.objects.bulk_create(
        [
            Event(
                workload=workload, attempt=1, kind="cluster", uid=f"{name}-{number}", reason="Old"
            )
            for number in range(stored)
        ],
        batch_size=1000,
    )
    return ClusterObjects(workload)


def test_a_poll_writes_no_more_events_than_a_history_keeps(
    cast: Cast, script: ClusterScript
) -> None:
    full = make_workload(cast, "storm", journal.MAX_EVENTS - ROOM)
    other = make_workload(cast, "quiet", 0)
    pod = full.pod("master")
    script.lists["events"] = [
        *(full.event(pod, "Stormy", f"{number}", uid=f"new-{number}") for number in range(9)),
        full.event(pod, "Repeated", "", uid="storm-0", count=2),
        other.event(other.pod("master"), "Quiet", "", uid="quiet"),
    ]
    for _ in range(2):
        # The second one leaves out the same events.
        tasks.poll(str(cast.cluster.pk))
        assert Event.objects.filter(reason="Stormy").count() == ROOM
        assert Event.objects.get(uid="storm-0").count == 2, "it has its row"
        assert Event.objects.get(reason="EventLeftOut").count == 9 - ROOM
        assert Event.objects.filter(reason="Quiet").count() == 1


def test_the_events_of_many_workloads_are_counted_in_one_statement(
    cast: Cast, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    made = [make_workload(cast, f"n{number}", number) for number in range(5)]
    events = [
        each.event(each.pod("master"), "Quiet", "", uid=f"{number}-{each.uid[:8]}")
        for each in made
        for number in range(3)
    ]
    names = journal.WorkloadNames(cast.cluster.pk)
    names.refresh()
    allowances = journal.EventAllowances(cast.cluster.pk, names)
    with django_assert_num_queries(1):
        kept, left_out = allowances.select_events(events)
    assert (kept, left_out) == (events, {})
    with django_assert_num_queries(0):
        allowances.select_events(events)
