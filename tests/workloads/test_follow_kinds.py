"""Which kinds are followed: those that the cluster serves, as that changes; and what the writer
makes of what their sources tell.
"""

import threading
import uuid
from collections.abc import Iterator

import pytest
from django.utils import timezone

from clusters import connections as clients
from clusters.capabilities import PODGROUPS, UNKNOWN, Capabilities
from clusters.kube.errors import Unavailable
from clusters.kube.resources import EVENTS, PODS
from clusters.models import Cluster
from projects.models import Project
from tests.cast import a_spec, make_cast
from tests.workloads.cluster_objects import ClusterObjects
from tests.workloads.objects import condition
from tests.workloads.test_follow import following, wait_until
from workloads import journal
from workloads.following.cluster_follower import ClusterFollower
from workloads.following.sources import (
    ListDone,
    ListPage,
    Source,
    SourceFailed,
    SourceRemoved,
    list_sources,
)
from workloads.models import Pod, Workload

TRAINING = "kubeflow.org/v1/pytorchjobs"
BATCH = "batch/v1/jobs"


def kinds(*served: str) -> list[str]:
    return [
        f"{each.resource.plural}:{each.job_kind}"
        for each in list_sources(Capabilities(served=frozenset(served)))
    ]


def test_what_is_served_is_followed() -> None:
    assert kinds(BATCH) == ["jobs:Job", "pods:", "events:"]
    both = kinds(
        BATCH,
        TRAINING,
        PODGROUPS,
        "kubeflow.org/v2beta1/mpijobs",
        "trainer.kubeflow.org/v1alpha1/trainjobs",
    )
    assert both == [
        "jobs:Job",
        "pytorchjobs:PyTorchJob",
        "mpijobs:MPIJob",
        "trainjobs:TrainJob",
        "podgroups:",
        "pods:",
        "events:",
    ]


def test_while_nothing_is_known_everything_is_tried() -> None:
    of = {each.job_kind for each in list_sources(UNKNOWN)}
    assert {"Job", "PyTorchJob", "TFJob", "XGBoostJob", "JAXJob", "PaddleJob"} < of
    assert {"MPIJob", "TrainJob"} < of
    assert [
        each.resource.version for each in list_sources(UNKNOWN) if each.job_kind == "MPIJob"
    ] == [
        "v2beta1",
        "v1",
    ]


def list_followed_kinds(cluster_id: uuid.UUID) -> set[str]:
    """The kinds for which there is a thread."""
    names = [
        thread.name.split(" of ")
        for thread in threading.enumerate()
        if thread.name.endswith(str(cluster_id))
    ]
    return {name for name, _ in names} - {"writer", "logs"}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    yield make_cast().cluster
    clients.close_all()


@pytest.mark.django_db(transaction=True)
def test_kinds_that_come_and_go_are_followed_and_left_without_a_restart(cluster: Cluster) -> None:
    rows = Cluster.objects.filter(pk=cluster.pk)
    rows.update(capabilities=Capabilities(served=frozenset({BATCH})).to_json())
    with following():
        wait_until(lambda: list_followed_kinds(cluster.pk) == {"jobs", "pods", "events"})
        rows.update(
            capabilities=Capabilities(served=frozenset({BATCH, TRAINING, PODGROUPS})).to_json()
        )
        wait_until(
            lambda: (
                list_followed_kinds(cluster.pk)
                == {"jobs", "pytorchjobs", "podgroups", "pods", "events"}
            )
        )
        rows.update(capabilities=Capabilities(served=frozenset({TRAINING})).to_json())
        wait_until(lambda: list_followed_kinds(cluster.pk) == {"pytorchjobs", "pods", "events"})
    assert list_followed_kinds(cluster.pk) == set()


POD = Source("pod", PODS)


@pytest.mark.django_db(transaction=True)
def test_a_kind_that_is_left_is_no_sign_of_life(cluster: Cluster) -> None:
    following, rows = ClusterFollower(cluster.pk), Cluster.objects.filter(pk=cluster.pk)
    event = Source("event", EVENTS)
    for source in (POD, event):
        following._health.record_heartbeat(source)
    since = timezone.now()
    following._write_batch([SourceFailed(POD, Unavailable("gone"), since)])
    assert rows.filter(unreachable_since=None).exists()
    following._write_batch([SourceRemoved(event), SourceFailed(POD, Unavailable("gone"), since)])
    assert rows.filter(unreachable_since=since).exists()


@pytest.mark.django_db(transaction=True)
def test_a_listing_that_comes_in_parts_is_complete_with_its_end(cluster: Cluster) -> None:
    made = ClusterObjects(_create_team_workload())
    journal.record_observations(
        cluster.pk,
        [
            journal.Observation("job", made.job(condition("Created"))),
            journal.Observation("pod", made.pod("worker", 1)),
        ],
    )
    following, listing = ClusterFollower(cluster.pk), journal.Listing(cluster.pk, "pod")
    parts = [
        ListPage(POD, listing, [made.pod("master")], is_first=True),
        ListPage(POD, listing, [made.pod("worker", 0)], is_first=False),
    ]
    following._write_batch(parts)
    assert all(part.written.is_set() for part in parts)
    assert Workload.objects.get().status == "Running"
    following._write_batch([ListDone(POD, listing, timezone.now(), "")])
    assert sorted(Pod.objects.filter(vanished_at=None).values_list("name", flat=True)) == [
        "train1-master-0",
        "train1-worker-0",
    ]
    assert Workload.objects.get().status == "Degraded"


def _create_team_workload() -> Workload:
    project = Project.objects.get(name="team-a")
    return journal.create_workload(a_spec(project), project=project, user=None)
