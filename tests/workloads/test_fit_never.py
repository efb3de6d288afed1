"""What can never fit, however many others end: told from what does not fit now."""

import html
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.capabilities import PODGROUPS, QUEUES, Capabilities
from clusters.models import Node
from clusters.nodes import MAX_LABELS
from projects.models import Project
from tests.api.calling import Caller, a_body
from tests.cast import Cast, a_spec
from tests.workloads.test_fit import GI, UNWILLING, WHOLE, a_node, add_gpu_holder, asking, check_fit
from tests.workloads.wizarding import Walk
from workloads.fit import Verdict
from workloads.judgement import judge_submission
from workloads.manifests.placement import NO_POOLS
from workloads.specs import (
    Architecture,
    Compute,
    ElasticSettings,
    Environment,
    Gpus,
    MasterChanges,
    Setup,
    Spec,
)

pytestmark = pytest.mark.django_db
MOST_INT32 = 2**31 - 1
NO_GPU = Gpus(0)


def asking_for(project: Project, compute: Compute, **more: Any) -> Spec:
    return a_spec(project, setup=Setup(Environment("x"), compute), **more)


@pytest.mark.parametrize(
    ("node", "gpus", "more", "words"),
    [
        (
            {"pods": 64},
            NO_GPU,
            {"workers": 10_000},
            "it needs 10,001 pods at once, and the nodes that may take them hold 64 in all. "
            "It waits until the cluster has more nodes; or ask for fewer pods",
        ),
        (
            {"pods": 64},
            NO_GPU,
            {"workers": MOST_INT32},
            "it needs 2,147,483,648 pods at once",
        ),
        (
            {"cpu": 10**6, "memory": 2**50},
            WHOLE,
            {"workers": 9},
            "it needs 10 GPUs at once, and the nodes that may take its pods have 4 GPUs in all",
        ),
        ({}, Gpus(8), {}, "a pod needs 8 GPUs on one node, and the largest that may take it has 4"),
        ({"cpu": 2}, NO_GPU, {}, "it needs 3 CPU cores at once"),
        ({"memory": 2 * GI}, NO_GPU, {}, "it needs 3 GiB of memory at once"),
        ({"cpu": Decimal("0.5")}, NO_GPU, {}, "a pod needs 1 CPU core on one node"),
        (
            {"pods": 3},
            NO_GPU,
            {"workers": 4, "elastic": ElasticSettings(4, 10)},
            "it needs 4 pods at once",
        ),
        ({"is_ready": False, "pods": 2}, NO_GPU, {}, "hold 2 in all"),
    ],
)
def test_more_than_all_nodes_have_can_never_start(
    cast: Cast, node: dict[str, Any], gpus: Gpus, more: dict[str, Any], words: str
) -> None:
    a_node(cast, **node)
    found = check_fit(asking(cast.team_a, gpus, **more), cast.team_a)
    assert found.nodes.verdict is Verdict.NEVER
    assert "With the nodes that cluster here has now it cannot start" in found.nodes.text
    assert words in found.nodes.text
    assert found.verdict is Verdict.NEVER
    assert found.text.startswith("With what there is now it cannot start. Change what")


def test_pods_that_are_large_for_each_node_are_counted_node_by_node(cast: Cast) -> None:
    for name in ("n1", "n2", "n3"):
        a_node(cast, name, gpus=3)
    found = check_fit(asking(cast.team_a, Gpus(2), workers=3), cast.team_a)
    assert "it needs 3 pods of one kind at once" not in found.nodes.text
    master_without = asking(cast.team_a, Gpus(2), workers=4, master=MasterChanges(gpus=NO_GPU))
    found = check_fit(master_without, cast.team_a)
    assert found.nodes.verdict is Verdict.NEVER
    assert "it needs 4 pods of one kind at once, and the nodes that may take them hold 3" in (
        found.nodes.text
    )


@pytest.mark.parametrize(
    ("node", "more"),
    [
        ({"used_gpus": 4}, {}),
        ({"pods": 10, "used_pods": 10}, {}),
        ({"is_ready": False}, {}),
        ({"is_schedulable": False}, {}),
        ({"pods": 3}, {"workers": 9, "elastic": ElasticSettings(3, 10)}),
    ],
)
def test_what_others_hold_is_no_reason_for_never(
    cast: Cast, node: dict[str, Any], more: dict[str, Any]
) -> None:
    a_node(cast, **node)
    found = check_fit(asking(cast.team_a, Gpus(1), **more), cast.team_a)
    assert found.nodes.verdict in (Verdict.WARNS, Verdict.FITS)


@pytest.mark.parametrize(
    ("node", "more"),
    [
        ({"taints": [{"key": key, "effect": "NoSchedule"}]}, {})
        for key in (
            "node.kubernetes.io/unschedulable",
            "node.cloudprovider.kubernetes.io/uninitialized",
            "ToBeDeletedByClusterAutoscaler",
        )
    ]
    + [
        ({"gpus": 0, "gpus_unhealthy": Decimal(8)}, {}),
        ({"labels": {f"label-{number}": "x" for number in range(MAX_LABELS)}}, {"node_type": "a"}),
    ],
)
def test_a_node_that_may_come_back_is_no_reason_for_never(
    cast: Cast, node: dict[str, Any], more: dict[str, Any]
) -> None:
    a_node(cast, "small", gpus=1, labels={"run.ai/type": "a"})
    a_node(cast, "large", **({"gpus": 8, "is_schedulable": "labels" in node} | node))
    found = check_fit(asking(cast.team_a, Gpus(2), **more), cast.team_a)
    assert found.nodes.verdict is Verdict.WARNS


def test_pods_of_ours_take_the_places_of_pods(cast: Cast) -> None:
    a_node(cast, pods=4)
    add_gpu_holder(cast.team_b, "0")
    add_gpu_holder(cast.team_b, "0")
    text = check_fit(asking(cast.team_a, NO_GPU), cast.team_a).nodes.text
    assert "The nodes have room for 2 of its 3 pods now" in text


def test_each_run_of_a_standard_workload_starts_by_itself(cast: Cast) -> None:
    a_node(cast, gpus=1)
    runs = replace(
        asking(cast.team_a, WHOLE), architecture=Architecture.STANDARD, framework=None, runs=50,
        parallelism=50,
    )  # fmt: skip
    found = check_fit(runs, cast.team_a)
    assert found.nodes.verdict is Verdict.WARNS
    assert "room for 1 of its 50 pods now" in found.nodes.text


@pytest.mark.parametrize(
    ("limits", "compute", "words"),
    [
        ({"cpu_limit": 2}, Compute(cpu_request="1"), "needs 3 CPU cores, and project team-a may"),
        ({"memory_limit": GI}, Compute(memory_request="1Gi"), "hold 1 GiB of memory at most"),
        ({"gpu_limit": 2}, Compute(WHOLE), "needs 3 GPUs, and project team-a may hold 2 GPUs"),
    ],
)
def test_more_than_the_project_may_hold_can_never_start(
    cast: Cast, limits: dict[str, Any], compute: Compute, words: str
) -> None:
    for name, value in limits.items():
        setattr(cast.team_a, name, Decimal(value) if name != "memory_limit" else value)
    check = check_fit(asking_for(cast.team_a, compute), cast.team_a).quota
    assert check.verdict is Verdict.NEVER
    assert words in check.text
    assert "ask an administrator for a higher limit" in check.text


def test_more_than_the_department_may_hold_can_never_start(cast: Cast) -> None:
    cast.team_a.department.gpu_limit = Decimal(1)
    check = check_fit(asking(cast.team_a, WHOLE), cast.team_a).quota
    assert check.verdict is Verdict.NEVER
    assert "department research may hold 1 GPU at most" in check.text


def test_no_limit_holds_where_nothing_enforces_it(cast: Cast) -> None:
    cast.cluster.capabilities = Capabilities(served=frozenset({"batch/v1/jobs"})).to_json()
    cast.team_a.cluster, cast.team_a.gpu_limit = cast.cluster, Decimal(1)
    spec = asking(cast.team_a, WHOLE, lifecycle=UNWILLING)
    assert check_fit(spec, cast.team_a).quota.verdict is Verdict.FITS


def use_kai(cast: Cast, has_scheduler: bool | None) -> None:
    cast.cluster.capabilities = Capabilities(
        served=frozenset({QUEUES, PODGROUPS, "batch/v1/jobs", "kubeflow.org/v1/pytorchjobs"}),
        has_scheduler=has_scheduler,
    ).to_json()
    cast.cluster.save()
    cast.team_a.cluster = cast.cluster


def test_nothing_starts_where_the_kinds_of_kai_are_there_and_nobody_schedules(cast: Cast) -> None:
    use_kai(cast, False)
    spec = asking(cast.team_a, NO_GPU)
    fit = check_fit(spec, cast.team_a)
    assert fit.verdict is Verdict.NEVER
    assert "Nobody schedules in cluster" in fit.checks[0].text
    assert fit.quota.verdict is Verdict.FITS
    (text,) = judge_submission(spec, cast.team_a).impossibilities
    assert "the scheduler itself was not at work" in text
    walk = Walk(cast).send_start()
    walk.send_setup()
    page = " ".join(walk.see("review").text.split())
    assert "Nobody schedules in cluster" in page
    assert "does not have the KAI scheduler" not in page


@pytest.mark.parametrize("has_scheduler", [True, None])
def test_nothing_is_said_of_a_scheduler_that_works_or_is_not_known(
    cast: Cast, has_scheduler: bool | None
) -> None:
    use_kai(cast, has_scheduler)
    assert check_fit(asking(cast.team_a, NO_GPU), cast.team_a).scheduler is None


def test_a_cluster_without_kai_schedules_by_itself(cast: Cast) -> None:
    cast.cluster.capabilities = Capabilities(
        served=frozenset({"batch/v1/jobs"}), has_scheduler=False
    ).to_json()
    cast.team_a.cluster = cast.cluster
    assert check_fit(asking(cast.team_a, NO_GPU), cast.team_a).scheduler is None


def test_what_is_impossible_costs_no_look_at_pods(cast: Cast) -> None:
    a_node(cast, pods=64)
    add_gpu_holder(cast.team_a, "1")
    spec = asking(cast.team_a, NO_GPU, workers=MOST_INT32)
    judged = judge_submission(spec, cast.team_a)
    with CaptureQueriesContext(connection) as queries:
        (text,) = judged.impossibilities
    assert "2,147,483,648 pods" in text
    assert len(queries) <= 2
    assert judge_submission(a_spec(cast.team_a), cast.team_a).impossibilities == []
    assert judged.pools == NO_POOLS


def test_the_review_says_so_before_it_is_submitted(cast: Cast) -> None:
    Node.objects.create(
        cluster=cast.cluster, name="n", is_ready=True, cpu=64, memory=2**38, gpus=8, pods=2
    )
    walk = Walk(cast).send_start()
    walk.send_setup()
    page = " ".join(walk.see("review").text.split())
    assert "mu-alert--danger" in page
    assert "With what there is now it cannot start. Change what is named here" in page
    assert "pods at once, and the nodes that may take them hold 2 in all." in page


def test_a_program_is_warned_in_the_answer(cast: Cast) -> None:
    a_node(cast, pods=64)
    bob = Caller(cast.bob)
    large = bob("POST", "/workloads/distributed", a_body(cast, numWorkers=10_000), 202)
    (warning,) = large["warnings"]
    assert "it needs 10,001 pods at once" in warning
    small = bob("POST", "/workloads/distributed", a_body(cast, "train2", numWorkers=3), 202)
    assert "warnings" not in small


def test_a_program_is_warned_of_a_claim_that_its_pods_cannot_share(cast: Cast) -> None:
    for name in ("n1", "n2"):
        a_node(cast, name)
    claim = {"path": "/data", "claimInfo": {"size": "1Gi"}}
    body = a_body(cast, storage={"pvc": [claim]})
    bob = Caller(cast.bob)
    fit = bob("POST", "/workloads/distributed/preview", body)["fit"]
    assert (fit["volumes"]["verdict"], "scheduler" in fit) == ("waits", False)
    (warning,) = bob("POST", "/workloads/distributed", body, 202)["warnings"]
    assert warning == fit["volumes"]["message"]
    assert warning.startswith("The new volume at /data is ReadWriteOnce")


def test_a_person_and_a_program_read_the_same_of_too_few_nodes_for_a_port(cast: Cast) -> None:
    a_node(cast, gpus=8)
    body = a_body(cast, "train2", security={"hostNetwork": True})
    bob = Caller(cast.bob)
    fit = bob("POST", "/workloads/distributed/preview", body)["fit"]
    text = fit["nodes"]["message"]
    assert (fit["verdict"], fit["nodes"]["verdict"]) == ("never", "never")
    assert "each pod takes port 23456 of a node for itself, so it needs 3 nodes at once" in text
    assert bob("POST", "/workloads/distributed", body, 202)["warnings"] == [text]
    walk = Walk(cast).send_start()
    walk.send_setup(host_network="on")
    assert text in " ".join(html.unescape(walk.see("review").text).split())
