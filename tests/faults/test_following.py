"""What is followed and polled when the way to a cluster, its clock, its memory or its credentials
are not as they should be.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.db import connections as databases
from django.utils import timezone

from clusters import connections, project_provisioning
from clusters.capabilities import Capabilities
from clusters.kube import calls
from clusters.kube.access import parse_kubeconfig
from clusters.kube.calls import Propagation
from clusters.kube.client import Client
from clusters.kube.errors import Gone, Unavailable
from clusters.kube.rate_limits import RateLimiter
from clusters.kube.resources import CONFIGMAPS, EVENTS, JOBS, NAMESPACES, PODS, PYTORCHJOBS
from clusters.models import Cluster
from console.celery import Step
from tests.cast import Cast
from tests.cluster import LocalKube
from tests.clusters.kube.faults import FaultServer, Request, refusal
from tests.clusters.kube.following import QUICK_TIMINGS, Following
from tests.conformance.api import eventually
from tests.faults import mishaps
from tests.faults.histories import HELD, SERVED
from tests.faults.proxy import Mishap, Proxy, pass_unchanged
from tests.workloads.acting import Acting
from workloads import manifests, tasks
from workloads.following import Follower
from workloads.models import Event, Pod, Workload

HOURS = timedelta(hours=3)
CLOSE = timedelta(minutes=2)


@pytest.fixture(scope="module")
def proxy(embedded: LocalKube) -> Iterator[Proxy]:
    with Proxy(parse_kubeconfig(embedded.kubeconfig.read_text())) as proxy:
        yield proxy


@pytest.fixture
def worker(live_cast: Cast, embedded: LocalKube, proxy: Proxy) -> Iterator[Acting]:
    """The worker's steps, whose way to the cluster is the proxy; the test itself goes straight to
    it.
    """
    project_provisioning.provision_project(live_cast.team_a)
    live_cast.team_a.refresh_from_db()
    cluster = live_cast.cluster
    cluster.kubeconfig, cluster.capabilities = proxy.kubeconfig(), SERVED.to_json()
    cluster.save()
    proxy.choose, proxy.shift, proxy.ahead, proxy.tokens = (
        lambda request: pass_unchanged,
        0,
        timedelta(0),
        {"a-token"},
    )
    proxy.requests.clear()
    with Client(
        parse_kubeconfig(embedded.kubeconfig.read_text()), rate_limiter=RateLimiter(1e6, 1_000_000)
    ) as direct:
        yield Acting(live_cast, direct)
        with contextlib.suppress(Gone):
            calls.delete(direct, NAMESPACES, live_cast.team_a.namespace)
    connections.close_all()


@pytest.fixture
def requested_steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(Step, "enqueue", lambda step, *ids: said.append(step.__name__))
    monkeypatch.setattr(
        Step, "enqueue_after", lambda step, seconds, *ids: said.append(step.__name__)
    )
    return said


@contextlib.contextmanager
def following() -> Iterator[Follower]:
    follower, stop = Follower(), threading.Event()
    thread = threading.Thread(target=follower.run, args=(stop,))
    thread.start()
    try:
        yield follower
    finally:
        stop.set()
        thread.join()
        databases.close_all()


def launch_workload(worker: Acting, name: str = "train1") -> Workload:
    """In the cluster, its pods not yet looked at."""
    workload = worker.submit(name)
    tasks.launch(str(workload.pk))
    workload.refresh_from_db()
    assert workload.job_uid, workload.trouble or workload.reason
    return workload


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


def match_requests(*plurals: str, method: str = "GET") -> Callable[[Request], bool]:
    """Requests for these kinds."""
    return lambda request: (
        request.method == method and any(f"/{plural}" in request.path for plural in plurals)
    )


# Whose objects they are.


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
    held = [
        {"op": "test", "path": "/metadata/finalizers/0", "value": "example.com/hold"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]
    calls.patch(worker.client, JOBS, workload.name, held, kind="json", namespace=namespace)
    worker.until(workload, "Stopped")
    assert workload.reason == "Its job was deleted in the cluster, and not by Muster."
    assert workload.events.get(new="Stopped").text == workload.reason


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
    told = {
        "metadata": {"name": "told"},
        "involvedObject": about,
        "reason": "Told",
        "lastTimestamp": f"{timezone.now():%Y-%m-%dT%H:%M:%SZ}",
    }
    calls.create(worker.client, EVENTS, told, namespace=worker.project.namespace)
    worker.poll()
    moments = [
        pod.created_at,
        pod.started_at,
        workload.started_at,
        *workload.events.values_list("at", flat=True),
    ]
    assert all(each is not None and abs(each - began) < CLOSE for each in moments), moments
    assert workload.events.filter(reason="Told").exists()


# What is asked of a cluster, and how often.


def test_a_kind_that_is_not_served_is_not_asked_for_until_it_is(
    worker: Acting, proxy: Proxy, requested_steps: list[str]
) -> None:
    worker.poll()
    first = {request.path.rsplit("/", 1)[1] for request in proxy.requests}
    assert first == {"jobs", "pytorchjobs", "pods", "podgroups", "events"}
    more = Capabilities(
        served=SERVED.served | {"kubeflow.org/v1/tfjobs", "trainer.kubeflow.org/v1alpha1/trainjobs"}
    )
    Cluster.objects.update(capabilities=more.to_json())
    worker.poll()
    assert {request.path.rsplit("/", 1)[1] for request in proxy.requests} == first | {
        "tfjobs",
        "trainjobs",
    }


def test_our_lists_are_paged_and_selected_and_our_watches_ask_for_bookmarks(
    proxy: Proxy, worker: Acting
) -> None:
    worker.poll()
    lists = [request.query for request in proxy.requests]
    assert {query["limit"] for query in lists} == {"500"}
    selected = {
        request.path.rsplit("/", 1)[1]
        for request in proxy.requests
        if request.query.get("labelSelector") == manifests.build_selector()
    }
    assert selected == {"jobs", "pytorchjobs", "pods"}


@pytest.mark.parametrize(
    "mishap",
    [
        mishaps.expire_list(is_fresh=False),
        mishaps.expire_list(is_fresh=True),
        mishaps.shorten_pages(1),
        mishaps.empty_first_page,
    ],
    ids=["expired", "expired, with a fresh token", "short pages", "an empty page"],
)
def test_a_list_in_odd_pages_is_whole_or_nothing(
    worker: Acting, proxy: Proxy, requested_steps: list[str], mishap: Mishap
) -> None:
    pods = [
        worker.until(launch_workload(worker, f"train{number}"), "Running").pods.get().uid
        for number in range(3)
    ]
    with proxy.always(mishap):
        worker.poll()
    assert set(Pod.objects.filter(vanished_at=None).values_list("uid", flat=True)) == set(pods)
    assert set(Workload.objects.values_list("status", flat=True)) == {"Running"}


def test_the_patience_that_a_cluster_asks_for_is_had_by_all() -> None:
    with (
        FaultServer(refusal(429, "TooManyRequests", "Retry-After: 60")) as server,
        Client(server.access) as client,
    ):
        for _ in range(3):
            with pytest.raises(Unavailable, match=r"come back later|asked for patience"):
                calls.list_page(client, PODS)
        assert len(server.requests) == 1


def test_several_processes_together_stay_below_the_sum_of_their_rates() -> None:
    rate, burst, processes = 10.0, 5, 3
    with FaultServer(refusal(500, "InternalError")) as server, contextlib.ExitStack() as stack:
        began = time.monotonic()
        for _ in range(processes):
            client = stack.enter_context(
                Client(server.access, rate_limiter=RateLimiter(rate, burst))
            )
            for resource in (PODS, JOBS, PYTORCHJOBS):
                stack.enter_context(Following(client, resource, patience=QUICK_TIMINGS))
        server.wait_for(40)
        requested_steps, took = len(server.requests), time.monotonic() - began
    assert requested_steps <= processes * (burst + rate * took) + processes


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
        eventually(lambda: rows.exclude(unreachable_since=None).exists(), within=60)
        cluster = rows.get()
        assert "credentials" in cluster.trouble
        assert cluster.unreachable_since is not None
        assert abs(cluster.unreachable_since - expired_at) < timedelta(seconds=30)
        calls.delete(worker.client, JOBS, workload.name, namespace=worker.project.namespace)
        cluster.kubeconfig = proxy.kubeconfig("another")
        cluster.save(update_fields=["kubeconfig"])
        eventually(
            lambda: Workload.objects.filter(pk=workload.pk, status="Stopped").exists(), within=60
        )
        eventually(lambda: rows.filter(unreachable_since=None, trouble="").exists())


def test_a_credential_that_was_refused_says_what_helps(worker: Acting, proxy: Proxy) -> None:
    proxy.tokens = set()
    worker.poll()
    assert (
        "does not accept the credentials" in Cluster.objects.get(pk=worker.cast.cluster.pk).trouble
    )
