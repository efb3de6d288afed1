"""The server's identity: its own CA, a server certificate, one bearer token, and the kubeconfig
with them.
"""

import base64
import ipaddress
import os
import secrets
import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from localkube import clock

VALIDITY = timedelta(days=3650)
RENEW_BEFORE = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Identity:
    """The credentials that client and server need to trust each other.

    `authority` is the CA's certificate (PEM), `token` the bearer token, `context` the server's TLS
    context.
    """

    authority: bytes
    token: str
    context: ssl.SSLContext


def ensure_identity(directory: Path) -> Identity:
    """Load the identity kept under `directory`; create or renew it where needed.

    It is created at the first start and renewed before it expires. All files have mode 600.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    bundle_path, authority_path, token_path = (
        directory / "server.pem",
        directory / "ca.crt",
        directory / "token",
    )
    if not (bundle_path.exists() and authority_path.exists() and _is_fresh(bundle_path)):
        _issue_certificates(bundle_path, authority_path)
    if not (token_path.exists() and token_path.read_text().strip()):
        write_private(token_path, secrets.token_urlsafe(32).encode())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(bundle_path)
    return Identity(authority_path.read_bytes(), token_path.read_text().strip(), context)


def write_kubeconfig(path: Path, identity: Identity, server: str) -> None:
    """Write a kubeconfig for `server` with everything inline.

    The file is replaced in one step and has mode 600.
    """
    authority = base64.b64encode(identity.authority).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "localkube",
                "cluster": {"server": server, "certificate-authority-data": authority},
            }
        ],
        "users": [{"name": "localkube-admin", "user": {"token": identity.token}}],
        "contexts": [
            {
                "name": "localkube",
                "context": {
                    "cluster": "localkube",
                    "user": "localkube-admin",
                    "namespace": "default",
                },
            }
        ],
        "current-context": "localkube",
    }
    write_private(path, yaml.safe_dump(config, sort_keys=False).encode())


def write_private(path: Path, content: bytes) -> None:
    """Replace a file by one that only its owner may read.

    The file is never half written, and never readable by others in between.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        # Else a power cut after the rename could leave an empty file.
        os.fsync(file.fileno())
    temporary.replace(path)


def _is_fresh(bundle: Path) -> bool:
    """Return whether the certificate is valid for a while; one that cannot be read is not."""
    try:
        certificate = x509.load_pem_x509_certificate(bundle.read_bytes())
    except ValueError:
        return False
    return certificate.not_valid_after_utc - clock.current_time() > RENEW_BEFORE


def _issue_certificates(bundle: Path, authority: Path) -> None:
    """Create a CA and a server certificate that it signs.

    The CA's key is not kept, since nothing else will ever be signed.
    """
    now = clock.current_time()
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localkube-ca")])
    authority_key = ec.generate_private_key(ec.SECP256R1())
    certificate_of_authority = (
        _build_certificate(issuer, authority_key.public_key(), issuer, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False
        )
        .add_extension(_build_key_usage(signs_certificates=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        _build_certificate(
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localkube")]),
            key.public_key(),
            issuer,
            now,
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
            critical=False,
        )
        .add_extension(_build_key_usage(signs_certificates=False), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    # The bundle last: after a kill in between, the old bundle is found stale and both are issued
    # again.
    write_private(authority, certificate_of_authority.public_bytes(serialization.Encoding.PEM))
    write_private(bundle, certificate.public_bytes(serialization.Encoding.PEM) + private)


def _build_certificate(
    subject: x509.Name, key: ec.EllipticCurvePublicKey, issuer: x509.Name, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + VALIDITY)
    )


def _build_key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
