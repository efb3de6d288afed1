"""A job that waits for its data, in the embedded cluster: it is let go on once, and what its data
workers use goes with it.
"""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from clusters.job_kinds import JOBS
from clusters.kube import calls
from clusters.kube.errors import Rejected
from clusters.kube.resources import PODS, SECRETS, SERVICES
from tests.conformance.api import eventually
from tests.workloads.acting import Acting
from tests.workloads.data_workers import get_ready_line, write_lines
from workloads import journal, tasks
from workloads.models import DataPreparation, Event, Pod, Workload
from workloads.specs import Compute, DataDelivery
from workloads.status_rules import has_waited_for_data, is_suspended
from workloads.tasks import objects
from workloads.tasks.preparing import build_resumption

BY_ROLE = 'if [ "$MUSTER_DELIVERY_ROLE" = worker ]; then exec sleep 600; fi; exec {}'
SMALL = Compute(cpu_request="0.05", memory_request="20M")


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, settings: Any) -> None:
    settings.LOGS = tmp_path


def submit(acting: Acting, rank: str = "sleep 600", **changes: Any) -> Workload:
    """Submit a workload whose ranks run a shell's command, with two data workers that sleep."""
    command = ("sh", "-c", BY_ROLE.format(rank))
    delivery = {"data_delivery": DataDelivery(2, 100, SMALL)}
    return acting.submit_distributed("slow", command, **(delivery | changes))


def prepare(acting: Acting, workload: Workload) -> Workload:
    """Launch it, and wait until its data workers run."""
    tasks.launch(str(workload.pk))
    acting.until(workload, "Preparing")
    return acting.repeat(tasks.reconcile, workload, lambda: count_data_workers(workload) == 2)


def count_data_workers(workload: Workload) -> int:
    pods = Pod.objects.filter(workload=workload, attempt=workload.attempt, role="data-worker")
    return pods.filter(phase="Running", vanished_at=None).count()


def say_ready(workload: Workload) -> None:
    """Let the data workers say that all is prepared, and the step read it."""
    for pod in Pod.objects.filter(workload=workload, role="data-worker"):
        write_lines(pod, get_ready_line(pod.index or 0))
    tasks.follow_preparations()


def fetch_job(acting: Acting, workload: Workload) -> dict[str, Any]:
    kind = objects.job_resource_of(workload)
    return calls.get(acting.client, kind, workload.name, namespace=objects.namespace_of(workload))


def list_left(acting: Acting, workload: Workload) -> list[str]:
    """The kinds and names of what the cluster has of a workload."""
    kinds = {"job": objects.job_resource_of(workload), "batch": JOBS, "pod": PODS}
    kinds |= {"service": SERVICES, "secret": SECRETS}
    return [
        f"{name} {each['metadata']['name']}"
        for name, kind in kinds.items()
        for each in acting.objects(workload, kind)
    ]


def test_the_job_takes_no_gpu_before_its_data_is_ready_and_then_runs(acting: Acting) -> None:
    workload = prepare(acting, submit(acting))
    assert (workload.gpus_allocated, workload.running_pods, workload.started_at) == (0, 0, None)
    tasks.resume(str(workload.pk))
    assert is_suspended(fetch_job(acting, workload)), "its data is not ready"
    say_ready(workload)
    tasks.resume(str(workload.pk))
    job = fetch_job(acting, workload)
    assert (is_suspended(job), has_waited_for_data(job)) == (False, True)
    acting.until(workload, "Running")
    assert workload.started_at is not None
    version = fetch_job(acting, workload)["metadata"]["generation"]
    tasks.resume(str(workload.pk))
    tasks.follow_preparations()
    assert fetch_job(acting, workload)["metadata"]["generation"] == version
    assert Event.objects.filter(reason="DataReady").count() == 1
    assert count_data_workers(workload) == 2, "they go on beside the training"


def test_a_standard_workload_is_held_too_and_its_jobs_are_told_apart(acting: Acting) -> None:
    command = ("sh", "-c", BY_ROLE.format("sleep 600"))
    workload = prepare(
        acting, acting.submit("slow", command, data_delivery=DataDelivery(2, 100, SMALL))
    )
    names = [(each or {})["metadata"]["name"] for each in (workload.job, workload.data_job)]
    assert names == ["slow", "slow-data"]
    say_ready(workload)
    tasks.resume(str(workload.pk))
    acting.until(workload, "Running")
    assert (workload.running_pods, workload.requested_pods) == (1, 1)


def test_a_step_that_died_after_its_patch_is_finished(acting: Acting) -> None:
    workload = prepare(acting, submit(acting))
    say_ready(workload)
    job, kind = fetch_job(acting, workload), objects.job_resource_of(workload)
    namespace = objects.namespace_of(workload)
    calls.patch(acting.client, kind, workload.name, build_resumption(job), namespace=namespace)
    tasks.resume(str(workload.pk))
    row = DataPreparation.objects.get()
    assert row.resumed_at is not None
    assert Event.objects.get(reason="DataReady").text.startswith("100 units are prepared.")


def test_a_stop_while_it_prepares_leaves_nothing_and_run_prepares_anew(acting: Acting) -> None:
    workload = prepare(acting, submit(acting))
    say_ready(workload)
    journal.request_stop(workload.pk, acting.cast.bob)
    tasks.resume(str(workload.pk))
    assert is_suspended(fetch_job(acting, workload)), "what is to stop is not let go on"
    acting.logs_are_kept(workload)
    acting.repeat(tasks.stop, workload, lambda: workload.status == "Stopped")
    assert list_left(acting, workload) == []
    journal.request_run(workload.pk, acting.cast.bob)
    workload.refresh_from_db()
    prepare(acting, workload)
    assert [each.prepared for each in DataPreparation.objects.order_by("attempt")] == [100, 0]


def test_what_is_deleted_while_it_prepares_leaves_nothing(acting: Acting) -> None:
    workload = prepare(acting, submit(acting))
    journal.request_deletion(workload.pk, acting.cast.bob)
    acting.logs_are_kept(workload)
    acting.repeat(tasks.remove, workload, lambda: workload.released_at is not None)
    assert list_left(acting, workload) == []


def test_data_workers_go_when_the_training_has_ended(acting: Acting) -> None:
    workload = submit(acting, "true", data_delivery=DataDelivery(2, 0, SMALL))
    tasks.launch(str(workload.pk))
    acting.until(workload, "Completed")
    assert any("slow-data" in each for each in list_left(acting, workload))
    acting.logs_are_kept(workload)
    acting.repeat(tasks.tidy_data, workload, lambda: not DataPreparation.objects.get().is_open)
    eventually(lambda: "slow-data" not in str(list_left(acting, workload)))


def test_data_workers_go_with_a_job_that_was_deleted_in_the_cluster(acting: Acting) -> None:
    workload = prepare(acting, submit(acting))
    kind, namespace = objects.job_resource_of(workload), objects.namespace_of(workload)
    calls.delete(acting.client, kind, workload.name, namespace=namespace)
    acting.until(workload, "Stopped")
    acting.logs_are_kept(workload)
    acting.repeat(tasks.tidy_data, workload, lambda: not DataPreparation.objects.get().is_open)
    eventually(lambda: list_left(acting, workload) == [])


def test_a_stop_begins_with_all_that_data_workers_use(acting: Acting) -> None:
    workload = prepare(acting, submit(acting))
    journal.request_stop(workload.pk, acting.cast.bob)
    acting.logs_are_kept(workload)
    tasks.stop(str(workload.pk))
    left = str(list_left(acting, workload))
    assert "service" not in left, "a step that dies now would leave it"
    assert "secret" not in left


def test_a_refused_removal_of_data_workers_is_not_asked_for_again_at_once(
    acting: Acting, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = prepare(acting, submit(acting))
    Workload.objects.update(status="Failed", ended_at=timezone.now() - timedelta(minutes=5))
    removals: list[str] = []

    def refuse(client: Any, found: Workload) -> bool:
        removals.append(found.name)
        raise Rejected("forbidden", status=403)

    monkeypatch.setattr(objects, "remove_data_workers", refuse)
    tasks.tidy_data(str(workload.pk))
    tasks.tidy_data(str(workload.pk))
    assert removals == ["slow"]


def test_data_workers_of_a_workload_that_is_at_rest_are_found_by_the_poll(
    acting: Acting, requested_steps: list[tuple[str, str]]
) -> None:
    workload = prepare(acting, submit(acting))
    now = timezone.now() - timedelta(minutes=5)
    Workload.objects.update(status="Failed", desired="Running", ended_at=now)
    tasks.poll(str(acting.cast.cluster.pk))
    assert ("tidy_data", str(workload.pk)) in requested_steps
    Workload.objects.update(status="Stopped", desired="Stopped")
    tasks.poll(str(acting.cast.cluster.pk))
    assert ("stop", str(workload.pk)) in requested_steps


def test_a_killed_data_worker_is_replaced_and_prepares_its_part_anew(acting: Acting) -> None:
    workload = prepare(acting, submit(acting))
    first = Pod.objects.get(workload=workload, role="data-worker", index=0)
    write_lines(first, get_ready_line(0))
    tasks.follow_preparations()
    assert DataPreparation.objects.get().prepared == 50
    calls.delete(acting.client, PODS, first.name, namespace=objects.namespace_of(workload))

    def is_replaced() -> bool:
        acting.poll()
        return count_data_workers(workload) == 2 and (
            Pod.objects.filter(workload=workload, role="data-worker", index=0).count() == 2
        )

    acting.repeat(tasks.reconcile, workload, is_replaced)
    tasks.follow_preparations()
    assert DataPreparation.objects.get().prepared == 0
    assert (workload.status, workload.desired) == ("Preparing", "Running")
