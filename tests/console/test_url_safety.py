"""Addresses that people type lead only where the settings allow, in whatever form they are
written.
"""

import pytest
from django.conf import settings as given

from console import url_safety
from console.url_safety import GIT_SCHEMES, AddressPolicy, find_url_problem

STRICT = AddressPolicy(private=False, loopback=False)
USUAL = AddressPolicy(private=True, loopback=False)
OPEN = AddressPolicy(private=True, loopback=True)


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.169.254.",
        "2852039166",
        "0xa9fea9fe",
        "0xA9.0xFE.0xA9.0xFE",
        "0251.0376.0251.0376",
        "169.254.43518",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::1]",
        "[::a9fe:a9fe]",
        "[fe80::1]",
        "[fe80::1%25eth0]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "metadata.google.internal",
        "METADATA.google.internal.",
        "metadata",
        "0.0.0.0",
        "0",
        "[::]",
        "224.0.0.1",
        "[ff02::1]",
        "255.255.255.255",
        "999999999999",
        "1.2.3.4.5.6.7.8",
    ],
)
def test_metadata_and_what_is_no_machine_is_refused_whatever_the_settings(host: str) -> None:
    assert find_url_problem(f"http://{host}/latest", OPEN)
    assert find_url_problem(f"git@{host}:team/code.git", OPEN, schemes=GIT_SCHEMES)


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.1",
        "172.16.3.4",
        "192.168.1.10",
        "100.64.0.1",
        "[fd12::1]",
        "[fec0::1]",
        "[::ffff:10.0.0.1]",
        "0xa000001",
        "012.1",
        "git",
        "git.corp",
        "a.b.svc",
    ],
)
def test_private_addresses_are_a_matter_of_settings(host: str) -> None:
    assert find_url_problem(f"https://{host}:8443/x", USUAL) == ""
    assert "MUSTER_PRIVATE_CLUSTERS" in find_url_problem(f"https://{host}:8443/x", STRICT)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
    ],
)
def test_this_machine_is_a_matter_of_settings(host: str) -> None:
    assert find_url_problem(f"https://{host}", OPEN) == ""
    assert "MUSTER_LOOPBACK_CLUSTERS" in find_url_problem(f"https://{host}", USUAL)


@pytest.mark.parametrize(
    "text", ["https://8.8.8.8", "https://[2606:4700::1111]/v1", "http://no-such-host.invalid:9000"]
)
def test_public_addresses_and_names_that_nobody_knows_are_fine(text: str) -> None:
    assert find_url_problem(text, STRICT) == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://",
        "example.com",
        "//example.com",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "gopher://example.com",
        "ftp://example.com",
        "https://user@example.com",
        "https://user:secret@example.com",
        "https://:secret@example.com",
        "https://example.com#x",
        "https://example.com?token=x",
        "https://example.com\n",
        "https://exa\tmple.com",
        "https://example.com\\@127.0.0.1",
        "https://example.com:99999",
        "https://example.com:port",
        "https://-x.example.com",
        "https://\u2460\u2466.example.com",
        "https://ex\u00e4mple.com",
        "https://ex ample.com",
        "https://[::1",
        "https://%31%32%37.0.0.1",
        "https://example.com/\x00",
        "https://" + "a" * 3000,
        "https://a..b",
        "https://" + "a." * 200 + "com",
    ],
)
def test_what_is_no_plain_address_is_refused(text: str) -> None:
    assert find_url_problem(text, OPEN)


def test_a_git_address_may_be_short_and_name_a_user_but_no_password() -> None:
    assert find_url_problem("git@git.example.com:team/code.git", USUAL, schemes=GIT_SCHEMES) == ""
    assert (
        find_url_problem(
            "ssh://git@git.example.com/team/code.git", USUAL, schemes=GIT_SCHEMES, allow_user=True
        )
        == ""
    )
    assert find_url_problem(
        "ssh://git:secret@git.example.com/code.git", USUAL, schemes=GIT_SCHEMES, allow_user=True
    )
    assert find_url_problem("git@git.example.com:team/code.git", USUAL)
    assert find_url_problem("ext::sh -c id", USUAL, schemes=GIT_SCHEMES)


def test_a_query_may_be_allowed() -> None:
    assert find_url_problem("https://hooks.example.com/a?b=c", USUAL, allow_query=True) == ""


def test_a_name_that_leads_to_this_machine_is_as_good_as_its_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(url_safety, "_resolve_host", lambda name: ["93.184.216.34", "127.0.0.1"])
    assert "this machine's own" in find_url_problem("https://rebound.example.com", USUAL)
    assert (
        find_url_problem("https://rebound.example.com", AddressPolicy(resolves_names=False)) == ""
    )


def test_sources_may_be_private_and_on_this_machine_only_where_the_cluster_is() -> None:
    assert (
        find_url_problem(
            "http://git.corp:3000/a.git", url_safety.build_source_policy(is_local=False)
        )
        == ""
    )
    assert "this machine's own" in find_url_problem(
        "http://127.0.0.1:3000/a.git", url_safety.build_source_policy(is_local=False)
    )
    assert (
        find_url_problem(
            "http://127.0.0.1:3000/a.git", url_safety.build_source_policy(is_local=True)
        )
        == ""
    )
    assert find_url_problem(
        "http://169.254.169.254/a.git", url_safety.build_source_policy(is_local=True)
    )


def test_the_settings_decide(settings: pytest.FixtureRequest) -> None:
    settings.OPTIONS = given.OPTIONS.model_copy(  # type: ignore[attr-defined]
        update={
            "private_sources": False,
            "private_clusters": False,
            "loopback_clusters": False,
            "private_services": False,
        }
    )
    assert "MUSTER_PRIVATE_SOURCES" in find_url_problem(
        "http://10.1.2.3/a.git", url_safety.build_source_policy(is_local=False)
    )
    assert "MUSTER_PRIVATE_SERVICES" in find_url_problem(
        "https://10.1.2.3", url_safety.build_service_policy()
    )
    assert "MUSTER_PRIVATE_CLUSTERS" in find_url_problem(
        "https://10.1.2.3", url_safety.build_cluster_policy()
    )
    assert (
        find_url_problem("https://127.0.0.1", url_safety.build_cluster_policy(is_local=True)) == ""
    )


def test_production_asks_no_services_of_its_own_network_unless_told_to() -> None:
    options = given.OPTIONS.model_copy(update={"production": True, "private_services": None})
    assert not options.inner_services
    assert options.model_copy(update={"private_services": True}).inner_services
