"""What waits to be written: bounded, jobs and pods before events, and nobody behind a storm."""

import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from types import SimpleNamespace

import pytest
from django.db import connections as databases
from django.db import transaction
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from clusters.kube.errors import Unavailable
from clusters.kube.resources import EVENTS, PODS
from console.metrics.instruments import REGISTRY
from tests.cast import Cast, a_spec
from tests.workloads.cluster_objects import ClusterObjects
from tests.workloads.objects import condition
from workloads import journal
from workloads.following import waiting_events, waiting_items
from workloads.following.cluster_follower import ClusterFollower
from workloads.following.sources import (
    Heartbeat,
    Item,
    ListDone,
    ListPage,
    Source,
    SourceFailed,
)
from workloads.following.waiting_items import WaitingItems
from workloads.journal import Observation, WorkloadNames, workload_names
from workloads.models import Event, Pod, Position, Workload
from workloads.slimming import EVENT_DECODER

POD, EVENT = Source("pod", PODS), Source("event", EVENTS, decoder=EVENT_DECODER)
STORM = 5000
ENDED = threading.Event()
ENDED.set()


@pytest.fixture
def quiet(cast: Cast) -> ClusterObjects:
    """A workload of team-a that nobody disturbs."""
    return ClusterObjects(
        journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    )


@pytest.fixture
def stormy(cast: Cast) -> ClusterObjects:
    """A workload of team-b, of which events come by the thousand."""
    return ClusterObjects(
        journal.create_workload(a_spec(cast.team_b, "storm"), project=cast.team_b, user=cast.bob)
    )


@pytest.fixture
def items(cast: Cast, quiet: ClusterObjects, stormy: ClusterObjects) -> WaitingItems:
    names = WorkloadNames(cast.cluster.pk)
    names.refresh()
    return WaitingItems(names)


def build_events(made: ClusterObjects, count: int, first: int = 0) -> list[Observation]:
    pod = made.pod("master")
    return [
        Observation(
            "event", made.event(pod, "Stormy", f"{number}", uid=f"{made.uid[:20]}-{number}")
        )
        for number in range(first, first + count)
    ]


def put_all(items: WaitingItems, added: Iterable[Item]) -> int:
    """How many of these found room at once."""
    return sum(map(items._try_put, added))


def list_subjects(batch: Iterable[Item], kind: str) -> list[str]:
    return [
        each.object["involvedObject" if "involvedObject" in each.object else "metadata"]["name"]
        for each in batch
        if isinstance(each, Observation) and each.kind == kind
    ]


@pytest.mark.django_db
def test_nobody_waits_behind_a_storm_of_events(
    items: WaitingItems, quiet: ClusterObjects, stormy: ClusterObjects
) -> None:
    assert put_all(items, build_events(stormy, STORM)) == STORM, "the storm waits for nobody"
    assert put_all(items, build_events(quiet, 3)) == 3
    assert put_all(items, [Observation("pod", quiet.pod("master")), Heartbeat(POD)]) == 2
    batch = items.take()
    assert batch[0] == Heartbeat(POD)
    assert list_subjects(batch[1:2], "pod") == ["train1-master-0"]
    assert len(batch) == 2 + waiting_events.EVENTS_AT_ONCE
    assert list_subjects(batch, "event").count("train1-master-0") == 3
    assert items.take_left_out() == {
        ("muster-team-b", "storm"): STORM - waiting_events.EVENTS_OF_NAMESPACE
    }


@pytest.mark.django_db
def test_what_changes_again_while_it_waits_is_written_once(
    items: WaitingItems, quiet: ClusterObjects
) -> None:
    first = quiet.pod("worker", 0)
    states = [quiet.pod("master") for _ in range(50)]
    observations = [Observation("pod", each) for each in [states[0], first, *states[1:]]]
    put_all(items, [*observations, *build_events(quiet, 1), *build_events(quiet, 1)])
    batch = items.take()
    assert len(batch) == 3
    master = batch[0]
    assert isinstance(master, Observation)
    assert master.object is states[-1]
    removal = Observation("pod", first, is_gone=True)
    put_all(items, [removal, Observation("pod", first)])
    assert items.take() == [removal]


@pytest.mark.django_db
def test_what_waits_is_as_old_as_its_first_arrival(
    items: WaitingItems, quiet: ClusterObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(waiting_items, "time", SimpleNamespace(monotonic=lambda: clock.now))
    assert items.measure_waiting() == (0, 0.0)
    put_all(items, [Observation("pod", quiet.pod("master"))])
    clock.now = 103.0
    # Once more the same, and another one.
    put_all(items, [Observation("pod", quiet.pod(role)) for role in ("master", "worker")])
    clock.now = 107.0
    assert items.measure_waiting() == (2, 7.0)
    items.take()
    assert items.oldest_taken_at == 100.0
    assert items.measure_waiting() == (0, 0.0)
    put_all(items, build_events(quiet, 1))
    items.take()
    assert items.oldest_taken_at is None


@pytest.mark.django_db
def test_nothing_moves_over_a_listing(
    cast: Cast, items: WaitingItems, quiet: ClusterObjects
) -> None:
    listing = journal.Listing(cast.cluster.pk, "pod")
    done = ListDone(POD, listing, timezone.now(), "")
    before, after = Observation("pod", quiet.pod("master")), Observation("pod", quiet.pod("master"))
    put_all(items, [before, done, after])
    assert items.take() == [before, done, after]


@pytest.mark.django_db
def test_objects_wait_in_a_queue_with_a_bound(items: WaitingItems, quiet: ClusterObjects) -> None:
    many = [
        Observation("pod", quiet.pod("worker", number)) for number in range(waiting_items.OBJECTS)
    ]
    assert put_all(items, many) == waiting_items.OBJECTS
    one_more = Observation("pod", quiet.pod("master"))
    assert not items._try_put(one_more)
    assert items._try_put(many[0]), "one that waits already"
    assert items._try_put(Heartbeat(POD)), "a sign of life"
    writer = threading.Timer(0.1, items.take)
    writer.start()
    assert items.add_item(one_more, threading.Event())
    writer.join()
    assert not items.add_item(one_more, ENDED)


@pytest.mark.django_db
def test_events_about_others_are_dropped_without_a_question(
    items: WaitingItems, quiet: ClusterObjects, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    def foreign(number: int) -> Observation:
        event = quiet.event(quiet.pod("master"), "Other", "", uid=f"o{number}")
        event["involvedObject"] |= {"namespace": "kube-system", "name": f"dns-worker-{number}"}
        return Observation("event", event)

    put_all(items, map(foreign, range(1000)))
    assert items.take() == []
    items._names.read_at -= workload_names.REFRESH_SECONDS
    with django_assert_num_queries(1):
        items.refresh_names()
    assert (items.take(), items._events.has_unknown) == ([], False)


@pytest.mark.django_db
def test_an_event_about_a_workload_of_this_moment_is_written(
    cast: Cast, items: WaitingItems
) -> None:
    made = ClusterObjects(
        journal.create_workload(a_spec(cast.team_a, "new"), project=cast.team_a, user=None)
    )
    put_all(items, build_events(made, 1))
    assert items.take() == []
    items._names.read_at -= workload_names.REFRESH_SECONDS
    items.refresh_names()
    assert list_subjects(items.take(), "event") == ["new-master-0"]


@pytest.mark.django_db
def test_while_nothing_can_be_written_events_wait(
    items: WaitingItems, stormy: ClusterObjects
) -> None:
    items.set_stalled(True)
    assert put_all(items, build_events(stormy, STORM)) == waiting_events.EVENTS_OF_NAMESPACE
    assert not items.take_left_out()


@pytest.mark.django_db
def test_signs_of_a_source_are_told_in_order_and_only_the_last_ones(items: WaitingItems) -> None:
    failure = SourceFailed(POD, Unavailable("gone"), timezone.now())
    put_all(items, [Heartbeat(POD)] * 100)
    assert items.take() == [Heartbeat(POD)]
    put_all(items, [Heartbeat(POD), failure, failure, *[Heartbeat(POD)] * 9, Heartbeat(EVENT)])
    assert items.take() == [failure, Heartbeat(POD), Heartbeat(EVENT)]


@pytest.mark.django_db(transaction=True)
def test_a_history_has_a_bound_and_says_what_it_left_out(
    cast: Cast, stormy: ClusterObjects
) -> None:
    follower = ClusterFollower(cast.cluster.pk)
    follower._names.refresh()
    Event.objects.bulk_create(
        [
            Event(workload=stormy.workload, attempt=1, kind="cluster", uid=f"before-{number}")
            for number in range(journal.MAX_EVENTS)
        ],
        batch_size=1000,
    )
    for first in range(0, 3000, 500):
        follower._write_with_retries(build_events(stormy, 500, first))
    follower._report_left_out(0.0)
    assert not Event.objects.filter(reason="Stormy").exists()
    entry = Event.objects.get(reason="EventLeftOut")
    assert (entry.count, entry.is_warning, entry.attempt) == (3000, True, 1)
    assert entry.text.startswith("An event of the cluster was left out. A workload keeps 20,000 ")
    Workload.objects.filter(pk=stormy.workload.pk).update(attempt=2)
    next_follower = ClusterFollower(cast.cluster.pk)
    next_follower._write_with_retries(build_events(stormy, 10, 9000))
    next_follower._report_left_out(0.0)
    assert Event.objects.filter(reason="EventLeftOut").count() == 1, "a new attempt has room"


@pytest.mark.django_db(transaction=True)
def test_a_listing_of_events_is_sorted_like_the_events(cast: Cast, quiet: ClusterObjects) -> None:
    follower, listing = ClusterFollower(cast.cluster.pk), journal.Listing(cast.cluster.pk, "event")
    mine = build_events(quiet, 1)[0].object
    other = mine | {"metadata": {"uid": "o"}, "involvedObject": {"kind": "Pod", "name": "dns-x-0"}}
    page = ListPage(EVENT, listing, [other, mine], is_first=True)
    assert [len(each.objects) for each in follower._select_items([page])] == [1]  # type: ignore[union-attr]
    follower._write_with_retries([page])
    assert page.written.is_set()
    assert Event.objects.filter(reason="Stormy").count() == 1


def test_a_page_waits_for_nothing_to_be_gathered(cast: Cast, items: WaitingItems) -> None:
    running = threading.Event()
    page = ListPage(POD, journal.Listing(cast.cluster.pk, "pod"), [], is_first=True)
    assert not items.has_page
    assert items.add_item(page, running)
    assert items.has_page
    assert items.take() == [page]
    assert not items.has_page


class RecordingFollower(ClusterFollower):
    """Remembers what was written together."""

    def __init__(self, cluster_id: uuid.UUID) -> None:
        super().__init__(cluster_id)
        self.batches: list[list[Item]] = []

    def _write_batch(self, batch: Sequence[Item]) -> None:
        self.batches.append(list(batch))
        super()._write_batch(batch)


def run_writer(follower: ClusterFollower) -> threading.Thread:
    def write() -> None:
        try:
            follower._write_items()
        finally:
            databases.close_all()

    writer = threading.Thread(target=write)
    writer.start()
    return writer


def put_in_thread(follower: ClusterFollower, added: list[Observation]) -> threading.Thread:
    source = threading.Thread(
        target=lambda: [follower._enqueue(each, threading.Event()) for each in added]
    )
    source.start()
    return source


@pytest.mark.django_db(transaction=True)
def test_while_the_database_is_locked_sources_wait_and_nothing_is_lost(
    cast: Cast, quiet: ClusterObjects, stormy: ClusterObjects
) -> None:
    follower = ClusterFollower(cast.cluster.pk)
    journal.record_observations(
        cast.cluster.pk, [Observation("job", quiet.job(condition("Running")))]
    )
    count = waiting_items.OBJECTS + 2 * waiting_items.BATCH_SIZE
    lag = REGISTRY.get_sample_value("muster_journal_lag_seconds_sum") or 0.0
    pods = [Observation("pod", quiet.pod("worker", number)) for number in range(count)]
    with transaction.atomic():
        Position.objects.select_for_update().get_or_create(pk=1)
        writer = run_writer(follower)
        sources = [
            put_in_thread(follower, pods),
            put_in_thread(follower, build_events(stormy, 900)),
        ]
        sources[0].join(3.0)
        assert sources[0].is_alive(), "it waits"
        assert len(follower._items._objects) <= waiting_items.OBJECTS
    for source in sources:
        source.join(60)
    follower.stop()
    writer.join(60)
    assert Pod.objects.filter(workload=quiet.workload).count() == count
    assert Event.objects.filter(reason="Stormy").count() == 900
    # What was seen first was written when the database was free again.
    assert (REGISTRY.get_sample_value("muster_journal_lag_seconds_sum") or 0.0) - lag > 2.0


@pytest.mark.django_db(transaction=True)
def test_a_pod_is_written_in_the_middle_of_a_storm(
    cast: Cast, quiet: ClusterObjects, stormy: ClusterObjects
) -> None:
    """And the cluster is not silent meanwhile."""
    follower, is_over = RecordingFollower(cast.cluster.pk), threading.Event()
    events = build_events(stormy, 6000)
    writer, storm = run_writer(follower), put_in_thread(follower, events)
    before = len(follower.batches)
    follower._enqueue(Observation("pod", quiet.pod("master")), is_over)
    follower._enqueue(Heartbeat(POD), is_over)
    storm.join(120)
    # What is about a workload whose name was not read yet would go with a follower that ends.
    while follower._items._events.has_unknown and writer.is_alive():
        time.sleep(0.05)
    follower.stop()
    writer.join(120)
    assert Pod.objects.filter(workload=quiet.workload).count() == 1
    cast.cluster.refresh_from_db()
    assert cast.cluster.last_seen_at is not None
    with_pod = next(n for n, batch in enumerate(follower.batches) if list_subjects(batch, "pod"))
    # One batch may be under way, and one gathered; a locked database lets one be written again.
    assert with_pod <= before + 5, "it was put behind events"
    written = Event.objects.filter(reason="Stormy").count()
    left_out = sum(Event.objects.filter(reason="EventLeftOut").values_list("count", flat=True))
    assert written + left_out == len(events), "each event is written or counted"
