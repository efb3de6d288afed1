"""One embedded cluster for the session (and each worker), a client of it, and a namespace for each
test.
"""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.kube import calls
from clusters.kube.access import ClusterAccess, parse_kubeconfig
from clusters.kube.client import Client
from clusters.kube.rate_limits import RateLimiter
from clusters.kube.resources import NAMESPACES
from tests.cluster import LocalKube


@pytest.fixture(scope="session")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with LocalKube(tmp_path_factory.mktemp("cluster") / "data") as cluster:
        yield cluster.kubeconfig


@pytest.fixture(scope="session")
def access(kubeconfig: Path) -> ClusterAccess:
    return parse_kubeconfig(kubeconfig.read_text())


@pytest.fixture
def client(access: ClusterAccess) -> Iterator[Client]:
    with Client(access, rate_limiter=RateLimiter(1_000, 1_000)) as client:
        yield client


@pytest.fixture
def namespace(client: Client) -> str:
    name = f"test-{secrets.token_hex(4)}"
    calls.create(
        client, NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    )
    return name
