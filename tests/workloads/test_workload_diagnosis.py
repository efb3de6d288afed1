"""Why a workload waits or failed, from rows: quota, nodes, who holds what and may be named, events,
and the place in a kept log.
"""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.models import Node
from projects.models import AccessRule, Project
from projects.permissions import VIEWER
from tests.cast import Cast, a_spec
from tests.workloads import objects
from tests.workloads.table_rows import a_pod, a_workload, an_event
from workloads import queries
from workloads.kube_objects import WAITS_FOR_DATA
from workloads.logbook import log_paths
from workloads.models import Log, Pod, Workload
from workloads.specs import Architecture, Compute, Environment, Gpus, Setup, encode_spec

MINUTE = timedelta(minutes=1)
JOB: dict[str, Any] = {
    "kind": "Job",
    "metadata": {"name": "train1", "uid": "j"},
    "spec": {"parallelism": 1},
}


@pytest.fixture(autouse=True)
def _clear_cache() -> None:
    cache.clear()


def create_waiting(cast: Cast, gpus: int = 3, **fields: Any) -> Workload:
    """One pod that has no node, and four GPUs on the only one there is."""
    Node.objects.create(
        cluster=cast.cluster, name="n1", is_ready=True, gpus=4, cpu=64, memory=2**38
    )
    workload = a_workload(cast.team_a, status="Pending", job=JOB, **fields)
    a_pod(
        workload,
        phase="Pending",
        data=objects.queued_pod(
            "worker", 0, owner="j", resources={"requests": {"nvidia.com/gpu": str(gpus)}}
        ),
    )
    return workload


def create_holding(cast: Cast, project: Any, gpus: int, **fields: Any) -> Workload:
    compute = Compute(gpus=Gpus(devices=gpus), cpu_request="1", memory_request="1Gi")
    spec = a_spec(
        project,
        "holds",
        setup=Setup(Environment("x"), compute),
        architecture=Architecture.STANDARD,
        framework=None,
    )
    workload = a_workload(project, "holds", spec=encode_spec(spec), gpus_allocated=gpus, **fields)
    a_pod(workload, role="", node="n1", gpus=gpus)
    return workload


def test_it_waits_for_gpus_that_others_hold_who_are_named_to_those_who_may_see_them(
    cast: Cast,
) -> None:
    workload = create_waiting(cast)
    create_holding(cast, cast.team_b, 3)
    diagnosis = queries.diagnose_workload(workload, cast.bob)
    assert diagnosis is not None
    assert diagnosis.sentence == "Needs 3 GPUs; 1 of 4 is free; other projects hold 3."
    assert "team-b holds 3" in queries.diagnose_workload(workload, cast.alice).sentence  # type: ignore[union-attr]
    AccessRule.objects.create(user=cast.bob, project=cast.team_b, role=VIEWER)
    cast.bob.refresh_from_db()
    assert "team-b holds 3" in queries.diagnose_workload(workload, cast.bob).sentence  # type: ignore[union-attr]


def test_pods_that_are_not_ours_count_as_others(cast: Cast) -> None:
    workload = create_waiting(cast)
    Node.objects.update(used_gpus=2)
    diagnosis = queries.diagnose_workload(workload, cast.alice)
    assert diagnosis is not None
    assert diagnosis.sentence == "Needs 3 GPUs; 2 of 4 are free; other projects hold 2."


def test_who_holds_only_nodes_that_it_may_not_use_is_not_named(cast: Cast) -> None:
    workload = create_waiting(cast)
    Node.objects.update(labels={"pool": "a"})
    Node.objects.create(
        cluster=cast.cluster, name="n2", is_ready=True, gpus=64, cpu=64, memory=2**38, used_gpus=4
    )
    create_holding(cast, cast.team_a, 4)
    created = a_workload(cast.team_b, "elsewhere", gpus_allocated=60)
    a_pod(created, role="", node="n2", gpus=60)
    pod = Pod.objects.get(workload=workload)
    pod.data["spec"]["nodeSelector"] = {"pool": "a"}
    pod.save()
    diagnosis = queries.diagnose_workload(workload, cast.alice)
    assert diagnosis is not None
    assert diagnosis.sentence == "Needs 3 GPUs; none of 4 is free."


def test_who_holds_what_is_asked_once_for_all_workloads(cast: Cast) -> None:
    create_waiting(cast)
    create_holding(cast, cast.team_b, 3)
    for number in range(5):
        other = a_workload(cast.team_a, f"more-{number}", status="Pending", job=JOB)
        requests = {"requests": {"nvidia.com/gpu": "3"}}
        data = objects.queued_pod("worker", 0, owner="j", resources=requests)
        a_pod(other, phase="Pending", data=data)
    counts = []
    for most in (1, 6):
        cache.clear()
        rows = Workload.objects.filter(status="Pending").select_related("project", "cluster")
        with CaptureQueriesContext(connection) as query_log:
            queries.explain_workloads(list(rows.order_by("pk")[:most]), cast.alice)
        counts.append(len(query_log))
    assert counts[0] == counts[1]


def test_the_quota_is_told_where_the_scheduler_names_it(cast: Cast) -> None:
    group = objects.pod_group("NonPreemptibleOverQuota", "over quota")
    workload = create_waiting(cast, preemptible=False, pod_group=group)
    create_holding(cast, cast.team_a, 1, preemptible=False)
    diagnosis = queries.diagnose_workload(workload, cast.bob)
    assert diagnosis is not None
    assert "it needs 3 GPUs; the quota is 2, of which 1 is in use" in diagnosis.sentence


def test_the_limit_is_told_where_the_scheduler_names_it(cast: Cast) -> None:
    workload = create_waiting(cast, pod_group=objects.pod_group("OverLimit", "over limit"))
    Project.objects.filter(pk=cast.team_a.pk).update(gpu_limit=2)
    diagnosis = queries.diagnose_workload(Workload.objects.get(pk=workload.pk), cast.bob)
    assert diagnosis is not None
    assert diagnosis.sentence == "Needs 3 GPUs; the project may use at most 2 and uses 0."


def test_an_event_of_the_cluster_says_why_there_are_no_pods(cast: Cast) -> None:
    workload = a_workload(cast.team_a, status="Pending", job=JOB)
    an_event(
        workload,
        "pods are forbidden",
        kind="cluster",
        reason="FailedCreate",
        subject="train1",
        subject_kind="Job",
    )
    diagnosis = queries.diagnose_workload(workload, cast.bob)
    assert diagnosis is not None
    assert "refuses to make its pods: pods are forbidden" in diagnosis.sentence


@pytest.mark.parametrize("status", ["Running", "Completed", "Stopped", "Stopping", "Deleting"])
def test_nothing_is_said_where_there_is_nothing_to_explain(cast: Cast, status: str) -> None:
    workload = create_waiting(cast)
    workload.status = status
    assert queries.diagnose_workload(workload, cast.bob) is None


@pytest.mark.parametrize("status", ["Creating", "Resuming", "Stopping", "Deleting"])
def test_a_step_that_nobody_takes_is_named(cast: Cast, status: str) -> None:
    now = timezone.now()
    workload = a_workload(cast.team_a, "stuck", status=status, next_try_at=now - MINUTE / 2)
    assert queries.diagnose_workload(workload, cast.bob) is None, "the sweep may still come"
    workload.next_try_at = now - 3 * MINUTE
    diagnosis = queries.diagnose_workload(workload, cast.bob)
    assert diagnosis is not None
    assert diagnosis.sentence == "No worker of Muster has taken its next step for 3 min."
    workload.cluster.unreachable_since = now
    assert queries.diagnose_workload(workload, cast.bob) is None
    workload.cluster.unreachable_since = None
    workload.status = "Running"
    assert queries.diagnose_workload(workload, cast.bob) is None


def create_failed(cast: Cast, lines: bytes = b"") -> tuple[Workload, Pod]:
    """The second worker failed, and there is a log of it."""
    workload = a_workload(
        cast.team_a,
        status="Failed",
        job={"kind": "PyTorchJob", "metadata": {"name": "train1", "uid": "j"}},
    )
    a_pod(workload, "master", phase="Running", data=objects.pod("master", 0, owner="j"))
    data = objects.ended_pod("worker", 1, code=1, owner="j")
    pod = a_pod(
        workload,
        "worker",
        1,
        phase="Failed",
        name=data["metadata"]["name"],
        ended_at=timezone.now(),
        data=data,
    )
    if lines:
        log = Log.objects.create(
            pod=pod,
            container="pytorch",
            path=log_paths.build_log_path(workload.pk, pod.uid, "pytorch", 0),
            size=len(lines),
            state="complete",
        )
        path = log_paths.local_path(log.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lines)
    return workload, pod


def store_log(pod: Pod, run: int, lines: bytes, container: str = "pytorch") -> Log:
    path = log_paths.build_log_path(pod.workload_id, pod.uid, container, run)
    local = log_paths.local_path(path)
    local.parent.mkdir(parents=True, exist_ok=True)
    local.write_bytes(lines)
    return Log.objects.create(
        pod=pod, container=container, run=run, path=path, size=len(lines), state="complete"
    )


@pytest.mark.parametrize(("pods", "restarts"), [(1, 149), (16, 9)])
def test_of_many_runs_the_newest_one_s_log_says_why(cast: Cast, pods: int, restarts: int) -> None:
    workload, first = create_failed(cast)
    newest = set()
    for rank in range(1, pods + 1):
        data = objects.ended_pod("worker", rank, code=1, owner="j", restarts=restarts)
        name = data["metadata"]["name"]
        if rank == 1:
            pod = first
            Pod.objects.filter(pk=pod.pk).update(data=data, restarts=restarts)
        else:
            ended = timezone.now()
            pod = a_pod(workload, "worker", rank, phase="Failed", name=name, ended_at=ended)
            Pod.objects.filter(pk=pod.pk).update(data=data, restarts=restarts)
        for run in range(restarts):
            store_log(pod, run, b"OSError: [Errno 28] No space left on device\n")
        newest.add(store_log(pod, restarts, b"ValueError: the true end\n"))
    # Of a later run nothing is left.
    Log.objects.create(pod=first, container="pytorch", run=restarts + 1, size=9, state="removed")
    diagnosis = queries.diagnose_workload(workload, cast.vera)
    assert diagnosis is not None
    assert diagnosis.line == "ValueError: the true end"
    assert diagnosis.log in newest


def test_a_failure_names_the_pod_and_leads_to_the_line_of_its_log(cast: Cast) -> None:
    stamp = b"2026-11-20T12:00:00.000000001Z "
    before = b"".join(stamp + b"step %d\n" % number for number in range(9000))
    lines = (
        before
        + stamp
        + b"Traceback (most recent call last):\n"
        + stamp
        + b"  File x\n"
        + stamp
        + b"ValueError: no <b>good</b>\n"
    )
    workload, pod = create_failed(cast, lines)
    diagnosis = queries.diagnose_workload(workload, cast.vera)
    assert diagnosis is not None
    assert diagnosis.line == "ValueError: no <b>good</b>"
    assert (diagnosis.pod, diagnosis.log) == (pod, Log.objects.get())
    assert diagnosis.offset is not None
    assert lines[diagnosis.offset :].startswith(stamp + b"ValueError")
    client = Client()
    client.force_login(cast.vera)
    html = client.get(f"/workloads/{workload.pk}").content.decode()
    assert "ValueError: no &lt;b&gt;good" in html
    assert f"/logs?log={diagnosis.log.pk}&amp;at={diagnosis.offset}" in html  # type: ignore[union-attr]


def test_a_failure_without_a_log_is_told_all_the_same(cast: Cast) -> None:
    workload, pod = create_failed(cast)
    diagnosis = queries.diagnose_workload(workload, cast.vera)
    assert diagnosis is not None
    assert "exit code 1" in diagnosis.sentence
    assert (diagnosis.pod, diagnosis.log, diagnosis.line) == (pod, None, "")


def test_rooms_are_what_is_left_beside_our_pods_and_others(cast: Cast) -> None:
    create_waiting(cast)
    create_holding(cast, cast.team_b, 2)
    Node.objects.update(used_gpus=1, used_cpu=4)
    [room] = queries.load_node_capacities(cast.cluster.pk)
    assert (room.free.gpus, room.free.cpu, room.free.memory) == (
        Decimal(1),
        Decimal(59),
        Decimal(2**38 - 2**30),
    )


def test_a_lost_node_is_named_with_the_pods_that_are_lost_with_it(cast: Cast) -> None:
    workload = create_waiting(cast, gpus=5)
    Workload.objects.filter(pk=workload.pk).update(status="Degraded")
    since = "2026-11-20T14:02:30Z"
    for name, status in (("n2", "Unknown"), ("n3", "False")):
        ready = {"type": "Ready", "status": status, "reason": "", "message": "", "since": since}
        Node.objects.create(cluster=cast.cluster, name=name, is_ready=False, conditions=[ready])
    for index, (node, phase) in enumerate(
        [("n2", "Running"), ("n2", "Running"), ("n3", "Succeeded")], start=1
    ):
        a_pod(
            workload,
            index=index,
            node=node,
            phase=phase,
            data=objects.pod("worker", index, node=node),
        )
    workload.refresh_from_db()
    diagnosis = queries.diagnose_workload(workload, cast.alice)
    assert diagnosis is not None
    assert diagnosis.sentence.startswith(
        "Node n2 does not answer since 20 Nov, 14:02 UTC; 2 pods of it are lost. Needs 5 GPUs; "
    )


def test_a_pod_that_keeps_failing_is_told_with_the_line_of_its_log(cast: Cast) -> None:
    workload = a_workload(cast.team_a, status="Degraded", job=JOB)
    data = objects.pod(
        "worker",
        0,
        owner="j",
        node="n1",
        ready=False,
        restarts=2,
        state={"waiting": {"reason": "CrashLoopBackOff"}},
        last={"terminated": {"exitCode": 5}},
    )
    pod = a_pod(workload, name=data["metadata"]["name"], node="n1", restarts=2, data=data)
    diagnosis_without_log = queries.diagnose_workload(workload, cast.vera)
    store_log(pod, 0, b"OSError: [Errno 28] No space left on device\n")
    log = store_log(pod, 1, b"loading\nFileNotFoundError: shard <7>\ngoodbye\n")
    diagnosis = queries.diagnose_workload(workload, cast.vera)
    assert diagnosis_without_log is not None
    assert diagnosis is not None
    assert diagnosis.sentence == diagnosis_without_log.sentence
    assert diagnosis_without_log.sentence.startswith("Worker 0 keeps ending with exit code 5")
    assert (diagnosis_without_log.line, diagnosis_without_log.log) == ("", None)
    assert (diagnosis.line, diagnosis.log, diagnosis.offset) == (
        "FileNotFoundError: shard <7>",
        log,
        len("loading\n"),
    )


def crash_looping_pod(reason: str = "Error", code: int = 1) -> dict[str, Any]:
    return objects.pod(
        "worker",
        0,
        owner="j",
        node="n1",
        ready=False,
        restarts=2,
        state={"waiting": {"reason": "CrashLoopBackOff"}},
        last={"terminated": {"exitCode": code, "reason": reason}},
    )


def test_a_pod_that_keeps_running_out_of_memory_is_told_about_its_memory(cast: Cast) -> None:
    """Whatever it wrote before it was killed."""
    workload = a_workload(cast.team_a, status="Degraded", job=JOB)
    data = crash_looping_pod("OOMKilled", 137)
    pod = a_pod(workload, name=data["metadata"]["name"], node="n1", restarts=2, data=data)
    store_log(pod, 2, b"FileNotFoundError: shard 7\n")
    diagnosis = queries.diagnose_workload(workload, cast.vera)
    assert diagnosis is not None
    assert diagnosis.sentence == (
        "Worker 0 keeps being killed for using more memory than it may and waits before it is "
        "started again, after 2 restarts."
    )
    assert diagnosis.help == "Ask for more CPU memory, or load less of the data at once."
    assert (diagnosis.line, diagnosis.log) == ("", None)


def test_a_pod_that_keeps_being_killed_is_not_blamed_on_what_its_training_outlived(
    cast: Cast,
) -> None:
    workload = a_workload(cast.team_a, status="Degraded", job=JOB)
    data = crash_looping_pod(code=137)
    pod = a_pod(workload, name=data["metadata"]["name"], node="n1", restarts=2, data=data)
    steps = "".join(f"step {step}/100 loss: 0.5\n" for step in range(20))
    handled = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'triton'\n"
    store_log(pod, 1, (handled + steps).encode())
    diagnosis = queries.diagnose_workload(workload, cast.vera)
    assert diagnosis is not None
    assert diagnosis.line == "step 19/100 loss: 0.5"


def test_only_the_log_of_the_container_that_keeps_failing_says_why(cast: Cast) -> None:
    workload = a_workload(cast.team_a, status="Degraded", job=JOB)
    data = crash_looping_pod()
    data["status"]["containerStatuses"].append(
        {"name": "sidecar", "lastState": {"terminated": {"exitCode": 2}}}
    )
    pod = a_pod(workload, name=data["metadata"]["name"], node="n1", restarts=2, data=data)
    store_log(pod, 9, b"FileNotFoundError: of the sidecar\n", "sidecar")
    diagnosis = queries.diagnose_workload(workload, cast.vera)
    assert diagnosis is not None
    assert (diagnosis.diagnosis.container, diagnosis.log) == ("pytorch", None)
    log = store_log(pod, 2, b"ValueError: of the program\n")
    diagnosis = queries.diagnose_workload(workload, cast.vera)
    assert diagnosis is not None
    assert (diagnosis.line, diagnosis.log) == ("ValueError: of the program", log)


def test_a_failure_is_not_said_by_the_log_of_what_ended_with_it(cast: Cast) -> None:
    """The container that failed first is the one whose log is read."""
    workload, pod = create_failed(cast)
    data = objects.ended_pod("worker", 1, code=1, owner="j")
    data["status"]["containerStatuses"].append(
        {"name": "sidecar", "state": {"terminated": {"exitCode": 143, "reason": "Error"}}}
    )
    Pod.objects.filter(pk=pod.pk).update(data=data)
    store_log(pod, 9, b"FileNotFoundError: of the sidecar\n", "sidecar")
    diagnosis = queries.diagnose_workload(workload, cast.vera)
    assert diagnosis is not None
    assert (diagnosis.diagnosis.container, diagnosis.line, diagnosis.log) == ("pytorch", "", None)
    log = store_log(pod, 0, b"ValueError: of the program\n")
    diagnosis = queries.diagnose_workload(workload, cast.vera)
    assert diagnosis is not None
    assert (diagnosis.line, diagnosis.log) == ("ValueError: of the program", log)


def test_a_failure_out_of_memory_is_told_about_its_memory(cast: Cast) -> None:
    workload, pod = create_failed(cast)
    data = objects.ended_pod("worker", 1, code=137, owner="j", end={"reason": "OOMKilled"})
    Pod.objects.filter(pk=pod.pk).update(data=data)
    store_log(pod, 0, b"FileNotFoundError: shard 7\n")
    diagnosis = queries.diagnose_workload(workload, cast.vera)
    assert diagnosis is not None
    assert diagnosis.help == "Ask for more CPU memory, or load less of the data at once."


def test_what_keeps_a_pod_from_its_image_is_not_said_by_the_log_of_a_run_before(
    cast: Cast,
) -> None:
    workload = a_workload(cast.team_a, status="Degraded", job=JOB)
    message = 'failed to pull image "train:1": dial tcp 10.0.0.9:443: i/o timeout'
    data = objects.starting_pod(
        owner="j",
        reason="ImagePullBackOff",
        message=message,
        restarts=1,
        last={"terminated": {"exitCode": 1}},
    )
    pod = a_pod(workload, name=data["metadata"]["name"], node="n1", restarts=1, data=data)
    without_log = queries.diagnose_workload(workload, cast.vera)
    store_log(pod, 0, b"torch.OutOfMemoryError: CUDA out of memory.\n")
    assert without_log is not None
    assert without_log.diagnosis.container == "pytorch"
    assert queries.diagnose_workload(workload, cast.vera) == without_log


@pytest.mark.parametrize(
    ("end", "is_said_by_log"),
    [
        ({}, True),
        ({"reason": "Evicted", "message": "The node was low on resource: memory."}, False),
        ({"end": {"reason": "OOMKilled"}}, False),
    ],
    ids=["by itself", "evicted", "out of memory"],
)
def test_the_log_says_why_a_pod_ended_before_a_pause_where_it_ended_by_itself(
    cast: Cast, end: dict[str, Any], is_said_by_log: bool
) -> None:
    workload = a_workload(cast.team_a, status="Pending", job=JOB)
    data = objects.ended_pod(code=1, owner="j", **end)
    pod = a_pod(workload, name=data["metadata"]["name"], node="n1", phase="Failed", data=data)
    without_log = queries.diagnose_workload(workload, cast.vera)
    log = store_log(pod, 0, b"FileNotFoundError: shard 7\n")
    found = queries.diagnose_workload(workload, cast.vera)
    assert without_log is not None
    assert found is not None
    assert "the next one is made after a pause" in found.sentence
    if is_said_by_log:
        assert (found.line, found.log) == ("FileNotFoundError: shard 7", log)
        assert "A path does not exist" in found.help
    else:
        assert found == without_log


def test_what_waited_for_data_says_that_it_waits_for_gpus_now(cast: Cast) -> None:
    workload = create_waiting(cast)
    create_holding(cast, cast.team_b, 3)
    before = queries.diagnose_workload(workload, cast.vera)
    metadata = JOB["metadata"] | {"annotations": {WAITS_FOR_DATA: "false"}}
    workload.job = JOB | {"metadata": metadata}
    after = queries.diagnose_workload(workload, cast.vera)
    assert before is not None
    assert after is not None
    assert after.sentence == f"Data is ready; it waits for GPUs. {before.sentence}"
    assert after.help == before.help
