"""A cluster that says nothing keeps neither pages nor other clusters waiting."""

from threading import Thread

import pytest
from django.db import connections as databases
from django.test import Client

from clusters import connections, tasks
from clusters.kube.client import Timeouts
from clusters.models import Cluster
from tests.cast import Cast
from tests.clusters.kube.faults import Exchange, FaultServer
from tests.clusters.scripted import build_kubeconfig, serve_script


def beat(cluster_id: str) -> None:
    """A heartbeat as a worker's thread has it, with a database connection of its own."""
    try:
        tasks.heartbeat(cluster_id)
    finally:
        databases.close_all()


@pytest.mark.django_db(transaction=True)
def test_whoever_else_is_asked_answers(cast: Cast, client: Client) -> None:
    client.force_login(cast.alice)
    with FaultServer(Exchange.silence) as silent, serve_script() as lively:
        Cluster.objects.update(kubeconfig=build_kubeconfig(silent))
        other = Cluster.objects.create(
            name="elsewhere", server="https://127.0.0.1:2", kubeconfig=build_kubeconfig(lively)
        )
        hanging = Thread(target=beat, args=(str(cast.cluster.pk),), daemon=True)
        hanging.start()
        silent.wait_for(1)
        tasks.heartbeat(str(other.pk))
        # A second one for the silent cluster does not wait behind the first.
        tasks.heartbeat(str(cast.cluster.pk))
        assert Cluster.objects.get(name="elsewhere").state == "Connected"
        pages = ("/clusters", f"/clusters/{cast.cluster.pk}", f"/clusters/{other.pk}", "/workloads")
        assert [client.get(path).status_code for path in pages] == [200, 200, 200, 200]
        assert hanging.is_alive()
        assert len(silent.requests) == 1
    hanging.join(60)
    assert not hanging.is_alive()
    assert Cluster.objects.get(name="here").unreachable_since is not None
    connections.close_all()


def test_a_person_who_tries_it_waits_no_longer_than_a_few_seconds() -> None:
    waited = connections.TRIAL_TIMEOUTS
    assert waited.connect + waited.read < 10
    assert isinstance(waited, Timeouts)
