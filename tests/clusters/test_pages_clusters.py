"""Clusters and nodes as pages."""

import pytest
from django.test import Client

from clusters.models import Cluster, Node
from tests.cast import NOWHERE, Cast


@pytest.fixture
def elsewhere(cast: Cast) -> Cluster:
    return Cluster.objects.create(
        name="elsewhere", server="https://127.0.0.1:2", kubeconfig=NOWHERE
    )


def test_one_sees_the_clusters_of_ones_projects(
    client: Client, cast: Cast, elsewhere: Cluster
) -> None:
    client.force_login(cast.bob)
    assert "elsewhere" not in client.get("/clusters").content.decode()
    assert client.get(f"/clusters/{elsewhere.pk}").status_code == 404
    client.force_login(cast.alice)
    assert "elsewhere" in client.get("/clusters").content.decode()
    assert client.get(f"/clusters/{elsewhere.pk}").status_code == 200


def test_a_cluster_shows_its_id_and_what_its_nodes_have_free(client: Client, cast: Cast) -> None:
    Node.objects.create(cluster=cast.cluster, name="node-0", is_ready=True, gpus=4, used_gpus=1)
    Node.objects.create(cluster=cast.cluster, name="node-1", is_ready=True, gpus=8)
    client.force_login(cast.vera)
    text = client.get(f"/clusters/{cast.cluster.pk}").content.decode()
    assert f'id="cluster-id">{cast.cluster.pk}<' in text
    assert "1 of 12 allocated, 11 free" in text


def test_a_kubeconfig_is_on_no_page(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    for at in ("/clusters", f"/clusters/{cast.cluster.pk}"):
        assert "token: none" not in client.get(at).content.decode()


def test_what_a_node_says_is_text(client: Client, cast: Cast) -> None:
    Node.objects.create(
        cluster=cast.cluster, name="<script>alert(1)</script>", trouble="<img src=x onerror=y>"
    )
    client.force_login(cast.bob)
    text = client.get(f"/clusters/{cast.cluster.pk}").content.decode()
    assert "<script>alert" not in text
    assert "<img" not in text
