"""What nobody should send: the server refuses it with a Status, holds its memory, and goes on
serving everybody else.
"""

import http.client
import resource
import socket
import ssl
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.cluster import LocalKube
from tests.conformance.api import Api, eventually
from tests.conformance.samples import CONFIGMAPS, LEASES, configmap

MIB = 1 << 20
HOME = CONFIGMAPS.path("default")

FLOOD = textwrap.dedent("""
    import resource, socket, sys
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    opened = []
    try:
        while len(opened) < int(sys.argv[2]):
            opened.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5))
    except OSError:
        pass
    print(len(opened), flush=True)
    sys.stdin.read()
""")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKube]:
    with LocalKube(tmp_path_factory.mktemp("bad-input") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def client(server: LocalKube) -> Iterator[Api]:
    opened = Api.from_kubeconfig(server.kubeconfig)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def alive(server: LocalKube) -> Iterator[None]:
    """After each test the same process still answers, without an unexpected error in its log."""
    pid, log_length = server.pid, len(server.log)
    yield
    client = Api.from_kubeconfig(server.kubeconfig)
    eventually(lambda: answers(client), within=90)
    client.close()
    assert server.pid == pid
    assert "Traceback" not in server.log[log_length:]


def answers(client: Api) -> bool:
    with suppress(OSError, http.client.HTTPException):
        return client.get("/readyz", accept="*/*").text == "ok"
    return False


def memory(server: LocalKube) -> int:
    """Bytes that the server holds in memory."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def raw(server: LocalKube) -> ssl.SSLSocket:
    """A TLS connection that nothing was sent over."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    return context.wrap_socket(plain)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"metadata":{"name":' + b"[" * 50_000 + b"]" * 50_000 + b"}}",
        b'{"metadata":{"name":"\xff\xfe"}}',
        b'{"metadata":{"name":NaN}}',
        b'{"metadata":5}',
        b'{"apiVersion":["v1"],"kind":{"a":1},"metadata":{"name":"a"}}',
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":[1]}}',
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":1e400}}',
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":"text"}',
        b'{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}',
    ],
    ids=range(14),
)
def test_a_body_that_is_no_such_object_is_refused(client: Api, body: bytes) -> None:
    answer = client.post(HOME, body)
    assert answer.status in (400, 413, 415, 422), answer.text
    assert answer.json()["kind"] == "Status"


@pytest.mark.parametrize(
    "body",
    [
        b"a: [" * 50_000,
        b"&a [*a]",
        b"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]",
        b"!!python/object/apply:os.getpid []",
        b"- a\n- b",
        b"\x00",
    ],
    ids=["deep", "itself", "laughs", "python", "list", "nul"],
)
def test_yaml_that_is_no_such_object_is_refused(client: Api, body: bytes) -> None:
    answer = client.post(HOME, body, content_type="application/yaml")
    assert answer.status in (400, 415, 422), answer.text
    assert answer.json()["kind"] == "Status"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "UPPER",
        "a b",
        "-a",
        "a-",
        "a..b",
        "a/b",
        "..",
        "a" * 254,
        "ä",
        "a\x00b",
        "a\nb",
        "%2e%2e",
    ],
)
def test_a_bad_name_is_refused(client: Api, name: str) -> None:
    obj = configmap(name)
    client.post(HOME, obj).expect_refusal(422, "Invalid")


@pytest.mark.parametrize(
    "path",
    [
        f"{HOME}/%2e%2e%2fsecrets",
        f"{HOME}/a%00b",
        "/api//v1",
        "/%",
        "/" + "a" * 8000,
        f"{HOME}/a/b/c/d",
    ],
)
def test_a_bad_path_is_refused(client: Api, path: str) -> None:
    assert 400 <= client.get(path).status < 500


@pytest.mark.parametrize(
    "query",
    [
        {"labelSelector": "a=" + "b" * 5000},
        {"labelSelector": ",".join(f"k{n}=v" for n in range(2000)) + ",("},
        {"labelSelector": "a in (" + ",".join("b" * 2 for _ in range(3000))},
        {"fieldSelector": "metadata.name=" + "\\" * 1001},
        {"limit": "many"},
        {"limit": "9" * 40},
        {"watch": "1", "timeoutSeconds": "soon"},
        {"watch": "1", "resourceVersion": "-1", "timeoutSeconds": "1"},
        {"continue_": "e30"},
        {"continue_": "a" * 10_000},
        {"resourceVersion": "1" * 30, "resourceVersionMatch": "Exact"},
    ],
    ids=lambda query: next(iter(query)),
)
def test_a_bad_query_is_refused(client: Api, query: dict[str, str]) -> None:
    answer = client.get(LEASES.path("default"), **query)
    assert 400 <= answer.status < 600
    assert answer.json()["kind"] == "Status"


def test_an_object_of_four_megabytes_is_refused_and_leaves_no_trace(
    server: LocalKube, client: Api
) -> None:
    before = memory(server)
    for _ in range(10):
        with suppress(ConnectionError, ssl.SSLError):
            assert client.post(HOME, configmap("big", key="x" * (4 * MIB))).status == 413
    assert memory(server) - before < 64 * MIB


def test_a_patch_cannot_make_a_small_object_huge(server: LocalKube, client: Api) -> None:
    before = memory(server)
    client.post(HOME, configmap("grow", key="x" * 1000)).ok(201)
    copies = [
        {"op": "copy", "from": "/data", "path": f"/metadata/annotations/a{n}"} for n in range(5)
    ]
    assert client.patch(f"{HOME}/grow", copies, "application/json-patch+json").status in (
        400,
        413,
        422,
    )
    doubling = [
        {"op": "copy", "from": "/data", "path": f"/data/{'n' * (n + 1)}"} for n in range(18)
    ]
    assert client.patch(f"{HOME}/grow", doubling, "application/json-patch+json").status in (
        400,
        413,
        422,
    )
    assert client.get(f"{HOME}/grow").ok()["data"] == {"key": "x" * 1000}
    assert memory(server) - before < 64 * MIB
    client.delete(f"{HOME}/grow").ok()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00" * 4096,
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\x16\x03\x01\xff\xff" + b"a" * 4096,
        b"",
    ],
)
def test_what_is_not_tls_is_dropped(server: LocalKube, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as plain:
        with suppress(ConnectionError):
            plain.sendall(sent)
            plain.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError):
            while plain.recv(4096):
                pass


@pytest.mark.parametrize(
    "sent",
    [
        b"NONSENSE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /readyz HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 100_000,
        b"GET /" + b"a" * 2_000_000,
    ],
    ids=["words", "version", "length", "chunks", "headers", "line"],
)
def test_what_is_not_http_is_refused_or_dropped(server: LocalKube, sent: bytes) -> None:
    with raw(server) as connection:
        received = b""
        with suppress(OSError):
            connection.sendall(sent)
            while chunk := connection.recv(4096):
                received += chunk
    assert not received or received.startswith(b"HTTP/1.1 4")


def test_slow_clients_keep_nobody_waiting(server: LocalKube, client: Api) -> None:
    with ExitStack() as open_connections:
        for _ in range(50):
            connection = open_connections.enter_context(raw(server))
            connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: a\r\nX-Slow: ")
        for _ in range(50):
            connection = open_connections.enter_context(raw(server))
            connection.sendall(
                b"POST /api/v1/namespaces HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n{"
            )
        assert client.get(HOME).status == 200


def test_a_flood_of_connections_is_survived(server: LocalKube) -> None:
    before = memory(server)
    command = [sys.executable, "-c", FLOOD, str(server.port), "1000"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as flood:
        assert flood.stdin is not None
        assert flood.stdout is not None
        assert int(flood.stdout.readline()) > 100
        visitor = Api.from_kubeconfig(server.kubeconfig)
        assert answers(visitor)
        visitor.close()
        assert memory(server) - before < 128 * MIB
        flood.stdin.close()
        flood.wait(60)


def test_a_server_out_of_descriptors_recovers(tmp_path: Path) -> None:
    with LocalKube(tmp_path / "data") as small:
        resource.prlimit(small.pid, resource.RLIMIT_NOFILE, (96, 96))
        command = [sys.executable, "-c", FLOOD, str(small.port), "300"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as flood:
            assert flood.stdin is not None
            assert flood.stdout is not None
            flood.stdout.readline()
            flood.stdin.close()
            flood.wait(60)
        visitor = Api.from_kubeconfig(small.kubeconfig)
        eventually(lambda: answers(visitor), within=90)
        visitor.post(HOME, configmap("after")).ok(201)
        visitor.close()


def test_a_watch_that_nobody_reads_is_given_up(server: LocalKube, client: Api) -> None:
    client.post(HOME, configmap("busy")).ok(201)
    with client.watch(
        HOME, resourceVersion=client.get(HOME).ok()["metadata"]["resourceVersion"]
    ) as watch:
        before = memory(server)
        for number in range(400):
            client.patch(f"{HOME}/busy", {"data": {"key": f"{number:06}" * 20_000}}).ok()
        assert memory(server) - before < 200 * MIB
        assert watch.remaining_frames()[-1]["object"]["code"] == 410
    client.delete(f"{HOME}/busy").ok()
