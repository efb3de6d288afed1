"""Node pools: pages and REST, who may, labels by Kubernetes' rules, and what stands against their
end.
"""

import re
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from clusters.label_syntax import describe_key_problem, describe_value_problem
from clusters.models import Cluster, Node, NodePool
from projects import tokens
from projects.models import AuditEntry, User
from tests.cast import Cast, a_spec
from tests.projects.editing import edit
from workloads import journal
from workloads.models import Workload
from workloads.specs import Environment, MasterChanges, Setup

API = "/api/v1/node-pools"
GIVEN = {"name": "h200", "label_key": "nvidia.com/gpu.product", "label_value": "NVIDIA-H200"}


@pytest.fixture
def pool(cast: Cast) -> NodePool:
    Node.objects.create(
        cluster=cast.cluster,
        name="n1",
        gpus=8,
        is_ready=True,
        labels={"nvidia.com/gpu.product": "NVIDIA-H200"},
    )
    Node.objects.create(
        cluster=cast.cluster,
        name="n2",
        gpus=4,
        is_ready=True,
        labels={"nvidia.com/gpu.product": "NVIDIA-L40S"},
    )
    return NodePool.objects.create(cluster=cast.cluster, **GIVEN)


def head(user: User) -> dict[str, Any]:
    return {"headers": {"authorization": f"Bearer {tokens.issue_token(user)[0]}"}}


def test_an_administrator_makes_one_and_it_is_audited(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    answer = client.post(
        "/node-pools/new", GIVEN | {"cluster": str(cast.cluster.pk), "description": "The new ones"}
    )
    made = NodePool.objects.get()
    assert answer.headers["Location"] == f"/node-pools/{made.pk}"
    assert (made.name, made.label_key, made.label_value, made.created_by) == (
        "h200",
        GIVEN["label_key"],
        "NVIDIA-H200",
        cast.alice,
    )
    entry = AuditEntry.objects.get(entity="node-pool")
    assert (entry.event, entry.scope) == ("create", f"cluster:{cast.cluster.pk}")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": "default"}, "name"),
        ({"name": "Big"}, "name"),
        ({"label_key": ""}, "label_key"),
        ({"label_key": "Example.com/x"}, "label_key"),
        ({"label_key": "a/b/c"}, "label_key"),
        ({"label_value": "a b"}, "label_value"),
        ({"label_value": "-x"}, "label_value"),
    ],
)
def test_what_cannot_be_is_told_beside_it(
    client: Client, cast: Cast, wrong: dict[str, str], field: str
) -> None:
    client.force_login(cast.alice)
    answer = client.post("/node-pools/new", GIVEN | {"cluster": str(cast.cluster.pk)} | wrong)
    assert answer.status_code == 422
    assert field in answer.context["form"].errors


@pytest.mark.parametrize(
    ("key", "is_right"),
    [
        ("pool", True),
        ("example.com/pool", True),
        ("a" * 63, True),
        ("a" * 64, False),
        ("", False),
        ("/pool", False),
        ("example..com/pool", False),
        ("pool-", False),
        (f"{'a' * 254}/x", False),
    ],
)
def test_keys_are_those_of_kubernetes(key: str, is_right: bool) -> None:
    assert (describe_key_problem(key) == "") is is_right


def test_values_are_those_of_kubernetes() -> None:
    assert [
        describe_value_problem(each) == ""
        for each in ("", "a", "A.b_c-d", "a" * 63, "a" * 64, ".a", "a/b")
    ] == [True] * 4 + [False] * 3


def test_a_name_and_a_label_are_taken_once_a_cluster(
    client: Client, cast: Cast, pool: NodePool
) -> None:
    client.force_login(cast.alice)
    here = {"cluster": str(cast.cluster.pk)}
    same_name = client.post("/node-pools/new", GIVEN | here | {"label_value": "other"})
    assert "has a node pool h200 already" in same_name.content.decode()
    assert (
        "h200 has this label already"
        in client.post("/node-pools/new", GIVEN | here | {"name": "other"}).content.decode()
    )
    other = Cluster.objects.create(name="other", server="https://127.0.0.1:2")
    assert client.post("/node-pools/new", GIVEN | {"cluster": str(other.pk)}).status_code == 302


def test_a_member_sees_its_nodes_and_changes_nothing(
    client: Client, cast: Cast, pool: NodePool
) -> None:
    client.force_login(cast.bob)
    text = client.get("/node-pools").content.decode()
    assert "h200" in text
    assert 'href="/node-pools/new"' not in text
    page = client.get(f"/node-pools/{pool.pk}").content.decode()
    # As a whole word: a token of the page's forms may have the letters.
    assert re.search(r"\bn1\b", page)
    assert not re.search(r"\bn2\b", page)
    assert "0 of 8 allocated" in page
    assert client.get("/node-pools/new").status_code == 403
    for path in ("edit", "delete"):
        assert client.post(f"/node-pools/{pool.pk}/{path}").status_code == 403


def test_those_of_a_cluster_that_one_does_not_see_are_not_there(client: Client, cast: Cast) -> None:
    other = Cluster.objects.create(name="other", server="https://127.0.0.1:2")
    theirs = NodePool.objects.create(cluster=other, **GIVEN)
    client.force_login(cast.bob)
    assert "h200" not in client.get("/node-pools").content.decode()
    for path in ("", "/edit", "/delete"):
        assert client.get(f"/node-pools/{theirs.pk}{path}").status_code == 404
    assert client.get(f"{API}/{theirs.pk}", **head(cast.bob)).status_code == 404


def test_the_second_of_two_gets_what_changed_meanwhile(
    client: Client, cast: Cast, pool: NodePool
) -> None:
    client.force_login(cast.alice)
    at, given = f"/node-pools/{pool.pk}/edit", {"label_key": "gpu", "label_value": "h200"}
    seal = client.get(at).context["started_from"]
    assert edit(client, at, given).status_code == 302
    answer = client.post(at, given | {"description": "mine", "started_from": seal})
    assert answer.status_code == 409
    assert "was <q>nvidia.com/gpu.product</q>, is now <q>gpu</q>" in answer.content.decode()
    pool.refresh_from_db()
    assert (pool.description, pool.version) == ("", 2)


def test_one_that_is_in_use_is_not_deleted(client: Client, cast: Cast, pool: NodePool) -> None:
    cast.team_a.node_pools.add(pool)
    setup = Setup(Environment("any"), node_pools=("h200",))
    first = journal.create_workload(
        a_spec(cast.team_a, "by-workers", setup=setup), project=cast.team_a, user=cast.bob
    )
    journal.create_workload(
        a_spec(cast.team_b, "by-master", master=MasterChanges(node_pools=("h200",))),
        project=cast.team_b,
        user=cast.mallory,
    )
    journal.create_workload(
        a_spec(cast.team_b, "by-nobody"), project=cast.team_b, user=cast.mallory
    )
    client.force_login(cast.alice)
    at = f"/node-pools/{pool.pk}/delete"
    text = client.get(at).content.decode()
    assert "Projects allow it: team-a." in text
    assert "Workloads ask for it: by-master, by-workers." in text
    assert client.post(at).status_code == 409
    cast.team_a.node_pools.clear()
    Workload.objects.filter(name__in=["by-master", "by-workers"]).update(status="Stopped")
    assert client.post(at).status_code == 302
    assert not NodePool.objects.exists()
    assert first.pk


def test_a_node_says_its_pools(client: Client, cast: Cast, pool: NodePool) -> None:
    client.force_login(cast.bob)
    assert "h200" in client.get(f"/clusters/{cast.cluster.pk}/nodes/n1").content.decode()
    assert "h200" not in client.get(f"/clusters/{cast.cluster.pk}/nodes/n2").content.decode()
    nodes = client.get("/api/v1/nodes", **head(cast.bob)).json()["nodes"]
    assert {each["name"]: each["nodePool"] for each in nodes} == {"n1": "h200", "n2": ""}


def test_over_rest(client: Client, cast: Cast, pool: NodePool) -> None:
    alice = head(cast.alice)
    [listed] = client.get(API, **head(cast.bob)).json()["nodepools"]
    assert (listed["name"], listed["nodes"], listed["gpus"], listed["status"]) == (
        "h200",
        1,
        8.0,
        {"phase": "Ready"},
    )
    body = {
        "name": "l40s",
        "clusterId": str(cast.cluster.pk),
        "labelKey": GIVEN["label_key"],
        "labelValue": "NVIDIA-L40S",
    }
    assert (
        client.post(API, body, content_type="application/json", **head(cast.bob)).status_code == 403
    )
    made = client.post(API, body, content_type="application/json", **alice).json()
    at = f"{API}/{made['id']}"
    assert (
        client.patch(at, {"labelValue": "x y"}, content_type="application/json", **alice).json()[
            "details"
        ][0]["field"]
        == "labelValue"
    )
    assert (
        client.patch(at, {"name": "other"}, content_type="application/json", **alice).status_code
        == 400
    )
    changed = client.patch(
        at, made | {"description": "x"}, content_type="application/json", **alice
    ).json()
    assert (changed["description"], changed["version"]) == ("x", 2)
    assert (
        client.patch(at, {"version": 1}, content_type="application/json", **alice).status_code
        == 409
    )
    assert (
        client.patch(
            at, {"description": "y"}, content_type="application/json", **head(cast.bob)
        ).status_code
        == 403
    )
    assert client.delete(at, **alice).status_code == 200
    assert client.get(at, **alice).status_code == 404


def test_a_thousand_take_no_more_queries_than_one(
    client: Client, cast: Cast, pool: NodePool
) -> None:
    client.force_login(cast.alice)
    with CaptureQueriesContext(connection) as few:
        client.get("/node-pools")
    NodePool.objects.bulk_create(
        [
            NodePool(cluster=cast.cluster, name=f"p{n:04}", label_key="n", label_value=str(n))
            for n in range(1000)
        ]
    )
    Node.objects.bulk_create(
        [
            Node(cluster=cast.cluster, name=f"m{n}", gpus=Decimal(1), labels={"n": str(n)})
            for n in range(1000)
        ]
    )
    with CaptureQueriesContext(connection) as many:
        text = client.get("/node-pools?sort=-name").content.decode()
    assert len(many) == len(few) <= 10
    assert "p0999" in text


def test_a_price_needs_a_currency_and_is_audited(
    client: Client, cast: Cast, pool: NodePool
) -> None:
    client.force_login(cast.alice)
    address = f"/node-pools/{pool.pk}/edit"
    given = {"label_key": pool.label_key, "label_value": pool.label_value}
    for wrong, field in (
        ({"gpu_hour_price": "2.5"}, "currency"),
        ({"currency": "EUR"}, "gpu_hour_price"),
        ({"gpu_hour_price": "-1", "currency": "EUR"}, "gpu_hour_price"),
        ({"gpu_watts": "0"}, "gpu_watts"),
    ):
        assert field in edit(client, address, given | wrong).context["form"].errors
    edit(client, address, given | {"gpu_hour_price": "2.5", "currency": "EUR", "gpu_watts": "700"})
    pool.refresh_from_db()
    assert (pool.gpu_hour_price, pool.currency, pool.gpu_watts) == (Decimal("2.5"), "EUR", 700)
    entry = AuditEntry.objects.get(entity="node-pool", event="update")
    assert entry.after == {"gpu_hour_price": "2.5", "currency": "EUR", "gpu_watts": 700}
    page = client.get(f"/node-pools/{pool.pk}").content.decode()
    assert "2.5 EUR" in page
    assert "700 W" in page


def test_rest_sets_a_price_and_takes_it_away(client: Client, cast: Cast, pool: NodePool) -> None:
    def patch(**body: Any) -> Any:
        return client.patch(
            f"{API}/{pool.pk}", body, content_type="application/json", **head(cast.alice)
        )

    price = {"gpuHourPrice": 2.4975, "currency": "EUR", "gpuWatts": 700}
    answer = patch(**price)
    assert answer.status_code == 200, answer.content
    assert answer.json().items() >= price.items()
    assert patch(description="x").json().items() >= price.items(), "what is not given stays"
    refused = patch(gpuHourPrice=None)
    assert refused.status_code == 400
    assert "gpuHourPrice" in refused.content.decode()
    cleared = {"gpuHourPrice": None, "currency": "", "gpuWatts": None}
    assert patch(**cleared).json().items() >= cleared.items()
