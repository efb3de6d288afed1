"""The cluster's own events find their workload and attempt, once each however often they are told,
and stay when it forgets them.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.cast import Cast, a_spec
from tests.workloads.cluster_objects import ClusterObjects, jobs, observe_gone, pods
from tests.workloads.objects import Object, condition
from workloads import journal
from workloads.journal import Observation
from workloads.journal.cluster_events import parse_events
from workloads.journal.workload_updates import MOST_NAMESAKES, load_updates
from workloads.models import Event, Workload
from workloads.specs import Framework

EARLIER = "2001-01-01T00:00:00Z"
LATER = "2099-01-01T00:00:30Z"


@pytest.fixture
def kube(cast: Cast) -> ClusterObjects:
    found = ClusterObjects(
        journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    )
    journal.record_observations(
        cast.cluster.pk, [*jobs(found.job(condition("Created"))), *pods(found.pod("master"))]
    )
    return found


def record_events(kube: ClusterObjects, *events: Object) -> int:
    return journal.record_observations(
        kube.workload.cluster_id, [Observation("event", event) for event in events]
    )


def list_events() -> list[tuple[Any, ...]]:
    return list(
        Event.objects.filter(kind="cluster").values_list(
            "attempt", "subject_kind", "subject", "reason", "text", "count"
        )
    )


def test_an_event_is_kept_with_all_that_it_says(kube: ClusterObjects) -> None:
    event = kube.event(
        kube.pod("master"),
        "Failed\x1b[31m",
        "no\x00 luck",
        type="Warning",
        firstTimestamp="2098-01-01T00:00:00Z",
        count=3,
    )
    assert record_events(kube, event) == 1
    row = Event.objects.get(kind="cluster")
    assert (row.reason, row.text, row.is_warning, row.source) == (
        "Failed",
        "no luck",
        True,
        "kubelet",
    )
    assert (row.subject_kind, row.subject, row.count) == ("Pod", "train1-master-0", 3)
    assert row.first_at == datetime(2098, 1, 1, tzinfo=UTC)


def test_an_event_told_again_is_counted_and_not_repeated(kube: ClusterObjects) -> None:
    once = kube.event(kube.pod("master"), "BackOff", "back-off", count=1)
    often = kube.event(
        kube.pod("master"), "BackOff", "back-off", series={"count": 7, "lastObservedTime": LATER}
    )
    assert [
        record_events(kube, once),
        record_events(kube, once, often),
        record_events(kube, often),
        record_events(kube, once),
    ] == [
        1,
        1,
        0,
        0,
    ]
    row = Event.objects.get(kind="cluster")
    assert (row.count, row.at) == (7, datetime(2099, 1, 1, 0, 0, 30, tzinfo=UTC))


def test_what_the_cluster_forgets_stays(kube: ClusterObjects) -> None:
    event = kube.event(kube.pod("master"), "Started", "")
    record_events(kube, event)
    assert journal.record_observations(kube.workload.cluster_id, observe_gone("event", event)) == 0
    assert len(list_events()) == 1


SUBJECTS: dict[str, tuple[str, Callable[[ClusterObjects], Object]]] = {
    "the job": ("PyTorchJob", lambda made: made.job()),
    "its PodGroup": ("PodGroup", lambda made: made.group()),
    "a pod that is known": ("Pod", lambda made: made.pod("master")),
    "a pod that is not known yet": ("Pod", lambda made: made.pod("worker", 1)),
}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_it_finds_its_workload_by(kube: ClusterObjects, subject: str) -> None:
    kind, make = SUBJECTS[subject]
    assert record_events(kube, kube.event(make(kube), "Happened", "", kind=kind)) == 1


def test_events_come_before_anything_else_is_known(cast: Cast) -> None:
    made = ClusterObjects(
        journal.create_workload(a_spec(cast.team_a, "early"), project=cast.team_a, user=None)
    )
    subjects = [
        ("PyTorchJob", made.job()),
        ("PodGroup", made.group()),
        ("Pod", made.pod("worker", 0)),
    ]
    record_events(
        made, *(made.event(subject, "Early", "", kind=kind, uid=kind) for kind, subject in subjects)
    )
    assert {row[1] for row in list_events()} == {"PyTorchJob", "PodGroup", "Pod"}


def foreign(kube: ClusterObjects, what: str) -> Object:
    event = kube.event(kube.pod("master"), "Happened", "")
    about = event["involvedObject"]
    match what:
        case "of another namespace":
            about["namespace"] = "muster-team-b"
        case "about another kind of the same name":
            about |= {"kind": "Service", "name": "train1"}
        case "about a pod of no workload":
            about |= {"name": "notebook-0", "uid": "else"}
        case "about the job of a namesake":
            about |= {"kind": "PyTorchJob", "name": "train1", "uid": "else"}
        case "from before the workload was opened":
            about["uid"] = "else"
            event["lastTimestamp"] = "2020-01-01T00:00:00Z"
        case "without a uid":
            del event["metadata"]["uid"]
        case "without a time":
            del event["lastTimestamp"]
    return event


FOREIGN = [
    "of another namespace",
    "about another kind of the same name",
    "about a pod of no workload",
    "about the job of a namesake",
    "from before the workload was opened",
    "without a uid",
    "without a time",
]


@pytest.mark.parametrize("what", FOREIGN)
def test_it_is_left_out(kube: ClusterObjects, what: str) -> None:
    assert (record_events(kube, foreign(kube, what)), list_events()) == (0, [])


def test_an_event_belongs_to_the_attempt_of_its_pod_or_job(kube: ClusterObjects) -> None:
    journal.record_observations(kube.workload.cluster_id, jobs(kube.job(condition("Failed"))))
    journal.request_run(kube.workload.pk, None)
    second = ClusterObjects(Workload.objects.get())
    journal.record_observations(kube.workload.cluster_id, jobs(second.job(condition("Created"))))
    subjects = [kube.pod("master"), second.pod("worker", 0), kube.job(), second.job()]
    kinds = ["Pod", "Pod", "PyTorchJob", "PyTorchJob"]
    record_events(
        kube,
        *(
            kube.event(each, "Happened", "", kind=kind, uid=f"e{n}")
            for n, (each, kind) in enumerate(zip(subjects, kinds, strict=True))
        ),
    )
    assert sorted(row[0] for row in list_events()) == [1, 1, 2, 2]


def test_late_events_of_a_deleted_workload_do_not_fall_to_its_namesake(
    cast: Cast, kube: ClusterObjects
) -> None:
    journal.request_deletion(kube.workload.pk, None)
    journal.record_release(kube.workload.pk)
    journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=None)
    record_events(
        kube,
        kube.event(kube.pod("master"), "Killing", ""),
        kube.event(kube.job(), "Deleted", "", kind="PyTorchJob", uid="e2"),
    )
    assert set(Event.objects.filter(kind="cluster").values_list("workload", flat=True)) == {
        kube.workload.pk
    }


def test_an_event_is_compared_with_the_newest_workloads_of_its_name(
    cast: Cast, kube: ClusterObjects
) -> None:
    events = [kube.event(kube.pod("master"), "Killing", "", uid="e0", lastTimestamp=EARLIER)]
    for number in range(1, MOST_NAMESAKES + 1):
        journal.request_deletion(kube.workload.pk, None)
        journal.record_release(kube.workload.pk)
        workload = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=None)
        kube = ClusterObjects(workload)
        pod = kube.pod("master")
        journal.record_observations(cast.cluster.pk, [*jobs(kube.job()), *pods(pod)])
        events.append(kube.event(pod, "Killing", "", uid=f"e{number}"))
    parsed = parse_events([Observation("event", event) for event in events])
    updates = load_updates(cast.cluster.pk, (), list(parsed), ())
    assert len(updates) == MOST_NAMESAKES
    record_events(kube, *events)
    owners = dict(Event.objects.filter(kind="cluster").values_list("workload", "uid"))
    assert owners.keys() == updates.keys()
    assert owners[kube.workload.pk] == f"e{MOST_NAMESAKES}"
    assert "e0" not in owners.values()


def test_within_its_second_an_event_comes_when_it_was_heard(kube: ClusterObjects) -> None:
    before = Event.objects.latest("at").at
    record_events(
        kube,
        kube.event(
            kube.pod("master"), "Now", "", lastTimestamp=before.replace(microsecond=0).isoformat()
        ),
    )
    assert before <= Event.objects.get(kind="cluster").at <= before.replace(microsecond=999_999)


@pytest.mark.parametrize(
    ("framework", "job_kind", "subject"),
    [
        (Framework.MPI, "kubeflow.org/v2beta1/MPIJob", "early-launcher"),
        (Framework.PYTORCH, "trainer.kubeflow.org/v1alpha1/TrainJob", "early-node-0"),
        (Framework.PYTORCH, "kubeflow.org/v1/PyTorchJob", ""),
    ],
)
def test_what_is_said_of_the_job_between_is_said_of_the_workload(
    cast: Cast, framework: Framework, job_kind: str, subject: str
) -> None:
    made = ClusterObjects(
        journal.create_workload(
            a_spec(cast.team_a, "early", framework=framework), project=cast.team_a, user=None
        )
    )
    Workload.objects.filter(pk=made.workload.pk).update(job_kind=job_kind, job_uid="known")
    event = made.event(made.pod("master"), "FailedCreate", "exceeded quota", kind="Job")
    event["involvedObject"] |= {"name": subject or "early-launcher", "uid": "between"}
    record_events(made, event)
    assert [row[2:5] for row in list_events()] == (
        [(subject, "FailedCreate", "exceeded quota")] if subject else []
    )
