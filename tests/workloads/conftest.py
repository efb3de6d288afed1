"""Fixtures of the workloads' tests."""

import contextlib
from collections.abc import Iterator

import pytest

from clusters import connections
from clusters.kube import calls
from clusters.kube.errors import Gone
from clusters.kube.resources import NAMESPACES
from console.celery import Step
from tests.cast import Cast
from tests.workloads.acting import Acting
from tests.workloads.past_rows import record as record


@pytest.fixture
def acting(live_cast: Cast) -> Iterator[Acting]:
    """The worker's steps in the embedded cluster; what they leave there goes with the test."""
    acting = Acting(live_cast, connections.get_client(live_cast.cluster))
    yield acting
    with contextlib.suppress(Gone):
        calls.delete(acting.client, NAMESPACES, acting.project.namespace)


@pytest.fixture
def requested_steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The steps that were asked for, by name and argument: there is no broker here, and no
    worker.
    """
    steps: list[tuple[str, str]] = []
    monkeypatch.setattr(
        Step, "enqueue", lambda step, *ids: steps.append((step.__name__, *map(str, ids)))
    )
    monkeypatch.setattr(
        Step,
        "enqueue_after",
        lambda step, seconds, *ids: steps.append((step.__name__, *map(str, ids))),
    )
    return steps
