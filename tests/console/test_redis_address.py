"""Redis over TLS: every client of it checks the certificate, and none is stricter than others.

The server is a real one, behind a tunnel that ends TLS.
"""

import asyncio
import contextlib
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio
from kombu import Connection
from kombu.exceptions import OperationalError

from console.redis_address import accept_plain_certificates, build_broker_settings
from console.redis_server import RedisServer
from tests.clusters.kube.test_plain_certificates import issue_certificates
from tests.free_ports import pick_free_port
from tests.installation import eventually

create_context = ssl.create_default_context


def copy_bytes(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError, ValueError):
        while piece := source.recv(65_536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


def serve_tunnel(listening: socket.socket, context: ssl.SSLContext, port: int) -> None:
    """Take connections over TLS, one after the other, and lead them on to a port."""
    while True:
        try:
            connected, _ = listening.accept()
        except OSError:
            return
        threading.Thread(target=lead_on, args=(connected, context, port), daemon=True).start()


def lead_on(connected: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with contextlib.suppress(OSError), connected:
        connected.settimeout(10)
        with (
            context.wrap_socket(connected, server_side=True) as near,
            socket.create_connection(("127.0.0.1", port), 10) as far,
        ):
            back = threading.Thread(target=copy_bytes, args=(far, near), daemon=True)
            back.start()
            copy_bytes(near, far)
            back.join(10)


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the certificate of an authority that writes no key identifiers, and return its file.

    Default contexts are strict, as those of Python 3.13 are: under an older one all of this would
    hold whatever Muster does.
    """

    def create_strict_context(*args: Any, **options: Any) -> ssl.SSLContext:
        context = create_context(*args, **options)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", create_strict_context)
    file = tmp_path / "authority.pem"
    file.write_text(issue_certificates(tmp_path / "server.pem"))
    return file


@pytest.fixture
def address(tmp_path: Path, authority: Path) -> Iterator[str]:
    """Start a Redis server behind TLS, and return its address."""
    server = RedisServer(tmp_path / "redis", pick_free_port(), "of-a-test")
    server.prepare_directory()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    with (
        subprocess.Popen(server.command(), stdout=subprocess.DEVNULL) as process,
        socket.create_server(("127.0.0.1", 0)) as listening,
    ):
        thread = threading.Thread(
            target=serve_tunnel, args=(listening, context, server.port), daemon=True
        )
        thread.start()
        try:
            eventually(lambda: asyncio.run(server.is_ready()))
            yield f"rediss://:of-a-test@127.0.0.1:{listening.getsockname()[1]}/0"
        finally:
            process.terminate()
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def reach_plainly(url: str) -> None:
    with redis.Redis.from_url(url, socket_timeout=5) as client:
        client.ping()


def reach_in_loop(url: str) -> None:
    async def reach() -> None:
        async with redis.asyncio.Redis.from_url(url, socket_timeout=5) as client:
            await client.ping()

    asyncio.run(reach())


def reach_as_celery(url: str) -> None:
    celery = build_broker_settings(url)
    options = {"socket_timeout": 5, "socket_connect_timeout": 5}
    with Connection(
        celery["broker_url"], ssl=celery["broker_use_ssl"], transport_options=options
    ) as broker:
        broker.ensure_connection(max_retries=0, timeout=5)
        broker.default_channel.client.ping()  # type: ignore[attr-defined]


@pytest.mark.parametrize("reach", [reach_plainly, reach_in_loop, reach_as_celery])
def test_each_client_checks_the_certificate_and_needs_no_key_identifiers(
    address: str, authority: Path, reach: Callable[[str], None]
) -> None:
    known = f"{address}?ssl_ca_certs={authority}"
    reach(accept_plain_certificates(known))
    for url in (known, accept_plain_certificates(address)):
        with pytest.raises((redis.ConnectionError, OperationalError)):
            reach(url)


def test_an_address_without_tls_stays_as_it_is() -> None:
    url = "redis://:of-a-test@127.0.0.1:6379/0"
    assert accept_plain_certificates(url) == url
    assert build_broker_settings(url) == {"broker_url": url}


def test_what_an_address_names_itself_counts() -> None:
    url = "rediss://:p%40ss@redis.example/3?ssl_cert_reqs=none&ssl_exclude_verify_flags="
    assert accept_plain_certificates(f"{url}VERIFY_X509_PARTIAL_CHAIN").endswith("PARTIAL_CHAIN")
    assert build_broker_settings(f"{url}VERIFY_X509_PARTIAL_CHAIN") == {
        "broker_url": "rediss://:p%40ss@redis.example/3",
        "broker_use_ssl": {
            "ssl_cert_reqs": "none",
            "ssl_exclude_verify_flags": [ssl.VERIFY_X509_PARTIAL_CHAIN],
        },
    }
