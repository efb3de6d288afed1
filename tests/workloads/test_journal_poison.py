"""Objects come from strangers: whatever one of them is, it stops nothing else, and what is stored
is bounded and fit for the database.
"""

import json
import math
from typing import Any

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cast import Cast, a_spec
from tests.workloads.cluster_objects import ClusterObjects, jobs, pods
from tests.workloads.objects import condition
from workloads import journal
from workloads.journal import Observation, bulk_sql
from workloads.models import Event, Pod, Workload
from workloads.pod_views import build_pod_view
from workloads.slimming import MOST_TEXT, slim_object
from workloads.status_rules import derive_status

HUGE = "x" * 5_000_000
ROLES = (("master", 0), ("worker", 0), ("worker", 1))


@pytest.fixture
def kube(cast: Cast) -> ClusterObjects:
    found = ClusterObjects(
        journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    )
    journal.record_observations(cast.cluster.pk, jobs(found.job(condition("Created"))))
    return found


def build_change(path: str, value: Any) -> Any:
    def change(obj: dict[str, Any]) -> None:
        *way, last = path.split(".")
        at = obj
        for name in way:
            at = at.setdefault(name, {})
        at[last] = value

    return change


POISON = {
    "everything huge": build_change("status.message", HUGE),
    "a NUL in a text": build_change("status.message", "a\x00b"),
    "a NUL in a name": build_change("status.reason", "\x00" * 9),
    "half a surrogate pair": build_change("status.message", "\ud800"),
    "a NUL in a key": build_change("metadata.labels.a\x00b", "c\x00d"),
    "no metadata worth the name": build_change("metadata.labels", ["a", "b"]),
    "a status that is a list": build_change("status", [1, 2]),
    "conditions that are numbers": build_change(
        "status.conditions", [1, 2, {"type": {}, "status": []}]
    ),
    "containers that are texts": build_change(
        "spec.containers", ["a", {"name": ["x"], "image": 5}]
    ),
    "a phase far too long": build_change("status.phase", "P" * 400),
    "a node that is an object": build_change("spec.nodeName", {"a": 1}),
    "a node far too long": build_change("spec.nodeName", "n" * 9000),
    "GPUs without end": build_change(
        "metadata.annotations", {"gpu-fraction": "9e99", "gpu-fraction-num-devices": "9e99"}
    ),
    "GPUs that are none": build_change("metadata.annotations", {"gpu-fraction": {"a": []}}),
    "numbers without end": build_change("status.deep", [10**400, math.inf, -math.inf, math.nan]),
    "a hundred thousand entries": build_change(
        "status.many", {str(number): "x" for number in range(100_000)}
    ),
    "a version far too long": build_change("metadata.resourceVersion", "9" * 500),
    "times that are none": build_change("status.startTime", "tomorrow"),
    "restarts without end": build_change(
        "status.containerStatuses", [{"restartCount": 10**30, "state": "x"}, {"restartCount": -5}]
    ),
    "a uid far too long": build_change("metadata.uid", "u" * 900),
    "owners that are texts": build_change(
        "metadata.ownerReferences", ["a", {"controller": True, "uid": {}}]
    ),
}


@pytest.mark.parametrize("what", POISON)
def test_a_pod_with_this_stops_no_other(kube: ClusterObjects, what: str) -> None:
    bad = kube.pod("master")
    POISON[what](bad)
    journal.record_observations(kube.workload.cluster_id, pods(bad, kube.pod("worker", 0)))
    assert Pod.objects.filter(name="train1-worker-0", phase="Running").exists()
    assert all(len(json.dumps(pod.data)) < 4 * MOST_TEXT for pod in Pod.objects.all())


@pytest.mark.parametrize("what", POISON)
def test_a_job_with_this_stops_no_pod(kube: ClusterObjects, what: str) -> None:
    bad = kube.job(condition("Created"))
    POISON[what](bad)
    journal.record_observations(
        kube.workload.cluster_id, [*jobs(bad), *pods(kube.pod("worker", 0))]
    )
    assert Pod.objects.filter(name="train1-worker-0", phase="Running").exists()


EVENTS: dict[str, dict[str, Any]] = {
    "texts without end": {"message": HUGE, "reason": HUGE, "reportingComponent": HUGE},
    "NUL bytes": {"message": "a\x00", "reason": "\x00", "reportingComponent": "\x00c"},
    "a count without end": {"count": 10**40},
    "a count below zero": {"count": -3},
    "a time before all times": {"lastTimestamp": "0001-01-01T00:00:00+14:00"},
    "types that are wrong": {
        "message": ["a"],
        "reason": {"b": 1},
        "type": 7,
        "count": "many",
        "series": [],
        "source": "x",
    },
    "a subject that is none": {"involvedObject": ["Pod"]},
    "a namespace that is none": {
        "involvedObject": {"kind": "Pod", "name": "train1-master-0", "namespace": {}}
    },
}


@pytest.mark.parametrize("what", EVENTS)
def test_an_event_with_this_stops_no_other(kube: ClusterObjects, what: str) -> None:
    bad = kube.event(kube.pod("master"), "Bad", "", uid="bad") | EVENTS[what]
    good = kube.event(kube.pod("master"), "Good", "", uid="good")
    journal.record_observations(
        kube.workload.cluster_id, [Observation("event", bad), Observation("event", good)]
    )
    assert Event.objects.filter(reason="Good").exists()
    assert all(len(event.text) <= 1024 for event in Event.objects.all())


NONSENSE: list[Any] = [
    None,
    7,
    "x",
    [],
    {},
    {"metadata": None},
    {"metadata": {"uid": 5}},
    {"spec": [], "status": 1},
]


@pytest.mark.parametrize("obj", NONSENSE)
def test_what_is_no_object_is_left_out(kube: ClusterObjects, obj: Any) -> None:
    kinds: list[Any] = ["job", "pod", "podgroup", "event"]
    assert (
        journal.record_observations(
            kube.workload.cluster_id, [Observation(kind, obj) for kind in kinds]
        )
        == 0
    )
    journal.record_listing(kube.workload.cluster_id, "event", [obj], kube.workload.created_at)


def test_a_batch_that_cannot_be_written_is_written_one_by_one(kube: ClusterObjects) -> None:
    refused = {
        "sqlite": (
            "CREATE TRIGGER refused BEFORE INSERT ON workloads_pod WHEN NEW.node = 'n0' BEGIN "
            "SELECT RAISE(ABORT, 'refused'); END"
        ),
        "postgresql": "ALTER TABLE workloads_pod ADD CONSTRAINT refused CHECK (node <> 'n0')",
    }
    with connection.cursor() as cursor:
        cursor.execute(refused[connection.vendor])
    good = kube.pod("worker", 0), kube.pod("worker", 1)
    assert (
        journal.record_observations(
            kube.workload.cluster_id, pods(good[0], kube.pod("master", node="n0"), good[1])
        )
        == 1
    )
    assert sorted(Pod.objects.values_list("name", flat=True)) == [
        "train1-worker-0",
        "train1-worker-1",
    ]


def test_a_row_that_is_not_as_it_was_read_is_not_written(kube: ClusterObjects) -> None:
    key = kube.workload.pk
    with pytest.raises(bulk_sql.ConcurrentChange):
        bulk_sql.update_rows(
            Workload,
            "id",
            [bulk_sql.RowChange(key, {"status": "Running", "attempt": 1}, {"status": "Failed"})],
        )
    with pytest.raises(bulk_sql.ConcurrentChange):
        bulk_sql.update_rows(
            Workload,
            "id",
            [bulk_sql.RowChange(key, {"status": "Creating", "attempt": 2}, {"status": "Failed"})],
        )
    bulk_sql.update_rows(
        Workload,
        "id",
        [bulk_sql.RowChange(key, {"status": "Creating", "attempt": 1}, {"status": "Failed"})],
    )
    assert Workload.objects.get().status == "Failed"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=8) | st.sampled_from(["uid", "name", "labels"]), inner, max_size=4
        )
    ),
    max_leaves=20,
)
OBJECTS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("kind", "metadata", "spec", "status"), JSON)
)


@given(OBJECTS)
@settings(max_examples=200)
def test_anything_at_all_can_be_slimmed_and_read(obj: Any) -> None:
    slimmed = slim_object(obj)
    assert (
        b"\x00"
        not in json.dumps(slimmed, allow_nan=False, ensure_ascii=False)
        .replace("\\u0000", "\x00")
        .encode()
    )
    assert slim_object(slimmed) is slimmed
    build_pod_view(slimmed)
    derive_status(slimmed, [slimmed])


def test_slimming_keeps_what_is_read_and_nothing_else(kube: ClusterObjects) -> None:
    pod = kube.ended(
        "worker",
        1,
        code=1,
        end={"message": "Traceback"},
        annotations={"gpu-fraction": "0.5", "last-applied": "x" * 9000},
    )
    pod["metadata"]["managedFields"] = [{"fieldsV1": {"f:spec": {}}}]
    pod["spec"] |= {"volumes": [{"name": "v"}], "nodeSelector": {"a": "b"}}
    slimmed = slim_object(pod)
    assert build_pod_view(slimmed) == build_pod_view(pod)
    assert set(slimmed["spec"]) == {"containers", "nodeName", "nodeSelector"}
    assert set(slimmed["metadata"]["annotations"]) == {"gpu-fraction"}
    assert "managedFields" not in slimmed["metadata"]


@given(st.sampled_from(["job", "pod", "podgroup", "event"]), OBJECTS)
@settings(max_examples=60)
def test_garbage_with_our_labels_never_fails_a_batch(
    kube: ClusterObjects, kind: Any, obj: Any
) -> None:
    dressed = kube.pod("master")
    metadata = obj.get("metadata") if isinstance(obj.get("metadata"), dict) else {}
    dressed |= {name: value for name, value in obj.items() if name != "metadata"}
    dressed["metadata"] = metadata | dressed["metadata"]
    journal.record_observations(
        kube.workload.cluster_id, [Observation(kind, dressed), *pods(kube.pod("worker", 0))]
    )
    assert Pod.objects.filter(name="train1-worker-0").exists()
