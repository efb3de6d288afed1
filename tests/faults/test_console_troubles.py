"""The cluster is silent, or holds garbage: the console says so, stays usable, and everything else goes on."""

import os
import signal
from collections.abc import Iterator

import pytest

from tests.conformance.api import Api, Object
from tests.installation import Installation, all_over, eventually
from tests.rest import Program, Reader

PASSWORD = "correct horse battery"
SHORT = {"args": "--steps 20 --slow 0.05"}
NAMESPACE = "muster-team-a"
HOSTILE = "<script>alert(1)</script>\x1b[31m\x00\u202e{{ 7*7 }}"


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with Installation(tmp_path_factory.mktemp("troubles") / "var", admin_password=PASSWORD) as running:
        eventually(lambda: len(running.pids()) == 6)
        yield running


@pytest.fixture(scope="module")
def program(installation: Installation) -> Program:
    return Program(installation.url, PASSWORD)


def ended(program: Program, workload_id: str, phase: str = "Completed", within: float = 90) -> None:
    all_over(lambda: [now] if (now := program.phase(workload_id)) != phase else [], within)


def poisons(workload_id: str) -> list[tuple[str, Object]]:
    """Objects that claim to be a workload's, or nearly, and that no program of ours has made."""
    claims = [
        {"muster.dev/workload": workload_id, "muster.dev/attempt": "1"},
        {"muster.dev/workload": workload_id, "muster.dev/attempt": "99999999999999999999"},
        {"muster.dev/workload": "no-uuid", "muster.dev/attempt": "one"},
        {"muster.dev/workload": ""},
        {},
    ]
    made: list[tuple[str, Object]] = []
    for number, labels in enumerate(claims):
        meta: Object = {"name": f"poison-{number}", "namespace": NAMESPACE, "labels": labels, "annotations": {"gpu-fraction": HOSTILE}}
        container = {"name": "c", "image": HOSTILE[:25], "command": ["/bin/sh", "-c", "printf '<b>\\033[31m\\000'; exit 7"]}
        pod = {"metadata": meta, "spec": {"restartPolicy": "Never", "containers": [container]}}
        made.append((f"/api/v1/namespaces/{NAMESPACE}/pods", pod | {"apiVersion": "v1", "kind": "Pod"}))
        about = {"kind": "PyTorchJob", "namespace": NAMESPACE, "name": "beside-poison", "uid": workload_id}
        event: Object = {
            "metadata": {"name": f"poison-{number}", "namespace": NAMESPACE},
            "involvedObject": about,
            "reason": HOSTILE[:60],
            "message": HOSTILE * 20,
            "count": 2**31 - 1,
            "lastTimestamp": "9999-12-31T23:59:59Z",
        }
        made.append((f"/api/v1/namespaces/{NAMESPACE}/events", event | {"apiVersion": "v1", "kind": "Event"}))
    return made


@pytest.mark.timeout(240)
def test_poison_in_the_cluster_stops_nothing_else(installation: Installation, program: Program) -> None:
    beside = program.submit("beside-poison", **SHORT)
    api = Api.from_kubeconfig(installation.data / "localkube" / "kubeconfig")
    taken = [api.post(path, body).status for path, body in poisons(beside)]
    assert taken.count(201) >= 5, taken
    after = program.submit("after-poison", **SHORT)
    before = installation.pids()
    ended(program, beside)
    ended(program, after)
    api.close()
    reader = Reader(installation.url, PASSWORD)
    assert "after-poison" in reader.page("/workloads")
    assert "<script>alert(1)" not in reader.page(f"/workloads/{beside}/history")
    assert installation.pids() == before


@pytest.mark.timeout(300)
def test_pages_say_since_when_the_cluster_is_silent_and_all_goes_on_after(installation: Installation, program: Program) -> None:
    there = program.submit("before-silence", **SHORT)
    ended(program, there)
    reader = Reader(installation.url, PASSWORD)
    assert "has not answered since" not in reader.page("/workloads")
    cluster = installation.pids()["localkube"]
    os.kill(cluster, signal.SIGSTOP)
    try:
        meanwhile = program.submit("in-silence", **SHORT)
        eventually(lambda: "has not answered since" in reader.page("/workloads"), within=120)
        for path in ("/workloads", f"/workloads/{there}/history", f"/workloads/{there}/logs", f"/workloads/{meanwhile}/details"):
            assert "before-silence" in reader.page(path) or "in-silence" in reader.page(path)
    finally:
        os.kill(cluster, signal.SIGCONT)
    ended(program, meanwhile)
    eventually(lambda: "has not answered since" not in reader.page("/workloads"))
