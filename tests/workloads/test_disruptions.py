"""The history tells once what was taken from a workload, for whom, and how it went on."""

import itertools
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.tasks import claim_task
from tests.api.calling import Caller
from tests.cast import Cast
from tests.workloads.cluster_objects import ClusterObjects, jobs, observe_gone, pods
from tests.workloads.objects import condition
from tests.workloads.reclaimed_pods import (
    GPU,
    elastic_spec,
    find_disruption,
    format_moment,
    kube,
    logs,
    reclaim,
    take_pod,
    write_log,
)
from tests.workloads.table_rows import a_pod, a_workload
from workloads import journal
from workloads.journal import Observation
from workloads.logbook import log_paths
from workloads.models import Event, Log, Pod, Workload
from workloads.specs import ElasticSettings, encode_spec
from workloads.tasks import disruptions, tell_disruptions

__all__ = ["kube", "logs"]

GIVEN = "Gave 2 GPUs to {} at {:%H:%M} UTC"


def test_a_reclaim_is_told_with_where_training_went_on(kube: ClusterObjects) -> None:
    reclaim(kube, 1, 2)
    write_log(
        kube,
        (-22, "step 412 loss 0.50000000 rank 0 world 4"),
        (-17, "resumed at step 410"),
        (-16, "step 411 loss 0.50000000 rank 0 world 2"),
    )
    tell_disruptions()
    event = find_disruption()
    given = GIVEN.format("another project", event.at)
    assert event.text == f"{given}, went on with 2 of 4 pods from step 410, lost 2 steps (6 s)."
    assert (event.reason, event.source, event.is_warning) == ("Reclaimed", "Muster", True)
    assert Workload.objects.get().disrupted_at is None
    # A step may run twice: the history says it once.
    tell_disruptions()
    assert find_disruption().text == event.text


def test_a_rank_that_went_on_counts_before_one_that_was_taken_while_it_began(
    kube: ClusterObjects,
) -> None:
    reclaim(kube, 1, 2)
    step = (-22, "step 412 loss 0.50000000 rank 0 world 4")
    write_log(kube, step, (-17, "resumed at step 410"), (-16, "step 411"))
    write_log(kube, step, (-18, "resumed at step 410"), rank=2)
    tell_disruptions()
    assert find_disruption().text.endswith(", lost 2 steps (6 s).")


def test_where_the_first_rank_prints_nothing_another_tells_it(kube: ClusterObjects) -> None:
    reclaim(kube, 1, 2)
    write_log(kube, (-22, "ready"), (-17, "resumed at step 410"))
    write_log(kube, (-22, "step 412"), (-17, "resumed at step 410"), (-16, "step 411"), rank=1)
    tell_disruptions()
    assert find_disruption().text.endswith(", lost 2 steps (6 s).")


def test_it_is_told_at_once_and_completed_later(kube: ClusterObjects) -> None:
    reclaim(kube, 1, 2, ago=90)
    tell_disruptions()
    event = find_disruption()
    assert event.text == f"{GIVEN.format('another project', event.at)}."
    changed = Workload.objects.get().changed
    tell_disruptions()
    assert Workload.objects.get().changed == changed, "nothing new is no change"
    Pod.objects.filter(vanished_at__isnull=False).update(
        vanished_at=timezone.now() - timedelta(seconds=80)
    )
    tell_disruptions()
    given = GIVEN.format("another project", event.at)
    assert find_disruption().text == f"{given}, went on with 2 of 4 pods.", "the log tells no loss"


def test_what_has_grown_back_is_told_with_the_pods_that_it_went_on_with(
    kube: ClusterObjects,
) -> None:
    reclaim(kube, 1, 2)
    grown = [kube.pod("worker", index, tries=1, **GPU) for index in (1, 2)]
    for each in grown:
        each["status"]["startTime"] = format_moment(30)
    journal.record_observations(kube.workload.cluster_id, list(pods(*grown)))
    assert Workload.objects.get().running_pods == 4
    write_log(kube, (-22, "step 412"), (-17, "resumed at step 410"), (-16, "step 411"))
    tell_disruptions()
    assert "went on with 2 of 4 pods from step 410" in find_disruption().text


def test_a_gang_that_came_back_whole_lost_the_time_in_between(kube: ClusterObjects) -> None:
    reclaim(kube, 0, 1, 2, ago=300)
    Pod.objects.update(vanished_at=timezone.now() - timedelta(seconds=90))
    Pod.objects.filter(role="master").update(vanished_at=timezone.now() - timedelta(seconds=95))
    back = timezone.now() - timedelta(seconds=10)
    Workload.objects.update(status="Running", running_pods=4, status_at=back)
    tell_disruptions()
    assert find_disruption().text.endswith(", went on with 4 of 4 pods, lost 4 min.")


def test_a_repeated_event_tells_its_last_cause(kube: ClusterObjects, cast: Cast) -> None:
    for count, name in enumerate(("team-b", "team-c"), 1):
        Workload.objects.update(disrupted_at=None)
        message = f"Pod {kube.namespace}/train1-worker-1 was preempted by workload muster-{name}/x."
        event = kube.event(kube.group(), "Evict", message, kind="PodGroup", uid="evict")
        event |= {"lastTimestamp": format_moment(count - 20), "count": count}
        journal.record_observations(kube.workload.cluster_id, [Observation("event", event)])
        assert Workload.objects.get().disrupted_at is not None
    answer = Caller(cast.alice)("GET", f"/workloads/{kube.workload.pk}/events?search=preempted")
    assert [each["message"] for each in answer["events"]] == [
        f"Pod {kube.namespace}/train1-worker-1 was preempted by another workload."
    ]


def test_one_thread_of_a_process_tells_them(kube: ClusterObjects) -> None:
    reclaim(kube, 1, 2)
    with claim_task("disruptions", "all"):
        tell_disruptions()
    assert not Event.objects.filter(kind="scale").exists()
    tell_disruptions()
    assert Event.objects.filter(kind="scale").exists()


def test_pods_alone_tell_it_where_the_event_is_lost(kube: ClusterObjects) -> None:
    taken = take_pod(kube, 2, "", reason="DeletionByTaintManager")
    journal.record_observations(
        kube.workload.cluster_id, [*pods(taken), *observe_gone("pod", taken)]
    )
    tell_disruptions()
    event = find_disruption()
    assert event.text == f"Lost 1 pod with 1 GPU at {event.at:%H:%M} UTC: node n1 was lost."
    assert event.reason == "NodeLost"


def test_a_gang_that_is_evicted_whole_waits_for_its_turn(kube: ClusterObjects) -> None:
    reclaim(kube, 0, 1, 2)
    Workload.objects.update(status="Pending", running_pods=0)
    tell_disruptions()
    assert find_disruption().text.endswith(", and waits for its turn again.")
    with CaptureQueriesContext(connection) as queries:
        tell_disruptions()
    assert len(queries) == 2, "what waits costs nothing more"


def test_a_run_has_a_deadline_and_the_next_goes_on_with_the_rest(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disruptions, "monotonic", itertools.count(0, 10).__next__)
    begin = timezone.now() - timedelta(seconds=10)
    for number in range(3):
        workload = a_workload(cast.team_a, f"train{number}", status="Running", disrupted_at=begin)
        taken = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        a_pod(workload, vanished_at=begin, data={"status": {"conditions": [taken]}})
    for count in (1, 2, 3, 3):
        tell_disruptions()
        assert Event.objects.filter(kind="scale").values("workload").distinct().count() == count
    monkeypatch.undo()
    tell_disruptions()


def test_a_log_that_cannot_be_read_keeps_no_other_disruption_back(
    kube: ClusterObjects, cast: Cast
) -> None:
    spec = elastic_spec(cast.team_a, name="train2")
    other = ClusterObjects(journal.create_workload(spec, project=cast.team_a, user=cast.bob))
    running = [other.pod("master", **GPU), *(other.pod("worker", each, **GPU) for each in range(3))]
    for each in running:
        each["status"]["startTime"] = format_moment(-600)
    job = other.job(condition("Running"), workers=3)
    journal.record_observations(cast.cluster.pk, [*jobs(job), *pods(*running)])
    for objects, ago in ((kube, 30), (other, 20)):
        reclaim(objects, 1, 2, ago=ago)
        write_log(objects, (-22, "step 412 loss"), (-17, "resumed at step 410"))
    unreadable = log_paths.local_path(Log.objects.get(pod__workload=kube.workload).path)
    unreadable.unlink()
    unreadable.mkdir()
    tell_disruptions()
    assert list(Event.objects.filter(kind="scale").values_list("workload", flat=True)) == [
        other.workload.pk
    ]


def test_the_oldest_disruptions_leave_a_full_history_which_says_so(kube: ClusterObjects) -> None:
    begin = timezone.now() - timedelta(days=1)
    Event.objects.bulk_create(
        [
            Event(workload=kube.workload, attempt=1, kind="scale", uid=f"lost-{number}", at=begin)
            for number in range(journal.MAX_EVENTS)
        ],
        batch_size=1000,
    )
    for index in (1, 2):
        Workload.objects.update(disrupted_at=None)
        reclaim(kube, index, ago=60 - 10 * index)
        tell_disruptions()
    changes = Event.objects.filter(kind="scale")
    assert changes.count() == journal.MAX_EVENTS
    assert changes.filter(reason="Reclaimed").count() == 2
    left_out = Event.objects.get(reason="EventLeftOut")
    assert left_out.count == 2
    assert left_out.text == (
        "An earlier change of its pods was left out. A workload keeps the newest 20,000 of an "
        "attempt."
    )


def test_restarts_that_are_used_up_are_counted_with_their_causes(
    kube: ClusterObjects, cast: Cast
) -> None:
    spec = elastic_spec(cast.team_a, elastic=ElasticSettings(2, 4, max_restarts=0))
    Workload.objects.update(spec=encode_spec(spec), status="Failed")
    reclaim(kube, 1, 2)
    Workload.objects.update(status="Failed")
    tell_disruptions()
    used_up = Event.objects.get(reason="RestartsUsedUp")
    assert used_up.text == "Its 0 restarts are used up, by 1 reclaim."
    assert Event.objects.get(reason="Reclaimed").text.endswith(", and did not go on.")


@pytest.mark.parametrize("has_condition", [True, False])
def test_a_pod_that_is_replaced_and_taken_again_counts_twice(
    kube: ClusterObjects, has_condition: bool
) -> None:
    """An operator gives the next pod of a worker the same name."""
    for tries, (taker, ago) in enumerate((("team-b", 40), ("team-c", 10))):
        message = (
            f"Pod {kube.namespace}/train1-worker-1 was preempted by workload muster-{taker}/x."
        )
        event = kube.event(kube.group(), "Evict", message, kind="PodGroup", uid=f"evict-{tries}")
        event |= {"lastTimestamp": format_moment(-ago)}
        taken = take_pod(kube, 1, message, ago=ago, tries=tries)
        taken["metadata"]["creationTimestamp"] = format_moment(-600 if not tries else -20)
        if not has_condition:
            taken["status"]["conditions"] = []
        journal.record_observations(
            kube.workload.cluster_id,
            [Observation("event", event), *pods(taken), *observe_gone("pod", taken)],
        )
    tell_disruptions()
    events = Event.objects.filter(kind="scale").order_by("at")
    assert list(events.values_list("cause__namespace", "cause__pods")) == [
        ("muster-team-b", 1),
        ("muster-team-c", 1),
    ]


def test_many_pods_are_read_within_bounds(kube: ClusterObjects) -> None:
    reclaim(kube, 1, 2)
    taken = Pod.objects.get(name="train1-worker-2")
    for number in range(3, 1200):
        taken.pk, taken.uid, taken.name = None, f"many-{number}", f"train1-worker-{number}"
        taken.save(force_insert=True)
    with CaptureQueriesContext(connection) as queries:
        tell_disruptions()
    assert len(queries) < 25
    assert "Gave 1,199 GPUs to another project" in find_disruption().text
