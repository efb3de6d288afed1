"""A pod's status from what its containers did: a table, and the shapes that a real cluster's pods
have.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from localkube import clock
from localkube.kubelet import pod_status, run_plan
from localkube.kubelet.attempts import Attempt, next_delay, restart_time
from localkube.kubelet.pod_status import NODE_SHUTDOWN, ContainerView, Verdict, Waiting
from localkube.kubelet.runs import UNSTARTED, Exited, Running, Starting
from localkube.metadata import Object, find_condition

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "recorded" / "pod"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def build_exited(code: int, reason: str = "", seconds: float = 600, message: str = "") -> Exited:
    return Exited(
        code,
        None,
        reason or ("Error" if code else "Completed"),
        message,
        BEGIN,
        BEGIN + timedelta(seconds=seconds),
    )


RUNS = Running(1, BEGIN, 2)
WAITS = Waiting("ContainerCreating")


def pod(
    *names: str, policy: str = "Always", inits: tuple[str, ...] = (), deleted: bool = False
) -> Object:
    made: Object = {
        "metadata": {"name": "p", "namespace": "team-a", "uid": "u-1"},
        "spec": {
            "restartPolicy": policy,
            "containers": [{"name": name, "image": "train:1"} for name in names],
        },
    }
    if inits:
        made["spec"]["initContainers"] = [{"name": name, "image": "init:1"} for name in inits]
    if deleted:
        made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return made


def build_status(
    made: Object, live: bool | None = None, verdict: Verdict | None = None, **states: Any
) -> Object:
    """The status of a pod whose containers are in these states, each after its first start unless
    it waits.
    """
    views = {
        name: state
        if isinstance(state, ContainerView)
        else ContainerView(state, attempt_number=None if isinstance(state, Waiting) else 0)
        for name, state in states.items()
    }
    alive = (
        any(isinstance(view.state, Running) for view in views.values()) if live is None else live
    )
    return pod_status.build_pod_status(made, views, live=alive, volumes_ready=True, verdict=verdict)


CRASHED = ContainerView(Waiting("CrashLoopBackOff"), last_exit=build_exited(1), attempt_number=1)


@pytest.mark.parametrize(
    ("policy", "a", "b", "phase"),
    [
        ("Always", WAITS, WAITS, "Pending"),
        ("Always", RUNS, WAITS, "Pending"),
        ("Always", RUNS, RUNS, "Running"),
        ("Always", CRASHED, RUNS, "Running"),
        ("Always", CRASHED, CRASHED, "Running"),
        ("OnFailure", build_exited(0), RUNS, "Running"),
        ("OnFailure", build_exited(0), CRASHED, "Running"),
        ("OnFailure", build_exited(0), build_exited(0), "Succeeded"),
        ("Never", build_exited(1), RUNS, "Running"),
        ("Never", build_exited(1), build_exited(0), "Failed"),
        ("Never", build_exited(0), build_exited(0), "Succeeded"),
    ],
)
def test_the_phase_follows_the_containers(policy: str, a: Any, b: Any, phase: str) -> None:
    assert build_status(pod("a", "b", policy=policy), a=a, b=b)["phase"] == phase


@pytest.mark.parametrize(
    ("policy", "init", "phase"),
    [
        ("Always", RUNS, "Pending"),
        ("Never", build_exited(1), "Failed"),
        ("OnFailure", CRASHED, "Pending"),
        ("Never", build_exited(0), "Pending"),
    ],
)
def test_until_init_containers_are_done_a_pod_is_pending(
    policy: str, init: Any, phase: str
) -> None:
    assert build_status(pod("a", policy=policy, inits=("i",)), i=init, a=WAITS)["phase"] == phase


def test_a_verdict_fails_the_pod_only_when_nothing_runs_any_more() -> None:
    still = build_status(pod("a"), a=RUNS, verdict=NODE_SHUTDOWN)
    over = build_status(pod("a"), a=build_exited(0), verdict=NODE_SHUTDOWN)
    assert (still["phase"], over["phase"]) == ("Running", "Failed")
    assert (over["reason"], over["message"]) == (
        "NodeShutdown",
        "Pod was terminated in response to imminent node shutdown.",
    )
    for made in (still, over):
        condition = find_condition(made["conditions"], "DisruptionTarget")
        assert condition is not None
        assert (condition["status"], condition["reason"]) == ("True", "TerminationByKubelet")


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (143, "Failed")])
def test_a_deleted_pod_ends_as_its_containers_did_whatever_its_policy(
    code: int, phase: str
) -> None:
    assert build_status(pod("a", deleted=True), a=build_exited(code))["phase"] == phase


def test_what_others_wrote_into_the_status_stays() -> None:
    made = pod("a")
    theirs = {"type": "example.com/mine", "status": "True"}
    made["status"] = {
        "qosClass": "Burstable",
        "conditions": [theirs],
        "startTime": "2026-01-01T00:00:00Z",
    }
    status = build_status(made, a=RUNS)
    assert (status["qosClass"], status["startTime"]) == ("Burstable", "2026-01-01T00:00:00Z")
    assert theirs in status["conditions"]


def test_what_others_wrote_incomplete_into_the_status_hinders_nothing() -> None:
    made = pod("a")
    incomplete = [{"status": "True"}, {"type": "Ready"}, {"type": "PodScheduled"}]
    made["status"] = {"conditions": incomplete}
    status = build_status(made, a=RUNS)
    assert status["phase"] == "Running"
    assert {"status": "True"} in status["conditions"]


def test_a_condition_keeps_its_time_until_it_changes() -> None:
    made = pod("a")
    made["status"] = build_status(made, a=RUNS)
    for entry in made["status"]["conditions"]:
        entry["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    crashed = {
        entry["type"]: entry["lastTransitionTime"]
        for entry in build_status(made, a=CRASHED)["conditions"]
    }
    assert crashed["PodScheduled"] == crashed["Initialized"] == "2026-01-01T00:00:00Z"
    assert crashed["Ready"] != "2026-01-01T00:00:00Z"


SHAPES = [
    ("succeeded", "Never", build_exited(0)),
    ("failed-error", "Never", build_exited(1, message="RuntimeError: NCCL error")),
    ("failed-oomkilled", "Never", build_exited(137, "OOMKilled")),
    (
        "pending-imagepullbackoff",
        "Never",
        Waiting("ImagePullBackOff", 'Back-off pulling image "train:1"'),
    ),
    (
        "running-crashloopbackoff",
        "Always",
        ContainerView(
            Waiting("CrashLoopBackOff", "back-off 1m20s restarting failed container=pytorch"),
            last_exit=build_exited(1),
            attempt_number=4,
        ),
    ),
]
OURS = {
    "hostIPs",
    "podIP",
    "podIPs",
    "startTime",
    "qosClass",
    "lastTransitionTime",
    "containerID",
    "imageID",
}


def normal(value: Any) -> Any:
    """Without what differs between any two clusters."""
    if isinstance(value, dict):
        return {key: normal(below) for key, below in value.items() if key not in OURS}
    return [normal(below) for below in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("name", "policy", "state"), SHAPES, ids=[shape[0] for shape in SHAPES])
def test_a_status_has_the_shape_of_a_real_ones(name: str, policy: str, state: Any) -> None:
    if not RECORDED.is_dir():
        pytest.skip("the recorded answers of a real API server are not here")
    real = json.loads((RECORDED / f"{name}.json").read_text())["response"]["body"]["status"]
    assert normal(build_status(pod("pytorch", policy=policy), pytorch=state)) == normal(real)


def attempt(code: int, *, ran: float, delay: int) -> Attempt:
    return Attempt(3, Path("3"), build_exited(code, seconds=ran), delay)


@pytest.mark.parametrize(
    ("ran", "delay", "wait", "following"),
    [
        (1, 0, 0, 10),
        (1, 10, 10, 20),
        (1, 80, 80, 160),
        (1, 160, 160, 300),
        (1, 300, 300, 300),
        (599, 300, 300, 300),
        (601, 300, 0, 10),
    ],
)
def test_restarts_wait_longer_each_time_until_a_run_lasts(
    ran: float, delay: int, wait: int, following: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = attempt(1, ran=ran, delay=delay)
    monkeypatch.setattr(clock, "current_time", lambda: BEGIN + timedelta(seconds=ran))
    assert restart_time(last, "Always") == BEGIN + timedelta(seconds=ran + wait)
    assert next_delay(last) == following


def test_a_clock_that_was_set_back_keeps_no_container_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = BEGIN - timedelta(hours=1)
    monkeypatch.setattr(clock, "current_time", lambda: now)
    assert restart_time(attempt(1, ran=1, delay=300), "Always") == now


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [("Never", 1, False), ("OnFailure", 0, False), ("OnFailure", 1, True), ("Always", 0, True)],
)
def test_the_policy_decides_whether_there_is_another_run(
    policy: str, code: int, again: bool
) -> None:
    assert (restart_time(attempt(code, ran=1, delay=0), policy) is not None) is again


def build_history(**states: Any) -> run_plan.AttemptHistory:
    return {
        name: [] if state is None else [Attempt(0, Path(name), state)]
        for name, state in states.items()
    }


@pytest.mark.parametrize(
    ("story", "turn"),
    [
        (build_history(i=None, j=None, a=None), ["i"]),
        (build_history(i=RUNS, j=None, a=None), ["i"]),
        (build_history(i=build_exited(1), j=None, a=None), ["i"]),
        (build_history(i=build_exited(0), j=UNSTARTED, a=None), ["j"]),
        (build_history(i=build_exited(0), j=build_exited(0), a=None), ["a"]),
        (build_history(i=build_exited(0), j=build_exited(0), a=Starting()), ["a"]),
        (build_history(i=None, j=None, a=RUNS), ["a"]),
        (build_history(i=build_exited(0), j=build_exited(0), a=build_exited(0)), []),
    ],
)
def test_containers_take_turns(story: run_plan.AttemptHistory, turn: list[str]) -> None:
    assert [
        c["name"]
        for c in run_plan.containers_to_run(pod("a", policy="OnFailure", inits=("i", "j")), story)
    ] == turn


@pytest.mark.parametrize(
    ("seconds", "text"), [(10, "10s"), (80, "1m20s"), (300, "5m0s"), (3600, "1h0m0s")]
)
def test_durations_are_printed_as_go_does(seconds: int, text: str) -> None:
    assert pod_status.format_go_duration(seconds) == text
