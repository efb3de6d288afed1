"""SSRF: no field that takes an address leads to a cloud's metadata, nor past what the settings
allow.
"""

from typing import Any

import pytest
from django.test import Client

from clusters.models import Cluster
from environments.models import DataSource
from tests.api.calling import Caller, a_body
from tests.cast import NOWHERE, Cast
from workloads.models import Workload

METADATA = (
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "[::ffff:169.254.169.254]",
    "metadata.google.internal",
    "[fd00:ec2::254]",
)


@pytest.fixture
def alice(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.alice)
    return client


def git(address: str) -> dict[str, Any]:
    return {"git": [{"repository": address, "path": "/code"}]}


def s3(address: str) -> dict[str, Any]:
    return {"s3": [{"url": address, "bucket": "data", "path": "/data"}]}


def nfs(address: str) -> dict[str, Any]:
    return {"nfs": [{"server": address, "mountPath": "/x", "path": "/data"}]}


@pytest.mark.parametrize("host", METADATA)
@pytest.mark.parametrize(
    "storage", [lambda host: git(f"http://{host}/a.git"), lambda host: s3(f"http://{host}")]
)
def test_no_workload_is_told_to_fetch_from_there(cast: Cast, host: str, storage: Any) -> None:
    refused = Caller(cast.bob)(
        "POST", "/workloads/distributed", a_body(cast, storage=storage(host)), status=400
    )
    assert "leads where it may not" in refused["message"]
    assert not Workload.objects.exists()


def test_nor_to_mount_it(cast: Cast) -> None:
    refused = Caller(cast.bob)(
        "POST", "/workloads/distributed", a_body(cast, storage=nfs("169.254.169.254")), status=400
    )
    assert "leads where it may not" in refused["message"]


def test_this_machine_is_for_the_embedded_cluster_only(cast: Cast) -> None:
    body = a_body(cast, storage=git("http://127.0.0.1:3000/a.git"))
    Caller(cast.bob)("POST", "/workloads/distributed", body, status=202)
    Cluster.objects.update(is_local=False)
    refused = Caller(cast.bob)(
        "POST", "/workloads/distributed", {**body, "name": "train2"}, status=400
    )
    assert "this machine's own" in refused["message"]


def test_private_networks_are_a_matter_of_settings(cast: Cast, settings: Any) -> None:
    body = a_body(cast, storage=git("git@10.1.2.3:team/code.git"))
    Caller(cast.bob)("POST", "/workloads/distributed", body, status=202)
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"private_sources": False})
    refused = Caller(cast.bob)(
        "POST", "/workloads/distributed", {**body, "name": "train2"}, status=400
    )
    assert "MUSTER_PRIVATE_SOURCES" in refused["message"]


@pytest.mark.parametrize("host", METADATA)
def test_no_data_source_holds_such_an_address(cast: Cast, alice: Client, host: str) -> None:
    forms = {
        "git": {"repository": f"http://{host}/a.git", "path": "/code"},
        "s3": {"url": f"http://{host}", "bucket": "data", "path": "/d"},
    }
    for kind, values in forms.items():
        answer = alice.post(
            f"/data-sources/new/{kind}", {"name": f"source-{kind}", "scope": "tenant", **values}
        )
        assert answer.status_code == 422
        assert b"leads where it may not" in answer.content
    assert not DataSource.objects.exists()


@pytest.mark.parametrize("host", METADATA)
def test_no_cluster_does(cast: Cast, alice: Client, host: str) -> None:
    kubeconfig = NOWHERE.replace("127.0.0.1:1", host)
    new, change = "/clusters/new", f"/clusters/{cast.cluster.pk}/edit"
    opened = {"started_from": alice.get(change).context["started_from"]}
    for path, form in (
        (new, {"name": "there", "way": "kubeconfig", "kubeconfig": kubeconfig}),
        (new, {"name": "there", "way": "token", "server": f"https://{host}", "token": "abc"}),
        (change, {"name": "here", "way": "stored", "prometheus_url": f"http://{host}:9090"}),
        (change, {"name": "here", "way": "token", "server": f"https://{host}", "token": "abc"}),
    ):
        for more in ({}, {"test": "1"}):
            answer = alice.post(path, form | opened | more)
            assert answer.status_code in (200, 422)
            assert (
                b"only a cloud answers" in answer.content
                or b"a cloud answers its own machines" in answer.content
            )
    cast.cluster.refresh_from_db()
    assert (Cluster.objects.count(), cast.cluster.server, cast.cluster.prometheus_url) == (
        1,
        "https://127.0.0.1:1",
        "",
    )
