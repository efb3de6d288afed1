"""From Creating into the cluster, once, whatever happens on the way."""

import contextlib
import itertools
import json
import threading
from typing import Any

import pytest
from django.db import connections as databases
from django.utils import timezone

from clusters import connections, project_provisioning
from clusters.job_kinds import JOBS
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Unavailable
from clusters.kube.resources import NAMESPACES
from clusters.models import Cluster
from projects.models import Project
from tests.cast import NOWHERE, Cast
from tests.clusters.kube.faults import FaultServer, refusal
from tests.workloads.acting import QUICK, Acting
from workloads import journal, manifests, tasks
from workloads.models import Workload
from workloads.specs import Environment, Setup, Variable, decode_spec
from workloads.states import Status
from workloads.tasks.retrying import compute_backoff


class Killed(BaseException):
    """The end of the process, at a moment of the test's choice."""


class Dying(Client):
    """Ends the process as soon as the n-th request has taken effect, or loses its answer; `sent`
    counts them.
    """

    def __init__(self, client: Client, last: int, how: BaseException) -> None:
        super().__init__(client.access, timeouts=client.timeouts)
        self.last, self.how, self.sent = last, how, 0

    def send(self, method: str, path: str, **options: Any) -> bytes:
        answer = super().send(method, path, **options)
        self.sent += 1
        if self.sent == self.last:
            raise self.how
        return answer


def foreign_job(acting: Acting, name: str, **labels: str) -> None:
    project_provisioning.provision_project(acting.project)
    container = {"name": "c", "image": "i", "command": ["true"]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {"template": template},
    }
    calls.create(
        acting.client, JOBS, body, namespace=acting.project.namespace, manager="kubectl-create"
    )


def launch_and_refresh(workload: Workload) -> Workload:
    tasks.launch(str(workload.pk))
    workload.refresh_from_db()
    return workload


@pytest.mark.parametrize("distributed", [False, True])
def test_a_workload_runs_to_its_end(acting: Acting, distributed: bool) -> None:
    workload = launch_and_refresh(
        (acting.submit_distributed if distributed else acting.submit)(command=QUICK)
    )
    assert workload.job_uid == acting.jobs(workload)[0]["metadata"]["uid"]
    assert (workload.next_try_at, workload.tries, workload.trouble) == (None, 0, "")
    acting.until(workload, Status.COMPLETED)
    assert workload.ended.startswith(
        ("2 succeeded", "1 succeeded, 1 stopped") if distributed else "1 succeeded"
    )


def test_launching_again_makes_nothing_anew(acting: Acting) -> None:
    workload = launch_and_refresh(acting.submit())
    before = list_written(acting, workload)
    assert list_written(acting, launch_and_refresh(workload)) == before


def list_written(acting: Acting, workload: Workload) -> list[tuple[str, int, object]]:
    """List what Muster wrote of a workload's jobs; their status is the controllers' to change."""
    return [
        (job["metadata"]["uid"], job["metadata"]["generation"], job["spec"])
        for job in acting.jobs(workload)
    ]


@pytest.mark.parametrize("how", [Killed(), Unavailable("the connection to the cluster broke off")])
def test_a_launch_that_dies_after_any_request_is_done_once_in_the_end(
    acting: Acting, monkeypatch: pytest.MonkeyPatch, how: BaseException
) -> None:
    real = connections.get_client
    for died in itertools.count(1):
        Project.objects.update(synced_at=None)
        workload, dying = acting.submit(f"train{died}"), Dying(acting.client, died, how)
        monkeypatch.setattr(connections, "get_client", lambda cluster, dying=dying: dying)
        with contextlib.suppress(Killed):
            launch_and_refresh(workload)
        monkeypatch.setattr(connections, "get_client", real)
        if dying.sent < died:
            break

        def has_job(workload: Workload = workload) -> bool:
            return bool(workload.job_uid)

        acting.repeat(tasks.launch, workload, has_job)
        assert len(acting.jobs(workload)) == 1
    assert died > 6


def test_two_launches_at_once_make_one_job(transactional_db: None, acting: Acting) -> None:
    workload, start = acting.submit(), threading.Barrier(4)

    def launch() -> None:
        start.wait()
        tasks.launch(str(workload.pk))
        databases.close_all()

    threads = [threading.Thread(target=launch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (job,) = acting.jobs(workload)
    workload.refresh_from_db()
    assert workload.job_uid == job["metadata"]["uid"]
    assert workload.status != Status.FAILED


def test_a_name_that_somebody_else_has_is_refused_with_who_and_what_to_do(acting: Acting) -> None:
    foreign_job(acting, "train1")
    workload = launch_and_refresh(acting.submit())
    assert workload.status == Status.FAILED
    assert "A Job named train1 is in the namespace" in workload.reason
    assert "made by kubectl-create" in workload.reason
    assert "another name, or remove that Job" in workload.reason


def test_a_name_that_another_workload_of_muster_has_is_refused(acting: Acting) -> None:
    foreign_job(
        acting,
        "train1",
        **{
            manifests.MANAGED_BY: manifests.MUSTER,
            manifests.WORKLOAD: "w-1",
            manifests.ATTEMPT: "1",
        },
    )
    assert (
        "belongs to another workload of Muster, w-1" in launch_and_refresh(acting.submit()).reason
    )


def test_what_a_deleted_workload_left_under_the_name_makes_way(
    acting: Acting, requested_steps: list[tuple[str, ...]]
) -> None:
    old_workload = acting.submit()
    journal.request_deletion(old_workload.pk, None)
    journal.record_release(old_workload.pk)
    foreign_job(
        acting,
        "train1",
        **{
            manifests.MANAGED_BY: manifests.MUSTER,
            manifests.WORKLOAD: str(old_workload.pk),
            manifests.ATTEMPT: "1",
        },
    )
    workload = launch_and_refresh(acting.submit())
    assert (workload.status, requested_steps) == (
        Status.CREATING,
        [("remove", str(old_workload.pk)), ("launch", str(workload.pk), "1")],
    )
    tasks.remove(str(old_workload.pk))
    acting.repeat(tasks.launch, workload, lambda: workload.job_uid)


def test_limits_that_refuse_what_is_there_already_do_not_fail_it(cast: Cast) -> None:
    """A quota is looked at before the name; the job that is there counts against itself."""
    Project.objects.update(synced_at="2026-01-01T00:00:00Z")
    workload = Acting(cast, None).submit()  # type: ignore[arg-type]
    (job,) = manifests.build_objects(decode_spec(workload.spec), workload_id=str(workload.pk))
    job["metadata"] |= {
        "uid": "u1",
        "resourceVersion": "7",
        "creationTimestamp": "2026-11-21T00:00:00Z",
    }
    steps = (
        refusal(403, "Forbidden"),
        lambda exchange: exchange.answer(200, json.dumps(job).encode()),
    )
    with FaultServer(*steps) as server:
        cast.cluster.kubeconfig = NOWHERE.replace(
            "https://127.0.0.1:1", f"http://127.0.0.1:{server.port}"
        )
        cast.cluster.save()
        assert (launch_and_refresh(workload).status, workload.job_uid) == (Status.CREATING, "u1")


NO_RIGHT = (
    'jobs.batch is forbidden: User "system:serviceaccount:muster:muster" cannot create resource '
    '"jobs" in API group "batch" in the namespace "team-a"'
)
NOT_THERE = refusal(404, "NotFound", details={"name": "train1"})


def lead_to(cast: Cast, server: FaultServer) -> None:
    cast.cluster.kubeconfig = NOWHERE.replace(
        "https://127.0.0.1:1", f"http://127.0.0.1:{server.port}"
    )
    cast.cluster.save()


def test_a_right_that_is_missing_for_a_moment_does_not_fail_it(cast: Cast) -> None:
    """An API server that has just started refuses everything until its rules are loaded."""
    Project.objects.update(synced_at="2026-01-01T00:00:00Z")
    workload = Acting(cast, None).submit()  # type: ignore[arg-type]
    # It was tried often while the cluster was away, which does not count.
    Workload.objects.update(tries=20, trouble="The cluster refuses connections.")
    (job,) = manifests.build_objects(decode_spec(workload.spec), workload_id=str(workload.pk))
    job["metadata"] |= {"uid": "u1", "resourceVersion": "7"}
    steps = (
        refusal(403, "Forbidden", message=NO_RIGHT),
        NOT_THERE,
        refusal(
            403, "Forbidden", message="jobs.batch is forbidden: not yet ready to handle request"
        ),
        NOT_THERE,
        lambda exchange: exchange.answer(201, json.dumps(job).encode()),
    )
    with FaultServer(*steps) as server:
        lead_to(cast, server)
        launch_and_refresh(workload)
        assert (workload.status, workload.tries) == (Status.CREATING, 1)
        assert workload.trouble.startswith("Muster may not launch it in the cluster at the moment")
        assert 'cannot create resource "jobs"' in workload.trouble
        assert launch_and_refresh(workload).tries == 2
        assert launch_and_refresh(workload).job_uid == "u1"
    assert (workload.status, workload.tries, workload.trouble) == (Status.CREATING, 0, "")


def test_a_right_that_stays_missing_fails_it_after_a_while(cast: Cast) -> None:
    Project.objects.update(synced_at="2026-01-01T00:00:00Z")
    workload, waits = Acting(cast, None).submit(), []  # type: ignore[arg-type]
    steps = (refusal(403, "Forbidden", message=NO_RIGHT), NOT_THERE) * 20
    with FaultServer(*steps) as server:
        lead_to(cast, server)
        while launch_and_refresh(workload).status == Status.CREATING:
            assert workload.next_try_at is not None
            waits.append((workload.next_try_at - timezone.now()).total_seconds())
    assert workload.status == Status.FAILED
    assert 'cannot create resource "jobs"' in workload.reason
    assert len(waits) == 6
    assert 20 < sum(waits) < 64


def test_a_quota_that_refuses_has_decided(cast: Cast) -> None:
    Project.objects.update(synced_at="2026-01-01T00:00:00Z")
    workload = Acting(cast, None).submit()  # type: ignore[arg-type]
    text = 'jobs.batch "train1" is forbidden: exceeded quota: compute, requested: pods=1'
    with FaultServer(refusal(403, "Forbidden", message=text), NOT_THERE) as server:
        lead_to(cast, server)
        assert launch_and_refresh(workload).status == Status.FAILED
    assert "exceeded quota" in workload.reason


def test_of_the_messages_for_one_step_one_goes_on(
    cast: Cast, requested_steps: list[tuple[str, ...]]
) -> None:
    workload = Acting(cast, None).submit()  # type: ignore[arg-type]
    key = str(workload.pk)
    tasks.launch(key)
    tasks.launch(key)
    goes_on = [each for each in requested_steps if each[0] == "launch"]
    assert goes_on == [("launch", key, "1"), ("launch", key, "2")]
    tasks.launch(key, 1)
    assert [each for each in requested_steps if each[0] == "launch"] == goes_on
    tasks.launch(key, 2)
    assert ("launch", key, "3") in requested_steps


def test_what_the_cluster_refuses_is_told_with_the_fields(acting: Acting) -> None:
    wrong = Setup(
        environment=Environment(image="any", variables=(Variable("A B=", "1"),), command=("true",))
    )
    workload = launch_and_refresh(acting.submit(setup=wrong))
    assert workload.status == Status.FAILED
    assert workload.reason.startswith("The cluster refused it:")
    assert "env[0].name" in workload.reason


def test_without_the_operator_it_is_refused_with_what_is_missing(cast: Cast) -> None:
    Project.objects.update(synced_at="2026-01-01T00:00:00Z")
    acting = Acting(cast, None)  # type: ignore[arg-type]
    with FaultServer(lambda exchange: exchange.answer(404, b"404 page not found")) as server:
        cast.cluster.kubeconfig = NOWHERE.replace(
            "https://127.0.0.1:1", f"http://127.0.0.1:{server.port}"
        )
        cast.cluster.save()
        workload = launch_and_refresh(acting.submit_distributed())
    assert workload.status == Status.FAILED
    assert "does not serve PyTorchJob objects" in workload.reason


def test_a_webhook_that_fails_is_named_and_no_address_inside(cast: Cast) -> None:
    Project.objects.update(synced_at="2026-01-01T00:00:00Z")
    workload = Acting(cast, None).submit()  # type: ignore[arg-type]
    words = (
        'Internal error occurred: failed calling webhook "validate.kyverno.svc": failed to call '
        'webhook: Post "https://kyverno.svc:443": dial tcp 10.1.2.3:443: connection refused'
    )
    with FaultServer(refusal(500, "InternalError", message=words)) as server:
        lead_to(cast, server)
        launch_and_refresh(workload)
    assert workload.status == Status.CREATING
    assert workload.trouble == (
        "The cluster answered 500 (InternalError). Its webhook validate.kyverno.svc failed."
    )


def test_a_cluster_that_asks_for_patience_gets_it(cast: Cast) -> None:
    Project.objects.update(synced_at="2026-01-01T00:00:00Z")
    acting = Acting(cast, None)  # type: ignore[arg-type]
    with FaultServer(refusal(429, "TooManyRequests", "Retry-After: 7")) as server:
        cast.cluster.kubeconfig = NOWHERE.replace(
            "https://127.0.0.1:1", f"http://127.0.0.1:{server.port}"
        )
        cast.cluster.save()
        before = acting.submit()
        workload = launch_and_refresh(before)
    assert workload.status == Status.CREATING
    assert workload.next_try_at is not None
    assert 5 < (workload.next_try_at - workload.status_at).total_seconds() < 60


def test_a_cluster_that_does_not_answer_is_waited_for(acting: Acting) -> None:
    cluster = acting.cast.cluster
    Cluster.objects.filter(pk=cluster.pk).update(kubeconfig=NOWHERE)
    provisioned = Project.objects.filter(pk=acting.project.pk)
    provisioned.update(synced_at="2026-01-01T00:00:00Z")
    workload = launch_and_refresh(acting.submit())
    assert workload.status == Status.CREATING
    assert (workload.tries, workload.trouble) == (1, "The cluster refuses connections.")
    tasks.heartbeat(str(cluster.pk))
    assert (
        "cannot be reached: the cluster refuses connections" in launch_and_refresh(workload).trouble
    )
    cluster.save()
    tasks.heartbeat(str(cluster.pk))
    assert launch_and_refresh(workload).job_uid
    assert (workload.tries, workload.trouble) == (0, "")


def test_a_namespace_that_is_gone_is_made_again(acting: Acting) -> None:
    provisioned = Project.objects.filter(pk=acting.project.pk)
    provisioned.update(synced_at="2026-01-01T00:00:00Z")
    assert len(acting.jobs(launch_and_refresh(acting.submit()))) == 1


def test_a_namespace_of_somebody_else_is_not_used(acting: Acting) -> None:
    metadata = {"name": acting.project.namespace}
    calls.create(
        acting.client, NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    )
    workload = launch_and_refresh(acting.submit())
    assert workload.status == Status.CREATING
    assert "Muster did not make it" in workload.trouble
    assert acting.jobs(workload) == []


def test_a_workload_stopped_while_it_is_launched_leaves_nothing(
    acting: Acting, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = acting.submit()
    create = calls.create

    def stopped_meanwhile(*arguments: Any, **options: Any) -> Any:
        made = create(*arguments, **options)
        journal.request_stop(workload.pk, None)
        return made

    project_provisioning.provision_project(acting.project)
    monkeypatch.setattr(calls, "create", stopped_meanwhile)
    assert launch_and_refresh(workload).status == Status.STOPPING
    monkeypatch.undo()
    acting.repeat(tasks.stop, workload, lambda: workload.status == Status.STOPPED)
    assert acting.jobs(workload) == []


def test_a_launch_that_comes_late_does_nothing(acting: Acting) -> None:
    workload = acting.submit()
    journal.request_stop(workload.pk, None)
    assert launch_and_refresh(workload).status == Status.STOPPING
    assert acting.jobs(workload) == []


def test_what_cannot_be_read_is_refused(acting: Acting) -> None:
    workload = acting.submit()
    Workload.objects.filter(pk=workload.pk).update(spec={"version": 99})
    assert "cannot launch what is stored" in launch_and_refresh(workload).reason


def test_running_again_is_a_new_attempt_under_the_same_name(acting: Acting) -> None:
    workload = acting.until(launch_and_refresh(acting.submit(command=QUICK)), Status.COMPLETED)
    first = workload.job_uid
    journal.request_run(workload.pk, None)
    assert launch_and_refresh(workload).trouble == "Its logs are read to their end first."
    acting.logs_are_kept(workload)
    acting.repeat(tasks.launch, workload, lambda: workload.job_uid)
    (job,) = acting.jobs(workload)
    assert job["metadata"]["name"] == "train1"
    assert job["metadata"]["labels"][manifests.ATTEMPT] == "2"
    assert workload.job_uid == job["metadata"]["uid"] != first
    acting.until(workload, Status.COMPLETED)


@pytest.mark.parametrize(("tries", "most"), [(0, 1), (1, 2), (2, 4), (5, 32), (6, 60), (1000, 60)])
def test_failures_are_tried_again_later_and_later_up_to_a_minute(tries: int, most: int) -> None:
    waits = {compute_backoff(tries) for _ in range(100)}
    assert most / 2 <= min(waits) < max(waits) <= most
