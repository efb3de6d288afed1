"""Lists over REST: what one sees of them, filters, sorting and paging; and what is told of one
workload.
"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.calling import Caller
from tests.api.their_client import models
from tests.cast import Cast, a_spec
from workloads import journal
from workloads.models import Event, Pod, Workload
from workloads.states import Status

BORN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def ten_workloads(cast: Cast) -> list[Workload]:
    """Ten of team-a, a day apart, and one of team-b."""
    made = [
        journal.create_workload(
            a_spec(cast.team_a, f"train{number}"), project=cast.team_a, user=cast.bob
        )
        for number in range(10)
    ]
    for number, workload in enumerate(made):
        status = Status.RUNNING if number % 2 else Status.FAILED
        values = {
            "created_at": BORN + timedelta(days=number),
            "status": status,
            "gpus_allocated": Decimal(number),
        }
        Workload.objects.filter(pk=workload.pk).update(**values)
    journal.create_workload(a_spec(cast.team_b, "secret"), project=cast.team_b, user=cast.mallory)
    return made


def names(caller: Caller, query: str) -> list[str]:
    return [
        each["name"].removeprefix("train")
        for each in caller("GET", f"/workloads?{query}")["workloads"]
    ]


FILTERS = [
    ("", "9876543210"),
    ("sortBy=name", "0123456789"),
    ("sortBy=allocatedGPU&sortOrder=desc&limit=3", "987"),
    ("sortBy=completedAt&search=train3", "3"),
    ("filterBy=name==train3", "3"),
    ("filterBy=name!=train3,phase==Failed", "86420"),
    ("filterBy=phase!=Failed&sortBy=createdAt", "13579"),
    ("filterBy=name=@AIN4", "4"),
    ("filterBy=name!@train", ""),
    ("filterBy=name=^train&filterBy=name=$7", "7"),
    ("filterBy=allocatedGPU>=8", "98"),
    ("filterBy=allocatedGPU<=1,allocatedGPU!=0", "1"),
    ("filterBy=createdAt>=2026-01-09T00:00:00Z", "98"),
    ("filterBy=createdAt<=2026-01-01", "0"),
    ("filterBy=createdAt==2026-01-02T00:00:00", "1"),
    (
        "filterBy=submittedBy==bob,type==Distributed,distributedFramework==PyTorch,projectName==team-a&limit=2",
        "98",
    ),
    ("filterBy=preemptible==false", ""),
    # Run:ai's clients know these, and no workload is one.
    ("filterBy=type==Workspace", ""),
    ("filterBy=phase==Updating", ""),
    ("filterBy=priorityClassName==train", ""),
    ("filterBy=phase!=Terminating&limit=2", "98"),
    ("filterBy=distributedFramework==", ""),
    ("filterBy=priorityClassName!=very-high,phase==Failed&limit=1", "8"),
    ("filterBy=projectId==4711", ""),
    ("filterBy=completedAt>=2026-01-01", ""),
    ("search=RAIN5", "5"),
    ("search=team-a&offset=8", "10"),
    ("offset=3&limit=2", "65"),
    ("deleted=true", ""),
    ("deleted=false&limit=1", "9"),
]


def test_what_is_asked_for_is_told(ten_workloads: list[Workload], cast: Cast) -> None:
    bob = Caller(cast.bob)
    assert {query: "".join(names(bob, query)) for query, _ in FILTERS} == dict(FILTERS)


def test_a_list_says_where_it_goes_on(ten_workloads: list[Workload], cast: Cast) -> None:
    bob, found, offset = Caller(cast.bob), [], 0
    while offset is not None:
        page = bob("GET", f"/workloads?limit=4&offset={offset}")
        found += page["workloads"]
        offset = page.get("next")
    assert len({each["id"] for each in found}) == 10


REFUSED = [
    ("offset=1000001", "Narrow the list with filterBy"),
    ("offset=-1", "offset"),
    ("limit=0", "limit"),
    ("limit=501", "from 1 to 500"),
    ("limit=²", "limit"),
    ("sortBy=colour", "sortBy"),
    # Clients send the class of a value before it, and a dot.
    ("sortBy=name.", "sortBy"),
    ("sortOrder=up", "sortOrder"),
    ("deleted=1", "deleted"),
    ("search=%00", "search"),
    ("filterBy=%00", "filterBy"),
    ("filterBy=name", "operator"),
    ("filterBy=name>=a", "can be filtered with"),
    ("filterBy=colour==red", "no field colour"),
    ("filterBy=clusterId==x", "UUID"),
    ("filterBy=createdAt>=yesterday", "a date"),
    ("filterBy=createdAt>=0001-01-01T00:00:00%2B23:00", "a date"),
    ("filterBy=createdAt>=2026-13-01", "a date"),
    ("filterBy=allocatedGPU>=NaN", "a number"),
    ("filterBy=allocatedGPU>=1e99", "a number"),
    ("filterBy=allocatedGPU>=1e999999999", "a number"),
    ("filterBy=allocatedGPU<=-1e999999999", "a number"),
    ("filterBy=projectId==99999999999999999999", "an id"),
    ("filterBy=preemptible==1", "true or false"),
    ("filterBy=phase==Nonsense", "one of Creating, Pending, Initializing"),
    ("filterBy=phase!=failed", "one of Creating, Pending, Initializing"),
    ("filterBy=type==Nonsense", "one of Distributed, Training"),
    ("filterBy=distributedFramework==Nonsense", "one of PyTorch, TF"),
    ("filterBy=priorityClassName==Nonsense", "one of very-low, low"),
]


def test_what_cannot_be_asked_for_is_400(cast: Cast) -> None:
    bob = Caller(cast.bob)
    for query, words in REFUSED:
        assert words in bob("GET", f"/workloads?{query}", status=400)["message"]


OTHER_CHOICES = [
    ("/workloads/pods?filterBy=k8sPhase==Nonsense", "one of Pending, Running"),
    ("/audit/log?filterBy=event==Nonsense", "one of create, update"),
    ("/audit/log?filterBy=subject_type==Nonsense", "one of user, service account"),
    ("/authorization/access-rules?filterBy=roleKey==Nonsense", "viewer"),
    ("/authorization/access-rules?filterBy=roleKey==custom:x", "custom:<number>"),
]


def test_a_value_that_a_field_never_has_is_400(cast: Cast) -> None:
    alice = Caller(cast.alice)
    for path, words in OTHER_CHOICES:
        assert words in alice("GET", path, status=400)["message"], path


def test_a_pod_that_the_cluster_has_not_told_of_yet_is_found_as_shown(
    ten_workloads: list[Workload], cast: Cast
) -> None:
    create_observed_workload(ten_workloads[0])
    Pod.objects.filter(name="p0").update(phase="")
    found = Caller(cast.bob)("GET", "/workloads/pods?filterBy=k8sPhase==Pending")["pods"]
    assert [(each["name"], each["k8sPhase"]) for each in found] == [("p0", "Pending")]


def test_one_sees_what_is_theirs(ten_workloads: list[Workload], cast: Cast) -> None:
    assert names(Caller(cast.mallory), "") == ["secret"]
    assert len(names(Caller(cast.alice), "")) == 11
    assert [each["name"] for each in Caller(cast.bob)("GET", "/org-unit/projects")["projects"]] == [
        "team-a"
    ]
    assert [
        each["name"]
        for each in Caller(cast.alice)("GET", "/org-unit/projects?filterBy=name==team-b")[
            "projects"
        ]
    ] == ["team-b"]
    cast.mallory.access_rules.all().delete()
    assert Caller(cast.mallory)("GET", "/clusters") == []
    assert Caller(cast.mallory)("GET", "/org-unit/projects") == {"projects": []}


def test_a_page_takes_as_many_queries_with_two_rows_as_with_ten(
    ten_workloads: list[Workload], cast: Cast
) -> None:
    bob, query_counts = Caller(cast.bob), []
    bob("GET", "/workloads?limit=1")  # the first from an address is recorded
    for limit in (2, 10):
        with CaptureQueriesContext(connection) as queries:
            bob("GET", f"/workloads?limit={limit}")
        query_counts.append(len(queries))
    assert query_counts[0] == query_counts[1] <= 6


def create_observed_workload(workload: Workload) -> Workload:
    """A workload with pods and events, one of each full of what others wrote."""
    spec = {
        "containers": [{"name": "pytorch", "image": "a<b>"}, "x"],
        "tolerations": [{"key": "k", "tolerationSeconds": "5"}],
    }
    data: dict[str, Any] = {
        "spec": spec,
        "status": {"containerStatuses": [None, {"name": "pytorch", "state": {"running": {}}}]},
    }
    for rank, vanished in enumerate((None, None, BORN)):
        fields = {
            "name": f"p{rank}",
            "uid": f"u{rank}",
            "rank": rank,
            "attempt": 1,
            "phase": "Running",
            "node": "n",
            "gpus": Decimal("0.1"),
        }
        Pod.objects.create(
            workload=workload, vanished_at=vanished, created_at=BORN, data=data, **fields
        )
    Event.objects.create(
        workload=workload,
        attempt=1,
        kind="cluster",
        text="\x1b[31m<b>",
        is_warning=True,
        subject="p0",
        subject_kind="Pod",
    )
    Event.objects.create(
        workload=workload, attempt=1, kind="status", old="Creating", new="Pending", text="queued"
    )
    job = {"status": {"conditions": [{"type": "Running", "status": "True"}, {"type": 5}, None]}}
    Workload.objects.filter(pk=workload.pk).update(
        job=job, status="Pending", reason="no room", started_at=BORN
    )
    return workload


def test_shapes_are_those_that_clients_know(ten_workloads: list[Workload], cast: Cast) -> None:
    bob, workload = Caller(cast.bob), create_observed_workload(ten_workloads[0])
    base = f"/workloads/{workload.pk}"
    for each in bob("GET", "/workloads")["workloads"]:
        assert models.Workload.from_dict(each).id == each["id"]
    assert models.Workload.from_dict(bob("GET", base)).phase == "Pending"
    assert bob("GET", base)["pendingSchedulingMessages"][0]["reason"] == "no room"
    assert (
        models.DistributedWorkload.from_dict(
            bob("GET", f"/workloads/distributed/{workload.pk}")
        ).name
        == "train0"
    )
    pods = [models.Pod1.from_dict(each) for each in bob("GET", f"{base}/pods")["pods"]]
    assert [(pod.name, pod.containers[0].image) for pod in pods] == [
        ("p0", "a<b>"),
        ("p1", "a<b>"),
        ("p2", "a<b>"),
    ]
    events = [models.Event1.from_dict(each) for each in bob("GET", f"{base}/events")["events"]]
    assert (events[0].type, events[0].involved_object.name) == ("Warning", "p0")
    records = [
        models.HistoryRecord1.from_dict(each) for each in bob("GET", f"{base}/history")["records"]
    ]
    assert [record.spec.phase_update.phase for record in records if record.spec.phase_update] == [
        "Pending",
        "Creating",
    ]


def test_pods_of_all_workloads_that_one_sees(ten_workloads: list[Workload], cast: Cast) -> None:
    bob = Caller(cast.bob)
    create_observed_workload(ten_workloads[0])
    create_observed_workload(Workload.objects.get(name="secret"))
    assert [pod["name"] for pod in bob("GET", "/workloads/pods?sortBy=name")["pods"]] == [
        "p0",
        "p1",
    ]
    full = bob(
        "GET",
        f"/workloads/pods?filterBy=workloadId=={ten_workloads[0].pk},name==p1&verbosity=PodVerbosity.full",
    )["pods"]
    assert [(pod["workloadName"], pod["projectName"]) for pod in full] == [("train0", "team-a")]
    assert bob("GET", "/workloads/pods?completed=true") == {"pods": []}
    assert len(Caller(cast.alice)("GET", "/workloads/pods?completed=false")["pods"]) == 4
    bob("GET", "/workloads/pods?completed=maybe", status=400)


def test_events_go_both_ways_in_time(ten_workloads: list[Workload], cast: Cast) -> None:
    bob, workload = Caller(cast.bob), create_observed_workload(ten_workloads[0])
    down = bob("GET", f"/workloads/{workload.pk}/events")["events"]
    up = bob("GET", f"/workloads/{workload.pk}/events?sortOrder=asc")["events"]
    assert [each["id"] for each in up] == [each["id"] for each in reversed(down)]
    assert len(down) == 2


def test_a_cluster_is_told_without_its_credentials(cast: Cast) -> None:
    clusters = Caller(cast.bob)("GET", "/clusters")
    assert [(each["uuid"], each["name"], each["status"]["state"]) for each in clusters] == [
        (str(cast.cluster.pk), "here", "WaitingToConnect")
    ]
    assert "server" not in str(clusters)
