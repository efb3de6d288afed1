"""Host names of headless Services: which text is one, and the address that stands in its place."""

import ipaddress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.kubelet import service_hosts
from localkube.metadata import Object
from localkube.resources import SERVICES
from tests.free_ports import pick_free_port
from tests.localkube.kubelets import TEAM, machine, pod, shell

pytestmark = pytest.mark.anyio

HEADLESS: Object = {"metadata": {"name": "t-data", "uid": "u-1"}, "spec": {"clusterIP": "None"}}
ORDINARY: Object = {"metadata": {"name": "web", "uid": "u-2"}, "spec": {"clusterIP": "127.0.0.1"}}
SERVICES_BY_NAME = {"t-data": HEADLESS, "web": ORDINARY}
FIRST = service_hosts.compute_address(HEADLESS, "t-data-0")
SECOND = service_hosts.compute_address(HEADLESS, "t-data-1")


def replace_names(text: str) -> str:
    return service_hosts.replace_host_names(text, TEAM, SERVICES_BY_NAME.get)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t-data-0.t-data:7077", f"{FIRST}:7077"),
        ("t-data-0.t-data:7077,t-data-1.t-data:7077", f"{FIRST}:7077,{SECOND}:7077"),
        (f"tcp://t-data-0.t-data.{TEAM}.svc:1/x", f"tcp://{FIRST}:1/x"),
        (f"t-data-0.t-data.{TEAM}", FIRST),
        (f"t-data-0.t-data.{TEAM}.svc.cluster.local", FIRST),
    ],
)
def test_a_host_of_a_headless_service_becomes_its_address(text: str, expected: str) -> None:
    assert replace_names(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "t-data",
        "host.web:80",
        "host.nowhere",
        "t-data-0.t-data.other",
        f"t-data-0.t-data.{TEAM}.pod",
        "a.b.t-data",
        "t_data.t-data",
        "T.t-data",
        ".t-data",
        "-x.t-data",
        "x.t-data.",
        "3.14",
        "",
    ],
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert replace_names(text) == text


@given(host=st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True), uid=st.uuids())
def test_an_address_is_a_loopback_address_that_nothing_else_uses(host: str, uid: object) -> None:
    service: Object = {"metadata": {"name": "s", "uid": str(uid)}, "spec": {}}
    address = ipaddress.IPv4Address(service_hosts.compute_address(service, host))
    assert address.is_loopback
    assert 64 <= address.packed[1] <= 127


def test_hosts_and_services_have_addresses_of_their_own() -> None:
    other = HEADLESS | {"metadata": {"name": "t-data", "uid": "u-3"}}
    assert len({FIRST, SECOND, service_hosts.compute_address(other, "t-data-0")}) == 3


LISTEN = (
    "import os, socket; host, port = os.environ['HOSTS'].split(',')[int(os.environ['OWN'])]"
    ".split(':'); s = socket.create_server((host, int(port)), reuse_port=False);"
    "print(host, flush=True); s.accept()[0].sendall(os.environ['HOSTNAME'].encode())"
)
CONNECT = """
import os, socket, time
for entry in os.environ["HOSTS"].split(","):
    host, port = entry.split(":")
    while True:
        try:
            with socket.create_connection((host, int(port))) as s:
                print(s.recv(100).decode(), flush=True)
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
"""


async def test_two_pods_listen_on_one_port_and_a_third_reaches_each_by_its_name(
    tmp_path: Path,
) -> None:
    port = pick_free_port()
    hosts = f"t-data-0.t-data:{port},t-data-1.t-data:{port}"
    async with machine(tmp_path / "data") as node:
        node.objects.create(
            SERVICES, TEAM, {"metadata": {"name": "t-data"}, "spec": {"clusterIP": "None"}}
        )
        for number in (0, 1):
            server = shell("", command=["python", "-c", LISTEN]) | {
                "env": [{"name": "HOSTS", "value": hosts}, {"name": "OWN", "value": str(number)}]
            }
            name = f"t-data-{number}"
            node.submit(pod(server, name=name, hostname=name, subdomain="t-data"))
        client = shell("", command=["python", "-c", CONNECT]) | {
            "env": [{"name": "HOSTS", "value": hosts}]
        }
        node.submit(pod(client, name="client"))
        assert (await node.finished("client"))["phase"] == "Succeeded"
        assert await node.log("client") == "t-data-0\nt-data-1\n"
