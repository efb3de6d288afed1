"""What is told of pods that wait: conditions, events, PodGroup conditions, their numbers and their
end.
"""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from localkube import clock
from localkube.metadata import annotations_of
from localkube.resources import NODES, PODS
from tests.localkube.scheduling import GPU, Bench

RECORDED = Path(__file__).parents[3] / "shared" / "recorded"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def load_recorded(path: str) -> dict[str, object]:
    file = RECORDED / path
    if not file.is_file():
        pytest.skip(f"the recorded answers are not here: {file}")
    body: dict[str, object] = json.loads(file.read_text())["response"]["body"]
    return body


def test_the_condition_is_built_like_the_real_scheduler_s(bench: Bench) -> None:
    real = load_recorded("pod/pending-unschedulable.json")["status"]["conditions"][0]  # type: ignore[index]
    bench.pod("pend", {GPU: 16})
    bench.settle()

    ours = bench.condition("pend")
    assert ours.keys() == real.keys()
    assert (ours["reason"], ours["status"], ours["observedGeneration"]) == (
        real["reason"],
        real["status"],
        real["observedGeneration"],
    )
    assert ours["message"].startswith("0/1 nodes are available: 1 Insufficient nvidia.com/gpu")


def test_the_event_is_built_like_the_real_scheduler_s(bench: Bench) -> None:
    real = load_recorded("event/list-core-v1.json")["items"][0]  # type: ignore[index]
    bench.pod("pend", {GPU: 16})
    bench.settle()

    (ours,) = bench.events("pend")
    for field in ("reason", "type", "action", "reportingComponent", "source"):
        assert ours[field] == real[field]


def test_pods_of_kai_get_its_own_event(bench: Bench) -> None:
    bench.pod("pend", {GPU: 16}, schedulerName="kai-scheduler")
    bench.settle()

    (event,) = bench.events("pend")
    assert (event["reason"], event["type"], event["source"]) == (
        "Unschedulable",
        "Warning",
        {"component": "kai-scheduler"},
    )


@pytest.mark.parametrize(
    ("requests", "annotations", "text"),
    [
        ({GPU: 2}, {}, "1 Insufficient nvidia.com/gpu (needs 2, 1 of 4 free)"),
        (
            {GPU: 5},
            {},
            "1 Insufficient nvidia.com/gpu (needs 5, the node has 4: this can never fit)",
        ),
        ({"cpu": "7500m"}, {}, "1 Insufficient cpu (needs 7.5, 7 of 8 free)"),
        ({"memory": "31.5Gi"}, {}, "1 Insufficient memory (needs 31.5Gi, 31Gi of 32Gi free)"),
        (
            {"cpu": "9", "memory": "1Ti"},
            {},
            (
                "1 Insufficient cpu (needs 9, the node has 8: this can never fit), 1 "
                "Insufficient memory "
            ),
        ),
        (
            {"example.com/card": 1},
            {},
            "1 Insufficient example.com/card (needs 1, the node has 0: this can never fit)",
        ),
        (
            {},
            {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"},
            (
                "1 Insufficient nvidia.com/gpu (needs 0.5 of each of 2 devices, 1 of 4 have as "
                "much free)"
            ),
        ),
        (
            {},
            {"gpu-memory": "20000"},
            (
                "1 Insufficient nvidia.com/gpu (needs 1.221 of one device, the node has 4: this "
                "can never fit)"
            ),
        ),
    ],
)
def test_the_text_says_what_is_needed_and_what_there_is(
    bench: Bench, requests: dict[str, str], annotations: dict[str, str], text: str
) -> None:
    bench.pod("holder", {GPU: 3, "cpu": "1", "memory": "1Gi"})
    bench.settle()
    bench.pod("pend", requests, annotations=annotations)
    bench.settle()

    assert bench.condition("pend")["message"].startswith(f"0/1 nodes are available: {text}")


def test_the_text_of_a_gang_counts_all_its_pods(bench: Bench) -> None:
    names = bench.gang(bench.job("train"), {GPU: 2})
    bench.settle()

    texts = {bench.condition(name)["message"] for name in names}
    text = (
        "1 Insufficient nvidia.com/gpu (needs 6 for a gang of 3 pods, the node has 4: this can "
        "never fit)"
    )
    assert texts == {f"0/1 nodes are available: {text}."}


@pytest.mark.parametrize(
    ("devices", "text"),
    [
        (1, "2 Insufficient cpu."),
        (
            4,
            "2 Insufficient cpu, 1 Insufficient nvidia.com/gpu (needs 8 for a gang of 3 pods, 7 of "
            "8 free).",
        ),
    ],
)
def test_devices_are_counted_for_workers_where_their_blocked_master_takes_none(
    bench: Bench, devices: int, text: str
) -> None:
    bench.add_node("second", {"cpu": "8", GPU: "4", "pods": "10"})
    bench.pod("other", {GPU: 1})
    bench.settle()
    job = bench.job("train")
    for name, requests in (
        ("master-0", {"cpu": 9}),
        ("worker-0", {GPU: devices}),
        ("worker-1", {GPU: devices}),
    ):
        labels = {"training.kubeflow.org/replica-type": name.split("-")[0]}
        bench.pod(name, requests, owner=job, labels=labels)
    bench.settle()
    message = bench.condition("worker-0")["message"]
    assert message == f"0/2 nodes are available: {text}"


def test_what_pods_of_other_nodes_want_does_not_count(bench: Bench) -> None:
    bench.add_node("second", {"cpu": "8", "pods": "10"}, {"pool": "workers"})
    bench.pod("other", {"cpu": 1}, nodeName="second")
    bench.settle()
    job = bench.job("train")
    selectors = {"master": {"nvidia.com/gpu.memory": "16384"}, "worker": {"pool": "workers"}}
    for name, amount in (("master-0", 6), ("worker-0", 4), ("worker-1", 4)):
        role = name.split("-")[0]
        labels = {"training.kubeflow.org/replica-type": role}
        bench.pod(name, {"cpu": amount}, owner=job, labels=labels, nodeSelector=selectors[role])
    bench.settle()
    text = "1 Insufficient cpu (needs 8 for 2 of a gang of 3 pods, 7 of 8 free)"
    assert text in bench.condition("worker-0")["message"]

    bench.end("other")
    bench.settle()
    assert bench.placed() == {"master-0", "worker-0", "worker-1"}


def test_shares_that_do_not_go_together_are_said_to(tmp_path: Path) -> None:
    bench = Bench(tmp_path, gpus=2)
    bench.gang(bench.job("train"), {}, annotations={"gpu-fraction": "0.6"})
    bench.settle()

    text = (
        "1 Insufficient nvidia.com/gpu (needs 1.8 for a gang of 3 pods, room for 2 of them: this "
        "can never fit)"
    )
    assert bench.condition("train-master-0")["message"] == f"0/1 nodes are available: {text}."


def test_the_condition_follows_the_numbers_and_the_event_the_matter(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.pod(name, {GPU: 2})
    bench.settle()
    bench.pod("pend", {GPU: 4})
    bench.settle()
    bench.end("a")
    bench.settle()

    assert bench.condition("pend")["message"].endswith("(needs 4, 2 of 4 free).")
    assert len(bench.events("pend")) == 1


def test_an_event_is_counted_again_after_five_minutes_only(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.pod("pend", {GPU: 16}, schedulerName="kai-scheduler")
    bench.settle()
    start = clock.current_time()
    for minutes in (4, 6):
        monkeypatch.setattr(
            clock, "current_time", lambda minutes=minutes: start + timedelta(minutes=minutes)
        )
        bench.run_pass()

    (event,) = bench.events("pend")
    assert event["count"] == 2


def test_nothing_is_written_while_nothing_changes(bench: Bench) -> None:
    bench.gang(bench.job("train"), {GPU: 2})
    bench.pod("one")
    bench.settle()
    before = bench.store.rv
    bench.run_pass()
    bench.restart()
    bench.settle()

    # A new scheduler tells its events again: it cannot know what was told.
    assert bench.store.rv - before <= 2 * len(bench.events("train-master-0")) + 8


def test_the_pod_group_condition_goes_when_the_gang_is_placed(bench: Bench) -> None:
    bench.pod("holder", {GPU: 2})
    bench.settle()
    bench.gang(bench.job("train"), {GPU: 1})
    bench.settle()
    assert bench.reason("train")["reason"] == "Not enough resources for the workload"

    bench.end("holder")
    bench.settle()
    status = bench.group("train")["status"]
    assert status["schedulingConditions"] == []
    assert status["resourcesStatus"] == {"allocated": {GPU: "3"}, "requested": {GPU: "3"}}


def test_the_number_of_the_transition_rises_with_each_new_text(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.pod(name, {GPU: 2})
    bench.settle()
    bench.pod("pend", {GPU: 4})
    bench.settle()
    bench.end("a")
    bench.settle()

    (condition,) = bench.group("pend")["status"]["schedulingConditions"]
    assert (condition["transitionID"], condition["nodePool"], condition["status"]) == (
        "2",
        "default",
        "True",
    )


def test_a_gang_whose_pods_are_not_all_there_is_not_ready(bench: Bench) -> None:
    job = bench.job("train")
    bench.gang(job, {GPU: 1}, count=2, schedulerName="kai-scheduler")
    bench.settle()

    text = "Job is not ready for scheduling. Waiting for 3 pods, currently 2 exist, 0 are gated"
    (event,) = bench.events(bench.group("train")["metadata"]["name"])
    assert (event["reason"], event["type"], event["message"]) == ("NotReady", "Normal", text)
    assert bench.condition("train-master-0")["message"] == text
    assert not (bench.group("train").get("status") or {}).get("schedulingConditions")


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"nodeSelector": {"disk": "fast"}}, "1 node(s) didn't match Pod's node affinity/selector"),
        ({}, "1 node(s) had untolerated taint {keep: out}"),
    ],
)
def test_a_node_that_does_not_want_the_pod_says_so(
    bench: Bench, spec: dict[str, Any], text: str
) -> None:
    if not spec:
        bench.objects.modify(
            NODES, "", "localkube", lambda node: node.setdefault("spec", {}).update(taints=[TAINT])
        )
    bench.pod("pend", **spec)
    bench.settle()

    assert bench.condition("pend")["message"] == f"0/1 nodes are available: {text}."


TAINT = {"key": "keep", "value": "out", "effect": "NoSchedule"}


def test_without_a_node_pods_wait_for_one(bench: Bench) -> None:
    bench.objects.delete(NODES, "", "localkube")
    bench.pod("pend")
    bench.settle()

    assert bench.condition("pend")["message"] == "no nodes available to schedule pods"


def test_a_pod_that_waits_names_its_pod_group(bench: Bench) -> None:
    bench.pod("pend", {GPU: 16})
    bench.settle()

    assert (
        annotations_of(bench.read("pend"))["pod-group-name"]
        == bench.group("pend")["metadata"]["name"]
    )


def test_a_pod_that_cannot_be_bound_holds_up_nobody(bench: Bench) -> None:
    bench.pod("full", annotations={"note": "x" * 262_100})
    bench.pod("next")
    bench.settle()

    assert bench.placed() == {"next"}


def test_a_large_gang_that_cannot_be_bound_holds_up_nobody_and_starts_when_it_is_mended(
    bench: Bench,
) -> None:
    names = bench.gang(bench.job("full"), {}, 6, annotations={"note": "x" * 262_100})
    bench.pod("next")
    bench.settle()
    assert bench.placed() == {"next"}
    assert bench.reason("full")["message"].startswith("the pod cannot be bound: ")

    # Room that is freed does not change the refusal.
    bench.end("next")
    bench.settle()
    assert bench.placed() == set()

    for name in names:
        bench.objects.modify(
            PODS, "default", name, lambda pod: pod["metadata"].update(annotations={"note": "x"})
        )
    bench.settle()
    assert bench.placed() == set(names)
