"""A complete listing also tells what is gone; however objects are told before it, after it the rows
are as the cluster is.
"""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cast import Cast, a_spec
from tests.workloads.cluster_objects import ClusterObjects, jobs, observe_gone, pods
from tests.workloads.objects import Object, condition
from workloads import journal
from workloads.journal import KnownObject, Observation
from workloads.models import Pod, Position, Workload
from workloads.specs import Architecture

LONG_AFTER = datetime(2100, 1, 1, tzinfo=UTC)
BEFORE = datetime(2026, 11, 21, tzinfo=UTC)
CREATED = condition("Created")


@pytest.fixture
def kube(cast: Cast) -> ClusterObjects:
    found = ClusterObjects(
        journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    )
    journal.record_observations(
        cast.cluster.pk,
        [
            *jobs(found.job(CREATED)),
            *pods(found.pod("master"), found.pod("worker", 0), found.pod("worker", 1)),
        ],
    )
    return found


def record_listing(
    kube: ClusterObjects,
    kind: Any,
    *objects: Object,
    began: datetime | None = LONG_AFTER,
    **more: Any,
) -> int:
    return journal.record_listing(kube.workload.cluster_id, kind, objects, began, **more)


def list_present_pods() -> list[str]:
    return sorted(Pod.objects.filter(vanished_at=None).values_list("name", flat=True))


def test_what_a_listing_lacks_has_vanished(kube: ClusterObjects) -> None:
    assert record_listing(kube, "pod", kube.pod("master")) == 1
    assert list_present_pods() == ["train1-master-0"]
    assert Workload.objects.get().status == "Degraded"


def test_a_listing_without_news_changes_nothing(kube: ClusterObjects) -> None:
    objects = list(Pod.objects.values_list("data", flat=True))
    position = Position.objects.get().value
    assert record_listing(kube, "pod", *objects) == 0
    assert Position.objects.get().value == position


def test_what_was_made_after_the_listing_began_has_not_vanished(kube: ClusterObjects) -> None:
    assert (
        record_listing(kube, "pod", began=BEFORE) == record_listing(kube, "job", began=BEFORE) == 0
    )
    assert len(list_present_pods()) == 3


def test_what_is_newer_than_the_listings_version_has_not_vanished(kube: ClusterObjects) -> None:
    versions = sorted(int(version) for version in Pod.objects.values_list("version", flat=True))
    assert record_listing(kube, "pod", began=BEFORE, version=str(versions[1])) == 1
    assert len(list_present_pods()) == 1


def test_what_cannot_be_read_is_still_there(kube: ClusterObjects) -> None:
    stubs = [{"metadata": {"uid": uid}} for uid in Pod.objects.values_list("uid", flat=True)]
    assert record_listing(kube, "pod", *stubs) == 0
    assert len(list_present_pods()) == 3


def test_a_listing_of_one_kind_of_jobs_says_nothing_of_the_others(kube: ClusterObjects) -> None:
    assert record_listing(kube, "job", job_kinds=("Job",)) == 0
    assert record_listing(kube, "job", job_kinds=("PyTorchJob",)) == 1
    assert Workload.objects.get().status == "Stopped"


def test_batch_jobs_are_known_though_lists_do_not_name_them(cast: Cast) -> None:
    spec = a_spec(
        cast.team_a, "solo", architecture=Architecture.STANDARD, framework=None, workers=1
    )
    made = ClusterObjects(journal.create_workload(spec, project=cast.team_a, user=None))
    job = made.batch(condition("Complete"), succeeded=1)
    del job["kind"]
    record_listing(made, "job", job, job_kinds=("Job",))
    assert (Workload.objects.get().status, Workload.objects.get().ended) == (
        "Completed",
        "1 succeeded",
    )


def test_a_pod_group_that_a_listing_lacks_is_forgotten(kube: ClusterObjects) -> None:
    group = kube.group("OverLimit", "full")
    record_listing(kube, "podgroup", group)
    assert Workload.objects.get().pod_group
    record_listing(kube, "podgroup")
    assert Workload.objects.get().pod_group is None


def list_known(kube: ClusterObjects, *kinds: Any) -> list[KnownObject]:
    return journal.list_known_objects(kube.workload.cluster_id, *kinds, workload=kube.workload.pk)


def test_one_workload_is_reconciled_from_fresh_reads(kube: ClusterObjects) -> None:
    before = list_known(kube, "job", "pod", "podgroup")
    assert journal.reconcile_workload(
        kube.workload.pk, kube.job(CREATED), [kube.pod("master")], kube.group(), known_before=before
    )
    assert (list_present_pods(), Workload.objects.get().status) == (["train1-master-0"], "Degraded")
    before = list_known(kube, "job", "pod", "podgroup")
    assert journal.reconcile_workload(kube.workload.pk, None, [], None, known_before=before)
    assert (
        list_present_pods(),
        Workload.objects.get().status,
        Workload.objects.get().pod_group,
    ) == (
        [],
        "Stopped",
        None,
    )


def test_stopping_what_never_reached_the_cluster_ends_when_reconciled(cast: Cast) -> None:
    workload = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=None)
    journal.request_stop(workload.pk, None)
    assert journal.reconcile_workload(
        workload.pk, None, [], None, known_before=list_known(ClusterObjects(workload))
    )
    assert Workload.objects.get().status == "Stopped"


def test_what_was_seen_after_one_had_looked_is_not_missed(kube: ClusterObjects) -> None:
    before = list_known(kube, "job", "pod")
    journal.record_observations(kube.workload.cluster_id, pods(kube.pod("worker", 2)))
    assert journal.reconcile_workload(kube.workload.pk, None, [], None, known_before=before)
    assert list_present_pods() == ["train1-worker-2"]


def test_a_listing_of_what_was_known_needs_no_version_and_no_clock(kube: ClusterObjects) -> None:
    """As of another cluster behind the same row, whose versions are lower than any that is
    known.
    """
    before = list_known(kube, "pod")
    journal.record_observations(kube.workload.cluster_id, pods(kube.pod("worker", 2)))
    assert record_listing(kube, "pod", known_before=before, began=None) == 1
    assert list_present_pods() == ["train1-worker-2"]


ROLES = (("master", 0), ("worker", 0), ("worker", 1))


class Cluster:
    """One workload's objects as they change; every change is a frame."""

    def __init__(self, kube: ClusterObjects) -> None:
        self.made = kube
        self.job: Object | None = kube.job(CREATED)
        self.pods: dict[int, Object] = {}
        self.group: Object | None = None
        self.tries = 0
        self.ended = False
        self.frames: list[Observation] = jobs(self.job)

    def change(self, what: str, which: int) -> None:
        match what:
            case "job" if self.job is not None and which < 2:
                self.ended = self.ended or which == 1
                self.job = self.made.job(condition("Succeeded") if self.ended else CREATED)
                self.frames += jobs(self.job)
            case "job" if self.job is not None:
                self.frames += observe_gone("job", self.made.job(CREATED))
                self.job = None
            case "group":
                self.group = self.made.group("OverLimit", f"full {which}")
                self.frames.append(Observation("podgroup", self.group))
            case "gone" if which in self.pods:
                self.frames += observe_gone("pod", self._pod("ended", which))
                del self.pods[which]
            case "queued" | "starting" | "pod" | "ended":
                if which not in self.pods:
                    self.tries += 1
                self.pods[which] = self._pod(what, which)
                self.frames += pods(self.pods[which])

    def _pod(self, what: str, which: int) -> Object:
        known = self.pods.get(which)
        pod: Object = getattr(self.made, what)(*ROLES[which], tries=self.tries)
        if known is not None:
            pod["metadata"]["uid"] = known["metadata"]["uid"]
        return pod


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["job", "queued", "starting", "pod", "ended", "gone", "group"]),
            st.integers(0, 2),
        ),
        max_size=14,
    ),
    st.data(),
)
@settings(max_examples=60)
def test_whatever_is_told_before_a_listing_after_it_the_rows_are_as_the_cluster_is(
    cast: Cast, changes: list[tuple[str, int]], data: Any
) -> None:
    name = f"w{Workload.objects.count()}"
    cluster = Cluster(
        ClusterObjects(
            journal.create_workload(a_spec(cast.team_a, name), project=cast.team_a, user=None)
        )
    )
    for what, which in changes:
        cluster.change(what, which)
    frames = data.draw(st.lists(st.sampled_from(cluster.frames), max_size=30))
    while frames:
        size = data.draw(st.integers(1, 8))
        journal.record_observations(cast.cluster.pk, frames[:size])
        frames = frames[size:]
    listings: list[tuple[journal.Kind, list[Object | None]]] = [
        ("job", [cluster.job]),
        ("podgroup", [cluster.group]),
        ("pod", list(cluster.pods.values())),
    ]
    for kind, objects in listings:
        journal.record_listing(
            cast.cluster.pk, kind, [each for each in objects if each], LONG_AFTER
        )
    check(Workload.objects.get(name=name), cluster)


def check(row: Workload, cluster: Cluster) -> None:
    found = {
        pod.uid: (pod.phase, pod.node, pod.version) for pod in row.pods.filter(vanished_at=None)
    }
    wanted = {}
    for pod in cluster.pods.values():
        version = pod["metadata"]["resourceVersion"]
        wanted[pod["metadata"]["uid"]] = (
            pod["status"]["phase"],
            pod["spec"].get("nodeName", ""),
            version,
        )
    assert found == wanted
    assert (row.job is None) == (cluster.job is None)
    if cluster.job is not None:
        assert row.job["metadata"]["resourceVersion"] == cluster.job["metadata"]["resourceVersion"]  # type: ignore[index]
        assert (row.status == "Completed") == cluster.ended
    else:
        assert row.status in ("Stopped", "Completed") or not row.job_uid
    assert row.running_pods == sum(
        pod["status"]["phase"] == "Running" for pod in cluster.pods.values()
    )
    moves = [(event.old, event.new) for event in row.events.exclude(new="")]
    assert [new for _, new in moves][:-1] == [old for old, _ in moves][1:]
    assert moves[-1][1] == row.status
