"""Out of the cluster again: stopped, deleted, tidied up."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from clusters.job_kinds import JOBS
from clusters.kube import calls
from clusters.kube.resources import PERSISTENTVOLUMECLAIMS, PODS
from clusters.models import Cluster
from tests.cast import Cast
from tests.clusters.kube.faults import Exchange, FaultServer, Request, status
from tests.clusters.scripted import build_kubeconfig
from tests.conformance.api import eventually
from tests.workloads.acting import QUICK, Acting
from workloads import journal, logbook, manifests, tasks
from workloads.models import Pod, Workload
from workloads.specs import CleanPodPolicy, Environment, Lifecycle, NewClaim, Setup
from workloads.states import Status

Object = dict[str, Any]


def running(acting: Acting, workload: Workload) -> Workload:
    tasks.launch(str(workload.pk))
    return acting.until(workload, Status.RUNNING)


def run_to_completion(acting: Acting, **changes: Any) -> Workload:
    workload = acting.submit_distributed(command=QUICK, **changes)
    tasks.launch(str(workload.pk))
    return acting.until(workload, Status.COMPLETED)


def is_stopped(workload: Workload) -> bool:
    return workload.status == Status.STOPPED


@pytest.mark.parametrize("kind", ["submit", "submit_distributed"])
def test_stop_frees_what_it_holds_and_keeps_the_row(acting: Acting, kind: str) -> None:
    workload = running(acting, getattr(acting, kind)())
    journal.request_stop(workload.pk, acting.cast.bob)
    acting.repeat(tasks.stop, workload, lambda: is_stopped(workload))
    assert (acting.jobs(workload), acting.pods(workload)) == ([], [])
    assert (workload.running_pods, workload.next_try_at, workload.tries) == (0, None, 0)
    assert workload.released_at is None


def test_what_others_suspended_frees_all_when_it_is_stopped(acting: Acting) -> None:
    workload = running(acting, acting.submit())
    namespace = workload.project.namespace
    suspension, resumption = ({"spec": {"suspend": each}} for each in (True, False))
    calls.patch(acting.client, JOBS, workload.name, suspension, namespace=namespace)
    acting.until(workload, Status.STOPPED)
    assert acting.jobs(workload), "others may resume it"
    journal.request_stop(workload.pk, acting.cast.bob)
    calls.patch(acting.client, JOBS, workload.name, resumption, namespace=namespace)
    acting.repeat(tasks.stop, workload, lambda: is_stopped(workload))
    assert (acting.jobs(workload), acting.pods(workload)) == ([], [])


def test_a_workload_that_was_never_launched_stops(acting: Acting) -> None:
    workload = acting.submit()
    journal.request_stop(workload.pk, None)
    acting.repeat(tasks.stop, workload, lambda: is_stopped(workload))


def test_a_workload_whose_job_nobody_has_seen_yet_stops(acting: Acting) -> None:
    workload = acting.submit()
    tasks.launch(str(workload.pk))
    Workload.objects.filter(pk=workload.pk).update(job=None, job_uid="", status=Status.CREATING)
    journal.request_stop(workload.pk, None)
    acting.repeat(tasks.stop, workload, lambda: is_stopped(workload))
    assert acting.jobs(workload) == []


def test_a_stopped_workload_runs_again(acting: Acting) -> None:
    workload = running(acting, acting.submit())
    journal.request_stop(workload.pk, None)
    acting.repeat(tasks.stop, workload, lambda: is_stopped(workload))
    journal.request_run(workload.pk, None)
    assert running(acting, workload).attempt == 2


def test_a_new_claim_lasts_as_long_as_its_workload(acting: Acting) -> None:
    write = ("sh", "-c", "cat /data/kept 2>/dev/null; echo was here >> /data/kept; exec sleep 600")
    setup = Setup(Environment("any", command=write), volumes=(NewClaim(path="/data", size="1Gi"),))
    workload = running(acting, acting.submit(setup=setup))
    (claim,) = acting.objects(workload, PERSISTENTVOLUMECLAIMS)
    assert claim["metadata"]["name"] == "train1-data-1"
    journal.request_stop(workload.pk, None)
    acting.repeat(tasks.stop, workload, lambda: is_stopped(workload))
    assert [
        each["metadata"]["uid"] for each in acting.objects(workload, PERSISTENTVOLUMECLAIMS)
    ] == [claim["metadata"]["uid"]]
    journal.request_run(workload.pk, None)
    running(acting, workload)
    (pod,) = acting.pods(workload)
    name = pod["metadata"]["name"]
    eventually(
        lambda: (
            b"was here" in b"".join(calls.open_log(acting.client, acting.project.namespace, name))
        )
    )
    journal.request_deletion(workload.pk, None)
    acting.repeat(tasks.remove, workload, lambda: workload.released_at)
    assert acting.objects(workload, PERSISTENTVOLUMECLAIMS) == []


def test_a_stop_that_comes_late_leaves_the_new_attempt_alone(acting: Acting) -> None:
    workload = running(acting, acting.submit())
    before = acting.jobs(workload)[0]["metadata"]["uid"]
    tasks.stop(str(workload.pk))
    tasks.remove(str(workload.pk))
    assert acting.jobs(workload)[0]["metadata"]["uid"] == before


def test_a_job_of_somebody_else_under_the_name_is_left_alone(acting: Acting) -> None:
    workload = running(acting, acting.submit())
    (job,) = acting.jobs(workload)
    calls.patch(
        acting.client,
        JOBS,
        "train1",
        {"metadata": {"labels": {manifests.WORKLOAD: None}}},
        namespace=job["metadata"]["namespace"],
    )
    journal.request_deletion(workload.pk, None)
    tasks.remove(str(workload.pk))
    assert (
        calls.get(acting.client, JOBS, "train1", namespace=acting.project.namespace)["metadata"][
            "uid"
        ]
        == job["metadata"]["uid"]
    )


def test_delete_releases_the_name_once_the_cluster_has_let_go(acting: Acting) -> None:
    workload = running(acting, acting.submit())
    journal.request_deletion(workload.pk, acting.cast.bob)
    acting.repeat(tasks.remove, workload, lambda: workload.released_at)
    assert (acting.jobs(workload), acting.pods(workload)) == ([], [])
    assert running(acting, acting.submit("train1")).pk != workload.pk


def test_an_ended_workload_is_deleted_after_its_logs_were_kept(acting: Acting) -> None:
    workload = run_to_completion(acting)
    journal.request_deletion(workload.pk, None)
    tasks.remove(str(workload.pk))
    workload.refresh_from_db()
    assert workload.trouble == "Its logs are read to their end first."
    assert acting.jobs(workload)
    acting.logs_are_kept(workload)
    acting.repeat(tasks.remove, workload, lambda: workload.released_at)


def test_what_has_come_to_rest_has_no_trouble(acting: Acting) -> None:
    workload = running(acting, acting.submit())
    journal.request_stop(workload.pk, None)
    tasks.stop(str(workload.pk))
    workload.refresh_from_db()
    assert workload.trouble == "Its job is being removed from the cluster."
    acting.until(workload, Status.STOPPED)
    journal.record_delay(workload.pk, "A step that came late.", 1)
    workload.refresh_from_db()
    assert (workload.trouble, workload.next_try_at) == ("", None)


def test_pods_left_without_their_job_are_removed_too(acting: Acting) -> None:
    workload = running(acting, acting.submit())
    namespace = acting.project.namespace
    calls.delete(acting.client, JOBS, "train1", namespace=namespace, propagation="Orphan")
    journal.request_deletion(workload.pk, None)
    acting.repeat(tasks.remove, workload, lambda: workload.released_at)
    assert acting.pods(workload) == []


def test_a_cluster_that_does_not_answer_holds_a_deletion_up(cast: Cast) -> None:
    workload = Acting(cast, None).submit()  # type: ignore[arg-type]
    journal.request_deletion(workload.pk, None)
    tasks.remove(str(workload.pk))
    workload.refresh_from_db()
    assert (workload.status, workload.released_at) == (Status.DELETING, None)
    assert workload.trouble == "The cluster refuses connections."
    assert workload.next_try_at is not None


def test_under_the_policy_all_finished_pods_go_once_their_logs_are_kept(acting: Acting) -> None:
    workload = run_to_completion(acting, lifecycle=Lifecycle(clean_pod_policy=CleanPodPolicy.ALL))
    assert not logbook.are_logs_kept(workload.pk)
    tasks.tidy(str(workload.pk))
    assert acting.pods(workload) != []
    acting.logs_are_kept(workload)
    tasks.tidy(str(workload.pk))
    eventually(lambda: acting.pods(workload) == [])
    acting.poll()
    assert not Pod.objects.filter(workload=workload, vanished_at=None).exists()
    assert workload.status == Status.COMPLETED


def test_under_another_policy_finished_pods_stay(acting: Acting) -> None:
    workload = run_to_completion(acting)
    acting.logs_are_kept(workload)
    tasks.tidy(str(workload.pk))
    assert [
        pod for pod in acting.objects(workload, PODS) if "deletionTimestamp" not in pod["metadata"]
    ]


@pytest.mark.parametrize(
    ("status", "minutes", "policy", "goes"),
    [
        (Status.FAILED, 0, None, True),
        (Status.COMPLETED, 0, None, False),
        (Status.COMPLETED, 6, None, True),
        (Status.FAILED, 6, CleanPodPolicy.NONE, False),
        (Status.RUNNING, 6, None, False),
    ],
)
def test_what_runs_on_after_the_end_is_removed(
    acting: Acting, status: Status, minutes: int, policy: CleanPodPolicy | None, goes: bool
) -> None:
    workload = running(acting, acting.submit(lifecycle=Lifecycle(clean_pod_policy=policy)))
    calls.delete(
        acting.client, JOBS, "train1", namespace=acting.project.namespace, propagation="Orphan"
    )
    Workload.objects.filter(pk=workload.pk).update(
        status=status, ended_at=timezone.now() - timedelta(minutes=minutes)
    )
    tasks.tidy(str(workload.pk))
    if goes:
        eventually(lambda: acting.pods(workload) == [])
    else:
        assert [
            pod
            for pod in acting.objects(workload, PODS)
            if "deletionTimestamp" not in pod["metadata"]
        ]


class ManyPods:
    """A cluster in which a workload's job is gone and its pods are left. It records deletions."""

    def __init__(self, workload: Workload, pods: int, *, may_delete_all: bool = True) -> None:
        self.names = [f"train1-{number}" for number in range(pods)]
        self.may_delete_all = may_delete_all
        self.controllers = {"kind": "Job", "name": "train1", "uid": "j", "controller": True}
        self.strangers: list[str] = []
        self.are_ending = False
        self.deletions: list[Request] = []
        self.labels = {
            manifests.MANAGED_BY: manifests.MUSTER,
            manifests.WORKLOAD: str(workload.pk),
            manifests.ATTEMPT: "1",
        }

    def __call__(self, exchange: Exchange) -> None:
        request = exchange.request
        items: list[Object] = []
        if request.method == "DELETE":
            self.deletions.append(request)
            is_all = request.path.endswith("/pods")
            if is_all and not self.may_delete_all:
                exchange.answer(403, status(403, "Forbidden", "pods is forbidden"))
                return
            self.are_ending = is_all
            if not is_all:
                self.names.remove(request.path.rpartition("/")[2])
        elif request.path.endswith("/pods"):
            items = [self._build_pod(each) for each in (*self.names, *self.strangers)]
        body: Object = {"metadata": {"resourceVersion": "5"}, "items": items}
        exchange.answer(200, json.dumps(body).encode())

    def _build_pod(self, name: str) -> Object:
        owner = {**self.controllers, **({"name": "other"} if name in self.strangers else {})}
        metadata = {"name": name, "uid": f"u-{name}", "namespace": "n", "labels": self.labels}
        if self.are_ending:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return {"metadata": metadata | {"ownerReferences": [owner]}}


def delete_with(cast: Cast, pods: int, **more: Any) -> tuple[Workload, ManyPods]:
    """Return a workload that is being deleted, and the cluster that still has its pods."""
    workload = Acting(cast, None).submit()  # type: ignore[arg-type]
    for number in range(pods):
        Pod.objects.create(workload=workload, attempt=1, uid=f"u-{number}", name=f"p{number}")
    journal.request_deletion(workload.pk, None)
    workload.refresh_from_db()
    return workload, ManyPods(workload, pods, **more)


def remove_at(cast: Cast, server: FaultServer, workload: Workload) -> str:
    """Do one step of the removal at this server, and return what is said of it."""
    Cluster.objects.filter(pk=cast.cluster.pk).update(kubeconfig=build_kubeconfig(server))
    tasks.remove(str(workload.pk))
    workload.refresh_from_db()
    return str(workload.trouble)


def test_all_pods_of_an_attempt_go_with_one_request_and_the_progress_is_told(cast: Cast) -> None:
    workload, cluster = delete_with(cast, 100)
    with FaultServer(cluster) as server:
        words = remove_at(cast, server, workload)
        assert words == "Its pods are being removed from the cluster: 0 of 100 are gone."
        [deletion] = cluster.deletions
        assert deletion.path.endswith("/pods")
        assert deletion.query["labelSelector"].endswith(f"{manifests.ATTEMPT}=1")
        Pod.objects.filter(name__in=[f"p{number}" for number in range(62)]).update(
            vanished_at=timezone.now()
        )
        del cluster.names[:62]
        words = remove_at(cast, server, workload)
    assert words == "Its pods are being removed from the cluster: 62 of 100 are gone."


def test_while_rows_have_pods_the_cluster_is_seldom_asked(cast: Cast) -> None:
    workload, cluster = delete_with(cast, 5)
    with FaultServer(cluster) as server:
        has_requests = []
        for _ in range(12):
            before = len(server.requests)
            assert "of 5 are gone" in remove_at(cast, server, workload)
            has_requests.append(len(server.requests) > before)
        assert has_requests == [True] * 4 + [False, False, True, False, False, True, False, False]
        Pod.objects.update(vanished_at=timezone.now())
        cluster.names.clear()
        remove_at(cast, server, workload)
        workload.refresh_from_db()
    assert workload.released_at is not None


def test_what_does_not_go_is_looked_at_less_and_less_often(cast: Cast) -> None:
    workload, cluster = delete_with(cast, 1)
    waits = []
    with FaultServer(cluster) as server:
        for tries in (1, 10, 11, 13, 40, 10**6):
            Workload.objects.filter(pk=workload.pk).update(tries=tries)
            remove_at(cast, server, workload)
            workload.refresh_from_db()
            assert workload.next_try_at is not None
            waits.append(round((workload.next_try_at - timezone.now()).total_seconds()))
    assert waits == [1, 1, 2, 8, 30, 30]


@pytest.mark.parametrize("reason", ["a stranger has the labels", "the right is missing"])
def test_pods_go_one_by_one_where_they_cannot_go_together(cast: Cast, reason: str) -> None:
    is_shared = reason.startswith("a stranger")
    workload, cluster = delete_with(cast, 3, may_delete_all=is_shared)
    cluster.strangers = ["other-0"] if is_shared else []
    with FaultServer(cluster) as server:
        remove_at(cast, server, workload)
    single = [each for each in cluster.deletions if not each.path.endswith("/pods")]
    assert [each.path.rpartition("/")[2] for each in single] == [
        "train1-0",
        "train1-1",
        "train1-2",
    ]
    assert all(json.loads(each.body)["preconditions"]["uid"] for each in single)
    assert len(cluster.deletions) == (3 if is_shared else 4)


def test_a_refusal_stays_shown_and_is_asked_again_at_every_try(cast: Cast) -> None:
    workload, _ = delete_with(cast, 1)
    Workload.objects.filter(pk=workload.pk).update(tries=4)

    def refuse(exchange: Exchange) -> None:
        exchange.answer(403, status(403, "Forbidden", "jobs is forbidden"))

    with FaultServer(refuse) as server:
        Workload.objects.filter(pk=workload.pk).update(trouble="The cluster refused it: jobs.")
        for _ in range(4):
            before = len(server.requests)
            assert remove_at(cast, server, workload).startswith("The cluster refused it:")
            assert len(server.requests) > before


def test_pods_whose_attempt_no_selector_matches_go_one_by_one(cast: Cast) -> None:
    workload, cluster = delete_with(cast, 2)
    cluster.labels[manifests.ATTEMPT] = "01"
    with FaultServer(cluster) as server:
        remove_at(cast, server, workload)
    assert cluster.names == []
