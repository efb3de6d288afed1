"""Pods that are taken from a workload: its history tells once what was taken, for whom, and how it
went on; who may not see the other project reads of another one.
"""

import importlib
import itertools
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.tasks import claim_task
from projects.models import AccessRule, Project, User
from projects.permissions import VIEWER
from tests.api.calling import Caller
from tests.cast import Cast, a_spec
from tests.workloads.cluster_objects import ClusterObjects, jobs, observe_gone, pods
from tests.workloads.objects import Object, condition
from tests.workloads.table_rows import a_pod, a_workload
from workloads import journal
from workloads.journal import Observation
from workloads.logbook import log_paths, stamps
from workloads.logbook.log_writer import LogWriter
from workloads.models import Event, Log, Pod, Workload
from workloads.specs import Compute, ElasticSettings, Environment, Gpus, Setup, encode_spec
from workloads.tasks import disruptions, tell_disruptions

GROUP = "pg-train2-0b0e6d0c-1111-4222-8333-444455556666"
GIVEN = "Gave 2 GPUs to {} at {:%H:%M} UTC"
NAMES = ("team-b", "muster-team-b", "train2")
"""What nobody may read who does not see the other project."""


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, settings: Any) -> None:
    settings.LOGS = tmp_path


def elastic_spec(project: Project, **changes: Any) -> Any:
    setup = Setup(
        environment=Environment(image="muster/elastic"),
        compute=Compute(gpus=Gpus(devices=1), cpu_request="0.1", memory_request="100M"),
    )
    fields: dict[str, Any] = {"setup": setup, "workers": 3, "elastic": ElasticSettings(2, 4)}
    return a_spec(project, **(fields | changes))


@pytest.fixture
def kube(cast: Cast) -> ClusterObjects:
    """An elastic workload of team-a with a master and three workers that run."""
    spec = elastic_spec(cast.team_a)
    workload = journal.create_workload(spec, project=cast.team_a, user=cast.bob)
    Workload.objects.update(created_at=timezone.now() - timedelta(hours=1))
    found = ClusterObjects(workload)
    running = [found.pod("master", **GPU), *(found.pod("worker", each, **GPU) for each in range(3))]
    for each in running:
        each["status"]["startTime"] = format_moment(-600)
    journal.record_observations(
        cast.cluster.pk,
        [*jobs(found.job(condition("Running"), workers=3)), *pods(*running)],
    )
    return found


GPU: dict[str, Any] = {"resources": {"requests": {"nvidia.com/gpu": "1"}}}


def format_moment(seconds: float) -> str:
    """A moment as a cluster writes it, so many seconds from now."""
    return (timezone.now() + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def take_pod(kube: ClusterObjects, index: int, message: str, **more: Any) -> Object:
    reason, since = more.pop("reason", "PreemptionByScheduler"), format_moment(-more.pop("ago", 20))
    taken = condition("DisruptionTarget", reason=reason, message=message, lastTransitionTime=since)
    made = kube.pod("worker", index, conditions=[taken], terminating=True, **GPU, **more)
    made["status"]["startTime"] = format_moment(-600)
    return made


def reclaim(kube: ClusterObjects, *indexes: int, ago: float = 20) -> None:
    """Take workers as KAI does: a condition, an event about the PodGroup, and the pod's end."""
    observed: list[Observation] = []
    for index in indexes:
        message = (
            f"Pod {kube.namespace}/train1-worker-{index} was preempted by workload "
            f"muster-team-b/{GROUP}.\nteam-b uses <GPU: 0> with a quota of <GPU: 2>."
        )
        annotations = {
            "evictor-pod-group-name": GROUP,
            "evictor-pod-group-namespace": "muster-team-b",
            "evictor-action-type": "reclaim",
            "num-evicted-pods": str(len(indexes)),
        }
        event = kube.event(
            kube.group(), "Evict", message, kind="PodGroup", uid=f"evict-{index}"
        ) | {"lastTimestamp": format_moment(-ago)}
        event["metadata"]["annotations"] = annotations
        taken = take_pod(kube, index, message, ago=ago)
        observed += [Observation("event", event), *pods(taken), *observe_gone("pod", taken)]
    journal.record_observations(kube.workload.cluster_id, observed)


def write_log(kube: ClusterObjects, *lines: tuple[float, str], rank: int = 0) -> None:
    """Write what a rank said, the master if none is given; each line so many seconds from now."""
    pod = Pod.objects.get(rank=rank, workload=kube.workload)
    path = log_paths.build_log_path(kube.workload.pk, pod.uid, "pytorch", 0)
    now = timezone.now()
    with LogWriter(log_paths.local_path(path)) as writer:
        writer.append(
            [
                stamps.format_time(stamps.to_nanoseconds(now + timedelta(seconds=seconds))).encode()
                + b" "
                + text.encode()
                for seconds, text in lines
            ]
        )
        size = writer.size
    Log.objects.create(pod=pod, container="pytorch", path=path, size=size)


def find_disruption() -> Event:
    return Event.objects.get(kind="scale")


def as_(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


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
    told = Caller(cast.alice)("GET", f"/workloads/{kube.workload.pk}/events?search=preempted")
    assert [each["message"] for each in told["events"]] == [
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
    with CaptureQueriesContext(connection) as seen:
        tell_disruptions()
    assert len(seen) == 2, "what waits costs nothing more"


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
    for each, ago in ((kube, 30), (other, 20)):
        reclaim(each, 1, 2, ago=ago)
        write_log(each, (-22, "step 412 loss"), (-17, "resumed at step 410"))
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
    told = Event.objects.filter(kind="scale").order_by("at")
    assert list(told.values_list("cause__namespace", "cause__pods")) == [
        ("muster-team-b", 1),
        ("muster-team-c", 1),
    ]


def test_many_pods_are_read_within_bounds(kube: ClusterObjects) -> None:
    reclaim(kube, 1, 2)
    taken = Pod.objects.get(name="train1-worker-2")
    for number in range(3, 1200):
        taken.pk, taken.uid, taken.name = None, f"many-{number}", f"train1-worker-{number}"
        taken.save(force_insert=True)
    with CaptureQueriesContext(connection) as seen:
        tell_disruptions()
    assert len(seen) < 25
    assert "Gave 1,199 GPUs to another project" in find_disruption().text


def readings(user: User, workload: Workload) -> dict[str, str]:
    """What one reader is shown of a workload, on every road."""
    roads = {
        "page": f"/workloads/{workload.pk}",
        "events": f"/workloads/{workload.pk}/events",
        "picture": f"/workloads/{workload.pk}/pod-changes",
        "pods": f"/workloads/{workload.pk}/pods",
        "details": f"/workloads/{workload.pk}/details",
        "rest": f"/workloads/{workload.pk}",
        "rest events": f"/workloads/{workload.pk}/events",
        "rest history": f"/workloads/{workload.pk}/history",
        "rest pods": f"/workloads/{workload.pk}/pods",
    }
    client, caller = as_(user), Caller(user)
    answers = {
        name: caller.raw("GET", path) if name.startswith("rest") else client.get(path)
        for name, path in roads.items()
    }
    assert {each.status_code for each in answers.values()} == {200}
    return {name: each.content.decode() for name, each in answers.items()}


def test_who_may_not_see_the_other_project_reads_of_another_project(
    kube: ClusterObjects, cast: Cast
) -> None:
    reclaim(kube, 1, 2)
    tell_disruptions()
    told = readings(cast.vera, kube.workload)
    for road, text in told.items():
        assert not [name for name in NAMES if name in text], road
    for road in ("page", "picture", "rest", "rest events", "rest history"):
        assert "to another project at" in told[road], road
    searched = Caller(cast.vera)("GET", f"/workloads/{kube.workload.pk}/events?search=train2")
    assert searched["events"] == []


def test_who_sees_the_other_project_reads_its_name(kube: ClusterObjects, cast: Cast) -> None:
    reclaim(kube, 1, 2)
    tell_disruptions()
    AccessRule.objects.create(user=cast.vera, project=cast.team_b, role=VIEWER)
    for user in (cast.alice, cast.vera):
        told = readings(user, kube.workload)
        for road in ("page", "picture", "rest", "rest events", "rest history"):
            assert "to team-b at" in told[road], road


def test_a_namespace_that_has_another_project_by_now_is_not_named_after_the_former(
    kube: ClusterObjects, cast: Cast
) -> None:
    reclaim(kube, 1, 2)
    tell_disruptions()
    AccessRule.objects.create(user=cast.vera, project=cast.team_b, role=VIEWER)
    Project.objects.filter(pk=cast.team_b.pk).update(
        deleted_at=timezone.now(), removed_at=timezone.now()
    )
    newer = Project.objects.get(pk=cast.team_b.pk)
    newer.pk, newer.name, newer.queue = None, "team-c", "team-c"
    newer.deleted_at = newer.removed_at = None
    newer.save()
    for road, text in readings(cast.vera, kube.workload).items():
        assert not [name for name in (*NAMES, "team-c") if name in text], road


def test_a_workload_of_the_same_project_is_named(kube: ClusterObjects, cast: Cast) -> None:
    message = (
        f"Pod {kube.namespace}/train1-worker-2 was preempted by higher priority workload "
        f"{kube.namespace}/{GROUP}"
    )
    taken = take_pod(kube, 2, message)
    journal.record_observations(
        kube.workload.cluster_id, [*pods(taken), *observe_gone("pod", taken)]
    )
    tell_disruptions()
    assert "Gave 1 GPU to train2, which has a higher priority" in find_disruption().text


def test_rest_has_the_cause_in_numbers(kube: ClusterObjects, cast: Cast) -> None:
    reclaim(kube, 1, 2)
    write_log(kube, (-22, "step 412"), (-17, "resumed at step 410"), (-16, "step 411"))
    tell_disruptions()
    answer = Caller(cast.alice)("GET", f"/workloads/{kube.workload.pk}/history")
    causes = [
        each["spec"]["event"]["cause"]
        for each in answer["records"]
        if "cause" in each["spec"].get("event", {})
    ]
    assert causes == [
        {
            "action": "reclaim",
            "pods": 2,
            "gpus": 2,
            "takenBy": "team-b",
            "nodes": ["n1"],
            "podsBefore": 4,
            "podsAfter": 2,
            "isOver": True,
            "resumedStep": 410,
            "beganAnew": False,
            "lostSteps": 2,
            "lostSeconds": 6.0,
        }
    ]


def test_the_submitter_is_told_once_on_the_next_page(kube: ClusterObjects, cast: Cast) -> None:
    reclaim(kube, 1, 2)
    write_log(kube, (-22, "step 412"), (-17, "resumed at step 410"), (-16, "step 411"))
    tell_disruptions()
    for user in (cast.vera, cast.alice):
        assert "mu-toast--notice" not in as_(user).get("/workloads").content.decode()
    client = as_(cast.bob)
    # A part of a page has no place for it.
    client.get(f"/workloads/{kube.workload.pk}/head")
    shown = client.get("/workloads").content.decode()
    assert "train1 gave 2 GPUs to another project, went on with 2 of 4 pods" in shown
    exact = find_disruption().at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert f'<time datetime="{exact}"' in shown, "a notice of yesterday has its date"
    assert "mu-toast--notice" in shown
    assert "mu-toast--notice" not in client.get("/workloads").content.decode()


def test_a_database_that_takes_nothing_new_still_serves_pages(cast: Cast) -> None:
    refused = {
        "sqlite": (
            "CREATE TRIGGER refused BEFORE UPDATE ON workloads_event BEGIN "
            "SELECT RAISE(ABORT, 'refused'); END"
        ),
        "postgresql": (
            "ALTER TABLE workloads_event ADD CONSTRAINT refused "
            "CHECK (uid <> 'lost-1' OR notice_to_id IS NOT NULL)"
        ),
    }
    with connection.cursor() as cursor:
        cursor.execute(refused[connection.vendor])
    Event.objects.create(
        workload=a_workload(cast.team_a, by=cast.bob),
        attempt=1,
        kind="scale",
        text="x",
        uid="lost-1",
        notice_to=cast.bob,
        cause={"action": "drain", "pods": 1},
    )
    client = as_(cast.bob)
    for _ in range(2):
        assert "mu-toast--notice" in client.get("/workloads").content.decode()


def test_of_many_notices_a_few_are_shown(cast: Cast) -> None:
    workload = a_workload(cast.team_a, by=cast.bob)
    for number in range(10):
        Event.objects.create(
            workload=workload,
            attempt=1,
            kind="scale",
            text="x",
            uid=f"lost-{number}",
            notice_to=cast.bob,
            cause={"action": "drain", "pods": number + 1},
        )
    shown = as_(cast.bob).get("/workloads").content.decode()
    assert shown.count("mu-toast--notice") == 4
    assert "Pods were taken more often" in shown
    assert not Event.objects.filter(notice_to__isnull=False).exists()


def test_what_comes_after_the_notices_of_a_page_is_told_by_the_next(cast: Cast) -> None:
    workload = a_workload(cast.team_a, by=cast.bob)
    first, second = [
        Event.objects.create(workload=workload, attempt=1, kind="scale", notice_to=cast.bob)
        for _ in range(2)
    ]
    journal.dismiss_notices(cast.bob.pk, first.pk)
    assert list(Event.objects.filter(notice_to=cast.bob)) == [second]


def test_the_picture_takes_as_many_queries_with_many_pods_as_with_few(cast: Cast) -> None:
    workload = a_workload(
        cast.team_a,
        spec=encode_spec(elastic_spec(cast.team_a)),
        min_pods=2,
        max_pods=4,
        started_at=timezone.now() - timedelta(hours=2),
    )
    begin, counts = datetime.now(UTC) - timedelta(hours=2), []
    for number in (4, 60, 3000):
        Pod.objects.bulk_create(
            [
                Pod(
                    workload=workload,
                    attempt=1,
                    uid=f"{number}-{each}",
                    name=f"p-{each}",
                    started_at=begin + timedelta(seconds=each),
                    vanished_at=begin + timedelta(seconds=each + 60),
                )
                for each in range(number)
            ]
        )
        client = as_(cast.vera)
        client.get("/workloads")
        with CaptureQueriesContext(connection) as seen:
            answer = client.get(f"/workloads/{workload.pk}/pod-changes")
        counts.append(len(seen))
        assert len(answer.content) < 60_000
    assert counts == [6, 6, 9]


def test_pods_that_stay_have_no_picture(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    a_pod(workload, gpus=Decimal(1), started_at=timezone.now())
    html = as_(cast.vera).get(f"/workloads/{workload.pk}").content.decode()
    assert "Pods over time" not in html


def test_the_bounds_of_earlier_workloads_are_filled_in(cast: Cast) -> None:
    a_workload(cast.team_a, "elastic", spec=encode_spec(elastic_spec(cast.team_a)))
    a_workload(cast.team_a, "fixed")
    a_workload(cast.team_a, "odd", spec={"elastic": {"min_pods": "many"}})
    migration = importlib.import_module("workloads.migrations.0010_disruptions")
    migration.fill_bounds(apps, connection.schema_editor())
    assert list(Workload.objects.order_by("name").values_list("name", "min_pods", "max_pods")) == [
        ("elastic", 2, 4),
        ("fixed", None, None),
        ("odd", None, None),
    ]
