"""What kubectl prints of objects: the cells of each kind's columns."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from localkube import clock
from localkube.metadata import Object
from localkube.resources import (
    CRDS,
    EVENTS,
    EVENTS_V1,
    JOBS,
    NODES,
    PODGROUPS,
    PODS,
    PYTORCHJOBS,
    QUEUES,
    SERVICES,
)
from localkube.resources.resource import Resource
from localkube.resources.table_cells import format_duration
from tests.localkube.recorded import load_exchange

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "current_time", lambda: NOW)


def cells(resource: Resource, obj: dict[str, Any]) -> dict[str, Any]:
    return {column.name: column.cell(obj) for column in resource.columns}


def ago(**span: float) -> str:
    return clock.format_time(NOW - timedelta(**span))


def pod(
    *statuses: dict[str, Any],
    inits: tuple[dict[str, Any], ...] = (),
    deleted: bool = False,
    **status: Any,
) -> dict[str, Any]:
    """A pod whose containers have these states."""
    metadata: dict[str, Any] = {"name": "p", "creationTimestamp": ago(minutes=5)}
    if deleted:
        metadata["deletionTimestamp"] = ago(seconds=1)
    return {
        "metadata": metadata,
        "spec": {
            "containers": [{"name": f"c{i}"} for i in range(len(statuses) or 1)],
            "initContainers": [
                {"name": f"i{i}"} | init.pop("spec", {}) for i, init in enumerate(inits)
            ],
        },
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"name": f"c{i}", "restartCount": 0, "ready": False} | one
                for i, one in enumerate(statuses)
            ],
            "initContainerStatuses": [
                {"name": f"i{i}", "restartCount": 0, "ready": False} | one
                for i, one in enumerate(inits)
            ],
        }
        | status,
    }


UP = {"ready": True, "state": {"running": {}}}
DONE = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
WAITS = {"state": {"waiting": {"reason": "PodInitializing"}}}


def state(**parts: Any) -> dict[str, Any]:
    return {"state": parts}


@pytest.mark.parametrize(
    ("obj", "ready", "word"),
    [
        (pod(phase="Pending"), "0/1", "Pending"),
        (pod(UP), "1/1", "Running"),
        (pod(UP, UP), "2/2", "Running"),
        (pod(UP, DONE), "1/2", "NotReady"),
        (pod(UP, DONE, conditions=[{"type": "Ready", "status": "True"}]), "1/2", "Running"),
        (pod(DONE, phase="Succeeded"), "0/1", "Completed"),
        (
            pod(state(waiting={"reason": "ContainerCreating"}), phase="Pending"),
            "0/1",
            "ContainerCreating",
        ),
        (pod(state(waiting={"reason": "ImagePullBackOff"})), "0/1", "ImagePullBackOff"),
        (pod(state(terminated={"exitCode": 1, "reason": "Error"}), phase="Failed"), "0/1", "Error"),
        (pod(state(terminated={"exitCode": 3})), "0/1", "ExitCode:3"),
        (pod(state(terminated={"exitCode": 137, "signal": 9})), "0/1", "Signal:9"),
        (pod(phase="Failed", reason="NodeShutdown"), "0/1", "NodeShutdown"),
        (pod(UP, deleted=True), "1/1", "Terminating"),
        (pod(DONE, phase="Succeeded", deleted=True), "0/1", "Completed"),
        (pod(UP, reason="NodeLost", deleted=True), "1/1", "Unknown"),
        (pod(WAITS, inits=(state(running={}), WAITS), phase="Pending"), "0/1", "Init:0/2"),
        (pod(WAITS, inits=(dict(DONE), state(running={})), phase="Pending"), "0/1", "Init:1/2"),
        (
            pod(WAITS, inits=(state(waiting={"reason": "CrashLoopBackOff"}),)),
            "0/1",
            "Init:CrashLoopBackOff",
        ),
        (pod(WAITS, inits=(state(terminated={"exitCode": 2}),)), "0/1", "Init:ExitCode:2"),
        (
            pod(WAITS, inits=(state(terminated={"exitCode": 1, "reason": "Error"}),)),
            "0/1",
            "Init:Error",
        ),
        (
            pod(UP, inits=({"spec": {"restartPolicy": "Always"}, "started": True, **UP},)),
            "2/2",
            "Running",
        ),
    ],
)
def test_the_status_of_a_pod_is_what_kubectl_says(
    obj: dict[str, Any], ready: str, word: str
) -> None:
    assert (cells(PODS, obj)["Ready"], cells(PODS, obj)["Status"]) == (ready, word)


def test_restarts_say_when_the_last_one_was() -> None:
    again = UP | {
        "restartCount": 2,
        "lastState": {"terminated": {"exitCode": 1, "finishedAt": ago(seconds=5)}},
    }
    assert cells(PODS, pod(again))["Restarts"] == "2 (5s ago)"
    assert cells(PODS, pod(UP | {"restartCount": 1}))["Restarts"] == "1"


def test_the_recorded_tables_have_these_columns_and_cells() -> None:
    for resource, name in ((PODS, "pod/list-table"), (PYTORCHJOBS, "pytorchjob/list-table")):
        _, table = load_exchange(name)
        for column, recorded in zip(resource.columns, table["columnDefinitions"], strict=True):
            assert (column.name, column.type, column.format, column.priority) == tuple(
                recorded[k] for k in ("name", "type", "format", "priority")
            )


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("failed-oomkilled", "OOMKilled"),
        ("running-crashloopbackoff", "CrashLoopBackOff"),
        ("pending-scheduling-gated", "SchedulingGated"),
        ("pending-imagepullbackoff", "ImagePullBackOff"),
        ("succeeded", "Completed"),
        ("terminating-node-lost", "Terminating"),
    ],
)
def test_recorded_pods_show_their_state(name: str, word: str) -> None:
    assert cells(PODS, load_exchange(f"pod/{name}")[1])["Status"] == word


def test_a_training_job_shows_its_last_condition() -> None:
    job = {
        "metadata": {"name": "j", "creationTimestamp": ago(hours=3)},
        "status": {"conditions": [{"type": "Created"}, {"type": "Running"}]},
    }
    assert cells(PYTORCHJOBS, job) == {"Name": "j", "State": "Running", "Age": "3h"}
    assert cells(PYTORCHJOBS, {"metadata": job["metadata"]})["State"] is None


def test_a_queue_shows_what_its_definition_says() -> None:
    queue = {
        "metadata": {"name": "q"},
        "spec": {"priority": 100, "parentQueue": "root"},
        "status": {"childQueues": ["a", "b"]},
    }
    assert cells(QUEUES, queue) == {
        "Name": "q",
        "Priority": "100",
        "Parent": "root",
        "Children": '["a","b"]',
        "DisplayName": None,
    }
    assert [column.name for column in PODGROUPS.columns] == ["Name", "Age"]


def test_a_node_shows_its_state_roles_and_addresses() -> None:
    _, node = load_exchange("node/node")
    node["spec"]["unschedulable"] = True
    node["metadata"]["labels"]["node-role.kubernetes.io/worker"] = ""
    row = cells(NODES, node)
    assert (row["Status"], row["Roles"], row["Internal-IP"]) == (
        "Ready,SchedulingDisabled",
        "worker",
        "127.0.0.1",
    )
    assert (row["External-IP"], row["Version"]) == ("<none>", "v1.34.0")
    assert cells(NODES, load_exchange("node/node-not-ready")[1])["Status"] == "NotReady"


def test_both_shapes_of_an_event_show_the_same() -> None:
    _, core = load_exchange("event/list-core-v1")
    _, modern = load_exchange("event/list-events.k8s.io-v1")
    for one, other in zip(core["items"], modern["items"], strict=True):
        assert cells(EVENTS, one) == cells(EVENTS_V1, other)
        assert EVENTS_V1.from_stored is not None
        assert EVENTS_V1.to_stored is not None
        assert EVENTS_V1.from_stored(one) == other | {"apiVersion": "events.k8s.io/v1"}
        assert EVENTS_V1.to_stored(other) == one | {"apiVersion": "v1"}
    assert cells(EVENTS, core["items"][0])["Object"] == "pod/pend"


def test_a_job_shows_how_far_it_is() -> None:
    spec = {
        "completions": 3,
        "template": {"spec": {"containers": [{"name": "a", "image": "x"}]}},
        "selector": {"matchLabels": {"k": "v"}},
    }
    job: Object = {
        "metadata": {"name": "j"},
        "spec": spec,
        "status": {"succeeded": 1, "startTime": ago(seconds=90)},
    }
    row = cells(JOBS, job)
    assert (row["Status"], row["Completions"], row["Duration"]) == ("Running", "1/3", "90s")
    assert (row["Containers"], row["Images"], row["Selector"]) == ("a", "x", "k=v")
    job["status"]["conditions"] = [
        {"type": "SuccessCriteriaMet", "status": "True"},
        {"type": "Complete", "status": "True"},
    ]
    assert cells(JOBS, job)["Status"] == "Complete"


def test_a_service_shows_its_ports() -> None:
    spec = {
        "type": "ClusterIP",
        "clusterIP": "None",
        "ports": [{"port": 80, "protocol": "TCP"}, {"port": 81, "nodePort": 30081}],
    }
    row = cells(SERVICES, {"metadata": {"name": "s"}, "spec": spec})
    assert (row["Cluster-IP"], row["External-IP"], row["Port(s)"], row["Selector"]) == (
        "None",
        "<none>",
        "80/TCP,81:30081/TCP",
        "<none>",
    )


def test_a_definition_shows_when_it_was_made() -> None:
    assert (
        cells(CRDS, {"metadata": {"name": "c", "creationTimestamp": "2026-11-21T01:00:00Z"}})[
            "Created At"
        ]
        == "2026-11-21T01:00:00Z"
    )


@pytest.mark.parametrize(
    ("span", "text"),
    [
        ({"seconds": -5}, "<invalid>"),
        ({"seconds": -1}, "0s"),
        ({"seconds": 119}, "119s"),
        ({"minutes": 2}, "2m"),
        ({"minutes": 9, "seconds": 59}, "9m59s"),
        ({"minutes": 10, "seconds": 59}, "10m"),
        ({"minutes": 179}, "179m"),
        ({"hours": 3}, "3h"),
        ({"hours": 7, "minutes": 59}, "7h59m"),
        ({"hours": 47}, "47h"),
        ({"days": 2}, "2d"),
        ({"days": 7, "hours": 3}, "7d3h"),
        ({"days": 8, "hours": 3}, "8d"),
        ({"days": 729}, "729d"),
        ({"days": 800}, "2y70d"),
        ({"days": 3000}, "8y"),
    ],
)
def test_durations_read_as_in_kubectl(span: dict[str, float], text: str) -> None:
    assert format_duration(timedelta(**span)) == text
