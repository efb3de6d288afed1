"""One client a cluster and process."""

import threading

import pytest

from clusters import connections
from clusters.kube.errors import Unauthorized
from clusters.models import Cluster
from tests.cast import NOWHERE, Cast


@pytest.fixture(autouse=True)
def _none_left() -> None:
    connections.close_all()


def test_everybody_gets_the_same_client_of_a_cluster(cast: Cast) -> None:
    assert (
        connections.get_client(cast.cluster)
        is connections.get_client(str(cast.cluster.pk))
        is connections.get_client(cast.cluster.pk)
    )


def test_threads_that_ask_at_once_get_the_same_client(cast: Cast) -> None:
    start, clients = threading.Barrier(8), []

    def ask() -> None:
        start.wait()
        clients.append(connections.get_client(cast.cluster))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(clients) == 8
    assert len({id(client) for client in clients}) == 1


def test_another_kubeconfig_makes_another_client_at_the_same_pace(cast: Cast) -> None:
    before = connections.get_client(cast.cluster)
    cast.cluster.kubeconfig = NOWHERE.replace("token: none", "token: another")
    cast.cluster.save()
    after = connections.get_client(cast.cluster.pk)
    assert after is not before
    assert after.access.token == "another"
    assert after.rate_limiter is before.rate_limiter


def test_clusters_do_not_share_a_pace(cast: Cast) -> None:
    other = Cluster.objects.create(name="there", server="https://127.0.0.1:2", kubeconfig=NOWHERE)
    assert (
        connections.get_client(other).rate_limiter
        is not connections.get_client(cast.cluster).rate_limiter
    )


def test_a_kubeconfig_that_cannot_be_used_is_a_matter_of_credentials(cast: Cast) -> None:
    cast.cluster.kubeconfig = "just words"
    with pytest.raises(Unauthorized, match="kubeconfig cannot be used"):
        connections.get_client(cast.cluster)


def test_after_closing_all_a_new_client_is_made(cast: Cast) -> None:
    before = connections.get_client(cast.cluster)
    connections.close_all()
    assert connections.get_client(cast.cluster) is not before
