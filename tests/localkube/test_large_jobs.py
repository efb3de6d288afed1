"""Large jobs: what a change costs does not grow with its siblings, and others get their turn.

Work is counted, in objects that are decoded and written, so nothing here depends on the machine.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from localkube.controllers import build_controllers
from localkube.controllers.job_rules import COMPLETION_INDEX
from localkube.controllers.loop import ControllerLoop, Key, Trigger, WorkQueue
from localkube.lifecycle import DeleteOptions, PropagationPolicy
from localkube.metadata import Object
from localkube.objects import Objects
from localkube.options import HOLD_ANNOTATION
from localkube.resources import CONFIGMAPS, EVENTS, JOBS, NAMESPACES, PODS, PYTORCHJOBS, SERVICES
from localkube.resources.resource import Resource
from localkube.scheduler import Scheduler
from localkube.store import Change, Record, Store
from localkube.tallies import Tally
from localkube.turns import TurnWatch
from tests.localkube.stage import SPACE, Stage, pytorchjob, replica, status_of

MAX_PODS = 1000


class Work:
    """Counts the objects that are decoded and written, by kind, and the children looked at."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.decoded = self.looked_at = 0
        self.written: Counter[str] = Counter()
        decode, put, iterate = Record.decode, Store.put_object, Store.iterate_controlled

        def count_decode(record: Record) -> Object:
            self.decoded += 1
            return decode(record)

        def count_put(store: Store, key: str, obj: Object) -> Record:
            self.written[key] += 1
            return put(store, key, obj)

        def count_looks(
            store: Store, key: str, uid: str, wanted: Callable[[Tally], bool]
        ) -> Iterator[Record]:
            for record in iterate(store, key, uid, wanted):
                self.looked_at += 1
                yield record

        patch.setattr(Store, "iterate_controlled", count_looks)
        patch.setattr(Record, "decode", count_decode)
        patch.setattr(Store, "put_object", count_put)

    def start(self) -> None:
        self.decoded = self.looked_at = 0
        self.written.clear()


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(
        tmp_path / "state.db",
        monkeypatch,
        lambda objects: [Scheduler(objects), *build_controllers(objects, max_pods=MAX_PODS)],
    )
    yield made
    made.close()


def submit(stage: Stage, workers: int, name: str = "j", restart: str | None = None) -> None:
    """Make a job whose pods no scheduler places, and let all of its pods be made."""
    worker = replica(workers, restart)
    worker["template"]["metadata"] = {"annotations": {HOLD_ANNOTATION: "true"}}
    stage.objects.create(PYTORCHJOBS, SPACE, pytorchjob(name, {"Worker": worker}))
    stage.settle_for_good()


def measure_pod_event(stage: Stage, work: Work, workers: int) -> tuple[int, int]:
    submit(stage, workers)
    stage.report("j-worker-1", "Running", settle=False)
    stage.settle_for_good()
    # Past the pause in which the status of a large job is not written again.
    stage.settle(10)
    work.start()
    stage.report("j-worker-2", "Running", settle=False)
    stage.settle_for_good()
    return work.decoded, work.written.total()


def measure_at(folder: Path, patch: pytest.MonkeyPatch, workers: int) -> tuple[int, int]:
    folder.mkdir()
    with patch.context() as inner:
        made = Stage(
            folder / "state.db",
            inner,
            lambda objects: [Scheduler(objects), *build_controllers(objects, max_pods=MAX_PODS)],
        )
        try:
            return measure_pod_event(made, Work(inner), workers)
        finally:
            made.close()


def test_a_pod_event_costs_the_same_among_ten_and_among_a_thousand_siblings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = measure_at(tmp_path / "few", monkeypatch, 10)
    many = measure_at(tmp_path / "many", monkeypatch, 1000)
    assert many[0] <= few[0] + 3
    assert many[1] <= few[1] + 1


def test_five_hundred_pods_are_made_and_removed_in_linear_work(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work(monkeypatch)
    submit(stage, 500)
    assert len(stage.names(PODS)) == len(stage.names(SERVICES)) == 500
    assert work.written["pods"] + work.written["services"] == 1000
    # Ten events each for pods and services, and the combined ones.
    assert work.written["events"] <= 100
    assert work.decoded <= 10 * 500
    work.start()
    options = DeleteOptions(propagation_policy="Background")
    stage.objects.delete(PYTORCHJOBS, SPACE, "j", options)
    stage.settle_for_good()
    assert stage.names(PODS) == stage.names(SERVICES) == []
    assert work.decoded <= 15 * 1000


def test_indexed_pods_are_made_and_replaced_in_linear_work(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work(monkeypatch)
    pod = replica()["template"] | {"metadata": {"annotations": {HOLD_ANNOTATION: "true"}}}
    pod["spec"]["restartPolicy"] = "Never"
    spec = {"completions": 400, "parallelism": 400, "completionMode": "Indexed", "template": pod}
    stage.objects.create(JOBS, SPACE, {"metadata": {"name": "b"}, "spec": spec})
    stage.settle_for_good()
    names = stage.names(PODS)
    assert len(names) == 400
    for name in names[::2]:
        stage.report(name, "Failed", reason="NodeShutdown", settle=False)
    stage.settle_for_good()
    pods = stage.objects.list(PODS, SPACE)
    indexes = sorted(int(pod["metadata"]["labels"][COMPLETION_INDEX]) for pod in pods)
    assert indexes == list(range(400))
    assert work.looked_at <= 5 * 400


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
@pytest.mark.parametrize("workers", [60, 200])
def test_waiting_pods_are_not_written_to_while_their_job_is_deleted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, workers: int, policy: PropagationPolicy
) -> None:
    worker = replica(workers)
    container = worker["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "100000"}}
    stage.objects.create(PYTORCHJOBS, SPACE, pytorchjob("j", {"Worker": worker}))
    stage.settle_for_good()
    assert len(stage.names(PODS)) == workers
    work = Work(monkeypatch)
    stage.objects.delete(PYTORCHJOBS, SPACE, "j", DeleteOptions(propagation_policy=policy))
    stage.settle_for_good()
    assert stage.names(PODS) == stage.names(PYTORCHJOBS) == []
    assert work.written["pods"] <= workers // 4
    assert work.written["podgroups.scheduling.run.ai"] <= 2


def test_a_replaced_pod_does_not_cost_its_siblings(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(stage, 500)
    work = Work(monkeypatch)
    stage.delete(PODS, "j-worker-250")
    stage.settle_for_good()
    assert work.decoded <= 60
    assert len(stage.names(PODS)) == 500


def test_the_status_of_a_large_job_follows_its_counts_at_a_bounded_rate(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(stage, 200)
    work = Work(monkeypatch)
    for index in range(100):
        stage.report(f"j-worker-{index}", "Running", settle=False)
        stage.loop.run_until_idle()
    assert work.written["pytorchjobs.kubeflow.org"] <= 5
    stage.settle_for_good()
    assert status_of(stage, "j")["replicaStatuses"]["Worker"]["active"] == 100


def shrink(stage: Stage, workers: int) -> None:
    def change(job: Object) -> None:
        job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = workers

    stage.objects.modify(PYTORCHJOBS, SPACE, "j", change)
    stage.settle_for_good()
    stage.confirm_deletions()
    stage.settle_for_good()


@pytest.mark.parametrize("surplus", [10, 40])
def test_a_pod_that_a_shrunk_job_loses_is_made_again(stage: Stage, surplus: int) -> None:
    submit(stage, 20 + surplus)
    shrink(stage, 20)
    stage.delete(PODS, "j-worker-5")
    stage.confirm_deletions()
    stage.settle_for_good()
    assert sorted(stage.names(PODS)) == sorted(f"j-worker-{index}" for index in range(20))


def test_a_shrunk_job_that_grows_again_has_all_its_pods(stage: Stage) -> None:
    submit(stage, 60)
    shrink(stage, 20)
    shrink(stage, 60)
    assert len(stage.names(PODS)) == 60


def test_a_pod_whose_index_is_not_written_as_one_is_no_replica(stage: Stage) -> None:
    submit(stage, 3)
    pod = stage.get(PODS, "j-worker-0")
    kept = {key: pod["metadata"][key] for key in ("ownerReferences", "labels", "annotations")}
    container = {"name": "pytorch", "image": "train:1"}
    stage.create(
        PODS,
        {"metadata": {"name": "j-worker-00"} | kept, "spec": {"containers": [container]}},
    )
    stage.report("j-worker-00", "Running")
    assert "active" not in status_of(stage, "j")["replicaStatuses"]["Worker"]
    stage.delete(PODS, "j-worker-1", grace_seconds=0)
    stage.settle_for_good()
    assert "j-worker-1" in stage.names(PODS)


@pytest.mark.parametrize("failed", [8, 9, 20])
@pytest.mark.parametrize("reason", ["killed", "shut down"])
def test_a_job_whose_pods_fail_all_at_once_restarts_all(
    stage: Stage, failed: int, reason: str
) -> None:
    submit(stage, 20, restart="ExitCode")
    for index in range(20):
        stage.report(f"j-worker-{index}", "Running", settle=False)
    stage.settle_for_good()
    terminated = {"exitCode": 137, "reason": "Error", "finishedAt": "2026-11-21T03:00:00Z"}
    state = {"name": "pytorch", "restartCount": 0, "state": {"terminated": terminated}}
    status: Object = (
        {"containerStatuses": [state]} if reason == "killed" else {"reason": "NodeShutdown"}
    )
    for index in range(failed):
        stage.report(f"j-worker-{index}", "Failed", settle=False, **status)
    stage.settle_for_good()
    assert not is_condition_true(stage, "Failed")
    stage.confirm_deletions()
    stage.settle_for_good()
    assert len(stage.names(PODS)) == 20
    assert set(stage.phases().values()) == ({"Pending"} if failed == 20 else {"Pending", "Running"})


def test_a_job_with_many_pods_that_have_failed_for_good_fails(stage: Stage) -> None:
    submit(stage, 20, restart="Never")
    for index in range(20):
        stage.report(f"j-worker-{index}", "Failed", settle=False)
    stage.settle_for_good()
    assert is_condition_true(stage, "Failed")


def is_condition_true(stage: Stage, type: str) -> bool:
    return any(
        condition["type"] == type and condition["status"] == "True"
        for condition in status_of(stage, "j")["conditions"]
    )


def test_failed_pods_of_no_replica_do_not_hide_those_of_replicas(stage: Stage) -> None:
    submit(stage, 2, restart="ExitCode")
    pod = stage.get(PODS, "j-worker-0")
    kept = {key: pod["metadata"][key] for key in ("ownerReferences", "labels", "annotations")}
    container = {"name": "pytorch", "image": "train:1"}
    for index in range(10):
        name = f"j-helper-{index}"
        stage.objects.create(
            PODS, SPACE, {"metadata": {"name": name} | kept, "spec": {"containers": [container]}}
        )
        stage.report(name, "Failed", settle=False)
    stage.settle_for_good()
    stage.shut_down("j-worker-1")
    stage.settle_for_good()
    stage.confirm_deletions()
    stage.settle_for_good()
    assert stage.phases()["j-worker-1"] == "Pending"


def test_a_service_that_cannot_be_made_is_tried_again_after_a_pause(stage: Stage) -> None:
    ports = {"ports": [{"port": 80}]}
    stage.create(SERVICES, {"metadata": {"name": "j-master-0"}, "spec": ports})
    replicas = {"Master": replica(1), "Worker": replica(2)}
    stage.create(PYTORCHJOBS, pytorchjob("j", replicas))
    assert stage.names(PODS) == []
    assert "FailedCreateService" in stage.reasons("PyTorchJob")
    stage.delete(SERVICES, "j-master-0")
    stage.settle(10)
    assert len(stage.names(PODS)) == 3


def test_a_large_gang_that_does_not_fit_is_told_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work(monkeypatch)
    stage.objects.create(PYTORCHJOBS, SPACE, pytorchjob("j", {"Worker": replica(300)}))
    stage.settle_for_good()
    pods = stage.objects.list(PODS, SPACE)
    assert len(pods) == 300
    assert {pod["status"]["conditions"][0]["reason"] for pod in pods} == {"Unschedulable"}
    # Each pod is made, and told of at most two subjects: not all there, and no room.
    assert work.written["pods"] <= 3 * 300 + 50


def test_a_large_batch_job_counts_each_pod_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = {
        "metadata": {"annotations": {HOLD_ANNOTATION: "true"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]},
    }
    spec = {"template": template, "completions": 300, "parallelism": 300}
    stage.objects.create(JOBS, SPACE, {"metadata": {"name": "b"}, "spec": spec})
    stage.settle_for_good()
    work = Work(monkeypatch)
    for pod in stage.names(PODS):
        stage.report(pod, "Succeeded", settle=False)
    stage.settle_for_good()
    assert stage.get(JOBS, "b")["status"]["succeeded"] == 300
    assert len(stage.names(PODS)) == 300
    assert work.decoded <= 20 * 300


def test_an_emptied_namespace_counts_what_is_left(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index in range(300):
        stage.objects.create(CONFIGMAPS, SPACE, {"metadata": {"name": f"c{index}"}})
    stage.settle_for_good()
    work = Work(monkeypatch)
    stage.objects.delete(NAMESPACES, "", SPACE)
    stage.settle_for_good()
    assert stage.objects.find(NAMESPACES, "", SPACE) is None
    assert work.decoded <= 10 * 300


class Named:
    """A controller of which only the name counts."""

    def __init__(self, name: str) -> None:
        self.name = name

    def triggers(self) -> Mapping[Resource, Trigger]:
        return {}

    def reconcile(self, key: Key) -> float | None:
        return None


def test_ten_thousand_keys_of_one_do_not_stand_before_the_first_of_another() -> None:
    queue, busy, other = WorkQueue(), Named("busy"), Named("other")
    for index in range(10_000):
        queue.add((busy, ("big", str(index))))
    queue.add((busy, ("small", "mine")))
    queue.add((other, ("big", "its")))
    first = [take_next_key(queue, 0) for _ in range(3)]
    assert {("small", "mine"), ("big", "its")} <= set(first)


def test_a_key_with_long_turns_leaves_as_much_time_to_the_others() -> None:
    queue, slow, quick = WorkQueue(), Named("slow"), Named("quick")
    for index in range(100):
        queue.add((slow, ("", str(index))))
        queue.add((quick, ("big", str(index))))
    spent: Counter[str] = Counter()
    for _ in range(80):
        item = queue.pop()
        milliseconds = 20 if item[0].name == "slow" else 1
        spent[item[0].name] += milliseconds
        queue.charge(item, milliseconds / 1000)
    assert abs(spent["slow"] - spent["quick"]) <= 20


def test_a_lane_that_is_empty_now_and_then_does_not_come_before_the_others() -> None:
    queue, busy, brief = WorkQueue(), Named("busy"), Named("brief")
    for index in range(100):
        queue.add((busy, ("", str(index))))
    spent: Counter[str] = Counter()
    for _ in range(100):
        queue.add((brief, ("", "one")))
        item = queue.pop()
        spent[item[0].name] += 1
        queue.charge(item, 0.01)
    assert abs(spent["busy"] - spent["brief"]) <= 2


def take_next_key(queue: WorkQueue, seconds: float) -> Key:
    """Take the next key, whose turn lasts so long."""
    item = queue.pop()
    queue.charge(item, seconds)
    return item[1]


def test_the_watch_says_who_held_the_loop_and_over_what(caplog: pytest.LogCaptureFixture) -> None:
    passed = 0.0
    turns = TurnWatch(elapsed=lambda: passed)
    with caplog.at_level(logging.WARNING):
        for seconds in (0.01, 0.2, 0.3):
            with turns.measure("tester", "team/j"):
                passed += seconds
    (line,) = caplog.messages
    assert line.startswith("tester held the loop for 200 ms over team/j, ")
    figures = turns.figures["tester"]
    assert (figures.turns, figures.late_turns, figures.longest_subject) == (3, 2, "team/j")


def test_a_change_that_a_controller_cannot_read_fails_nobody(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    class Blind(Named):
        def triggers(self) -> Mapping[Resource, Trigger]:
            return {EVENTS: self.fail, CONFIGMAPS: self.fail}

        def fail(self, change: Change) -> list[Key]:
            raise ValueError("no eyes")

    objects: Objects = stage.objects
    loop = ControllerLoop(objects)
    objects.create(CONFIGMAPS, SPACE, {"metadata": {"name": "before"}})
    loop.add_controller(Blind("blind"))
    objects.create(CONFIGMAPS, SPACE, {"metadata": {"name": "after"}})
    assert {"before", "after"} <= set(stage.names(CONFIGMAPS))
    assert "blind could not read configmaps team/after" in caplog.text
    loop.stop()
    objects.delete(CONFIGMAPS, SPACE, "after", DeleteOptions())
