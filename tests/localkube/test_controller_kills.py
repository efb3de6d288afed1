"""The controllers' process is killed before any of their writes and starts again: the end is as if
nothing had happened.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from localkube.controllers import build_controllers
from localkube.lifecycle import DeleteOptions
from localkube.metadata import Object, name_of
from localkube.resources import JOBS, NAMESPACES, PODS, PYTORCHJOBS, SERVICES
from tests.localkube.stage import SPACE, Killed, Stage, conditions, pytorchjob, replica

Scenario = Callable[["Play"], None]
TIMES = ("startTime", "completionTime", "lastReconcileTime")


class Play:
    """Plays a scenario; after `writes` writes of the controllers their process dies, once, and a
    new one takes over.
    """

    def __init__(self, stage: Stage, writes: int) -> None:
        self.stage = stage
        self.left: int | None = writes

    def settle(self, seconds: float = 0) -> None:
        self.stage.store.left = self.left
        try:
            self.stage.settle(seconds)
            self.left = self.stage.store.left
        except Killed:
            self.left = None
            self.stage.loop.stop()
            self.stage.store.close()
            self.stage.open()
            self.stage.settle()
        self.stage.store.left = None

    @property
    def was_killed(self) -> bool:
        return self.left is None

    def make(self, resource: object, obj: Object) -> None:
        self.stage.objects.create(resource, SPACE, obj)  # type: ignore[arg-type]
        self.settle()

    def report(self, pod: str, phase: str, **status: object) -> None:
        self.stage.report(pod, phase, settle=False, **status)
        self.settle()

    def kubelet(self) -> None:
        """Ends the pods that are to go."""
        for pod in self.stage.objects.list(PODS, SPACE):
            if pod["metadata"].get("deletionTimestamp"):
                self.stage.objects.delete(PODS, SPACE, name_of(pod), DeleteOptions(grace_seconds=0))
        self.settle()

    def outcome(self) -> Object:
        """Everything but times, uids and random names."""
        found: Object = {
            "pods": sorted(
                (re.sub(r"-\w{5}$", "", name), phase) for name, phase in self.stage.phases().items()
            )
        }
        found["services"] = self.stage.names(SERVICES)
        found["namespace"] = bool(self.stage.objects.find(NAMESPACES, "", SPACE))
        for resource in (JOBS, PYTORCHJOBS):
            for job in self.stage.objects.list(resource, SPACE):
                status = {
                    key: value
                    for key, value in job.get("status", {}).items()
                    if key not in (*TIMES, "conditions")
                }
                found[name_of(job)] = (conditions(job), status)
        return found


def exit_code(code: int, container: str) -> Object:
    return {
        "containerStatuses": [
            {"name": container, "restartCount": 0, "state": {"terminated": {"exitCode": code}}}
        ]
    }


def training(play: Play) -> None:
    policy = {"cleanPodPolicy": "Running", "backoffLimit": 2}
    play.make(
        PYTORCHJOBS,
        pytorchjob("t", {"Master": replica(), "Worker": replica(2, "ExitCode")}, policy),
    )
    for pod in ("t-master-0", "t-worker-0", "t-worker-1"):
        play.report(pod, "Running")
    play.report("t-worker-0", "Failed", **exit_code(137, "pytorch"))
    play.report("t-worker-0", "Running")
    play.report("t-worker-1", "Failed", reason="NodeShutdown")
    play.report("t-worker-1", "Running")
    play.report("t-master-0", "Succeeded", **exit_code(0, "pytorch"))
    play.kubelet()


def limit(play: Play) -> None:
    play.make(
        PYTORCHJOBS,
        pytorchjob(
            "t", {"Master": replica(), "Worker": replica(1, "ExitCode")}, {"backoffLimit": 2}
        ),
    )
    play.report("t-master-0", "Running")
    play.report("t-worker-0", "Failed", **exit_code(137, "pytorch"))
    play.report("t-worker-0", "Failed", **exit_code(137, "pytorch"))
    play.kubelet()


def set_suspended(play: Play, is_suspended: bool) -> None:
    play.stage.objects.modify(
        PYTORCHJOBS,
        SPACE,
        "t",
        lambda job: job["spec"].update(runPolicy={"suspend": is_suspended}),
    )


def suspension(play: Play) -> None:
    play.make(PYTORCHJOBS, pytorchjob("t", {"Master": replica(), "Worker": replica()}))
    play.report("t-master-0", "Running")
    for value in (True, False):
        set_suspended(play, value)
        play.settle()
        play.kubelet()
    play.report("t-master-0", "Running")


def batch(play: Play) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}
    spec = {
        "template": template,
        "completions": 3,
        "parallelism": 2,
        "completionMode": "Indexed",
        "backoffLimit": 3,
    }
    play.make(JOBS, {"metadata": {"name": "b"}, "spec": spec})
    codes = iter([1, 0, 0, 137, 0])
    while waiting := [name for name, phase in play.stage.phases().items() if phase == "Pending"]:
        code = next(codes)
        shut = {"reason": "NodeShutdown"} if code == 137 else {}
        play.report(
            waiting[0], "Succeeded" if code == 0 else "Failed", **exit_code(code, "main"), **shut
        )
        play.settle(10)
    play.kubelet()


def index_limits(play: Play) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}
    indexed = {"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1}
    play.make(JOBS, {"metadata": {"name": "b"}, "spec": {"template": template, **indexed}})
    while waiting := [name for name, phase in play.stage.phases().items() if phase == "Pending"]:
        # Index 0 fails as often as it may, index 1 runs while it waits for its next try.
        code = 1 if waiting[0].startswith("b-0-") else 0
        phase = "Succeeded" if code == 0 else "Failed"
        play.report(waiting[0], phase, **exit_code(code, "main"))
        play.settle(10)
    play.kubelet()


def deletion(play: Play) -> None:
    play.make(PYTORCHJOBS, pytorchjob("t", {"Master": replica(), "Worker": replica()}))
    play.report("t-master-0", "Running")
    play.stage.objects.delete(
        PYTORCHJOBS, SPACE, "t", DeleteOptions(propagation_policy="Foreground")
    )
    play.settle()
    play.kubelet()


def namespace(play: Play) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}
    play.make(JOBS, {"metadata": {"name": "b"}, "spec": {"template": template}})
    play.make(PYTORCHJOBS, pytorchjob("t", {"Master": replica()}))
    play.report("t-master-0", "Running")
    play.stage.objects.delete(NAMESPACES, "", SPACE)
    play.settle()
    play.kubelet()


@pytest.mark.parametrize(
    "scenario",
    [training, limit, suspension, batch, index_limits, deletion, namespace],
    ids=lambda each: each.__name__,
)
def test_a_kill_before_any_write_changes_nothing_in_the_end(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, writes, done = None, -1, False
    while not done:
        stage = Stage(tmp_path / f"{writes}.db", monkeypatch, build_controllers)
        play = Play(stage, 10_000 if writes < 0 else writes)
        scenario(play)
        outcome, killed = play.outcome(), play.was_killed
        stage.close()
        expected = expected or outcome
        assert outcome == expected, f"killed before write {writes}"
        done = writes >= 0 and not killed
        writes += 1
    assert writes > 10
