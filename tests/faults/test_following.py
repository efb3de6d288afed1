"""What is followed and polled when the way to a cluster, its clock, its memory or its credentials
are not as they should be.
"""

from datetime import timedelta

import pytest
from django.utils import timezone

from clusters.job_kinds import JOBS
from clusters.kube import calls
from clusters.kube.resources import EVENTS, PODS
from clusters.models import Cluster
from tests.conformance.api import eventually
from tests.faults import mishaps
from tests.faults.following import (
    following,
    launch_workload,
    match_requests,
    proxy,
    requested_steps,
    worker,
)
from tests.faults.proxy import Proxy
from tests.workloads.acting import Acting
from workloads import tasks
from workloads.models import Event, Pod, Workload

__all__ = ["proxy", "requested_steps", "worker"]

HOURS = timedelta(hours=3)
CLOSE = timedelta(minutes=2)


# What a cluster says now and then, and what that proves.


def test_that_a_kind_is_not_found_for_a_moment_ends_no_stop_and_fails_no_launch(
    worker: Acting, proxy: Proxy, requested_steps: list[str]
) -> None:
    running, coming = worker.until(launch_workload(worker), "Running"), worker.submit("train2")
    Workload.objects.filter(pk=running.pk).update(desired="Stopped", status="Stopping")
    with proxy.always(mishaps.refuse_request(404, "NotFound")):
        tasks.stop(str(running.pk))
        tasks.reconcile(str(running.pk))
        tasks.launch(str(coming.pk))
        worker.poll()
    for each in (running, coming):
        each.refresh_from_db()
    assert (running.status, coming.status) == ("Stopping", "Creating")
    assert Pod.objects.get().vanished_at is None
    assert "at the moment" in coming.trouble


def test_a_launch_that_may_have_happened_is_not_called_refused(
    worker: Acting, proxy: Proxy, requested_steps: list[str]
) -> None:
    workload = worker.submit()
    with proxy.always(mishaps.lose_answer, match_requests("jobs", method="POST")):
        tasks.launch(str(workload.pk))
    with proxy.always(mishaps.refuse_request(403, "Forbidden")):
        tasks.launch(str(workload.pk))
    workload.refresh_from_db()
    assert workload.status == "Creating"
    tasks.launch(str(workload.pk))
    workload.refresh_from_db()
    assert (workload.status, workload.job_uid) != ("Failed", "")


def test_one_kind_that_may_not_be_listed_hides_no_other(
    worker: Acting, proxy: Proxy, requested_steps: list[str]
) -> None:
    workload = launch_workload(worker)
    with proxy.always(
        mishaps.refuse_request(403, "Forbidden"), match_requests("podgroups", "pytorchjobs")
    ):
        worker.until(workload, "Running")
        cluster = Cluster.objects.get(pk=worker.cast.cluster.pk)
    assert (cluster.unreachable_since, cluster.trouble) == (None, "told")
    assert Event.objects.filter(workload=workload, kind="cluster").exists()
    worker.poll()
    assert Cluster.objects.get(pk=cluster.pk).trouble == ""


def test_a_pod_that_had_vanished_by_mistake_is_there_again_after_a_poll(
    worker: Acting, requested_steps: list[str]
) -> None:
    workload = worker.until(launch_workload(worker), "Running")
    Pod.objects.update(vanished_at=timezone.now())
    worker.poll()
    workload.refresh_from_db()
    assert Pod.objects.get().vanished_at is None
    assert (workload.status, workload.running_pods) == ("Running", 1)


def test_a_server_that_was_set_back_is_believed(
    worker: Acting, proxy: Proxy, requested_steps: list[str]
) -> None:
    proxy.shift = 1_000_000
    workload = worker.until(launch_workload(worker), "Running")
    assert int(Pod.objects.get().version) > 1_000_000
    proxy.shift = 0
    namespace, name = worker.project.namespace, Pod.objects.get().name
    calls.patch(
        worker.client,
        PODS,
        name,
        {"metadata": {"labels": {"enqueue_after": "yes"}}},
        namespace=namespace,
    )
    worker.poll()
    pod = Pod.objects.get()
    assert int(pod.version) < 1_000_000
    assert pod.data["metadata"]["labels"]["enqueue_after"] == "yes"
    assert worker.until(workload, "Running").running_pods == 1


@pytest.mark.parametrize("ahead", [HOURS, -HOURS], ids=["ahead", "behind"])
def test_a_clock_hours_away_makes_no_age_and_no_order_lie(
    worker: Acting, proxy: Proxy, requested_steps: list[str], ahead: timedelta
) -> None:
    proxy.ahead = ahead
    began = timezone.now()
    workload = worker.until(launch_workload(worker), "Running")
    pod = Pod.objects.get()
    about = {"kind": "Pod", "name": pod.name, "namespace": worker.project.namespace, "uid": pod.uid}
    event = {
        "metadata": {"name": "told"},
        "involvedObject": about,
        "reason": "Told",
        "lastTimestamp": f"{timezone.now():%Y-%m-%dT%H:%M:%SZ}",
    }
    calls.create(worker.client, EVENTS, event, namespace=worker.project.namespace)
    worker.poll()
    moments = [
        pod.created_at,
        pod.started_at,
        workload.started_at,
        *workload.events.values_list("at", flat=True),
    ]
    assert all(each is not None and abs(each - began) < CLOSE for each in moments), moments
    assert workload.events.filter(reason="Told").exists()


# Credentials.


@pytest.mark.django_db(transaction=True)
def test_credentials_that_expire_in_the_middle_of_a_watch_are_told_and_new_ones_go_on(
    worker: Acting, proxy: Proxy
) -> None:
    rows = Cluster.objects.filter(pk=worker.cast.cluster.pk)
    with following():
        workload = launch_workload(worker)
        eventually(lambda: Workload.objects.filter(pk=workload.pk, status="Running").exists())
        expired_at = timezone.now()
        proxy.tokens = {"another"}
        proxy.cut()
        eventually(lambda: rows.exclude(unreachable_since=None).exists(), within=180)
        cluster = rows.get()
        assert "credentials" in cluster.trouble
        assert cluster.unreachable_since is not None
        assert abs(cluster.unreachable_since - expired_at) < timedelta(seconds=30)
        calls.delete(worker.client, JOBS, workload.name, namespace=worker.project.namespace)
        cluster.kubeconfig = proxy.kubeconfig("another")
        cluster.save(update_fields=["kubeconfig"])
        eventually(
            lambda: Workload.objects.filter(pk=workload.pk, status="Stopped").exists(), within=180
        )
        eventually(lambda: rows.filter(unreachable_since=None, trouble="").exists())


def test_a_credential_that_was_refused_says_what_helps(worker: Acting, proxy: Proxy) -> None:
    proxy.tokens = set()
    worker.poll()
    assert (
        "does not accept the credentials" in Cluster.objects.get(pk=worker.cast.cluster.pk).trouble
    )
