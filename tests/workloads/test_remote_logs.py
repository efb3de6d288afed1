"""Logs whose files are on another machine: their ends, from a cluster that may be away."""

import pytest
from django.test import Client

from clusters.models import Cluster
from tests.cast import Cast
from tests.clusters.kube.faults import Exchange, FaultServer, refusal
from tests.clusters.scripted import build_kubeconfig
from tests.workloads import pods
from tests.workloads.log_rows import a_log, number_lines, texts, window
from workloads.logbook import log_paths, remote_logs
from workloads.models import Workload

LOGS = 4


@pytest.fixture
def workload(client: Client, cast: Cast) -> Workload:
    """A workload of several pods whose logs are not here, and Bob, who looks at it."""
    client.force_login(cast.bob)
    workload = pods.a_workload(cast.team_a)
    for rank in range(LOGS):
        log_paths.local_path(a_log(workload, number_lines(3), rank=rank).path).unlink()
    return workload


def serve_cluster(workload: Workload, server: FaultServer) -> None:
    Cluster.objects.filter(pk=workload.cluster_id).update(kubeconfig=build_kubeconfig(server))


def give_line(exchange: Exchange) -> None:
    exchange.answer(200, b"2026-01-01T00:00:00Z of the cluster\n")


def test_all_logs_together_are_bounded(client: Client, workload: Workload) -> None:
    with FaultServer(give_line) as server:
        serve_cluster(workload, server)
        head, lines = window(client, workload, attempt=1)
        queries = [request.query for request in server.requests]
    assert texts(lines) == ["of the cluster"] * LOGS
    assert sum(int(query["limitBytes"]) for query in queries) == remote_logs.MOST_BYTES
    assert head["notes"] == [remote_logs.PART_NOTE.format(remote_logs.MOST_LINES // LOGS)]


def test_a_node_that_is_away_hides_no_logs_of_others(client: Client, workload: Workload) -> None:
    with FaultServer(refusal(500, "InternalError"), give_line) as server:
        serve_cluster(workload, server)
        head, lines = window(client, workload, attempt=1)
    assert texts(lines) == ["of the cluster"] * (LOGS - 1)
    assert any("The cluster does not give it either" in note for note in head["notes"])


@pytest.mark.parametrize("status", [429, 503])
def test_a_cluster_that_is_away_is_not_asked_for_each_log(
    client: Client, workload: Workload, status: int
) -> None:
    with FaultServer(refusal(status, "ServiceUnavailable")) as server:
        serve_cluster(workload, server)
        head, _ = window(client, workload, attempt=1)
        paths = {request.path for request in server.requests}
    assert len(paths) == 1
    assert "The cluster does not give it either" in head["notes"][0]
