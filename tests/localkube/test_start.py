"""Starting and stopping: what is refused, what is private, what comes back."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localkube import certificates
from localkube.__main__ import parse_options
from tests.cluster import ROOT, LocalKube
from tests.conformance.api import Api, eventually

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalKube]:
    with LocalKube(tmp_path / "data") as running:
        yield running


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A start that must fail, to its end."""
    command = [sys.executable, "-m", "localkube", *arguments, "--die-with", str(os.getpid())]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=90, cwd=ROOT, check=False
    )


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_everything_it_keeps_is_private(cluster: LocalKube) -> None:
    assert (mode(cluster.data), mode(cluster.kubeconfig)) == (0o700, 0o600)
    for path in cluster.data.rglob("*"):
        assert mode(path) & 0o077 == 0, path


def test_it_listens_on_loopback_only(cluster: LocalKube) -> None:
    listening = Path(f"/proc/{cluster.pid}/net/tcp").read_text().splitlines()[1:]
    port = f":{cluster.port:04X}"
    assert [
        line.split()[1]
        for line in listening
        if line.split()[1].endswith(port) and line.split()[3] == "0A"
    ] == [f"0100007F{port}"]


def test_objects_tokens_and_versions_survive_a_kill(cluster: LocalKube) -> None:
    api = Api.from_kubeconfig(cluster.kubeconfig)
    made = api.post(CONFIGMAPS, {"metadata": {"name": "kept"}, "data": {"a": "b"}}).ok(201)
    api.close()
    cluster.kill()
    cluster.start()
    assert api.get(f"{CONFIGMAPS}/kept").ok() == made
    later = api.post(CONFIGMAPS, {"metadata": {"name": "later"}}).ok(201)
    assert int(later["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    api.close()


def test_a_watch_from_before_a_kill_is_told_to_list_again(cluster: LocalKube) -> None:
    api = Api.from_kubeconfig(cluster.kubeconfig)
    old = api.post(CONFIGMAPS, {"metadata": {"name": "old"}}).ok(201)["metadata"]["resourceVersion"]
    api.post(CONFIGMAPS, {"metadata": {"name": "newer"}}).ok(201)
    api.close()
    cluster.kill()
    cluster.start()
    with api.watch(CONFIGMAPS, resourceVersion=old, timeoutSeconds=5) as watch:
        frame = watch.next_frame()
    assert (frame["type"], frame["object"]["code"], frame["object"]["reason"]) == (
        "ERROR",
        410,
        "Expired",
    )
    api.close()


def test_a_clean_stop_ends_with_status_zero(cluster: LocalKube) -> None:
    assert cluster.stop() == 0


def test_it_ends_with_the_process_it_is_to_die_with(tmp_path: Path) -> None:
    companion = subprocess.Popen(["sleep", "600"])
    with LocalKube(tmp_path / "data", "--die-with", str(companion.pid)) as cluster:
        server = cluster.pid
        companion.kill()
        companion.wait()
        eventually(lambda: Path(f"/proc/{server}/stat").read_text().split(") ")[1].startswith("Z"))


def test_it_runs_on_when_nobody_reads_what_it_says(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [
        sys.executable,
        "-m",
        "localkube",
        "--data",
        str(tmp_path / "data"),
        "--port",
        "0",
        "--die-with",
        str(os.getpid()),
    ]
    with subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, cwd=ROOT) as server:
        os.close(writing)
        eventually(lambda: (tmp_path / "data" / "kubeconfig").exists())
        api = Api.from_kubeconfig(tmp_path / "data" / "kubeconfig")
        assert api.get("/readyz", accept="*/*").text == "ok"
        api.close()
        server.terminate()
        assert (server.wait(60), server.stderr.read() if server.stderr else b"") == (0, b"")


def test_a_taken_port_is_named_with_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refusal = start("--data", str(tmp_path / "data"), "--port", str(port))
    assert refusal.returncode == 2
    assert f"port {port} on 127.0.0.1 is taken: choose another with --port" in refusal.stderr
    assert "Traceback" not in refusal.stderr


def test_a_second_server_on_the_same_data_is_refused(cluster: LocalKube) -> None:
    refusal = start("--data", str(cluster.data), "--port", "0")
    assert refusal.returncode == 2
    assert "another localkube runs on" in refusal.stderr


def test_data_that_is_not_a_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    state = tmp_path / "data" / "state.db"
    state.parent.mkdir()
    state.write_text("something else" * 1000)
    refusal = start("--data", str(state.parent), "--port", "0")
    assert refusal.returncode == 2
    assert "cannot be read as the cluster's state" in refusal.stderr
    assert state.read_text() == "something else" * 1000


@pytest.mark.parametrize(
    "nonsense",
    [
        ["--port", "70000"],
        ["--port", "-1"],
        ["--gpus", "-2"],
        ["--gpus", "many"],
        ["--cpus", "0"],
        ["--cpus", "nan"],
        ["--memory", "12 gigs"],
        ["--memory", "1"],
        ["--max-pods", "0"],
    ],
)
def test_nonsense_is_refused_with_a_reason(
    nonsense: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_options(["--data", "x", *nonsense])
    assert ended.value.code == 2
    assert nonsense[1] in capsys.readouterr().err


def test_closed_standard_streams_are_no_reason_to_fail(tmp_path: Path) -> None:
    data = tmp_path / "data"
    command = (
        f"exec {sys.executable} -m localkube --data {data} --port 0 --die-with {os.getpid()} <&- "
        ">&- 2>&-"
    )
    server = subprocess.Popen(["sh", "-c", command], cwd=ROOT)
    eventually(lambda: (data / "kubeconfig").exists())
    api = Api.from_kubeconfig(data / "kubeconfig")
    eventually(lambda: api.get("/readyz", accept="*/*").status == 200)
    api.close()
    server.terminate()
    assert server.wait(60) == 0


@pytest.mark.parametrize("file", ["server.pem", "token"])
def test_an_identity_that_cannot_be_read_is_made_anew(tmp_path: Path, file: str) -> None:
    certificates.ensure_identity(tmp_path / "pki")
    (tmp_path / "pki" / file).write_text("")
    renewed = certificates.ensure_identity(tmp_path / "pki")
    assert len(renewed.token) >= 40
    assert renewed.authority == (tmp_path / "pki" / "ca.crt").read_bytes()


def test_an_identity_is_made_once_and_kept(tmp_path: Path) -> None:
    first, second = (
        certificates.ensure_identity(tmp_path / "pki"),
        certificates.ensure_identity(tmp_path / "pki"),
    )
    assert (first.token, first.authority) == (second.token, second.authority)
    assert len(first.token) >= 40
