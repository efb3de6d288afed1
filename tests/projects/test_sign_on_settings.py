"""The settings of single sign-on: shown without the secret, tried when asked, and never a way to
where nobody may look.
"""

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import urllib3.connection
from django.conf import LazySettings
from django.test import Client
from urllib3.util import ssl_

from console import options
from projects.sign_on import discovery, provider_http, trial
from projects.sign_on.discovery import ProviderError
from tests.cast import Cast
from tests.clusters.kube.test_plain_certificates import issue_certificates, serve_version
from tests.oidc_provider import SECRET, WELL_KNOWN, Provider

CALLBACK = "http://testserver/sign-on/callback"


@pytest.fixture
def provider(settings: LazySettings) -> Iterator[Provider]:
    with Provider() as running:
        settings.OPTIONS = settings.OPTIONS.model_copy(update=running.options())
        yield running


def issuer(settings: LazySettings, url: str, **more: object) -> None:
    settings.OPTIONS = settings.OPTIONS.model_copy(
        update={"oidc_issuer": url, "oidc_client_id": "x"} | more
    )


def troubles() -> str:
    return " ".join(step.problem for step in trial.run_trial(CALLBACK))


def test_what_is_set_is_shown_and_the_secret_is_not(
    client: Client, cast: Cast, provider: Provider
) -> None:
    client.force_login(cast.alice)
    page = client.get("/settings").content.decode()
    for words in (
        "Example SSO",
        provider.url + WELL_KNOWN,
        "muster-console",
        "http://testserver/sign-on/callback",
        "groups",
    ):
        assert words in page
    assert SECRET not in page
    assert provider.asked_paths == []


def test_without_a_provider_it_says_what_to_set(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    assert "MUSTER_OIDC_ISSUER" in client.get("/settings").content.decode()
    assert client.post("/settings/sign-on/test").status_code == 200


def test_it_says_how_long_the_audit_log_is_kept(
    client: Client, cast: Cast, settings: LazySettings
) -> None:
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"audit_days": 42.0})
    client.force_login(cast.alice)
    assert "Entries are kept for 42 days" in client.get("/settings").content.decode()


def test_only_who_may_see_settings_sees_them(
    client: Client, cast: Cast, provider: Provider
) -> None:
    client.force_login(cast.bob)
    assert client.get("/settings").status_code == 403
    assert client.post("/settings/sign-on/test").status_code == 403
    assert provider.asked_paths == []


def test_a_test_tells_that_all_is_well(client: Client, cast: Cast, provider: Provider) -> None:
    client.force_login(cast.alice)
    page = client.post("/settings/sign-on/test").content.decode()
    assert "It describes itself at" in page
    assert "mu-alert--danger" not in page
    assert troubles().strip() == ""


def test_a_test_tells_what_is_wrong(
    client: Client, cast: Cast, provider: Provider, settings: LazySettings
) -> None:
    client.force_login(cast.alice)
    provider.change_document = lambda document: document.update(
        code_challenge_methods_supported=["plain"], scopes_supported=["openid"]
    )
    report = troubles()
    assert "code_challenge_methods_supported lack S256" in report
    assert "scopes_supported lack profile, email" in report
    provider.broken.add("/keys")
    assert "answered with the status 500" in troubles()
    provider.change_document = lambda document: document.update(
        issuer="https://elsewhere.example/<b>"
    )
    assert "is of the issuer" in client.post("/settings/sign-on/test").content.decode()
    provider.change_document = lambda document: document.pop("jwks_uri") and None
    assert "says nothing of jwks_uri" in troubles()
    provider.change_document = lambda document: document.update(token_endpoint="file:///etc/passwd")
    assert "Its token_endpoint must begin with" in troubles()
    for unreadable in (b"[" * 100_000, b'{"a":' + b"9" * 5000 + b"}"):
        provider.answers[WELL_KNOWN] = unreadable
        assert "something that is no JSON" in troubles()
        assert Client().post("/sign-on").status_code == 503
    provider.broken.add(WELL_KNOWN)
    assert "answered with the status 500" in troubles()
    issuer(settings, "http://127.0.0.1:1")
    assert "cannot be reached" in troubles()


def test_a_test_tells_whether_the_secret_is_right(
    provider: Provider, settings: LazySettings
) -> None:
    words = "It knows this client and its secret"
    assert words in [step.description for step in trial.run_trial(CALLBACK)]
    issuer(settings, provider.url, oidc_client_secret="mistyped", oidc_scopes="")
    assert "'invalid_client' (the client is not known by this)" in troubles()
    assert "MUSTER_OIDC_CLIENT_SECRET is not what it knows" in troubles()
    assert "mistyped" not in troubles()
    provider.token_refusal = {}
    assert "status 401 and no reason. So MUSTER_OIDC_CLIENT_ID" in troubles()
    provider.answers["/token"] = b"<html>"
    assert "something that is no JSON" in troubles()
    # What is wrong elsewhere says nothing of the secret.
    provider.answers, provider.broken = {}, {"/token"}
    assert troubles().strip() == ""
    assert words not in [step.description for step in trial.run_trial(CALLBACK)]


def test_the_discovery_address_itself_will_do_too(
    provider: Provider, settings: LazySettings
) -> None:
    issuer(settings, provider.url + WELL_KNOWN)
    assert discovery.fetch_description()["issuer"] == provider.url


def test_a_description_of_many_issuers_is_refused(
    provider: Provider, settings: LazySettings
) -> None:
    provider.change_document = lambda document: document.update(
        issuer="https://sso.example/{tenantid}"
    )
    issuer(settings, provider.url + WELL_KNOWN)
    assert "of many issuers ('https://sso.example/{tenantid}')" in troubles()


def test_a_provider_without_key_identifiers_is_trusted(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An authority of one's own often signs so, and Python 3.13 refuses that by default."""
    create_context = ssl_.create_urllib3_context

    def create_strict_context(*args: Any, **options: Any) -> ssl.SSLContext:
        context = create_context(*args, **options)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    # Under an older Python it would be trusted whatever Muster does.
    for module in (ssl_, urllib3.connection):
        monkeypatch.setattr(module, "create_urllib3_context", create_strict_context)
    authority = tmp_path / "authority.pem"
    authority.write_text(issue_certificates(tmp_path / "server.pem"))
    with serve_version(tmp_path / "server.pem") as address:
        issuer(settings, address)
        with pytest.raises(ProviderError, match="a certificate that this machine does not trust"):
            discovery.fetch_json(address, "its keys")
        monkeypatch.setattr(requests.adapters, "DEFAULT_CA_BUNDLE_PATH", str(authority))
        assert discovery.fetch_json(address, "its keys") == {"gitVersion": "v1.31.4"}


@pytest.mark.parametrize(
    "url",
    [
        "https://169.254.169.254/latest",
        "https://[fd00:ec2::254]",
        "https://metadata.google.internal",
        "https://10.0.0.7",
        "https://127.0.0.1",
        "https://localhost",
        "https://2130706433",
        "https://[::ffff:127.0.0.1]",
        "http://example.com",
        "https://user:password@example.com",
    ],
)
def test_in_production_nothing_is_sent_to_where_it_may_not_lead(
    settings: LazySettings, url: str
) -> None:
    issuer(settings, url, production=True)
    with pytest.raises(ProviderError, match="Nothing was sent"):
        discovery.fetch_description()


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254", "https://100.100.100.200", "https://[fe80::1]"]
)
def test_metadata_is_never_asked_not_even_where_private_addresses_are(
    settings: LazySettings, url: str
) -> None:
    issuer(settings, url, private_services=True)
    with pytest.raises(ProviderError, match="Nothing was sent"):
        discovery.fetch_description()


@pytest.mark.parametrize("name", ["token_endpoint", "jwks_uri", "userinfo_endpoint"])
def test_what_the_provider_names_is_judged_as_well(provider: Provider, name: str) -> None:
    provider.change_document = lambda document: document.update(
        {name: "http://169.254.169.254/latest/meta-data"}
    )
    with pytest.raises(ProviderError, match=f"Its {name} leads where it may not"):
        discovery.fetch_description()


def test_a_name_that_leads_elsewhere_once_connected_is_sent_nothing(
    provider: Provider, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name looks harmless when it is judged, and leads to this machine when it is connected
    to.
    """
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"private_services": False})
    monkeypatch.setattr(provider_http, "find_url_problem", lambda url: "")
    with pytest.raises(ProviderError, match="this machine's own"):
        discovery.fetch_json(f"{provider.url}/keys", "its keys")
    assert provider.asked_paths == []


def test_a_redirect_is_not_followed(provider: Provider) -> None:
    provider.people, provider.who = {"x": {}}, "x"
    query = "client_id=muster-console&redirect_uri=http://testserver/sign-on/callback&response_type=code&scope=openid"
    with pytest.raises(ProviderError, match="status 302"):
        discovery.fetch_json(
            f"{provider.url}/authorize?{query}&code_challenge_method=S256&code_challenge=x",
            "something",
        )
    assert provider.asked_paths == ["/authorize"]


@pytest.fixture
def drip() -> Iterator[str]:
    """A server that never ends its answer."""
    listening = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
            while not ended.wait(0.01):
                try:
                    connection.sendall(b" " * 40_000)
                except OSError:
                    return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    ended.set()
    listening.close()
    thread.join(60)


def test_an_answer_without_end_is_given_up(drip: str) -> None:
    with pytest.raises(ProviderError, match="cannot be reached"):
        discovery.fetch_json(drip, "its keys")


def test_an_answer_that_takes_too_long_is_given_up(
    drip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_http, "TOTAL_SECONDS", 0.0)
    with pytest.raises(ProviderError, match="did not answer in time"):
        discovery.fetch_json(drip, "its keys")


BEGIN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"


@pytest.mark.parametrize(
    ("scheme", "begin"),
    [("", b""), ("", BEGIN), ("http", b""), ("http", BEGIN), ("https", b"")],
)
def test_headers_that_come_one_by_one_without_end_are_given_up(
    begin: bytes, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each comes before the limit for the next bytes, and all take longer than is allowed.

    With a scheme they are those of a proxy.
    """
    ended = threading.Event()

    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.sendall(begin)
            while not ended.wait(0.01):
                try:
                    connection.sendall(b"H" if not begin else b"A: b\r\n")
                except OSError:
                    return

    # More headers than are read, and a line that is longer, come much later than this.
    monkeypatch.setattr(provider_http, "TOTAL_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        if scheme:
            monkeypatch.setenv(f"{scheme}_proxy", address)
            monkeypatch.setenv("no_proxy", "")
        with pytest.raises(ProviderError, match="did not answer in time"):
            discovery.fetch_json(f"{scheme}://sso.example/" if scheme else address, "its keys")
        ended.set()
        thread.join(60)


def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_http, "READ_SECONDS", 0.1)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(ProviderError, match="did not answer in time"),
    ):
        discovery.fetch_json(f"http://127.0.0.1:{silent.getsockname()[1]}/", "its keys")


def test_options_that_make_no_sense_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("OIDC_ISSUER", "ldap://x"),
        ("SESSION_HOURS", "0"),
        ("SESSION_HOURS", "721"),
        ("REQUIRE_SECOND_FACTOR", "perhaps"),
    ):
        monkeypatch.setenv(f"MUSTER_{name}", value)
        with pytest.raises(options.BadOptions, match=f"MUSTER_{name}"):
            options.read_options()
        monkeypatch.delenv(f"MUSTER_{name}")
