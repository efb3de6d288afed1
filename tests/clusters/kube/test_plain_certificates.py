"""Clusters whose certificates have no more in them than they need, as those of EKS.

Python 3.13 and later refuse them by default.
"""

import datetime
import http.server
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from clusters.kube import discovery
from clusters.kube.access import ClusterAccess
from clusters.kube.client import Client
from clusters.metrics.sign_in import SignIn

create_context = ssl.create_default_context
LOOPBACK = ipaddress.ip_address("127.0.0.1")
VERSION = b'{"gitVersion":"v1.31.4"}'


@pytest.fixture(autouse=True)
def strict_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make default contexts strict, as those of Python 3.13 are."""

    def create_strict_context(*args: Any, **options: Any) -> ssl.SSLContext:
        context = create_context(*args, **options)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    # Under an older Python all of this would hold whatever Muster does.
    monkeypatch.setattr(ssl, "create_default_context", create_strict_context)


def issue_certificates(file: Path) -> str:
    """Write a server's key and certificate, and return that of the authority which signed it."""
    authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    key, authority_key = (
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP256R1()),
    )

    def build(name: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(authority)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )

    root = build(authority, authority_key.public_key()).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    server = build(x509.Name([]), key.public_key()).add_extension(
        x509.SubjectAlternativeName([x509.IPAddress(LOOPBACK)]), critical=True
    )
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + server.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    )
    signed = root.sign(authority_key, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM).decode()


@contextmanager
def serve_version(certificate: Path) -> Iterator[str]:
    """Serve the version of a cluster, and yield the server's address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(VERSION)))
            self.end_headers()
            self.wfile.write(VERSION)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with http.server.ThreadingHTTPServer((str(LOOPBACK), 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"https://{LOOPBACK}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_cluster_without_key_identifiers_is_trusted(tmp_path: Path) -> None:
    ca = issue_certificates(tmp_path / "server.pem")
    with (
        serve_version(tmp_path / "server.pem") as address,
        Client(ClusterAccess(address, ca=ca, token="token")) as client,
    ):
        assert discovery.fetch_server_version(client).version == "v1.31.4"


def test_names_and_authorities_are_checked_all_the_same(tmp_path: Path) -> None:
    ca = issue_certificates(tmp_path / "server.pem")
    for context in (
        ClusterAccess("https://c", ca=ca, token="t").build_tls_context(),
        SignIn(ca=ca).build_tls_context(),
    ):
        assert context.check_hostname
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert not context.verify_flags & ssl.VERIFY_X509_STRICT
