"""Where a cluster may be: not at this machine's own network's answers, wherever a name leads."""

import pytest

from clusters import connections
from clusters.kube import discovery
from clusters.kube.access import BadKubeconfig, ClusterAccess
from clusters.kube.address_policy import ClusterAddressPolicy
from clusters.kube.client import Client
from clusters.kube.errors import Unavailable
from tests.clusters.scripted import serve_script

STRICT = ClusterAddressPolicy(private=False, loopback=False)
USUAL = ClusterAddressPolicy(private=True, loopback=False)
OPEN = ClusterAddressPolicy(private=True, loopback=True)


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.1.1",
        "fe80::1",
        "fe80::1%eth0",
        "100.100.100.200",
        "168.63.129.16",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
    ],
)
def test_metadata_and_what_is_no_machine_is_barred_whatever_the_settings(address: str) -> None:
    assert OPEN.find_ip_problem(address)


@pytest.mark.parametrize(
    "address",
    ["10.0.0.1", "192.168.1.10", "172.16.3.4", "100.64.0.1", "fd12::1", "::ffff:10.0.0.1"],
)
def test_private_addresses_are_a_matter_of_settings(address: str) -> None:
    assert USUAL.find_ip_problem(address) == ""
    assert "MUSTER_PRIVATE_CLUSTERS" in STRICT.find_ip_problem(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
def test_this_machine_is_a_matter_of_settings(address: str) -> None:
    assert OPEN.find_ip_problem(address) == ""
    assert "MUSTER_LOOPBACK_CLUSTERS" in USUAL.find_ip_problem(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111"])
def test_public_addresses_are_fine(address: str) -> None:
    assert STRICT.find_ip_problem(address) == ""


@pytest.mark.parametrize(
    "server",
    [
        "https://169.254.169.254",
        "https://169.254.169.254.",
        "https://2852039166",
        "https://0xa9fea9fe",
        "https://[::ffff:169.254.169.254]",
        "https://[fe80::1]:6443",
        "https://localhost:6443",
        "https://127.1.1.1",
    ],
)
def test_a_server_there_is_refused_with_the_reason(server: str) -> None:
    with pytest.raises(BadKubeconfig, match="Muster does not connect"):
        USUAL.check_server(server)


def test_a_name_that_nobody_knows_is_left_to_the_connection() -> None:
    USUAL.check_server("https://no-such-host.invalid")


def test_a_name_that_leads_elsewhere_by_then_gets_nothing() -> None:
    """The resolver may answer otherwise the second time: what counts is where the connection
    ended.
    """
    with (
        serve_script() as server,
        Client(
            ClusterAccess(f"http://localhost:{server.port}", token="secret"),
            find_address_problem=USUAL.find_ip_problem,
        ) as client,
    ):
        with pytest.raises(Unavailable, match="this machine's own"):
            discovery.fetch_server_version(client)
        assert server.requests == []


def test_in_tests_and_on_ones_own_machine_loopback_is_allowed() -> None:
    assert connections.address_policy() == OPEN


def test_the_embedded_cluster_is_on_this_machine_and_nowhere_odd() -> None:
    assert connections.address_policy(is_local=True).find_ip_problem("127.0.0.1") == ""
    assert "metadata" in connections.address_policy(is_local=True).find_ip_problem(
        "169.254.169.254"
    )
