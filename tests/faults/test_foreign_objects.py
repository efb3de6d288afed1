"""Whose objects they are: what bears our labels and is not ours, what is of before."""

import pytest

from clusters.job_kinds import JOBS
from clusters.kube import calls
from clusters.kube.calls import Propagation
from clusters.kube.resources import CONFIGMAPS, PODS
from tests.faults.following import launch_workload, proxy, requested_steps, worker
from tests.faults.history_objects import HELD
from tests.workloads.acting import Acting
from workloads import manifests, tasks
from workloads.models import Pod, Workload

__all__ = ["proxy", "requested_steps", "worker"]


def stranger(worker: Acting, workload: Workload) -> str:
    """A pod with the workload's labels that somebody else's object controls; its uid."""
    namespace = worker.project.namespace
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "somebody"}}
    owner = calls.create(worker.client, CONFIGMAPS, body, namespace=namespace)
    labels = {
        manifests.MANAGED_BY: manifests.MUSTER,
        manifests.WORKLOAD: str(workload.pk),
        manifests.ATTEMPT: "1",
    }
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "somebody",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    metadata = {
        "name": "copied",
        "labels": labels,
        "annotations": HELD,
        "ownerReferences": [reference],
    }
    spec = {"containers": [{"name": "main", "image": "any"}], "schedulerName": "nobody"}
    pod = calls.create(
        worker.client,
        PODS,
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec},
        namespace=namespace,
    )
    return str(pod["metadata"]["uid"])


def test_what_bears_our_labels_and_is_somebody_elses_is_not_counted_and_survives_a_stop(
    worker: Acting, requested_steps: list[str]
) -> None:
    workload = launch_workload(worker)
    uid = stranger(worker, workload)
    worker.until(workload, "Running")
    assert not Pod.objects.filter(uid=uid).exists()
    assert workload.running_pods == 1
    worker.cast.cluster.refresh_from_db()
    Workload.objects.filter(pk=workload.pk).update(desired="Stopped", status="Stopping")
    worker.logs_are_kept(workload)
    worker.repeat(tasks.stop, workload, lambda: workload.status == "Stopped")
    assert (
        calls.get(worker.client, PODS, "copied", namespace=worker.project.namespace)["metadata"][
            "uid"
        ]
        == uid
    )


def test_a_job_of_the_name_that_somebody_elses_object_controls_is_not_ours(
    worker: Acting, requested_steps: list[str]
) -> None:
    workload = worker.submit()
    owner = stranger_job(worker, workload)
    tasks.launch(str(workload.pk))
    worker.poll()
    workload.refresh_from_db()
    assert (workload.status, workload.job_uid) == ("Failed", "")
    assert "is in the namespace" in workload.reason
    assert (
        calls.get(worker.client, JOBS, workload.name, namespace=worker.project.namespace)[
            "metadata"
        ]["uid"]
        == owner
    )


def stranger_job(worker: Acting, workload: Workload) -> str:
    namespace = worker.project.namespace
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "somebody"}}
    owner = calls.create(worker.client, CONFIGMAPS, body, namespace=namespace)
    labels = {
        manifests.MANAGED_BY: manifests.MUSTER,
        manifests.WORKLOAD: str(workload.pk),
        manifests.ATTEMPT: "1",
    }
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "somebody",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    template = {
        "spec": {"containers": [{"name": "main", "image": "any"}], "restartPolicy": "Never"}
    }
    metadata = {"name": workload.name, "labels": labels, "ownerReferences": [reference]}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": template, "suspend": True},
    }
    return str(calls.create(worker.client, JOBS, job, namespace=namespace)["metadata"]["uid"])


def test_pods_of_earlier_attempts_are_kept_and_told_from_those_of_now(
    worker: Acting, requested_steps: list[str]
) -> None:
    workload = worker.until(launch_workload(worker), "Running")
    before = set(workload.pods.values_list("uid", flat=True))
    calls.delete(worker.client, JOBS, workload.name, namespace=worker.project.namespace)
    worker.until(workload, "Stopped")
    assert workload.reason == "Its job was deleted in the cluster, and not by Muster."
    Workload.objects.filter(pk=workload.pk).update(
        attempt=2, status="Resuming", desired="Running", job_uid="", job=None
    )
    workload.attempts.create(number=2, status="Resuming")
    worker.repeat(tasks.launch, workload, lambda: workload.job_uid)
    worker.until(workload, "Running")
    attempts = dict(workload.pods.values_list("uid", "attempt"))
    assert {uid for uid, attempt in attempts.items() if attempt == 1} == before
    assert 2 in attempts.values()


@pytest.mark.parametrize("how", ["Background", "Foreground", "Orphan"])
def test_a_job_deleted_behind_our_back_is_said_to_be_however_it_was_done(
    worker: Acting, requested_steps: list[str], how: Propagation
) -> None:
    workload = worker.until(launch_workload(worker), "Running")
    namespace = worker.project.namespace
    calls.patch(
        worker.client,
        JOBS,
        workload.name,
        {"metadata": {"finalizers": ["example.com/hold"]}},
        namespace=namespace,
    )
    calls.delete(worker.client, JOBS, workload.name, namespace=namespace, propagation=how)
    worker.until(workload, "Stopping")
    assert workload.reason == "Its job is being deleted in the cluster, and not by Muster."
    json_patch = [
        {"op": "test", "path": "/metadata/finalizers/0", "value": "example.com/hold"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]
    calls.patch(worker.client, JOBS, workload.name, json_patch, kind="json", namespace=namespace)
    worker.until(workload, "Stopped")
    assert workload.reason == "Its job was deleted in the cluster, and not by Muster."
    assert workload.events.get(new="Stopped").text == workload.reason
