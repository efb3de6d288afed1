"""Elastic workloads that grow and shrink in a real embedded cluster, step by step."""

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from clusters import cluster_checks, project_provisioning
from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.kube import calls
from clusters.kube.resources import PODS
from clusters.models import Node
from tests.cast import a_spec
from tests.cluster import LocalKube
from tests.clusters.relay import Relay
from tests.conformance.api import eventually
from tests.workloads.acting import SLEEP, Acting
from tests.workloads.waiting_rows import add_workload
from workloads import actions, journal, tasks
from workloads.api.workload_serializers import serialize_history_record
from workloads.elastic import cluster_state
from workloads.elastic.cluster_state import MOST_NODES
from workloads.models import Attempt, Event, Pod, Workload
from workloads.queries import EventWords
from workloads.specs import Compute, Configuration, ElasticSettings, Environment, Gpus, Setup

pytestmark = pytest.mark.pods

A_GPU = Compute(Gpus(1), cpu_request="0.05", memory_request="50M")


class Growing:
    """A cluster of four GPUs, and the elastic workload of a test in it."""

    def __init__(self, acting: Acting) -> None:
        self.acting = acting
        self.cluster = acting.cast.cluster
        cluster_checks.update_capabilities(acting.client, self.cluster)
        self.cluster.refresh_from_db()

    def set_quota(self, gpus: int | None) -> None:
        self.acting.project.gpu_quota = gpus
        self.acting.project.save()

    def remove_kai(self) -> None:
        """Let pods name the default scheduler; nobody enforces quotas then."""
        # The embedded scheduler looks at the Queue that pods name, whoever is to schedule them.
        project_provisioning.provision_project(self.acting.project)
        self.acting.project.refresh_from_db()
        served = self.cluster.capabilities["served"]
        self.cluster.capabilities["served"] = [each for each in served if "run.ai" not in each]
        self.cluster.save()
        assert not self.cluster.can.has_kai

    def start(self, workers: int = 1) -> Workload:
        """Submit so many workers, which may become four, and wait until they run."""
        setup = Setup(Environment(image="any", command=SLEEP), A_GPU)
        spec = a_spec(
            self.acting.project,
            f"grows-{secrets.token_hex(3)}",
            setup=setup,
            workers=workers,
            configuration=Configuration.WORKERS_ONLY,
            elastic=ElasticSettings(1, 4),
        )
        workload = journal.create_workload(
            spec, project=self.acting.project, user=self.acting.cast.bob
        )
        tasks.launch(str(workload.pk))
        return self.acting.until(workload, "Running")

    def turn(self) -> None:
        """See the cluster as it is, and let the controller have its turn."""
        tasks.heartbeat(str(self.cluster.pk))
        self.acting.poll()
        tasks.scale(str(self.cluster.pk))

    def until_pods(self, workload: Workload, running: int, requested: int) -> None:
        """Give the controller turns until so many pods run and so many are wanted."""

        def has_pods() -> bool:
            self.turn()
            workload.refresh_from_db()
            return (workload.running_pods, workload.requested_pods) == (running, requested)

        eventually(has_pods)

    def workers(self, workload: Workload) -> int:
        """How many workers the job wants in the cluster."""
        [job] = self.acting.objects(workload, PYTORCHJOBS)
        return int(job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"])

    def set_workers(self, workload: Workload, count: int) -> None:
        """Change the number in the cluster, as a person does it with kubectl."""
        change = {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": count}}}}
        namespace = self.acting.project.namespace
        calls.patch(self.acting.client, PYTORCHJOBS, workload.name, change, namespace=namespace)

    def hold_gpu(self, name: str) -> dict[str, Any]:
        """Make a pod that is nobody's workload and wants a GPU."""
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {
                        "name": "main",
                        "image": "any",
                        "command": list(SLEEP),
                        "resources": {"limits": {"nvidia.com/gpu": "1"}},
                    }
                ],
            },
        }
        namespace = self.acting.project.namespace
        return calls.create(self.acting.client, PODS, pod, namespace=namespace)

    def delete_pod(self, name: str) -> None:
        calls.delete(self.acting.client, PODS, name, namespace=self.acting.project.namespace)


@pytest.fixture
def growing(acting: Acting, settings: Any, requested_steps: object) -> Growing:
    settings.OPTIONS = settings.OPTIONS.model_copy(
        update={"grow_after_seconds": 0, "shrink_after_seconds": 1}
    )
    growing = Growing(acting)
    growing.set_quota(None)
    growing.remove_kai()
    return growing


@pytest.fixture
def growing_with_kai(acting: Acting, settings: Any, requested_steps: object) -> Growing:
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"grow_after_seconds": 0})
    return Growing(acting)


def scale_events(workload: Workload) -> Sequence[tuple[Any, ...]]:
    rows = workload.events.filter(pods_after__isnull=False).order_by("at", "id")
    return list(rows.values_list("reason", "pods_before", "pods_after"))


def attempt_of(workload: Workload) -> Attempt:
    return workload.attempts.get(number=workload.attempt)


def test_it_grows_from_one_to_four_and_gives_up_what_waits(growing: Growing) -> None:
    workload = growing.start()
    growing.until_pods(workload, 4, 4)
    assert (growing.workers(workload), workload.status) == (4, "Running")
    assert scale_events(workload) == [("ScaledUp", 1, 4)]
    raised = workload.events.get(reason="ScaledUp")
    assert (raised.kind, raised.by, raised.text) == (
        Event.Kind.SCALE,
        None,
        "Muster raised it from 1 to 4 pods: quota and nodes have had room.",
    )

    # Another pod has waited longer for the GPU of the last worker, which comes back and waits.
    growing.hold_gpu("holder")
    growing.delete_pod(f"{workload.name}-worker-3")
    growing.until_pods(workload, 3, 3)
    assert workload.status == "Running"
    assert scale_events(workload) == [("ScaledUp", 1, 4), ("ScaledDown", 4, 3)]
    lowered = workload.events.get(reason="ScaledDown")
    assert "lowered it from 4 to 3 pods: the others had waited for a node" in lowered.text

    growing.delete_pod("holder")
    growing.until_pods(workload, 4, 4)
    assert scale_events(workload)[2:] == [("ScaledUp", 3, 4)]


def test_what_somebody_else_set_stays_until_the_next_run(growing: Growing) -> None:
    workload = growing.start(2)
    growing.set_workers(workload, 3)
    growing.until_pods(workload, 3, 3)
    for _ in range(3):
        growing.turn()
    assert growing.workers(workload) == 3
    assert scale_events(workload) == [("ScaledByOthers", 2, 3)]
    assert attempt_of(workload).is_scaled_by_others

    growing.set_workers(workload, 2)
    growing.until_pods(workload, 2, 2)
    growing.turn()
    assert growing.workers(workload) == 2

    bob = growing.acting.cast.bob
    growing.acting.logs_are_kept(workload)
    actions.stop(workload, bob)
    growing.acting.repeat(tasks.stop, workload, lambda: workload.status == "Stopped")
    actions.run(workload, bob)
    growing.acting.repeat(tasks.launch, workload, lambda: workload.job_uid)
    growing.until_pods(workload, 4, 4)
    assert scale_events(workload)[1:] == [("ScaledUp", 2, 4)]


def test_an_edit_between_reading_and_writing_wins(growing: Growing) -> None:
    workload = growing.start(2)
    assert journal.plan_scaling(workload.pk, 1, 2, 4)
    growing.set_workers(workload, 3)
    growing.turn()
    assert growing.workers(workload) == 3
    assert scale_events(workload) == [("ScaledByOthers", 2, 3)]
    assert attempt_of(workload).workers_wanted == 2


@pytest.mark.parametrize("is_in_cluster", [False, True])
def test_a_change_that_was_cut_off_is_finished_once(
    growing: Growing, *, is_in_cluster: bool
) -> None:
    """Killed before the cluster was asked, or after it and before that was written down."""
    workload = growing.start(1)
    assert journal.plan_scaling(workload.pk, 1, 1, 3)
    assert not journal.plan_scaling(workload.pk, 1, 1, 4)
    if is_in_cluster:
        growing.set_workers(workload, 3)
    growing.turn()
    assert growing.workers(workload) == 3
    assert scale_events(workload) == [("ScaledUp", 1, 3)]
    row = attempt_of(workload)
    assert (row.workers_set, row.workers_wanted) == (3, 3)
    growing.until_pods(workload, 4, 4)
    assert scale_events(workload) == [("ScaledUp", 1, 3), ("ScaledUp", 3, 4)]


def test_a_stop_during_growth_wins(growing: Growing) -> None:
    workload = growing.start(1)
    assert journal.plan_scaling(workload.pk, 1, 1, 4)
    growing.acting.logs_are_kept(workload)
    actions.stop(workload, growing.acting.cast.bob)
    growing.turn()
    assert growing.workers(workload) == 1
    assert scale_events(workload) == []
    assert not journal.record_scaling(
        workload.pk, 1, growing.acting.jobs(workload)[0], "", timedelta(0)
    )
    growing.acting.repeat(tasks.stop, workload, lambda: workload.status == "Stopped")
    assert not journal.plan_scaling(workload.pk, 1, 1, 4)


def test_a_refused_change_is_said_once_and_left_alone_for_a_while(growing: Growing) -> None:
    workload = growing.start(1)
    for _ in range(2):
        assert journal.plan_scaling(workload.pk, 1, 1, 4)
        journal.cancel_scaling(workload.pk, 1, "It may not.", timedelta(minutes=10))
    assert workload.events.filter(reason="ScaleRefused", is_warning=True).count() == 1
    for _ in range(3):
        growing.turn()
    assert growing.workers(workload) == 1


def test_quota_bounds_growth_where_nobody_takes_anything_back(growing: Growing) -> None:
    growing.set_quota(2)
    workload = growing.start(1)
    growing.until_pods(workload, 2, 2)
    for _ in range(3):
        growing.turn()
    assert growing.workers(workload) == 2


def test_workloads_that_are_not_elastic_are_left_alone(growing: Growing) -> None:
    workload = growing.acting.submit_distributed("fixed", configuration=Configuration.WORKERS_ONLY)
    tasks.launch(str(workload.pk))
    growing.acting.until(workload, "Running")
    for _ in range(3):
        growing.turn()
    assert growing.workers(workload) == 1
    assert attempt_of(workload).workers_set is None


def test_with_kai_it_grows_over_its_quota(growing_with_kai: Growing) -> None:
    growing_with_kai.set_quota(1)
    workload = growing_with_kai.start(1)
    growing_with_kai.until_pods(workload, 4, 4)
    assert scale_events(workload) == [("ScaledUp", 1, 4)]


def test_history_says_how_many_pods_there_were_and_are(growing: Growing) -> None:
    workload = growing.start(1)
    growing.until_pods(workload, 4, 4)
    raised = workload.events.get(reason="ScaledUp")
    record = serialize_history_record(raised, workload, EventWords(raised.text))
    assert record["meta"]["type"] == "Event"
    assert record["spec"]["event"]["reason"] == "ScaledUp"
    assert record["spec"]["scale"] == {"podsBefore": 1, "podsAfter": 4}


def test_a_plan_that_is_too_old_is_dropped_and_chosen_anew(growing: Growing) -> None:
    workload = growing.start(1)
    assert journal.plan_scaling(workload.pk, 1, 1, 3)
    Attempt.objects.update(scale_after=timezone.now())
    growing.turn()
    assert growing.workers(workload) == 1
    row = attempt_of(workload)
    assert (row.workers_set, row.workers_wanted, row.scale_after) == (1, 1, None)
    assert scale_events(workload) == []
    growing.until_pods(workload, 4, 4)
    assert scale_events(workload) == [("ScaledUp", 1, 4)]


@pytest.mark.parametrize(("found", "reason"), [(3, "ScaledUp"), (2, "ScaledByOthers")])
def test_what_the_cluster_has_of_a_plan_that_is_too_old_is_written_down(
    growing: Growing, found: int, reason: str
) -> None:
    workload = growing.start(1)
    assert journal.plan_scaling(workload.pk, 1, 1, 3)
    Attempt.objects.update(scale_after=timezone.now())
    growing.set_workers(workload, found)
    growing.turn()
    assert growing.workers(workload) == found
    assert scale_events(workload) == [(reason, 1, found)]


def test_a_job_whose_change_fails_does_not_keep_others_from_theirs(
    growing: Growing, embedded_cluster: LocalKube, requested_steps: list[tuple[str, str]]
) -> None:
    first, second = growing.start(1), growing.start(1)
    for each in (first, second):
        assert journal.plan_scaling(each.pk, 1, 1, 2)

    def refuse(request: Any) -> tuple[int, str] | None:
        is_change = request.method == "PATCH" and f"/{first.name}/scale" in request.path
        return (500, "InternalError") if is_change else None

    with Relay(embedded_cluster.kubeconfig, refuse) as relay:
        relay.lead_cluster_here(growing.cluster)
        growing.turn()
    assert [growing.workers(each) for each in (first, second)] == [1, 2]
    assert attempt_of(first).workers_wanted == 2
    assert ("heartbeat", str(growing.cluster.pk)) in requested_steps


def test_of_a_cluster_that_is_too_large_it_is_said_once_that_nothing_grows(
    growing: Growing, caplog: pytest.LogCaptureFixture
) -> None:
    workload = growing.start(1)
    growing.acting.poll()
    tasks.heartbeat(str(growing.cluster.pk))
    names = [f"more-{number}" for number in range(MOST_NODES)]
    Node.objects.bulk_create(
        [Node(cluster=growing.cluster, name=name, is_ready=True) for name in names], batch_size=500
    )
    for _ in range(3):
        tasks.scale(str(growing.cluster.pk))
    assert growing.workers(workload) == 1
    event = workload.events.get(reason="NoGrowth")
    assert event.is_warning
    assert event.text == (
        "Muster does not raise its number of workers as long as its cluster has more than 5,000 "
        "nodes or 50,000 pods with a node, or a project of which too many wait at once: it does "
        "not look for room among so many."
    )
    logged = [each for each in caplog.messages if f"cluster {growing.cluster.pk} do not" in each]
    assert len(logged) == 1

    growing.until_pods(workload, 4, 4)
    assert [each for each in caplog.messages if "grow again" in each]


def test_nothing_grows_while_too_many_wait_to_read_any_of_their_project(
    growing: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = growing.start(1)
    growing.acting.poll()
    tasks.heartbeat(str(growing.cluster.pk))
    crowd = add_workload(growing.acting.cast.team_b, "crowd")
    pod = Pod.objects.get(workload=crowd)
    pod.pk, pod.uid, pod.name, pod.rank = None, "crowd-1", "crowd-1", 1
    pod.save()
    monkeypatch.setattr(cluster_state, "MOST_PODS", 1)
    tasks.scale(str(growing.cluster.pk))
    assert "too many wait at once" in workload.events.get(reason="NoGrowth").text
    assert attempt_of(workload).room_since is None

    # The first in line is read, and there is room for both.
    pod.delete()
    tasks.scale(str(growing.cluster.pk))
    assert attempt_of(workload).room_since is not None


def test_it_grows_though_the_clock_was_ahead_when_it_had_room(growing: Growing) -> None:
    workload = growing.start()
    ahead = timezone.now() + timedelta(days=1)
    Attempt.objects.update(scale_after=ahead, room_since=ahead)
    growing.until_pods(workload, 4, 4)
    assert scale_events(workload) == [("ScaledUp", 1, 4)]


def test_a_job_of_devices_that_nobody_counts_keeps_its_workers(growing: Growing) -> None:
    workload = growing.start()
    growing.acting.poll()
    pod = Pod.objects.get(workload=workload, vanished_at=None)
    pod.data["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/mig-1g.10gb": "1"}
    pod.save(update_fields=["data"])
    for _ in range(3):
        tasks.scale(str(growing.cluster.pk))
    assert growing.workers(workload) == 1
    [event] = workload.events.filter(reason="NoGrowth")
    assert event.text.startswith(
        "Muster does not raise its number of workers: they ask for nvidia.com/mig-1g.10gb"
    )


def test_a_job_in_a_queue_of_kueue_keeps_its_workers(growing: Growing) -> None:
    workload = growing.start()

    def label(value: str | None) -> None:
        change = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": value}}}
        namespace = growing.acting.project.namespace
        calls.patch(growing.acting.client, PYTORCHJOBS, workload.name, change, namespace=namespace)

    label("default")
    for _ in range(3):
        growing.turn()
    assert growing.workers(workload) == 1
    [event] = workload.events.filter(reason="NoGrowth")
    assert event.text.startswith(
        "Muster leaves its number of workers as it is: it is in a queue of Kueue"
    )
    label(None)
    growing.until_pods(workload, 4, 4)
