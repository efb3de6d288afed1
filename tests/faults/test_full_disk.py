"""The disk under the data directory is full: the cluster says so, ends its pods when it stops, and
goes on when there is room.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import DidNotStart, LocalKube
from tests.conformance.api import Api, eventually
from tests.faults.disks import fill_disk
from tests.faults.test_killed_server import running
from tests.training import PODS

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def cluster(disk: Path, tmp_path: Path) -> Iterator[LocalKube]:
    made = LocalKube(disk / "data")
    made.log_file = tmp_path / "localkube.log"
    with made:
        yield made


def pod(name: str, script: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "command": ["sh", "-c", script]}
    return {
        "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def phase(api: Api, name: str) -> str:
    return str(api.get(f"{PODS}/{name}").ok()["status"]["phase"])


def pressure(api: Api) -> str:
    conditions = api.get("/api/v1/nodes/localkube").ok()["status"]["conditions"]
    return str(next(entry["status"] for entry in conditions if entry["type"] == "DiskPressure"))


def refuses(api: Api) -> bool:
    """Whether an object that needs room is refused, and with nothing but a proper Status."""
    answer = api.post(
        CONFIGMAPS, {"metadata": {"generateName": "large-"}, "data": {"a": "x" * 500_000}}
    )
    if answer.status == 201:
        return False
    answer.expect_refusal(507, "InsufficientStorage")
    return True


def test_a_full_disk_is_told_and_everything_goes_on_when_there_is_room(
    cluster: LocalKube, disk: Path
) -> None:
    api = Api.from_kubeconfig(cluster.kubeconfig)
    api.post(PODS, pod("seven", f"while [ ! -e {disk}/go ]; do sleep 0.05; done; exit 7")).ok(201)
    eventually(lambda: phase(api, "seven") == "Running")
    filler = fill_disk(disk)
    eventually(lambda: refuses(api))
    eventually(lambda: pressure(api) == "True", 30)
    filler.unlink()
    (disk / "go").touch()
    eventually(lambda: phase(api, "seven") == "Failed", 60)
    api.post(PODS, pod("later", "exit 0")).ok(201)
    eventually(lambda: phase(api, "later") == "Succeeded", 60)
    assert pressure(api) == "False"
    assert (
        api.get(f"{PODS}/seven").ok()["status"]["containerStatuses"][0]["state"]["terminated"][
            "exitCode"
        ]
        == 7
    )
    api.close()
    cluster.stop()
    with contextlib.closing(sqlite3.connect(cluster.data / "state.db")) as state:
        assert state.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_stop_on_a_full_disk_ends_every_pod(cluster: LocalKube, disk: Path) -> None:
    api = Api.from_kubeconfig(cluster.kubeconfig)
    api.post(PODS, pod("endless", "while :; do sleep 0.1; done")).ok(201)
    eventually(lambda: phase(api, "endless") == "Running")
    (cluster.data / "ballast").unlink()
    fill_disk(disk)
    eventually(lambda: refuses(api))
    api.close()
    assert cluster.stop() == 0
    assert running(cluster.data) == []


def test_a_disk_without_any_room_is_a_reason_not_to_start_and_no_traceback(
    cluster: LocalKube, disk: Path
) -> None:
    cluster.stop()
    (cluster.data / "ballast").unlink()
    filler = fill_disk(disk)
    with pytest.raises(DidNotStart, match=r"exit status 2") as refusal:
        cluster.start()
    assert "Traceback" not in str(refusal.value)
    filler.unlink()
    cluster.start()
