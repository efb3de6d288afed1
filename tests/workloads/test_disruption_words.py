"""What took pods from a workload: read from a cluster's objects, from logs, and told in a sentence.
Pure.
"""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from tests.workloads.objects import Object, condition, pod
from workloads.cluster_texts import strip_names
from workloads.disruptions import (
    Action,
    Cause,
    Disruption,
    Progress,
    decode_disruption,
    describe_disruption,
    find_pod_cause,
    parse_event,
    parse_progress,
)
from workloads.pod_views import build_pod_view

AT = datetime(2026, 11, 20, 14, 2, 30, tzinfo=UTC)
GROUP = "pg-train2-0b0e6d0c-1111-4222-8333-444455556666"
RECLAIM = (
    f"Pod muster-a/train1-worker-2 was preempted by workload muster-b/{GROUP}.\n"
    "team-b uses <GPU: 0> with a quota of <GPU: 2>."
)
PREEMPT = f"Pod muster-a/train1-worker-2 was preempted by higher priority workload muster-a/{GROUP}"
CONSOLIDATE = (
    "Pod muster-a/train1-worker-2 was preempted and rescheduled due to bin packing (resource "
    "consolidation) procedure"
)
STALE = (
    "Workload doesn't meet the minimum required number of pods (2), evicting remaining pod: "
    "muster-a/train1-worker-2"
)


UNNAMED_POD = (Action.RECLAIM, "muster-b", "train2")


def build_taken_pod(message: str = "", reason: str = "PreemptionByScheduler") -> Object:
    at = "2026-11-20T14:02:30Z"
    made = condition("DisruptionTarget", reason=reason, message=message, lastTransitionTime=at)
    return pod("worker", 2, conditions=[made])


@pytest.mark.parametrize(
    ("message", "action", "namespace", "workload"),
    [
        (RECLAIM, Action.RECLAIM, "muster-b", "train2"),
        (PREEMPT, Action.PREEMPT, "muster-a", "train2"),
        (CONSOLIDATE, Action.CONSOLIDATE, "", ""),
        (f"{CONSOLIDATE} for workload muster-b/{GROUP}", Action.CONSOLIDATE, "muster-b", "train2"),
        (STALE, Action.STALE_GANG, "", ""),
        (f"A pod of muster-a/train1 was preempted by workload muster-b/{GROUP}.", *UNNAMED_POD),
        ("something new", Action.OTHER, "", ""),
    ],
)
def test_a_pod_says_what_takes_it(
    message: str, action: Action, namespace: str, workload: str
) -> None:
    found = find_pod_cause(build_taken_pod(message))
    assert found is not None
    cause, since = found
    assert (cause.action, cause.namespace, cause.workload) == (action, namespace, workload)
    assert cause.pod == ("train1-worker-2" if "train1-worker-2" in message else "")
    assert since == "2026-11-20T14:02:30Z"


@pytest.mark.parametrize(
    ("reason", "action"),
    [
        ("DeletionByTaintManager", Action.NODE_LOST),
        ("DeletionByPodGC", Action.NODE_LOST),
        ("EvictionByEvictionAPI", Action.DRAIN),
    ],
)
def test_kubernetes_itself_takes_pods_too(reason: str, action: Action) -> None:
    assert find_pod_cause(build_taken_pod(reason=reason)) == (Cause(action), "2026-11-20T14:02:30Z")


def test_what_the_kubelet_ends_is_no_disruption() -> None:
    assert find_pod_cause(build_taken_pod("memory", "TerminationByKubelet")) is None
    assert find_pod_cause(pod("worker", 2)) is None


def evict_event(text: str = RECLAIM, **annotations: str) -> Object:
    return {"reason": "Evict", "message": text, "metadata": {"annotations": annotations}}


def test_annotations_of_the_event_name_who_gets_the_room() -> None:
    event = evict_event(
        **{
            "evictor-pod-group-name": GROUP.replace("train2", "train3"),
            "evictor-pod-group-namespace": "muster-c",
            "evictor-action-type": "reclaim",
            "num-evicted-pods": "2",
        }
    )
    found = parse_event(event)
    assert found == Cause(Action.RECLAIM, "muster-c", "train3", "train1-worker-2", RECLAIM)
    assert parse_event(evict_event(PREEMPT)) == Cause(
        Action.PREEMPT, "muster-a", "train2", "train1-worker-2", PREEMPT
    )
    assert parse_event({"reason": "Scheduled", "message": RECLAIM}) is None


@pytest.mark.parametrize("action", ["consolidation", "consolidate"])
def test_both_names_of_consolidation_are_known(action: str) -> None:
    found = parse_event(evict_event("", **{"evictor-action-type": action}))
    assert found == Cause(Action.CONSOLIDATE)


def test_no_sentence_of_the_cluster_names_a_workload_of_another_namespace() -> None:
    assert strip_names(RECLAIM, "muster-a") == (
        "Pod muster-a/train1-worker-2 was preempted by another workload."
    )
    assert strip_names(PREEMPT, "muster-a") == PREEMPT
    assert strip_names("It was preempted by workload train2.", "muster-a") == (
        "It was preempted by another workload."
    )
    assert "train2" not in strip_names(f"{CONSOLIDATE} for workload muster-b/{GROUP}", "muster-a")
    assert strip_names(
        "Evicted by workload muster-a/own for workload muster-b/train3", "muster-a"
    ) == ("Evicted by workload muster-a/own for another workload")
    assert strip_names("0/4 nodes are available", "muster-a") == "0/4 nodes are available"


def test_whose_quota_kueue_took_is_told_to_nobody_else() -> None:
    text = (
        "Preempted workload muster-b/pytorchjob-secret-5dfe2 (UID: 16739dd5) in ClusterQueue "
        "team-b; preemptor effective priority: 10 (base: 10, boost: 0)"
    )
    assert strip_names(text, "muster-a") == "Preempted another workload"
    assert strip_names(text, "muster-b") == text


def test_a_pod_waits_for_others_without_their_names() -> None:
    text = f"Waiting for 2 pods of muster-b/{GROUP} and 1 pod of muster-a/{GROUP} to leave n1"
    scheduled = {"type": "PodScheduled", "status": "False", "message": text}
    waiting = pod(node="", phase="Pending")
    waiting["metadata"]["namespace"] = "muster-a"
    waiting["status"]["conditions"] = [scheduled]
    assert build_pod_view(waiting).reason == (
        f"Waiting for 2 pods of another workload and 1 pod of muster-a/{GROUP} to leave n1"
    )


SECOND = 1_000_000_000


def lines(*texts: str, every: int = 2) -> list[tuple[int | None, str]]:
    return [(number * every * SECOND, text) for number, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ((), None),
        (("step 411 loss 0.5", "step 412 loss 0.4"), None),
        (
            ("step 412 loss 0.5 rank 0 world 4", "resumed at step 410", "step 411 rank 0 world 2"),
            Progress(410, lost_steps=2, seconds=4.0),
        ),
        (("step 412", "resumed at step 410"), Progress(410, lost_steps=2)),
        (("resumed at step 410", "step 411"), Progress(410)),
        (("rank 0 world 4 step=9", "Resumed from step 9"), Progress(9, lost_steps=0)),
        (
            ("step 7", "no checkpoint: began anew at step 0", "step 1"),
            Progress(0, began_anew=True, lost_steps=7, seconds=4.0),
        ),
        (
            ("step 12", "resumed at step 10", "resumed at step 10", "step 11"),
            Progress(10, lost_steps=2, seconds=6.0),
        ),
    ],
)
def test_the_log_tells_where_training_went_on(
    texts: tuple[str, ...], expected: Progress | None
) -> None:
    assert parse_progress(lines(*texts), since=0) == expected


def test_an_earlier_restart_is_not_the_one_that_is_asked_about() -> None:
    log_lines = lines("step 5", "resumed at step 4", "step 5")
    assert parse_progress(log_lines, since=3 * SECOND) is None


GONE_ON = Disruption(
    Action.RECLAIM,
    pods=2,
    gpus=Decimal(2),
    namespace="muster-b",
    pods_before=4,
    is_open=False,
    pods_after=2,
    resumed_step=410,
    lost_seconds=6.2,
)


def change_disruption(**fields: Any) -> Disruption:
    return msgspec.structs.replace(GONE_ON, **fields)


@pytest.mark.parametrize(
    ("disruption", "expected"),
    [
        (
            GONE_ON,
            "Gave 2 GPUs to project-b at 14:02 UTC, went on with 2 of 4 pods from step 410, lost "
            "6 s.",
        ),
        (
            change_disruption(lost_steps=3),
            "Gave 2 GPUs to project-b at 14:02 UTC, went on with 2 of 4 pods from step 410, lost 3 "
            "steps (6 s).",
        ),
        (
            change_disruption(lost_steps=0),
            "Gave 2 GPUs to project-b at 14:02 UTC, went on with 2 of 4 pods from step 410, lost "
            "no step (6 s).",
        ),
        (
            change_disruption(resumed_step=0, began_anew=True, lost_steps=1),
            "Gave 2 GPUs to project-b at 14:02 UTC, went on with 2 of 4 pods from step 0 anew, for "
            "it found no checkpoint, lost 1 step (6 s).",
        ),
        (
            change_disruption(resumed_step=None, pods=1, gpus=Decimal("0.5"), lost_seconds=300),
            "Gave 0.5 GPUs to project-b at 14:02 UTC, went on with 2 of 4 pods, lost 5 min.",
        ),
        (change_disruption(is_open=True), "Gave 2 GPUs to project-b at 14:02 UTC."),
        (
            change_disruption(is_open=True, is_waiting=True, pods_after=0),
            "Gave 2 GPUs to project-b at 14:02 UTC, and waits for its turn again.",
        ),
        (
            change_disruption(pods_after=0),
            "Gave 2 GPUs to project-b at 14:02 UTC, and did not go on.",
        ),
        (
            change_disruption(action=Action.PREEMPT, is_open=True, gpus=Decimal(1)),
            "Gave 1 GPU to project-b, which has a higher priority, at 14:02 UTC.",
        ),
        (
            change_disruption(action=Action.CONSOLIDATE, is_open=True),
            "Moved 2 pods at 14:02 UTC to make room for another workload.",
        ),
        (
            change_disruption(action=Action.STALE_GANG, is_open=True, pods=1),
            "Lost its last pod at 14:02 UTC, for fewer than its minimum were left.",
        ),
        (
            change_disruption(
                action=Action.NODE_LOST, is_open=True, pods=1, gpus=Decimal(1), nodes=("n1",)
            ),
            "Lost 1 pod with 1 GPU at 14:02 UTC: node n1 was lost.",
        ),
        (
            change_disruption(
                action=Action.DRAIN, is_open=True, gpus=Decimal(0), nodes=("n1", "n2")
            ),
            "Lost 2 pods at 14:02 UTC, evicted from n1, n2 on request.",
        ),
    ],
)
def test_a_disruption_is_one_sentence(disruption: Disruption, expected: str) -> None:
    assert describe_disruption(disruption, AT, "project-b") == expected


def test_a_notice_begins_with_the_workload() -> None:
    assert describe_disruption(
        change_disruption(is_open=True), AT, "project-b", subject="train1"
    ) == ("train1 gave 2 GPUs to project-b at 14:02 UTC.")


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (Action.RECLAIM, "Gave 2 GPUs to project-b, and did not go on."),
        (
            Action.PREEMPT,
            "Gave 2 GPUs to project-b, which has a higher priority, and did not go on.",
        ),
        (Action.DRAIN, "Lost 2 pods with 2 GPUs, evicted on request, and did not go on."),
    ],
)
def test_the_time_may_stand_elsewhere(action: Action, expected: str) -> None:
    disruption = change_disruption(action=action, pods_after=0)
    assert describe_disruption(disruption, None, "project-b") == expected


def test_a_disruption_is_kept_and_read_again() -> None:
    assert decode_disruption(msgspec.to_builtins(GONE_ON)) == GONE_ON
    assert decode_disruption(None) is None
    assert decode_disruption({"action": "reclaim", "namespace": "x"}) is None
    assert decode_disruption({"pods": "many", "action": "reclaim"}) is None
