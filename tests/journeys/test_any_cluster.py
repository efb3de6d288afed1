"""Muster's whole way with a workload of every kind, in whatever cluster is given; `place` tells how
one is.

MUSTER_TEST_KUBECONFIG=... [MUSTER_TEST_CONTROLLERS=1] [MUSTER_TEST_PODS=1]
[MUSTER_TEST_OPERATORS=1] pytest tests/journeys -n0
"""

from dataclasses import replace

import pytest

from clusters.job_kinds import JOB_KINDS
from tests.journeys.made import CODE
from tests.journeys.standin import Stage
from tests.journeys.travelling import Journey
from workloads import actions, logbook, tasks
from workloads.manifests import describe_unavailable
from workloads.models import Log, Pod, Workload
from workloads.pod_views import build_pod_view
from workloads.queries.workload_diagnosis import diagnose_workload
from workloads.specs import Framework, NewClaim
from workloads.states import Status

pytestmark = pytest.mark.timeout(900)

TRAINER = "TrainJob"
HELLO = "echo hello from the pod; sleep 1"
LONG = "echo begun; sleep 600"
WRONG = f"echo 'ValueError: no such data'; exit {CODE}"


@pytest.fixture(params=["standard", *(each.name for each in Framework), TRAINER])
def framework(request: pytest.FixtureRequest, unfollowed_journey: Journey) -> Framework | None:
    """What kind of workload; None is a standard one. Skips what the cluster does not serve."""
    if request.param == "standard":
        return None
    chosen = Framework.PYTORCH if request.param == TRAINER else Framework[request.param]
    if request.param == TRAINER:
        if not unfollowed_journey.cluster.can.serves("trainer.kubeflow.org/v1alpha1/trainjobs"):
            pytest.skip("the cluster serves no TrainJobs")
        unfollowed_journey.only_trainjobs()
    if why := describe_unavailable(chosen, unfollowed_journey.cluster.can):
        pytest.skip(why)
    return chosen


def running(travel: Journey, framework: Framework | None) -> Workload:
    """A workload that runs until it is told to end."""
    workload = travel.submit(travel.spec(framework, LONG))
    travel.standin.stage = Stage.UP
    return travel.until_status(workload, Status.RUNNING)


def moves(workload: Workload, attempt: int = 1) -> list[str]:
    return list(
        workload.events.filter(attempt=attempt)
        .exclude(new="")
        .order_by("at", "id")
        .values_list("new", flat=True)
    )


def line(workload: Workload, travel: Journey) -> str:
    """The line of a log that tells why it failed."""
    diagnosis = diagnose_workload(workload, travel.by)
    return diagnosis.line if diagnosis else ""


def said_by(workload: Workload) -> list[str]:
    """Every log of it that was captured, as text."""
    logs = Log.objects.filter(pod__workload=workload, pod__attempt=workload.attempt).exclude(
        state=Log.State.REMOVED
    )
    return [b"\n".join(logbook.read_lines(log)).decode() for log in logs]


def test_it_is_queued_starts_runs_and_completes_and_runs_again(
    framework: Framework | None, travel: Journey
) -> None:
    workload = travel.submit(travel.spec(framework, HELLO))
    if not travel.place.pods:
        travel.until_status(workload, Status.PENDING)
        travel.standin.stage = Stage.PLACED
        travel.until_status(workload, Status.INITIALIZING)
        travel.standin.stage = Stage.UP
        travel.until_status(workload, Status.RUNNING)
        assert (
            workload.running_pods
            == workload.requested_pods
            == Pod.objects.filter(workload=workload).count()
        )
    travel.standin.stage = Stage.DONE
    travel.until_status(workload, Status.COMPLETED)
    statuses = moves(workload)
    assert (statuses[0], statuses[-1]) == ("Creating", "Completed")
    assert workload.ended_at is not None
    if travel.place.pods:
        travel.until(
            workload, lambda: any("hello from the pod" in text for text in said_by(workload))
        )
    else:
        # Who would wait for a kubelet that is not there goes on after a while.
        Pod.objects.filter(workload=workload).update(logs_kept=True)

    first = set(Pod.objects.filter(workload=workload).values_list("uid", flat=True))
    assert actions.run(workload, travel.by)
    travel.standin.stage = Stage.UP
    travel.until(
        workload,
        lambda: workload.status in (Status.RUNNING, Status.COMPLETED) and workload.attempt == 2,
    )
    travel.standin.stage = Stage.DONE
    travel.until_status(workload, Status.COMPLETED)
    kept = Pod.objects.filter(workload=workload, attempt=1)
    assert set(kept.values_list("uid", flat=True)) == first
    travel.until(workload, lambda: not kept.filter(vanished_at=None).exists())
    assert Pod.objects.filter(workload=workload, attempt=2).exclude(uid__in=first).count() >= 1
    assert [
        each["metadata"]["labels"]["muster.dev/attempt"] for each in travel.there(workload)
    ] == ["2"] * len(travel.there(workload))


def test_one_that_fails_says_which_pod_did(framework: Framework | None, travel: Journey) -> None:
    if travel.place.operators and travel.is_trainjob:
        pytest.skip("a runtime of the cluster decides how often a TrainJob's pods are tried again")
    workload = travel.submit(travel.spec(framework, WRONG, lifecycle=travel.once()))
    travel.standin.stage = Stage.UP
    if not travel.place.pods:
        travel.until_status(workload, Status.RUNNING)
        travel.standin.stage = Stage.BROKEN
    travel.until_status(workload, Status.FAILED)
    travel.until(workload, lambda: Pod.objects.filter(workload=workload, phase="Failed").exists())
    diagnosis = diagnose_workload(workload, travel.by)
    assert diagnosis is not None
    assert diagnosis.pod is not None
    assert diagnosis.pod.phase == "Failed"
    title = build_pod_view(diagnosis.pod.data).title
    assert title.lower() in diagnosis.sentence.lower() or diagnosis.sentence.startswith(
        "The pod failed"
    )
    assert f"exit code {CODE}" in diagnosis.sentence
    if travel.place.pods:
        travel.until(workload, lambda: "no such data" in line(workload, travel))


def test_stopped_it_leaves_nothing_in_the_cluster_and_can_run_again(
    framework: Framework | None, travel: Journey
) -> None:
    workload = running(travel, framework)
    assert actions.stop(workload, travel.by)
    travel.until_status(workload, Status.STOPPED)
    travel.until(workload, lambda: travel.everything() == [])
    assert (workload.running_pods, workload.next_try_at, workload.trouble) == (0, None, "")
    assert actions.run(workload, travel.by)
    travel.until(workload, lambda: workload.status == Status.RUNNING and workload.attempt == 2)


def test_deleted_behind_our_back_it_is_stopped_and_not_failed(
    framework: Framework | None, travel: Journey
) -> None:
    workload = running(travel, framework)
    path = f"{JOB_KINDS[workload.job_kind].path(travel.namespace)}/{workload.name}"
    assert travel.api.delete(path, {"propagationPolicy": "Background"}).status in (200, 202)
    travel.until_status(workload, Status.STOPPED)
    assert workload.reason == "Its job was deleted in the cluster, and not by Muster."
    assert Status.FAILED not in moves(workload)
    travel.until(workload, lambda: travel.everything() == [])


def test_deleted_it_is_gone_with_its_volume_and_its_name_is_free(
    framework: Framework | None, travel: Journey
) -> None:
    spec = travel.spec(framework, LONG)
    spec = replace(
        spec, setup=replace(spec.setup, volumes=(NewClaim(path="/scratch", size="1Mi"),))
    )
    workload = travel.submit(spec)
    travel.standin.stage = Stage.UP
    travel.until_status(workload, Status.RUNNING)
    claims = f"/api/v1/namespaces/{travel.namespace}/persistentvolumeclaims"
    assert len(travel.api.get(claims).ok()["items"]) == 1
    assert actions.remove(workload, travel.by)
    travel.until(workload, lambda: workload.released_at is not None)
    travel.until(workload, lambda: travel.everything() == [])
    other = travel.submit(spec)
    assert other.pk != workload.pk
    travel.until_status(other, Status.RUNNING)


def test_what_nobody_followed_is_found_by_asking(unfollowed_journey: Journey) -> None:
    travel = unfollowed_journey
    workload = travel.submit(travel.spec(None, HELLO))
    travel.standin.stage = Stage.DONE

    def is_completed() -> bool:
        tasks.poll(str(travel.cluster.pk))
        return workload.status == Status.COMPLETED

    travel.until(workload, is_completed)
    travel.cluster.refresh_from_db()
    assert (travel.cluster.trouble, travel.cluster.unreachable_since) == ("", None)
