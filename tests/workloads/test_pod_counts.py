"""The counts that the journal keeps are those of all pods, and a change costs what it changes."""

import logging
import random
from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.models.signals import post_init
from django.test.utils import CaptureQueriesContext

from tests.cast import Cast, a_spec
from tests.workloads.cluster_objects import ClusterObjects, jobs, observe_gone, pods
from tests.workloads.objects import condition
from tests.workloads.pod_histories import PodHistory, decode_counts
from workloads import journal
from workloads.journal.pod_counting import find_miscounted_workloads
from workloads.models import Pod, Workload
from workloads.status_rules import derive_status

CREATED = condition("Created")


def run_histories(cast: Cast, count: int) -> None:
    for _ in range(count):
        seed = random.randrange(10**9)
        print(f"seed {seed}")
        chance = random.Random(seed)
        history = PodHistory(cast, chance)
        for _ in range(chance.randrange(6, 25)):
            history.step()
        Workload.objects.all().delete()


def test_after_any_history_the_counts_are_those_of_all_pods(cast: Cast) -> None:
    run_histories(cast, 60)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_after_a_thousand_histories_the_counts_are_those_of_all_pods(cast: Cast) -> None:
    run_histories(cast, 1000)


def start_workload(cast: Cast, workers: int) -> ClusterObjects:
    """Create a running workload of a master and so many workers."""
    kube = ClusterObjects(
        journal.create_workload(a_spec(cast.team_a, f"n{workers}"), project=cast.team_a, user=None)
    )
    journal.record_observations(
        cast.cluster.pk,
        [
            *jobs(kube.job(CREATED, workers=workers)),
            *pods(kube.pod("master"), *(kube.pod("worker", each) for each in range(workers))),
        ],
    )
    assert Workload.objects.get(pk=kube.workload.pk).status == "Running"
    return kube


@pytest.fixture
def loaded_pods() -> Iterator[list[str]]:
    """The names of the pods whose rows are loaded, in their order."""
    loaded: list[str] = []

    def record_pod(instance: Pod, **_: object) -> None:
        loaded.append(instance.__dict__.get("name", ""))

    post_init.connect(record_pod, sender=Pod)
    yield loaded
    post_init.disconnect(record_pod, sender=Pod)


def test_one_change_reads_and_writes_as_much_among_few_pods_as_among_many(
    cast: Cast, loaded_pods: list[str]
) -> None:
    costs = []
    for workers in (10, 450):
        kube = start_workload(cast, workers)
        cost = []
        for change in (
            pods(kube.ended("worker", 3, code=1)),
            pods(kube.starting("worker", 4, reason="ImagePullBackOff")),
            pods(kube.pod("worker", 4)),
            observe_gone("pod", kube.pod("worker", 5)),
            jobs(kube.job(CREATED, condition("Running"), workers=workers)),
        ):
            loaded_pods.clear()
            with CaptureQueriesContext(connection) as captured:
                assert journal.record_observations(cast.cluster.pk, change) == 1
            cost.append((len(captured), len(loaded_pods)))
        costs.append(cost)
    assert costs[0] == costs[1]
    assert max(pods for _, pods in costs[0]) <= 3


def test_the_pod_of_the_lowest_rank_is_named(cast: Cast) -> None:
    kube = start_workload(cast, 8)
    journal.record_observations(
        cast.cluster.pk, pods(*(kube.ended("worker", each, code=each) for each in (7, 2, 5)))
    )
    assert Workload.objects.get().reason == "6 of 9 pods are up. worker 2 failed: exit code 2."
    journal.record_observations(
        cast.cluster.pk,
        pods(*(kube.starting("worker", each, reason="ErrImagePull") for each in (6, 4))),
    )
    assert Workload.objects.get().reason == "worker 4: ErrImagePull"


@pytest.mark.parametrize("is_counted_anew", [False, True])
def test_ranks_stay_when_the_job_and_its_master_are_gone(cast: Cast, is_counted_anew: bool) -> None:
    kube = start_workload(cast, 2)
    changes = [*observe_gone("job", kube.job(CREATED, workers=2))]
    changes += observe_gone("pod", kube.pod("master"))
    journal.record_observations(cast.cluster.pk, changes)
    if is_counted_anew:
        known = journal.list_known_objects(
            cast.cluster.pk, "job", "pod", "podgroup", workload=kube.workload.pk
        )
        workers = [kube.pod("worker", each) for each in range(2)]
        journal.reconcile_workload(kube.workload.pk, None, workers, None, known_before=known)
    journal.record_observations(cast.cluster.pk, pods(kube.ended("worker", 0, code=143)))
    ranks = dict(Pod.objects.values_list("name", "rank"))
    assert {name.partition("-")[2]: rank for name, rank in ranks.items()} == {
        "master-0": 0,
        "worker-0": 1,
        "worker-1": 2,
    }


def test_ranks_of_a_new_attempt_do_not_count_from_the_last_ones_master(cast: Cast) -> None:
    kube = start_workload(cast, 2)
    gone_pods = (kube.pod("master"), *(kube.pod("worker", each) for each in range(2)))
    failed = jobs(kube.job(CREATED, condition("Failed"), workers=2))
    journal.record_observations(cast.cluster.pk, [*failed, *observe_gone("pod", *gone_pods)])
    assert journal.request_run(kube.workload.pk, None)
    # The pods of workers only are seen before their job.
    again = ClusterObjects(Workload.objects.get(pk=kube.workload.pk))
    workers = [again.pod("worker", each) for each in range(2)]
    journal.record_observations(cast.cluster.pk, pods(*workers))
    assert not decode_counts(Workload.objects.get()).is_led
    ranks = Pod.objects.filter(attempt=again.attempt).order_by("index")
    assert list(ranks.values_list("rank", flat=True)) == [0, 1]


@pytest.mark.parametrize("is_reversed", [False, True])
def test_of_two_pods_in_one_place_the_same_is_named_whichever_came_first(
    cast: Cast, is_reversed: bool
) -> None:
    made = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=None)
    kube = ClusterObjects(made)
    both = [kube.queued("worker", 1, message=f"try {each}", tries=each) for each in (2, 3)]
    both.sort(key=lambda pod: pod["metadata"]["uid"], reverse=is_reversed)
    journal.record_observations(cast.cluster.pk, jobs(kube.job(CREATED, workers=2)))
    for each in both:
        journal.record_observations(cast.cluster.pk, pods(each))
    row = Workload.objects.get()
    assert row.reason == derive_status(row.job, both, None).reason
    assert (
        row.reason
        == min(both, key=lambda pod: pod["metadata"]["uid"])["status"]["conditions"][0]["message"]
    )


def test_wrong_counts_are_logged_and_mended_by_the_next_listing(
    cast: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    start_workload(cast, 2)
    listed = list(Pod.objects.values_list("data", flat=True))
    journal.record_listing(cast.cluster.pk, "pod", listed)
    assert not caplog.records
    Pod.objects.filter(role="master").update(standing="failed")
    Workload.objects.update(running_pods=7)
    with caplog.at_level(logging.ERROR):
        journal.record_listing(cast.cluster.pk, "pod", listed)
    assert "were miscounted" in caplog.text
    assert Workload.objects.get().running_pods == 3
    assert set(Pod.objects.values_list("standing", flat=True)) == {"ready"}


@pytest.mark.parametrize("name", ["existing", "preempted", "masters", "milli_gpus"])
def test_each_wrong_count_is_mended_by_the_next_listing(
    cast: Cast, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    kube = start_workload(cast, 2)
    taken = kube.pod(
        "worker",
        1,
        conditions=[condition("DisruptionTarget", reason="PreemptionByScheduler")],
        resources={"limits": {"nvidia.com/gpu": "1"}},
    )
    journal.record_observations(cast.cluster.pk, pods(taken))
    right = Workload.objects.get().pod_counts
    assert right is not None
    assert right[name], "the pods have some"
    listed = list(Pod.objects.values_list("data", flat=True))
    journal.record_listing(cast.cluster.pk, "pod", listed)
    assert not caplog.records
    for wrong in (right[name] + 1, 0):
        Workload.objects.update(pod_counts=right | {name: wrong})
        with CaptureQueriesContext(connection) as captured:
            assert find_miscounted_workloads(cast.cluster.pk)
        assert len(captured) == 2
        journal.record_listing(cast.cluster.pk, "pod", listed)
        assert Workload.objects.get().pod_counts == right
        assert find_miscounted_workloads(cast.cluster.pk) == []


def test_a_pod_that_its_row_calls_preempted_by_mistake_is_mended(cast: Cast) -> None:
    start_workload(cast, 2)
    Pod.objects.filter(role="worker").update(is_preempted=True)
    listed = list(Pod.objects.values_list("data", flat=True))
    journal.record_listing(cast.cluster.pk, "pod", listed)
    assert not Pod.objects.filter(is_preempted=True).exists()


def test_a_foreign_or_ended_pod_holds_no_gpus_and_is_no_mistake(
    cast: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    kube = start_workload(cast, 2)
    resources = {"limits": {"nvidia.com/gpu": "1"}}
    foreign = kube.pod("worker", 0, resources=resources)
    foreign["metadata"]["ownerReferences"][0]["uid"] = "another"
    ended = kube.ended("worker", 1, resources=resources)
    journal.record_observations(cast.cluster.pk, pods(foreign, ended))
    assert Pod.objects.filter(gpus=1).count() == 2
    listed = list(Pod.objects.values_list("data", flat=True))
    journal.record_listing(cast.cluster.pk, "pod", listed)
    assert not caplog.records


def test_rows_of_an_earlier_release_are_counted_at_the_first_change(cast: Cast) -> None:
    kube = start_workload(cast, 5)
    Workload.objects.update(pod_counts=None)
    Pod.objects.update(standing="", is_preempted=False, ready_at=None, rank=None)
    journal.record_observations(cast.cluster.pk, pods(kube.starting("worker", 3)))
    row = Workload.objects.get()
    assert (row.status, row.running_pods, decode_counts(row).standings) == (
        "Degraded",
        5,
        {"ready": 5, "starting": 1},
    )
    ranks = Pod.objects.order_by("rank").values_list("rank", flat=True)
    assert list(ranks) == [0, 1, 2, 3, 4, 5]
    assert not Pod.objects.filter(standing="").exists()


def test_counts_that_cannot_be_read_are_counted_anew(cast: Cast) -> None:
    kube = start_workload(cast, 2)
    unreadable = {"standings": {"of another release": 3}}
    Workload.objects.update(pod_counts=unreadable)
    journal.record_observations(cast.cluster.pk, pods(kube.starting("worker", 1)))
    assert decode_counts(Workload.objects.get()).standings == {"ready": 2, "starting": 1}
    listed = list(Pod.objects.values_list("data", flat=True))
    Workload.objects.update(pod_counts=unreadable)
    journal.record_listing(cast.cluster.pk, "pod", listed)
    assert decode_counts(Workload.objects.get()).standings == {"ready": 2, "starting": 1}


def test_a_job_that_is_seen_after_its_pods_tells_which_are_its_own(cast: Cast) -> None:
    kube = ClusterObjects(
        journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=None)
    )
    foreign = kube.pod("worker", 1)
    foreign["metadata"]["ownerReferences"][0]["uid"] = "another"
    journal.record_observations(
        cast.cluster.pk, pods(kube.pod("master"), kube.pod("worker", 0), foreign)
    )
    assert Workload.objects.get().running_pods == 3
    journal.record_observations(cast.cluster.pk, jobs(kube.job(CREATED)))
    row = Workload.objects.get()
    assert (row.running_pods, decode_counts(row).standings) == (2, {"ready": 2, "foreign": 1})
