"""Whether KAI itself is at work where its kinds are served: CRDs alone schedule nothing."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from clusters import capability_probe, scheduler_probe
from clusters.capability_probe import ProbeResult
from clusters.kube.client import Client
from clusters.prerequisites import PrerequisiteState, is_missing_required, list_prerequisites
from tests.clusters.kube.faults import Exchange, FaultServer, status
from tests.clusters.scripted import SHARING_OFF, ClusterScript

Object = dict[str, Any]


def build_pod(age: timedelta, phase: str = "Pending", namespace: str = "n", **more: Any) -> Object:
    """Build a pod whose creation is an age still: `date_pod` turns it into a moment."""
    metadata = {"name": "p", "namespace": namespace, "creationTimestamp": age}
    conditions = more.pop("conditions", [])
    return {
        "metadata": metadata | more,
        "status": {"phase": phase, "conditions": conditions},
    }


def date_pod(pod: Object) -> Object:
    """Return the pod with its age counted back from now: the pods of this file are built when it
    is imported, which may be half an hour before its tests run.
    """
    metadata = pod["metadata"]
    if not isinstance(metadata["creationTimestamp"], timedelta):
        return pod
    created = timezone.now() - metadata["creationTimestamp"]
    return pod | {
        "metadata": metadata | {"creationTimestamp": created.strftime("%Y-%m-%dT%H:%M:%SZ")}
    }


OLD = timedelta(minutes=5)
UNNOTICED = build_pod(OLD)
FRESH = build_pod(timedelta(seconds=10))
GROUPED = build_pod(OLD, annotations={"pod-group-name": "pg-1"})
REFUSED = build_pod(OLD, conditions=[{"type": "PodScheduled", "status": "False"}])
BOUND = build_pod(OLD, "Running")
GROUPED_BEFORE = build_pod(timedelta(hours=2), annotations={"pod-group-name": "pg-1"})
READY = [{"type": "Ready", "status": "True"}]
NOT_READY = [{"type": "Ready", "status": "False"}]
OWN = build_pod(OLD, "Running", "kai-scheduler", conditions=READY)


def probe(
    waiting: list[Object] = [],  # noqa: B006 - never changed
    bound: list[Object] = [],  # noqa: B006 - never changed
    own: list[Object] = [],  # noqa: B006 - never changed
    *,
    script: ClusterScript | None = None,
    has_own_scheduler: bool = False,
) -> ProbeResult:
    """Probe a cluster that has KAI's kinds and these pods: waiting for it, bound by it, its own."""
    script = script or ClusterScript(has_kai_webhook=False)

    def step(exchange: Exchange) -> None:
        query = exchange.request.query
        if exchange.request.path != "/api/v1/pods":
            script(exchange)
            return
        if "pods" in script.forbidden_lists:
            exchange.answer(403, status(403, "Forbidden", "pods is forbidden"))
            return
        fields = query.get("fieldSelector", "")
        found = own if "labelSelector" in query else bound if "!=" in fields else waiting
        items = [date_pod(each) for each in found]
        exchange.answer(200, json.dumps({"metadata": {}, "items": items}).encode())

    with FaultServer(step) as server, Client(server.access) as client:
        return capability_probe.probe_cluster(client, has_own_scheduler=has_own_scheduler)


def find_states(result: ProbeResult) -> dict[str, PrerequisiteState]:
    listed = list_prerequisites(result.capabilities, result.findings)
    return {each.title.split(":")[0]: each.state for each in listed}


@pytest.mark.parametrize(
    ("waiting", "bound"),
    [
        ([], []),
        ([UNNOTICED], []),
        ([UNNOTICED], [BOUND]),
        ([FRESH], []),
        ([GROUPED_BEFORE, UNNOTICED], [BOUND]),
    ],
)
def test_crds_alone_are_no_scheduler(waiting: list[Object], bound: list[Object]) -> None:
    result = probe(waiting, bound)
    assert result.capabilities.has_scheduler is False
    assert result.capabilities.gpu_sharing is None
    states = find_states(result)
    assert states["KAI scheduler"] is PrerequisiteState.MISSING
    assert states["GPU sharing"] is PrerequisiteState.MISSING
    assert is_missing_required(result.capabilities)
    [kai] = [
        each
        for each in list_prerequisites(result.capabilities, result.findings)
        if each.title.startswith("KAI")
    ]
    assert "nobody schedules" in kai.text
    assert "helm upgrade -i kai-scheduler" in kai.command


@pytest.mark.parametrize(
    ("waiting", "bound", "own"),
    [
        ([], [BOUND], []),
        ([FRESH], [BOUND], []),
        ([GROUPED, build_pod(2 * OLD)], [], []),
        ([REFUSED], [], []),
        ([], [], [OWN]),
        ([UNNOTICED], [], [OWN]),
    ],
)
def test_what_kai_does_shows_that_it_is_there(
    waiting: list[Object], bound: list[Object], own: list[Object]
) -> None:
    result = probe(waiting, bound, own)
    assert result.capabilities.has_scheduler is True
    assert result.capabilities.gpu_sharing is True
    assert find_states(result)["KAI scheduler"] is PrerequisiteState.HERE


@pytest.mark.parametrize(
    "own",
    [
        build_pod(OLD, "Pending", "kai-scheduler"),
        build_pod(OLD, "Running", "kai-scheduler", conditions=NOT_READY),
        build_pod(OLD, "Running", "shop", conditions=READY),
    ],
)
def test_a_pod_that_does_not_run_or_is_somebody_elses_schedules_nothing(own: Object) -> None:
    assert probe(own=[own]).capabilities.has_scheduler is False


@pytest.mark.parametrize(
    "script", [ClusterScript(), ClusterScript(pod_refusal=SHARING_OFF, has_kai_webhook=False)]
)
def test_a_webhook_that_answers_is_enough(script: ClusterScript) -> None:
    assert probe(script=script).capabilities.has_scheduler is True


def test_the_embedded_clusters_server_is_its_own_scheduler() -> None:
    result = probe(has_own_scheduler=True)
    assert (result.capabilities.has_scheduler, result.capabilities.gpu_sharing) == (True, True)


def test_where_pods_may_not_be_listed_it_is_not_known() -> None:
    result = probe(script=ClusterScript(has_kai_webhook=False, forbidden_lists={"pods"}))
    assert result.capabilities.has_scheduler is None
    states = find_states(result)
    assert states["KAI scheduler"] is PrerequisiteState.UNKNOWN
    assert states["GPU sharing"] is PrerequisiteState.UNKNOWN
    assert not is_missing_required(result.capabilities)


def test_garbage_proves_nothing() -> None:
    assert not scheduler_probe.has_webhook_variables({})
    assert not scheduler_probe.has_webhook_variables({"spec": {"containers": None}})
    assert probe(
        [build_pod(OLD) | {"metadata": {"creationTimestamp": "no moment"}}], [BOUND]
    ).capabilities.has_scheduler
