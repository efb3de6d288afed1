"""One API server that is added twice is found by the uid of its namespace kube-system."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client

from clusters import connections, tasks
from clusters.models import Cluster
from projects.models import AccessRule
from projects.permissions import SYSTEM
from tests.api.calling import Caller
from tests.cast import NOWHERE, Cast
from tests.clusters.kube.faults import FaultServer
from tests.clusters.scripted import ClusterScript, build_kubeconfig, serve_script

OURS = "5d2f8c1e-0000-4000-8000-000000000001"
THEIRS = "5d2f8c1e-0000-4000-8000-000000000002"
WARNING = "The same API server is added as here already."


@pytest.fixture
def alice(client: Client, cast: Cast) -> Iterator[Client]:
    client.force_login(cast.alice)
    yield client
    connections.close_all()


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with serve_script(ClusterScript(uid=OURS)) as listening:
        yield listening


def test_a_trial_says_that_it_was_added_already(
    alice: Client, cast: Cast, server: FaultServer
) -> None:
    Cluster.objects.update(findings={"uid": OURS})
    given = {"name": "there", "way": "kubeconfig", "kubeconfig": build_kubeconfig(server)}
    assert WARNING in alice.post("/clusters/new", given | {"test": "yes"}).content.decode()
    body = {"kubeconfig": build_kubeconfig(server)}
    assert Caller(cast.alice)("POST", "/clusters/test", body)["sameAs"] == ["here"]
    Cluster.objects.update(findings={"uid": THEIRS})
    assert WARNING not in alice.post("/clusters/new", given | {"test": "yes"}).content.decode()


def test_a_cluster_is_not_its_own_twin(cast: Cast, server: FaultServer) -> None:
    Cluster.objects.update(kubeconfig=build_kubeconfig(server), findings={"uid": OURS})
    path, caller = f"/clusters/{cast.cluster.pk}", Caller(cast.alice)
    assert caller("POST", f"{path}/test")["sameAs"] == []
    assert caller("GET", path)["sameAs"] == []


def test_the_page_and_the_api_say_so_once_both_are_known(
    alice: Client, cast: Cast, server: FaultServer
) -> None:
    Cluster.objects.update(findings={"uid": OURS})
    twin = Cluster.objects.create(
        name="there", server="https://127.0.0.1:2", kubeconfig=build_kubeconfig(server)
    )
    assert WARNING not in alice.get(f"/clusters/{twin.pk}").content.decode()
    tasks.heartbeat(str(twin.pk))
    assert Cluster.objects.get(pk=twin.pk).parsed_findings.uid == OURS
    assert WARNING in alice.get(f"/clusters/{twin.pk}").content.decode()
    assert Caller(cast.alice)("GET", f"/clusters/{twin.pk}")["sameAs"] == ["here"]


def test_a_user_is_told_of_no_cluster_that_is_not_theirs(client: Client, cast: Cast) -> None:
    Cluster.objects.update(findings={"uid": OURS})
    Cluster.objects.create(
        name="elsewhere-only", server="https://127.0.0.1:2", findings={"uid": OURS}
    )
    client.force_login(cast.bob)
    assert "elsewhere-only" not in client.get(f"/clusters/{cast.cluster.pk}").content.decode()


def test_a_trial_names_only_clusters_that_the_person_may_see(
    client: Client, cast: Cast, server: FaultServer
) -> None:
    kubeconfig = build_kubeconfig(server)
    Cluster.objects.update(kubeconfig=kubeconfig, findings={"uid": OURS})
    Cluster.objects.create(
        name="elsewhere-only", server="https://127.0.0.1:2", findings={"uid": OURS}
    )
    AccessRule.objects.create(user=cast.mallory, cluster=cast.cluster, role=SYSTEM)
    path = f"/clusters/{cast.cluster.pk}"
    given = {"name": "here", "way": "kubeconfig", "kubeconfig": kubeconfig, "test": "yes"}
    for person, names in ((cast.alice, ["elsewhere-only"]), (cast.mallory, [])):
        client.force_login(person)
        page = client.post(f"{path}/edit", given).content.decode()
        assert "Kubernetes v1." in page
        assert ("elsewhere-only" in page) == bool(names)
        assert Caller(person)("POST", f"{path}/test")["sameAs"] == names


def test_while_an_uid_is_not_known_the_address_tells(alice: Client, cast: Cast) -> None:
    Cluster.objects.update(server="https://127.0.0.1:1", findings={})
    given = {"name": "there", "way": "kubeconfig", "kubeconfig": NOWHERE}
    assert WARNING in alice.post("/clusters/new", given, follow=True).content.decode()
    body = {"name": "again", "kubeconfig": NOWHERE}
    made = Caller(cast.alice)("POST", "/clusters", body, status=201)
    assert made["sameAs"] == ["here", "there"]


def test_the_command_says_so(
    cast: Cast, server: FaultServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Cluster.objects.update(findings={"uid": OURS})
    file = tmp_path / "kubeconfig"
    file.write_text(build_kubeconfig(server))
    call_command("cluster", "there", str(file))
    assert WARNING in capsys.readouterr().err
    connections.close_all()
