"""The cluster under test and a project in it; see `place` for what the environment says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from console.celery import Step
from projects.models import User
from tests.conformance.api import Api, eventually
from tests.journeys import jobs
from tests.journeys.place import GIVEN, Place
from tests.journeys.travelling import Journey, following, journey


@pytest.fixture(scope="session")
def place(request: pytest.FixtureRequest) -> Place:
    """The given cluster, or the embedded one of the session."""
    if GIVEN:
        return Place.given(Path(GIVEN))
    return Place.embedded(request.getfixturevalue("embedded_cluster").kubeconfig)


@pytest.fixture(scope="session")
def cluster_api(place: Place) -> Iterator[Api]:
    """The cluster's API as the kubeconfig's user. A young server says 429 until the cache for a
    custom kind is filled.
    """
    client = Api.from_kubeconfig(place.kubeconfig)
    eventually(
        lambda: all(
            client.get(kind.path("default")).status == 200
            for kind in jobs.list_served_kinds(client)
        ),
        within=270,
    )
    yield client
    client.close()


@pytest.fixture
def unfollowed_journey(
    place: Place, cluster_api: Api, transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Journey]:
    """A project in the cluster, which nobody follows yet. There is no broker: a step that is asked
    for is found by looking.
    """
    for way in ("enqueue", "enqueue_after"):
        monkeypatch.setattr(Step, way, lambda step, *ids: None)
    with journey(
        place, cluster_api, User.objects.create(username="alice", is_staff=True, is_superuser=True)
    ) as made:
        yield made


@pytest.fixture
def travel(unfollowed_journey: Journey) -> Iterator[Journey]:
    """A project in the cluster, which is followed."""
    with following():
        yield unfollowed_journey
