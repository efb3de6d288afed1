"""Which kubeconfigs are taken, and how the others are refused."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from clusters.kube.access import BadKubeconfig, ClusterAccess, parse_kubeconfig

SECRET = "s3cr3t-value"


def config(user: Any = None, **cluster: Any) -> str:
    """A kubeconfig (JSON is YAML) of one cluster and one user."""
    return json.dumps(
        {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [
                {"name": "c", "cluster": {"server": "https://203.0.113.7:6443", **cluster}}
            ],
            "users": [{"name": "u", "user": {"token": SECRET} if user is None else user}],
        }
    )


def parse_refused(text: str) -> str:
    with pytest.raises(BadKubeconfig) as refusal:
        parse_kubeconfig(text)
    assert SECRET not in str(refusal.value)
    return str(refusal.value)


def test_the_embedded_clusters_kubeconfig_is_taken(kubeconfig: Path) -> None:
    access = parse_kubeconfig(kubeconfig.read_text())
    assert access.server.startswith("https://127.0.0.1:")
    assert access.token
    assert access.ca is not None
    assert access.ca.startswith("-----BEGIN CERTIFICATE-----")


def test_no_secret_is_shown_by_repr() -> None:
    assert SECRET not in repr(parse_kubeconfig(config()))


@pytest.mark.parametrize(
    "name", ["exec", "auth-provider", "tokenFile", "username", "password", "as", "as-groups"]
)
def test_what_a_user_may_not_have_is_named(name: str) -> None:
    assert f"`{name}`" in parse_refused(config({"token": SECRET, name: SECRET}))


@pytest.mark.parametrize("name", ["client-certificate", "client-key"])
def test_a_user_may_not_name_files(name: str) -> None:
    assert f"`{name}` names a file" in parse_refused(
        config({"token": SECRET, name: "/root/secret.pem"})
    )


def test_a_cluster_may_not_name_a_file_or_a_proxy() -> None:
    assert "`certificate-authority` names a file" in parse_refused(
        config(**{"certificate-authority": "/etc/ca.crt"})
    )
    assert "proxy-url" in parse_refused(config(**{"proxy-url": "http://proxy"}))


def test_inline_data_beside_a_file_counts(kubeconfig: Path) -> None:
    ca = base64.b64encode((parse_kubeconfig(kubeconfig.read_text()).ca or "").encode()).decode()
    assert parse_kubeconfig(
        config(**{"certificate-authority": "/etc/ca.crt", "certificate-authority-data": ca})
    ).ca


@pytest.mark.parametrize(
    "server",
    [
        "",
        "203.0.113.7:6443",
        "ftp://203.0.113.7",
        "https://",
        "https://u:p@host",
        "https://host?x=1",
        "https://host:99999",
        "https://a b",
    ],
)
def test_an_address_must_be_one(server: str) -> None:
    assert "address" in parse_refused(config(server=server))


def test_credentials_do_not_travel_in_the_clear() -> None:
    assert "in the clear" in parse_refused(config(server="http://203.0.113.7:8080"))
    assert parse_kubeconfig(config(server="http://127.0.0.1:8001")).is_loopback


@pytest.mark.parametrize(
    "data",
    ["%%%", base64.b64encode(b"no certificate").decode(), base64.b64encode(b"\xff").decode()],
)
def test_an_authority_must_be_a_certificate(data: str) -> None:
    parse_refused(config(**{"certificate-authority-data": data}))


def test_a_certificate_needs_its_key_and_both_must_be_real() -> None:
    pem = base64.b64encode(
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    ).decode()
    assert "without its key" in parse_refused(config({"client-certificate-data": pem}))
    assert "Export them again" in parse_refused(
        config({"client-certificate-data": pem, "client-key-data": pem})
    )


@pytest.mark.parametrize("token", ["two words", "line\nend", "ünicode", "x" * 20_000])
def test_a_token_must_be_sendable(token: str) -> None:
    assert "token" in parse_refused(config({"token": token}))


def test_a_user_without_credentials_is_refused() -> None:
    assert "neither a token nor a client certificate" in parse_refused(config({}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "just text",
        "[1, 2",
        f"a: [{SECRET}",
        "[" * 5_000,
        "current-context: nowhere",
        f"token: {SECRET}",
    ],
)
def test_what_is_no_kubeconfig_is_refused(text: str) -> None:
    parse_refused(text)


def test_a_kubeconfig_may_not_be_huge() -> None:
    assert "longer than 256 KiB" in parse_refused("#" * (256 << 10) + config())


def test_an_access_made_by_hand_is_checked_too() -> None:
    with pytest.raises(BadKubeconfig):
        ClusterAccess("https://203.0.113.7", token="two words")


def test_a_few_lines_do_not_become_millions() -> None:
    levels = [
        f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 10)}]}}"
        for level in range(1, 12)
    ]
    assert "no YAML (line 2)" in parse_refused("\n".join(["a0: &a0 {k: v}", *levels]))


@pytest.mark.parametrize(
    "value", ["!!int ''", "!!float ''", "!!bool x", "!!timestamp x", "!!binary é", "{<<: [a]}"]
)
def test_a_tag_that_does_not_fit_is_no_yaml(value: str) -> None:
    assert "no YAML" in parse_refused(f"a: {value}")


def test_an_address_may_not_be_huge() -> None:
    assert "longer than 255" in parse_refused(config(server=f"https://203.0.113.7/{'a' * 255}"))


@pytest.mark.parametrize("name", ["a\0b", "a" * 64, "é", "a..b", "x\ny", "*.example.com", "\ud800"])
def test_the_name_in_a_certificate_must_be_one(name: str) -> None:
    assert "tls-server-name" in parse_refused(config(**{"tls-server-name": name}))


@pytest.mark.parametrize(
    "name", ["kubernetes.default.svc", "10.0.0.1", "fd00::1", "a_b.example.com"]
)
def test_names_that_certificates_carry_are_taken(name: str) -> None:
    assert parse_kubeconfig(config(**{"tls-server-name": name})).server_name == name
