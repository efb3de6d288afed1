"""The cluster under test: the one of MUSTER_TEST_KUBECONFIG, or an embedded one that lives as long
as the session.

MUSTER_TEST_PODS=1 and MUSTER_TEST_CONTROLLERS=1 say of a given cluster that its pods run and that
its garbage collector and namespace controller do. MUSTER_TEST_IMAGE names an image with a shell for
the pods (busybox by default).
"""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import LocalKube
from tests.conformance.api import Api, eventually
from tests.conformance.samples import NAMESPACES, PODGROUPS, PYTORCHJOBS, QUEUES, create_pod, pod

GIVEN = os.environ.get("MUSTER_TEST_KUBECONFIG")
PARTS = {
    "pods": "the given cluster runs no pods (MUSTER_TEST_PODS=1 says that it does)",
    "controllers": (
        "the given cluster runs no controllers (MUSTER_TEST_CONTROLLERS=1 says that it does)"
    ),
}
CUSTOM = (PYTORCHJOBS, PODGROUPS, QUEUES)
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for part, reason in PARTS.items():
            lacking = GIVEN and os.environ.get(f"MUSTER_TEST_{part.upper()}") != "1"
            if lacking and HERE in item.path.parents and item.get_closest_marker(part):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of the cluster under test, which is up."""
    if GIVEN:
        yield Path(GIVEN)
        return
    with LocalKube(tmp_path_factory.mktemp("cluster") / "data", "--nodes", "2") as embedded:
        yield embedded.kubeconfig


@pytest.fixture(scope="session")
def image() -> str:
    """An image with a shell."""
    return os.environ.get("MUSTER_TEST_IMAGE", "busybox:1.36")


@pytest.fixture(scope="session")
def api(kubeconfig: Path) -> Iterator[Api]:
    """The API as the kubeconfig's user, who may do everything.

    A young server says 404 for a custom kind until its definition is established, and 429 until the
    cache for it is filled.
    """
    client = Api.from_kubeconfig(kubeconfig)
    eventually(
        lambda: all(
            client.get(kind.path(), labelSelector="no=such").status == 200 for kind in CUSTOM
        ),
        within=270,
    )
    yield client
    client.close()


@pytest.fixture
def anonymous(api: Api) -> Iterator[Api]:
    """The API without any credentials."""
    client = api.as_user(None)
    yield client
    client.close()


@pytest.fixture
def stranger(api: Api) -> Iterator[Api]:
    """The API with a token that the server does not know."""
    client = api.as_user("not-a-token")
    yield client
    client.close()


@pytest.fixture
def unique() -> str:
    """A name that nothing else in the cluster has."""
    return f"conformance-{secrets.token_hex(5)}"


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    """A namespace of the test's own. Its deletion is begun, not awaited: a cluster may have nobody
    who finishes it.
    """
    answer = api.post(NAMESPACES.path(), {"metadata": {"generateName": "conformance-"}})
    name = answer.ok(201)["metadata"]["name"]
    yield name
    api.delete(NAMESPACES.path(name=name))


@pytest.fixture
def pods_namespace(api: Api, namespace: str) -> str:
    """A namespace in which a pod is refused for its own faults only: its default service account is
    there.
    """
    create_pod(api, namespace, pod("probe"), dry=True)
    return namespace
