"""Ports for training pods: free, of one holder each, and a fresh one for each run."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from localkube.controllers.ports import FIRST_PORT, LAST_PORT, PortAllocator, parse_port
from localkube.options import ADDRESS_ANNOTATION
from localkube.resources import SERVICES
from tests.localkube.stage import Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(tmp_path / "state.db", monkeypatch, lambda objects: [])
    yield made
    made.close()


def create_service(stage: Stage, name: str, port: int) -> None:
    metadata = {"name": name, "annotations": {ADDRESS_ANNOTATION: f"127.0.0.1:{port}"}}
    stage.create(
        SERVICES, {"metadata": metadata, "spec": {"clusterIP": "None", "ports": [{"port": 1}]}}
    )


def test_ports_are_in_their_range_and_never_given_twice_in_a_row(stage: Stage) -> None:
    ports = PortAllocator(stage.objects)
    picked = [ports.find_free_port() for _ in range(50)]
    assert all(port is not None and FIRST_PORT <= port < LAST_PORT for port in picked)
    assert len(set(picked)) == 50


def test_a_port_of_a_service_is_taken_also_after_a_restart(stage: Stage) -> None:
    first = PortAllocator(stage.objects).find_free_port()
    assert first is not None
    create_service(stage, "s", first)
    assert PortAllocator(stage.objects).find_free_port() != first


def test_a_port_that_something_else_listens_on_is_passed_over(stage: Stage) -> None:
    ports = PortAllocator(stage.objects)
    first = ports.find_free_port()
    assert first is not None
    with socket.socket() as other:
        taken = next(port for port in range(first + 1, LAST_PORT) if ports.is_free(port))
        other.bind(("127.0.0.1", taken))
        other.listen()
        assert ports.find_free_port() not in (first, taken)


def test_the_next_port_comes_after_the_last_and_begins_again_at_the_end(stage: Stage) -> None:
    create_service(stage, "s", LAST_PORT - 1)
    ports = PortAllocator(stage.objects)
    picked = ports.find_free_port()
    assert picked is not None
    assert FIRST_PORT <= picked < LAST_PORT - 1


@pytest.mark.parametrize(
    "text", ["", "127.0.0.1", "127.0.0.1:", "10.0.0.1:20000", "127.0.0.1:abc", "127.0.0.1:123456"]
)
def test_a_broken_address_has_no_port(text: str) -> None:
    assert parse_port(text) is None
