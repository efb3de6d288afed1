"""The cluster that Muster runs in: its service account's files, whose token is replaced from time
to time.
"""

from pathlib import Path

import pytest
from pytest_django import Settings

from clusters import actions, connections, tasks
from clusters.kube import discovery, in_cluster
from clusters.kube.access import BadKubeconfig, ClusterAccess
from clusters.kube.client import Client
from clusters.kube.errors import Unavailable
from clusters.models import Cluster, ConnectionWay
from console.errors import UserError
from tests.cast import Cast
from tests.cluster import LocalKube
from tests.clusters.kube.test_plain_certificates import issue_certificates, serve_version

HERE = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def an_account(folder: Path, embedded_cluster: LocalKube) -> Path:
    """A pod's service account: that of the embedded cluster's administrator."""
    access = connections.build_access(
        ConnectionWay.KUBECONFIG, embedded_cluster.kubeconfig.read_text()
    )
    (folder / "token").write_text(f"{access.token}\n")
    (folder / "ca.crt").write_text(str(access.ca))
    return folder


@pytest.fixture
def account(tmp_path: Path, embedded_cluster: LocalKube) -> Path:
    return an_account(tmp_path, embedded_cluster)


def test_it_is_there_with_its_address_and_files(account: Path, tmp_path: Path) -> None:
    assert in_cluster.is_in_cluster(HERE, account)
    assert not in_cluster.is_in_cluster({}, account)
    assert not in_cluster.is_in_cluster(HERE, tmp_path / "missing")


def test_an_address_of_ipv6_is_put_in_brackets(account: Path) -> None:
    assert (
        in_cluster.build_access(HERE | {"KUBERNETES_SERVICE_HOST": "fd00::1"}, account).server
        == "https://[fd00::1]:443"
    )


def test_elsewhere_it_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BadKubeconfig, match="not run in a pod"):
        in_cluster.build_access({}, tmp_path)


def test_the_token_is_read_anew_when_a_minute_is_over(tmp_path: Path) -> None:
    now = 0.0
    file = tmp_path / "token"
    file.write_text("first\n")
    token = in_cluster.ServiceAccountFile(file, clock=lambda: now)
    assert token() == "first"
    file.write_text("second\n")
    assert token() == "first"
    now = in_cluster.REFRESH_SECONDS
    assert token() == "second"
    file.unlink()
    now = in_cluster.REFRESH_SECONDS * 3
    assert token() == "second"


def test_another_authority_is_trusted_without_a_new_start(tmp_path: Path) -> None:
    """Kubernetes replaces the file where the cluster gets another authority."""
    now, file = 0.0, tmp_path / "ca.crt"
    get_authority = in_cluster.ServiceAccountFile(file, clock=lambda: now)
    old = issue_certificates(tmp_path / "old.pem")
    renewed = issue_certificates(tmp_path / "server.pem")
    file.write_text(old)
    with serve_version(tmp_path / "server.pem") as address:
        access = ClusterAccess(address, ca=old.strip(), token="token")
        with Client(access, get_authority=get_authority) as client:
            for text in (old, "no certificate"):
                with pytest.raises(Unavailable):
                    discovery.fetch_server_version(client)
                file.write_text(text)
                now += in_cluster.REFRESH_SECONDS
            file.write_text(renewed)
            now += in_cluster.REFRESH_SECONDS
            assert discovery.fetch_server_version(client).version == "v1.31.4"


@pytest.mark.usefixtures("cast")
def test_it_is_added_and_asked_with_the_token_of_the_moment(
    account: Path, embedded_cluster: LocalKube, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SERVICE_ACCOUNT = account
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(embedded_cluster.port))
    cluster = actions.register("own", way=ConnectionWay.INSIDE)
    assert (cluster.server, cluster.kubeconfig) == (embedded_cluster.url, "")
    tasks.heartbeat(str(cluster.pk))
    assert Cluster.objects.get(name="own").state == "Connected"
    client = connections.get_client(cluster.pk)
    assert discovery.fetch_server_version(client).version.startswith("v1.")
    connections.close_all()


def test_where_muster_runs_in_no_cluster_it_cannot_be_added(
    cast: Cast, tmp_path: Path, settings: Settings
) -> None:
    settings.SERVICE_ACCOUNT = tmp_path
    with pytest.raises(UserError) as refusal:
        actions.register("own", way=ConnectionWay.INSIDE)
    assert refusal.value.field == "way"
    assert Cluster.objects.count() == 1
