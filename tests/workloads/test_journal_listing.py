"""A listing that comes page by page leaves the rows as the same objects told one by one do; and
what it says of what was known before.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cast import Cast, a_spec
from tests.workloads.cluster_objects import ClusterObjects, jobs, pods
from tests.workloads.objects import Object, condition
from workloads import journal
from workloads.models import Pod, Workload

ROLES = (("master", 0), ("worker", 0), ("worker", 1))
STATES = ("queued", "starting", "pod", "ended", None)
CONDITIONS = ("Created", "Running", "Succeeded", "Failed")
FIELDS = (
    "name",
    "role",
    "index",
    "rank",
    "phase",
    "status",
    "reason",
    "is_ready",
    "node",
    "gpus",
    "restarts",
    "image",
    "ended_at",
)


@pytest.fixture
def kube(cast: Cast) -> ClusterObjects:
    found = ClusterObjects(
        journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    )
    journal.record_observations(
        cast.cluster.pk,
        [
            *jobs(found.job(condition("Created"))),
            *pods(found.pod("master"), found.pod("worker", 0)),
        ],
    )
    return found


def read_columns(workload: Workload) -> Any:
    row = Workload.objects.get(pk=workload.pk)
    return (
        (
            row.status,
            row.reason,
            row.running_pods,
            row.requested_pods,
            row.gpus_allocated,
            row.ended,
            bool(row.job),
            bool(row.pod_group),
        ),
        list(row.attempts.values_list("status", "ended")),
        list(row.pods.order_by("name").values_list(*FIELDS)),
        row.events.filter(kind="status").values_list("new", flat=True).last(),
    )


def record_listing_pages(kind: Any, cast: Cast, objects: Sequence[Object], page: int) -> None:
    listing = journal.Listing(cast.cluster.pk, kind)
    for first in range(0, len(objects), page):
        listing.add_page(objects[first : first + page])
    listing.finish()


@given(
    st.lists(
        st.tuples(st.sampled_from(CONDITIONS), st.booleans(), *[st.sampled_from(STATES)] * 3),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 7),
)
@settings(max_examples=40)
def test_page_by_page_is_as_one_by_one(cast: Cast, estate: list[Any], page: int) -> None:
    Workload.objects.all().delete()
    ways: dict[str, list[ClusterObjects]] = {"one": [], "all": []}
    for way, mades in ways.items():
        for number in range(len(estate)):
            mades.append(
                ClusterObjects(
                    journal.create_workload(
                        a_spec(cast.team_a, f"{way}{number}"), project=cast.team_a, user=None
                    )
                )
            )
    found: dict[str, tuple[list[Object], list[Object], list[Object]]] = {}
    for way, mades in ways.items():
        found[way] = ([], [], [])
        for made, (kind, waits, *states) in zip(mades, estate, strict=True):
            found[way][0].append(made.job(condition(kind)))
            if waits:
                found[way][1].append(made.group("OverLimit", "full"))
            for (role, index), state in zip(ROLES, states, strict=True):
                if state:
                    found[way][2].append(getattr(made, state)(role, index))
    kinds: tuple[Any, ...] = ("job", "podgroup", "pod")
    for kind, objects in zip(kinds, found["one"], strict=True):
        for each in objects:
            journal.record_observations(cast.cluster.pk, [journal.Observation(kind, each)])
    for number, kind in enumerate(kinds):
        record_listing_pages(kind, cast, [*found["one"][number], *found["all"][number]], page)
    for one, all_ in zip(ways["one"], ways["all"], strict=True):
        assert repr(read_columns(all_.workload)).replace("all", "one") == repr(
            read_columns(one.workload)
        )


def test_a_page_of_many_is_written_by_as_many_statements_as_one_of_few(cast: Cast) -> None:
    counts = []
    for number in (2, 40):
        mades = [
            ClusterObjects(
                journal.create_workload(
                    a_spec(cast.team_a, f"n{number}-{each}"), project=cast.team_a, user=None
                )
            )
            for each in range(number)
        ]
        record_listing_pages("job", cast, [made.job(condition("Created")) for made in mades], 500)
        listing = journal.Listing(cast.cluster.pk, "pod")
        with CaptureQueriesContext(connection) as captured:
            listing.add_page([made.pod(role, index) for made in mades for role, index in ROLES])
        counts.append(len(captured))
        assert Workload.objects.filter(status="Running").count() == number
        Workload.objects.all().delete()
    assert counts[0] == counts[1]


def test_a_listing_without_news_writes_nothing(kube: ClusterObjects) -> None:
    listing = journal.Listing(kube.workload.cluster_id, "pod")
    kept = list(Pod.objects.values_list("data", flat=True))
    with CaptureQueriesContext(connection) as captured:
        assert listing.add_page(kept) == 0
    assert listing.finish() == 0
    assert len(captured) == 0


def test_what_a_listing_that_began_anew_told_at_first_may_have_gone(kube: ClusterObjects) -> None:
    listing = journal.Listing(kube.workload.cluster_id, "pod")
    both = list(Pod.objects.order_by("name").values_list("data", flat=True))
    listing.add_page(both)
    listing.restart()
    listing.add_page(both[:1])
    assert listing.finish() == 1
    assert list(Pod.objects.filter(vanished_at=None).values_list("name", flat=True)) == [
        "train1-master-0"
    ]


def set_back(obj: Object) -> Object:
    """As of a cluster that was restored from a backup: its versions are lower than those that are
    known.
    """
    obj["metadata"]["resourceVersion"] = "1"
    return obj


@pytest.fixture
def far_on(kube: ClusterObjects) -> ClusterObjects:
    """What is known has high versions."""
    listings: list[tuple[journal.Kind, list[Object]]] = [
        ("job", [kube.job(condition("Running"))]),
        ("pod", [kube.pod("master"), kube.pod("worker", 0)]),
    ]
    for kind, objects in listings:
        for each in objects:
            each["metadata"]["resourceVersion"] = str(10**9)
        journal.record_observations(
            kube.workload.cluster_id, [journal.Observation(kind, each) for each in objects]
        )
    return kube


def test_a_listing_is_newer_than_what_was_known_when_it_was_asked_for_whatever_its_versions(
    far_on: ClusterObjects,
) -> None:
    listing = journal.Listing(far_on.workload.cluster_id, "pod")
    listing.add_page([set_back(far_on.starting("master")), set_back(far_on.pod("worker", 0))])
    listing.finish()
    assert list(Pod.objects.order_by("name").values_list("phase", "version")) == [
        ("Pending", "1"),
        ("Running", "1"),
    ]
    jobs_ = journal.Listing(far_on.workload.cluster_id, "job")
    jobs_.add_page([set_back(far_on.job(condition("Failed", message="gone wrong")))])
    assert Workload.objects.get().status == "Failed"


def test_what_was_seen_after_it_was_asked_for_is_not_older_than_a_listing(
    far_on: ClusterObjects,
) -> None:
    listing = journal.Listing(far_on.workload.cluster_id, "pod")
    master = far_on.ended("master")
    master["metadata"]["resourceVersion"] = str(10**9 + 1)
    journal.record_observations(far_on.workload.cluster_id, pods(master))
    listing.add_page([set_back(far_on.starting("master")), set_back(far_on.pod("worker", 0))])
    assert Pod.objects.get(name="train1-master-0").phase == "Succeeded"


def test_fresh_reads_of_one_workload_are_newer_than_what_was_known_before_them(
    far_on: ClusterObjects,
) -> None:
    before = journal.list_known_objects(
        far_on.workload.cluster_id, "job", "pod", workload=far_on.workload.pk
    )
    journal.reconcile_workload(
        far_on.workload.pk,
        set_back(far_on.job(condition("Succeeded"))),
        [],
        None,
        known_before=before,
    )
    assert (Workload.objects.get().status, Pod.objects.filter(vanished_at=None).count()) == (
        "Completed",
        0,
    )


def test_what_became_known_after_the_listing_was_asked_for_and_it_should_hold_has_vanished(
    kube: ClusterObjects,
) -> None:
    listing = journal.Listing(kube.workload.cluster_id, "pod")
    journal.record_observations(kube.workload.cluster_id, pods(kube.pod("worker", 1)))
    listing.add_page(
        list(Pod.objects.exclude(name="train1-worker-1").values_list("data", flat=True))
    )
    newest = max(int(version) for version in Pod.objects.values_list("version", flat=True))
    listing.finish(kube.workload.created_at, str(newest - 1))
    assert Pod.objects.filter(vanished_at=None).count() == 3
    listing.finish(kube.workload.created_at, str(newest))
    assert Pod.objects.filter(vanished_at=None).count() == 2
