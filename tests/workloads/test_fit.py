"""Whether a submission fits now, from rows."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.capabilities import Capabilities
from clusters.models import Node
from projects.models import Project
from tests.cast import Cast, a_spec
from workloads import fit, placement_rules
from workloads.fit import Verdict
from workloads.models import Pod, Workload
from workloads.specs import (
    Architecture,
    ClaimAccess,
    Compute,
    Configuration,
    ElasticSettings,
    Environment,
    Framework,
    Gpus,
    Lifecycle,
    MasterChanges,
    NewClaim,
    Pair,
    Preemptibility,
    Setup,
    Spec,
    Topology,
    encode_spec,
)

pytestmark = pytest.mark.django_db
GI = 1 << 30
PYTORCH = Framework.PYTORCH
WORKERS_ONLY = Configuration.WORKERS_ONLY


def a_node(cast: Cast, name: str = "n1", gpus: int = 4, **more: Any) -> Node:
    return Node.objects.create(
        **(
            {
                "cluster": cast.cluster,
                "name": name,
                "is_ready": True,
                "gpus": gpus,
                "cpu": 8,
                "memory": 16 * GI,
            }
            | more
        )
    )


def asking(project: Project, gpus: Gpus, **more: Any) -> Spec:
    setup = Setup(
        Environment("x"),
        Compute(gpus, cpu_request="1", memory_request="1Gi"),
        node_type=more.pop("node_type", ""),
    )
    return a_spec(project, setup=setup, **more)


def check_fit(spec: Spec, project: Project) -> fit.Fit:
    return fit.check_fit(spec, project, placement_rules.load_pools(project))


def add_gpu_holder(
    project: Project,
    gpus: str,
    node: str = "n1",
    status: str = "Running",
    *,
    is_preemptible: bool = True,
) -> None:
    """A workload of the project that has so many GPUs on a node."""
    workload = Workload.objects.create(
        project=project,
        cluster=project.cluster,
        name=f"held-{Workload.objects.count()}",
        spec={},
        status=status,
        preemptible=is_preemptible,
        gpus_allocated=Decimal(gpus),
    )
    requests = {"requests": {"cpu": "1", "memory": "1Gi"}}
    data = {"spec": {"containers": [{"resources": requests}]}}
    Pod.objects.create(
        workload=workload,
        attempt=1,
        uid=workload.name,
        name=workload.name,
        node=node,
        phase="Running",
        gpus=gpus,
        data=data,
    )


WHOLE = Gpus(1)
TENTH = Gpus(1, Decimal("0.1"))
UNWILLING = Lifecycle(preemptibility=Preemptibility.NON_PREEMPTIBLE)
QUOTA: list[tuple[str, Gpus, dict[str, Any], str, Verdict, str]] = [
    ("0", TENTH, {}, "2", Verdict.FITS, "it needs 0.3 GPUs; project team-a holds 0 of its 2 GPUs"),
    ("1.7", TENTH, {}, "2", Verdict.FITS, "holds 1.7 of its 2 GPUs"),
    ("1.8", TENTH, {}, "2", Verdict.WARNS, "It runs while others leave GPUs free"),
    (
        "0",
        WHOLE,
        {"lifecycle": UNWILLING},
        "2",
        Verdict.NEVER,
        "is not preemptible, and the quota of project team-a is 2 GPUs",
    ),
    (
        "1.8",
        TENTH,
        {"lifecycle": UNWILLING},
        "2",
        Verdict.FITS,
        "work of project team-a that is not preemptible holds 0 of its 2 GPUs",
    ),
    (
        "0",
        WHOLE,
        {"workers": 2, "elastic": ElasticSettings(2, 5)},
        "2",
        Verdict.FITS,
        "it needs 2 GPUs",
    ),
    ("0", Gpus(0), {}, "2", Verdict.FITS, "no GPU"),
    ("9", WHOLE, {}, "", Verdict.FITS, "no GPU quota"),
    ("0", Gpus(1, memory="1Gi"), {}, "2", Verdict.UNKNOWN, "not checked"),
]


@pytest.mark.parametrize(("held_gpus", "gpus", "more", "quota", "verdict", "words"), QUOTA)
def test_the_quota(
    cast: Cast,
    held_gpus: str,
    gpus: Gpus,
    more: dict[str, Any],
    quota: str,
    verdict: Verdict,
    words: str,
) -> None:
    cast.team_a.gpu_quota = Decimal(quota) if quota else None
    add_gpu_holder(cast.team_a, held_gpus)
    add_gpu_holder(cast.team_a, "5", status="Completed")
    check = check_fit(asking(cast.team_a, gpus, **more), cast.team_a).quota
    assert check.verdict is verdict
    assert words in check.text


def test_the_limit(cast: Cast) -> None:
    cast.team_a.gpu_quota, cast.team_a.gpu_limit = Decimal(2), Decimal(4)
    spec = asking(cast.team_a, WHOLE)
    add_gpu_holder(cast.team_a, "1")
    assert "It runs while others leave GPUs free" in check_fit(spec, cast.team_a).quota.text
    add_gpu_holder(cast.team_a, "1")
    assert (
        "2 GPUs, and 4 GPUs is the most it may hold. It waits"
        in check_fit(spec, cast.team_a).quota.text
    )
    cast.team_a.gpu_limit = Decimal(2)
    assert (
        "may hold 2 GPUs at most. As it is, it can never start."
        in check_fit(spec, cast.team_a).quota.text
    )


@pytest.mark.parametrize(
    ("holder", "words"),
    [
        ("team_a", "work of project team-a that is not preemptible holds 1.8 of its 2 GPUs"),
        ("team_b", "work of department research that is not preemptible holds 1.8 of its 2 GPUs"),
    ],
)
def test_what_nobody_may_take_waits_for_the_same_alone(cast: Cast, holder: str, words: str) -> None:
    """The scheduler compares both quotas with what is not preemptible, and with nothing else."""
    cast.team_a.gpu_quota = cast.team_a.department.gpu_quota = Decimal(2)
    spec = asking(cast.team_a, TENTH, lifecycle=UNWILLING)
    add_gpu_holder(cast.team_a, "1.8")
    assert check_fit(spec, cast.team_a).quota.verdict is Verdict.FITS
    add_gpu_holder(getattr(cast, holder), "1.8", is_preemptible=False)
    check = check_fit(spec, cast.team_a).quota
    assert check.verdict is Verdict.WARNS
    assert words in check.text
    assert "it waits until the quota has room" in check.text


@pytest.mark.parametrize("quota", [None, Decimal(4)])
def test_the_limit_of_the_department(cast: Cast, quota: Decimal | None) -> None:
    """What other projects of the department hold counts against its limit."""
    cast.team_a.gpu_quota = quota
    cast.team_a.department.gpu_limit = Decimal(4)
    spec = asking(cast.team_a, WHOLE)
    add_gpu_holder(cast.team_b, "1")
    assert check_fit(spec, cast.team_a).quota.verdict is Verdict.FITS
    add_gpu_holder(cast.team_b, "1")
    check = check_fit(spec, cast.team_a).quota
    assert check.verdict is Verdict.WARNS
    assert check.text == (
        "Over the limit: it needs 3 GPUs; department research holds 2 GPUs, and 4 GPUs is the "
        "most it may hold. It waits until the department holds fewer."
    )


def test_without_kai_no_quota_is_enforced(cast: Cast) -> None:
    cast.cluster.capabilities = Capabilities(served=frozenset({"batch/v1/jobs"})).to_json()
    cast.team_a.cluster = cast.cluster
    check = check_fit(asking(cast.team_a, WHOLE), cast.team_a).quota
    assert check.verdict is Verdict.FITS
    assert "nothing enforces the quota there" in check.text


NODES: list[tuple[dict[str, Any], Gpus, dict[str, Any], Verdict, str]] = [
    ({}, WHOLE, {}, Verdict.FITS, "room for its 3 pods"),
    (
        {"used_gpus": 2},
        WHOLE,
        {},
        Verdict.WARNS,
        "room for 2 of its 3 pods now: 2 of 4 GPUs free on 1 ready node",
    ),
    ({"used_cpu": 6}, TENTH, {}, Verdict.WARNS, "room for 2 of its 3 pods"),
    ({"used_memory": 16 * GI}, TENTH, {}, Verdict.WARNS, "room for 0 of its 3 pods"),
    ({"is_ready": False}, TENTH, {}, Verdict.WARNS, "0 of 0 GPUs free on 0 ready nodes"),
    ({"is_schedulable": False}, TENTH, {}, Verdict.WARNS, "0 ready nodes"),
    ({"labels": {"run.ai/type": "a100"}}, TENTH, {"node_type": "a100"}, Verdict.FITS, "room"),
    (
        {"labels": {"run.ai/type": "v100"}},
        TENTH,
        {"node_type": "a100"},
        Verdict.WARNS,
        "The one ready node may not take its 3 pods: labels that are asked for",
    ),
    (
        {"taints": [{"key": "a", "value": "", "effect": "NoSchedule"}]},
        TENTH,
        {},
        Verdict.WARNS,
        "or taints are not tolerated",
    ),
    (
        {"taints": [{"key": "a", "value": "", "effect": "PreferNoSchedule"}]},
        TENTH,
        {},
        Verdict.FITS,
        "room for its 3 pods",
    ),
    ({"gpus": 2}, WHOLE, {"elastic": ElasticSettings(2, 5)}, Verdict.FITS, "its 2 pods"),
    ({"gpus": 1}, WHOLE, {"elastic": ElasticSettings(1, 5)}, Verdict.FITS, "its one pod"),
    (
        {"gpus": 5, "used_gpus": 2},
        WHOLE,
        {"workers": 5, "master": MasterChanges(gpus=Gpus(0))},
        Verdict.WARNS,
        "room for 4 of its 6 pods",
    ),
    ({}, Gpus(1, memory="1Gi"), {}, Verdict.FITS, "GPU memory is not checked"),
]


@pytest.mark.parametrize(("node", "gpus", "more", "verdict", "words"), NODES)
def test_the_nodes(
    cast: Cast, node: dict[str, Any], gpus: Gpus, more: dict[str, Any], verdict: Verdict, words: str
) -> None:
    seen_at = a_node(cast, **node).seen_at
    check = check_fit(asking(cast.team_a, gpus, **more), cast.team_a).nodes
    assert check.verdict is verdict
    assert words in check.text
    assert check.seen_at == seen_at


def test_pods_of_every_project_take_room(cast: Cast) -> None:
    a_node(cast, gpus=3)
    add_gpu_holder(cast.team_b, "1")
    assert (
        "room for 2 of its 3 pods" in check_fit(asking(cast.team_a, WHOLE), cast.team_a).nodes.text
    )


def test_pods_that_ended_or_vanished_take_none(cast: Cast) -> None:
    a_node(cast, gpus=3)
    for change in ({"phase": "Succeeded"}, {"vanished_at": timezone.now()}):
        add_gpu_holder(cast.team_b, "1")
        Pod.objects.filter(pk=Pod.objects.latest("pk").pk).update(**change)
    assert check_fit(asking(cast.team_a, WHOLE), cast.team_a).nodes.verdict is Verdict.FITS


def test_pods_are_spread_over_nodes(cast: Cast) -> None:
    for name in ("n1", "n2", "n3"):
        a_node(cast, name, gpus=1)
    assert check_fit(asking(cast.team_a, WHOLE), cast.team_a).nodes.verdict is Verdict.FITS


def test_a_pod_needs_its_devices_on_one_node(cast: Cast) -> None:
    for number in range(4):
        a_node(cast, f"localkube-{number}", gpus=1)
    check = check_fit(asking(cast.team_a, Gpus(2)), cast.team_a).nodes
    assert check.verdict is Verdict.NEVER
    assert "a pod needs 2 GPUs on one node, and the largest that may take it has 1" in check.text


def on_host_network(spec: Spec) -> Spec:
    security = replace(spec.setup.security, host_network=True)
    return replace(spec, setup=replace(spec.setup, security=security))


def add_network_user(project: Project, node: str, framework: Framework = PYTORCH) -> None:
    """A workload of the project with one pod on the network of a node."""
    spec = on_host_network(a_spec(project, framework=framework, workers=1))
    workload = Workload.objects.create(
        project=project,
        cluster=project.cluster,
        name=f"network-{Workload.objects.count()}",
        spec=encode_spec(spec),
    )
    names = {"uid": workload.name, "name": workload.name, "role": "worker"}
    Pod.objects.create(workload=workload, attempt=1, node=node, phase="Running", **names)


def test_pods_on_the_network_of_their_hosts_need_a_node_each(cast: Cast) -> None:
    a_node(cast, "n1")
    check = check_fit(on_host_network(asking(cast.team_a, TENTH, workers=1)), cast.team_a).nodes
    assert check.verdict is Verdict.NEVER
    assert check.text == (
        "With the nodes that cluster here has now it cannot start: on the host's network each pod "
        "takes port 23456 of a node for itself, so it needs 2 nodes at once, and 1 node may take "
        "its pods. It waits until the cluster has more nodes; or use fewer workers, or not the "
        "host's network."
    )
    a_node(cast, "n2", is_ready=False)
    check = check_fit(on_host_network(asking(cast.team_a, TENTH, workers=1)), cast.team_a).nodes
    assert check.verdict is Verdict.WARNS
    assert check.text == (
        "The nodes have room for 1 of its 2 pods now: 4 of 4 GPUs free on 1 ready node. On the "
        "host's network each pod takes port 23456 of a node for itself."
    )
    Node.objects.update(is_ready=True)
    check = check_fit(on_host_network(asking(cast.team_a, TENTH, workers=1)), cast.team_a).nodes
    assert check.text == "The nodes have room for its 2 pods now."


def test_nodes_too_small_for_a_pod_are_none_for_its_port(cast: Cast) -> None:
    a_node(cast, "n1")
    a_node(cast, "n2", gpus=0)
    check = check_fit(on_host_network(asking(cast.team_a, WHOLE, workers=1)), cast.team_a).nodes
    assert check.verdict is Verdict.NEVER
    assert "it needs 2 nodes at once, and 1 node may take its pods" in check.text


def test_a_port_that_another_pod_has_is_not_free(cast: Cast) -> None:
    a_node(cast, "n1")
    a_node(cast, "n2")
    add_network_user(cast.team_b, "n1", Framework.XGBOOST)
    spec = on_host_network(asking(cast.team_a, TENTH, workers=1))
    assert check_fit(spec, cast.team_a).nodes.verdict is Verdict.FITS
    add_network_user(cast.team_b, "n1")
    check = check_fit(spec, cast.team_a).nodes
    assert check.verdict is Verdict.WARNS
    assert check.text.endswith(
        "On the host's network each pod takes port 23456 of a node for itself, and on 1 of these "
        "nodes another pod has it."
    )


@pytest.mark.parametrize(
    "more",
    [
        {"framework": Framework.MPI},
        {"architecture": Architecture.STANDARD, "framework": None, "runs": 4, "parallelism": 4},
        {"workers": 3, "elastic": ElasticSettings(1, 4), "configuration": WORKERS_ONLY},
    ],
    ids=["mpi", "standard", "elastic"],
)
def test_the_network_of_a_host_is_enough_for_pods_without_ports_or_for_one(
    cast: Cast, more: dict[str, Any]
) -> None:
    a_node(cast, "n1")
    spec = on_host_network(asking(cast.team_a, TENTH, **more))
    assert check_fit(spec, cast.team_a).nodes.verdict is Verdict.FITS


def test_nothing_known_is_said_to_be_not_checked(cast: Cast) -> None:
    found = check_fit(asking(cast.team_a, TENTH), cast.team_a)
    assert (found.nodes.verdict, found.nodes.seen_at, found.verdict) == (
        Verdict.UNKNOWN,
        None,
        Verdict.UNKNOWN,
    )
    assert "not checked" in found.nodes.text


def test_queries_do_not_grow(cast: Cast) -> None:
    counts = []
    for number in range(2):
        for each in range(5):
            a_node(cast, f"n{number}-{each}")
            add_gpu_holder(cast.team_b, "1", f"n{number}-{each}")
        with CaptureQueriesContext(connection) as captured:
            check_fit(asking(cast.team_a, TENTH), cast.team_a)
        counts.append(len(captured))
    assert counts[0] == counts[1] <= 5


ONE_NODE_CLAIM = NewClaim(path="/data", size="1Gi")
HOST = "kubernetes.io/hostname"


def mounting(project: Project, claim: NewClaim, workers: int = 2, **setup: Any) -> Spec:
    spec = asking(project, TENTH, workers=workers)
    return replace(spec, setup=replace(spec.setup, volumes=(claim,), **setup))


def test_pods_of_several_nodes_that_share_a_claim_of_one_node_are_warned_of(cast: Cast) -> None:
    spec = mounting(cast.team_a, ONE_NODE_CLAIM)
    for name in ("n1", "n2"):
        a_node(cast, name)
    found = check_fit(spec, cast.team_a)
    assert found.volumes is not None
    assert found.volumes.text.startswith(
        "The new volume at /data is ReadWriteOnce: pods of one node alone may mount it, and 3 pods "
        "of this workload mount it."
    )
    assert "Give it the access ReadWriteMany" in found.volumes.text
    assert (found.verdict, found.quota.verdict, found.nodes.verdict) == (
        Verdict.WARNS,
        Verdict.FITS,
        Verdict.FITS,
    )
    assert found.text == "It may not start as it is. You can submit it all the same."
    assert found.volumes in found.checks


@pytest.mark.parametrize(
    ("claim", "setup"),
    [
        (replace(ONE_NODE_CLAIM, modes=tuple(ClaimAccess)), {}),
        (replace(ONE_NODE_CLAIM, ephemeral=True), {}),
        (ONE_NODE_CLAIM, {"topology": Topology(HOST, required=True)}),
        (ONE_NODE_CLAIM, {"node_selector": (Pair(HOST, "n1"),)}),
    ],
    ids=["every-node", "one-for-each-pod", "one-node-by-topology", "one-node-by-selector"],
)
def test_nothing_is_said_of_a_claim_that_all_pods_can_mount(
    cast: Cast, claim: NewClaim, setup: dict[str, Any]
) -> None:
    for name in ("n1", "n2"):
        a_node(cast, name)
    assert check_fit(mounting(cast.team_a, claim, **setup), cast.team_a).volumes is None


def test_on_a_single_node_all_pods_can_mount_a_claim_of_one_node(cast: Cast) -> None:
    a_node(cast)
    assert check_fit(mounting(cast.team_a, ONE_NODE_CLAIM), cast.team_a).volumes is None


def test_a_single_pod_shares_its_claim_with_nobody(cast: Cast) -> None:
    spec = mounting(cast.team_a, ONE_NODE_CLAIM)
    alone = replace(spec, master=MasterChanges(volumes=()), workers=1)
    assert check_fit(alone, cast.team_a).volumes is None
