"""Node pools and a project's defaults: what is refused at submission, what reaches the pods, and
where they are placed.
"""

from typing import Any

import pytest
from django.test import Client

from clusters import connections
from clusters.kube import calls
from clusters.kube.resources import NODES
from clusters.models import Node, NodePool
from console.errors import Invalid
from projects import tokens
from tests.cast import Cast, a_spec
from tests.conformance.api import eventually
from tests.workloads.acting import SLEEP, Acting
from workloads import actions, fit, placement_rules, tasks, workload_manifests
from workloads.judgement import judge_submission
from workloads.manifests import placement
from workloads.manifests.placement import NodePools
from workloads.models import Workload
from workloads.specs import (
    Environment,
    Lifecycle,
    MasterChanges,
    Preemptibility,
    Priority,
    Setup,
    decode_spec,
)

PRODUCT = "nvidia.com/gpu.product"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def setup(*pools: str) -> Setup:
    return Setup(Environment("any", command=SLEEP), node_pools=pools)


@pytest.fixture
def pools(cast: Cast) -> dict[str, NodePool]:
    labels = {
        "h200": (PRODUCT, "NVIDIA-H200"),
        "l40s": (PRODUCT, "NVIDIA-L40S"),
        "reserved": ("example.com/reserved", "yes"),
    }
    return {
        name: NodePool.objects.create(
            cluster=cast.cluster, name=name, label_key=key, label_value=value
        )
        for name, (key, value) in labels.items()
    }


def affinity(pools: NodePools, *named: str) -> Any:
    return (
        placement.build_placement(setup(*named), "w", pools).get("affinity", {}).get("nodeAffinity")
    )


KNOWN = NodePools(
    {
        "h200": (PRODUCT, "NVIDIA-H200"),
        "l40s": (PRODUCT, "NVIDIA-L40S"),
        "reserved": ("example.com/reserved", "yes"),
    }
)


def in_term(key: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def test_a_pool_is_the_nodes_with_its_label() -> None:
    assert affinity(KNOWN, "h200") == {
        REQUIRED: {"nodeSelectorTerms": [in_term(PRODUCT, "NVIDIA-H200")]}
    }


def test_of_several_one_has_to_hold_and_the_first_is_preferred() -> None:
    found = affinity(KNOWN, "reserved", "h200", "l40s")
    terms = [in_term("example.com/reserved", "yes"), in_term(PRODUCT, "NVIDIA-H200", "NVIDIA-L40S")]
    assert found[REQUIRED] == {"nodeSelectorTerms": terms}
    assert [each["weight"] for each in found[PREFERRED]] == [100, 67, 34]
    assert found[PREFERRED][0]["preference"] == in_term("example.com/reserved", "yes")


def test_one_that_is_not_known_is_kais() -> None:
    assert affinity(KNOWN, "spot") == {
        REQUIRED: {"nodeSelectorTerms": [in_term("kai.scheduler/node-pool", "spot")]}
    }


def test_what_names_none_is_kept_to_the_projects_without_an_order() -> None:
    kept = NodePools(KNOWN.labels, ("h200", "l40s"))
    assert affinity(kept) == {
        REQUIRED: {"nodeSelectorTerms": [in_term(PRODUCT, "NVIDIA-H200", "NVIDIA-L40S")]}
    }
    assert affinity(kept, "l40s") == {
        REQUIRED: {"nodeSelectorTerms": [in_term(PRODUCT, "NVIDIA-L40S")]}
    }
    assert affinity(NodePools(KNOWN.labels)) is None


def find_problems_of(cast: Cast, named: Setup, **more: Any) -> list[tuple[str, str]]:
    with pytest.raises(Invalid) as refused:
        actions.submit(a_spec(cast.team_a, setup=named, **more), project=cast.team_a, user=cast.bob)
    assert not Workload.objects.exists()
    return list(refused.value.problems)


def test_one_that_there_is_not_is_refused_with_those_there_are(
    cast: Cast, pools: dict[str, NodePool]
) -> None:
    Node.objects.create(cluster=cast.cluster, name="n", labels={"kai.scheduler/node-pool": "spot"})
    [(field, text)] = find_problems_of(cast, setup("nowhere"))
    assert field == "setup.node_pools.0"
    assert (
        text == "The cluster here has no node pool nowhere. There are h200, l40s, reserved, spot."
    )
    assert actions.submit(
        a_spec(cast.team_a, setup=setup("spot", "h200")), project=cast.team_a, user=cast.bob
    )


def test_where_there_are_none_that_is_said(cast: Cast) -> None:
    Node.objects.create(cluster=cast.cluster, name="n", labels={})
    assert "It has none: name no pool" in find_problems_of(cast, setup("nowhere"))[0][1]


def test_one_that_the_project_may_not_use_is_refused_with_those_that_it_may(
    cast: Cast, pools: dict[str, NodePool]
) -> None:
    cast.team_a.node_pools.add(pools["h200"], pools["l40s"])
    [(field, text)] = find_problems_of(
        cast, setup("h200"), master=MasterChanges(node_pools=("reserved",))
    )
    assert field == "master.node_pools.0"
    assert text == (
        "Project team-a may not use the node pool reserved. It may use h200, l40s; name one of "
        "these, or none."
    )


def test_the_rest_api_names_the_field(
    client: Client, cast: Cast, pools: dict[str, NodePool]
) -> None:
    body = {
        "name": "x",
        "projectId": str(cast.team_a.pk),
        "clusterId": str(cast.cluster.pk),
        "spec": {"image": "any", "nodePools": ["nowhere"]},
    }
    token = {"authorization": f"Bearer {tokens.issue_token(cast.bob)[0]}"}
    answer = client.post(
        "/api/v1/workloads/trainings", body, content_type="application/json", headers=token
    )
    assert answer.status_code == 400
    assert answer.json()["details"][0]["field"].startswith("spec.nodePools")
    assert "There are h200, l40s, reserved." in answer.json()["message"]


def test_what_ran_does_not_run_again_where_it_may_not_be_any_more(
    cast: Cast, pools: dict[str, NodePool]
) -> None:
    workload = actions.submit(
        a_spec(cast.team_a, setup=setup("h200")), project=cast.team_a, user=cast.bob
    )
    Workload.objects.update(status="Stopped", desired="Stopped")
    cast.team_a.node_pools.add(pools["l40s"])
    workload.refresh_from_db()
    with pytest.raises(Invalid, match="may not use the node pool h200"):
        actions.run(workload, cast.bob)


def test_the_projects_pools_are_in_the_objects_of_what_names_none(
    cast: Cast, pools: dict[str, NodePool]
) -> None:
    cast.team_a.node_pools.add(pools["h200"])
    [*_, job] = workload_manifests.build_for_spec(
        a_spec(cast.team_a), cast.team_a, placement_rules.load_pools(cast.team_a)
    )
    for replica in job["spec"]["pytorchReplicaSpecs"].values():
        terms = replica["template"]["spec"]["affinity"]["nodeAffinity"][REQUIRED][
            "nodeSelectorTerms"
        ]
        assert terms == [in_term(PRODUCT, "NVIDIA-H200")]


def test_whether_it_fits_is_asked_of_the_pools_nodes(
    cast: Cast, pools: dict[str, NodePool]
) -> None:
    room = {"cluster": cast.cluster, "is_ready": True, "gpus": 8, "cpu": 64, "memory": 1 << 40}
    Node.objects.create(name="n", labels={PRODUCT: "NVIDIA-L40S"}, **room)
    assert judge_submission(a_spec(cast.team_a), cast.team_a).fit.nodes.verdict is fit.Verdict.FITS
    cast.team_a.node_pools.add(pools["h200"])
    assert (
        "labels that are asked for are missing"
        in judge_submission(a_spec(cast.team_a), cast.team_a).fit.nodes.text
    )


@pytest.mark.parametrize(
    ("lifecycle", "is_preemptible"),
    [
        (Lifecycle(), False),
        (Lifecycle(preemptibility=Preemptibility.PREEMPTIBLE), True),
        (Lifecycle(priority=Priority.LOW), True),
    ],
)
def test_a_project_says_whether_what_says_nothing_may_be_interrupted(
    cast: Cast, lifecycle: Lifecycle, is_preemptible: bool
) -> None:
    cast.team_a.default_preemptible = False
    workload = actions.submit(
        a_spec(cast.team_a, lifecycle=lifecycle), project=cast.team_a, user=cast.bob
    )
    assert workload.preemptible is is_preemptible
    assert decode_spec(workload.spec).is_preemptible is is_preemptible


def test_without_its_word_it_may_be(cast: Cast) -> None:
    assert actions.submit(a_spec(cast.team_a), project=cast.team_a, user=cast.bob).preemptible


@pytest.mark.parametrize("default", [True, False])
def test_the_page_preselects_it(client: Client, cast: Cast, default: bool) -> None:
    cast.team_a.default_preemptible = default
    cast.team_a.save()
    client.force_login(cast.bob)
    answer: Any = client.get("/workloads/new")
    draft = answer.url.rpartition("/")[0]
    started = client.post(
        f"{draft}/start",
        {
            "cluster": str(cast.cluster.pk),
            "project": str(cast.team_a.pk),
            "architecture": "Standard",
            "template": "scratch",
            "name": "train1",
            "framework": "PyTorch",
        },
    )
    assert started.status_code == 302
    chosen = client.get(f"{draft}/setup").context["form"]["preemptibility"].value()
    assert chosen == ("preemptible" if default else "non-preemptible")


def test_on_a_cluster_pods_go_to_the_pools_nodes_and_wait_where_there_is_none(
    acting: Acting,
) -> None:
    cast, [node] = acting.cast, calls.list_page(acting.client, NODES).items
    name = node["metadata"]["name"]
    calls.patch(
        acting.client,
        NODES,
        name,
        {"metadata": {"labels": {"example.com/pool": "big"}}},
        manager="tests",
    )
    try:
        for pool, value in (("big", "big"), ("small", "small")):
            NodePool.objects.create(
                cluster=cast.cluster, name=pool, label_key="example.com/pool", label_value=value
            )
        cast.team_a.node_pools.set(NodePool.objects.filter(name="big"))
        placed = acting.submit("placed", setup=Setup(Environment("any", command=SLEEP)))
        launch_until_job(acting, placed)
        acting.until(placed, "Running")
        cast.team_a.node_pools.clear()
        waits = acting.submit("waits", setup=setup("small"))
        launch_until_job(acting, waits)

        def names_affinity() -> bool:
            acting.poll()
            return "affinity" in Workload.objects.get(pk=waits.pk).reason

        eventually(names_affinity)
    finally:
        calls.patch(
            acting.client,
            NODES,
            name,
            {"metadata": {"labels": {"example.com/pool": None}}},
            manager="tests",
        )
        connections.close_all()


def launch_until_job(acting: Acting, workload: Workload) -> None:
    acting.repeat(tasks.launch, workload, lambda: workload.job_uid)
