"""Random histories of people, pods and faults: when the faults have stopped, one poll later the
database is as the cluster is.
"""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from clusters import connections
from clusters.kube import calls
from clusters.kube.access import ClusterAccess, parse_kubeconfig
from clusters.kube.resources import NAMESPACES
from console.celery import Step
from tests.cast import Cast, make_cast
from tests.cluster import LocalKube
from tests.faults.agreement import find_differences
from tests.faults.histories import SERVED, Clients, History
from tests.faults.proxy import Proxy

RARE = ("sweep", "make_group", "make_event", "restart", "remove_job", "calm")
OFTEN = (
    "submit",
    "ask",
    "make_pods",
    "remove_pod",
    "move_job",
    "make_foreign",
    "poll",
    "faults",
    "fault",
)
ALWAYS = ("move_pod", "work", "follow")
STEPS = ("nothing", *RARE, *OFTEN * 2, *ALWAYS * 4)
PRELUDE = [
    ("submit", 0, 0),
    ("work", 0, 0),
    ("submit", 1, 1),
    ("work", 1, 0),
    ("make_pods", 0, 1),
    ("make_pods", 1, 1),
    ("follow", 2, 3),
]
"""Two workloads are launched, and their pods are there."""
numbers = st.integers(0, 59)
histories = st.lists(st.tuples(st.sampled_from(STEPS), numbers, numbers), min_size=20, max_size=40)
"""Of a fixed length at least: what a shorter one does without becomes `nothing`."""

HOW: Any = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.explicit, Phase.generate, Phase.shrink],
    "database": None,
    "derandomize": True,
    "print_blob": True,
}


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """The way to a cluster of this module's own."""
    with (
        LocalKube(tmp_path_factory.mktemp("histories") / "data") as server,
        Proxy(access_of(server)) as proxy,
    ):
        yield proxy


def access_of(server: LocalKube) -> ClusterAccess:
    return parse_kubeconfig(server.kubeconfig.read_text())


@pytest.fixture(scope="module")
def clients(proxy: Proxy) -> Iterator[Clients]:
    with Clients.of(proxy.upstream, proxy.access) as clients:
        yield clients


class Undone(Exception):
    """Ends a transaction of which nothing shall stay."""


def live_history(
    cast: Cast,
    proxy: Proxy,
    clients: Clients,
    requested_steps: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
    steps: Any,
) -> None:
    """One history, from an empty database and an empty namespace, and what has to be so at its
    end.
    """
    requested_steps.clear()
    cast.team_a.namespace = f"muster-{secrets.token_hex(4)}"
    cast.team_a.save()
    calls.create(
        clients.direct,
        NAMESPACES,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cast.team_a.namespace}},
    )
    history = History(cast, proxy, clients, requested_steps, seed=len(steps))
    monkeypatch.setattr(connections, "get_client", lambda cluster: history.client)
    try:
        for name, a, b in (*PRELUDE, *steps):
            getattr(history, name)(a, b)
        history.all_calm()
        history.at_rest()
        history.poll(0, 0)
        found = find_differences(history)
        assert not found, "\n".join(found)
    finally:
        history.close()


@pytest.fixture
def live(
    db: None,
    proxy: Proxy,
    clients: Clients,
    requested_steps: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    cast = make_cast(proxy.kubeconfig())
    cast.team_a.synced_at = cast.cluster.created_at
    cast.team_a.save()
    cast.cluster.capabilities = SERVED.to_json()
    cast.cluster.save()

    def live(steps: Any) -> None:
        with pytest.raises(Undone), transaction.atomic():
            live_history(cast, proxy, clients, requested_steps, monkeypatch, steps)
            raise Undone

    return live


@pytest.fixture
def requested_steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The steps that were asked for: there is no broker, and the history is the worker."""
    steps: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        Step, "enqueue", lambda step, *ids: steps.append((step.__name__, *map(str, ids)))
    )
    monkeypatch.setattr(
        Step,
        "enqueue_after",
        lambda step, seconds, *ids: steps.append((step.__name__, *map(str, ids))),
    )
    return steps


def test_after_any_of_a_hundred_histories_the_database_is_as_the_cluster_is(live: Any) -> None:
    @settings(max_examples=100, **HOW)
    @given(steps=histories)
    def live_through(steps: Any) -> None:
        live(steps)

    live_through()


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_after_any_of_a_thousand_histories_the_database_is_as_the_cluster_is(live: Any) -> None:
    @settings(max_examples=1000, **HOW)
    @given(steps=histories)
    def live_through(steps: Any) -> None:
        live(steps)

    live_through()
