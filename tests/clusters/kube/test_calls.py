"""Each verb, against the embedded cluster."""

import threading
from typing import Any

import msgspec
import pytest

from clusters.kube import calls, discovery
from clusters.kube.access import ClusterAccess
from clusters.kube.client import Client
from clusters.kube.errors import (
    Conflict,
    ContainerNotStarted,
    Gone,
    NotServed,
    Rejected,
    TooLarge,
)
from clusters.kube.frames import Object
from clusters.kube.resources import CONFIGMAPS, NODES, PODS, QUEUES, Resource
from tests.conformance.api import eventually
from tests.conformance.samples import shell_pod

PYTORCHJOBS = Resource("kubeflow.org", "v1", "pytorchjobs")
TFJOBS = Resource("kubeflow.org", "v1", "tfjobs")


class Meta(msgspec.Struct):
    name: str


class Map(msgspec.Struct):
    metadata: Meta
    data: dict[str, str] = {}


MAP = msgspec.json.Decoder(Map)


def configmap(name: str, **data: str) -> Object:
    labels = {"app": "a"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels},
        "data": data or {"k": "v"},
    }


def job(**spec: Any) -> Object:
    template = {"spec": {"containers": [{"name": "pytorch", "image": "train:1"}]}}
    replicas = {"Master": {"replicas": 1, "template": template}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "j"},
        "spec": {"pytorchReplicaSpecs": replicas, **spec},
    }


def test_what_is_created_can_be_read_as_dictionary_or_struct(
    client: Client, namespace: str
) -> None:
    made = calls.create(client, CONFIGMAPS, configmap("m"), namespace=namespace)
    assert calls.get(client, CONFIGMAPS, "m", namespace=namespace) == made
    assert calls.get(client, CONFIGMAPS, "m", namespace=namespace, decoder=MAP) == Map(
        Meta("m"), {"k": "v"}
    )


def test_a_dry_run_creates_nothing(client: Client, namespace: str) -> None:
    assert calls.create(client, CONFIGMAPS, configmap("m"), namespace=namespace, dry_run=True)[
        "metadata"
    ]["uid"]
    with pytest.raises(Gone):
        calls.get(client, CONFIGMAPS, "m", namespace=namespace)


def test_a_taken_name_is_a_conflict_that_says_so(client: Client, namespace: str) -> None:
    calls.create(client, CONFIGMAPS, configmap("m"), namespace=namespace)
    with pytest.raises(Conflict) as conflict:
        calls.create(client, CONFIGMAPS, configmap("m"), namespace=namespace)
    assert conflict.value.already_exists


def test_a_namespace_that_is_not_there_is_gone(client: Client) -> None:
    with pytest.raises(Gone, match="nowhere"):
        calls.create(client, CONFIGMAPS, configmap("m"), namespace="nowhere")


def test_an_unknown_field_is_refused_by_name(client: Client, namespace: str) -> None:
    with pytest.raises(Rejected, match="misspelt"):
        calls.create(client, PYTORCHJOBS, job(misspelt=1), namespace=namespace)
    calls.create(
        client, PYTORCHJOBS, job(misspelt=1), namespace=namespace, validation="Ignore", dry_run=True
    )


def test_a_wrong_type_is_refused_with_its_field(client: Client, namespace: str) -> None:
    wrong = job()
    wrong["spec"]["pytorchReplicaSpecs"]["Master"]["replicas"] = "two"
    with pytest.raises(Rejected) as refused:
        calls.create(client, PYTORCHJOBS, wrong, namespace=namespace)
    assert [field for field, _ in refused.value.causes] == [
        "spec.pytorchReplicaSpecs.Master.replicas"
    ]


def test_a_kind_that_is_not_served_is_told_from_an_object_that_is_not_there(
    client: Client, namespace: str
) -> None:
    with pytest.raises(NotServed):
        calls.list_page(client, Resource("example.org", "v1", "widgets"))
    with pytest.raises(NotServed):
        calls.get(client, Resource("", "v1", "widgets"), "w", namespace=namespace)
    with pytest.raises(Gone):
        calls.get(client, PODS, "p", namespace=namespace)


def test_pages_follow_each_other(client: Client, namespace: str) -> None:
    for n in range(5):
        calls.create(client, CONFIGMAPS, configmap(f"m{n}"), namespace=namespace)
    pages = list(
        calls.list_all(
            client, CONFIGMAPS, namespace=namespace, labels="app=a", limit=2, decoder=MAP
        )
    )
    assert [[found.metadata.name for found in page.items] for page in pages] == [
        ["m0", "m1"],
        ["m2", "m3"],
        ["m4"],
    ]
    assert len({page.version for page in pages}) == 1


def test_a_page_that_is_too_large_is_asked_for_in_parts(
    access: ClusterAccess, client: Client, namespace: str
) -> None:
    for n in range(12):
        large = configmap(f"m{n:02}", k="x" * (100_000 if n % 3 else 10))
        calls.create(client, CONFIGMAPS, large, namespace=namespace)
    with Client(access, max_body=250_000) as narrow:
        pages = list(calls.list_all(narrow, CONFIGMAPS, namespace=namespace, labels="app=a"))
        names = [each["metadata"]["name"] for page in pages for each in page.items]
        assert names == [f"m{n:02}" for n in range(12)]
        assert [page.first for page in pages].count(True) == 1
        assert len({page.version for page in pages}) == 1
    with Client(access, max_body=50_000) as narrower, pytest.raises(TooLarge, match="longer than"):
        list(calls.list_all(narrower, CONFIGMAPS, namespace=namespace, labels="app=a"))


def test_one_object_that_the_decoder_refuses_spoils_no_other(
    client: Client, namespace: str
) -> None:
    class Narrow(msgspec.Struct):
        data: dict[str, int]

    decoder = msgspec.json.Decoder(Narrow, strict=False)
    for name, value in (("good", "1"), ("poison", "x")):
        calls.create(client, CONFIGMAPS, configmap(name, k=value), namespace=namespace)
    page = calls.list_page(client, CONFIGMAPS, namespace=namespace, labels="app=a", decoder=decoder)
    assert [item.data for item in page.items] == [{"k": 1}]
    assert [(lost.namespace, lost.name) for lost in page.unreadable] == [(namespace, "poison")]
    assert "Expected `int`" in page.unreadable[0].reason


def test_a_merge_patch_and_a_json_patch_change_what_they_name(
    client: Client, namespace: str
) -> None:
    calls.create(client, CONFIGMAPS, configmap("m", a="1", b="2"), namespace=namespace)
    calls.patch(client, CONFIGMAPS, "m", {"data": {"a": None}}, namespace=namespace)
    operations = [{"op": "add", "path": "/data/c", "value": "3"}]
    assert calls.patch(client, CONFIGMAPS, "m", operations, kind="json", namespace=namespace)[
        "data"
    ] == {"b": "2", "c": "3"}


def test_a_patch_with_a_stale_version_is_a_conflict(client: Client, namespace: str) -> None:
    old = calls.create(client, CONFIGMAPS, configmap("m"), namespace=namespace)
    calls.patch(client, CONFIGMAPS, "m", {"data": {"a": "1"}}, namespace=namespace)
    stale = {
        "metadata": {"resourceVersion": old["metadata"]["resourceVersion"]},
        "data": {"a": "2"},
    }
    with pytest.raises(Conflict) as conflict:
        calls.patch(client, CONFIGMAPS, "m", stale, namespace=namespace)
    assert not conflict.value.already_exists


def test_apply_creates_then_owns_its_fields_until_forced(client: Client, namespace: str) -> None:
    calls.apply(client, CONFIGMAPS, "m", configmap("m", k="ours"), namespace=namespace)
    with pytest.raises(Conflict, match="conflict"):
        calls.apply(
            client,
            CONFIGMAPS,
            "m",
            configmap("m", k="theirs"),
            namespace=namespace,
            manager="other",
        )
    taken = calls.apply(
        client,
        CONFIGMAPS,
        "m",
        configmap("m", k="theirs"),
        namespace=namespace,
        manager="other",
        force=True,
    )
    assert taken["data"] == {"k": "theirs"}


def test_a_deletion_meant_for_a_namesake_is_a_conflict(client: Client, namespace: str) -> None:
    uid = calls.create(client, CONFIGMAPS, configmap("m"), namespace=namespace)["metadata"]["uid"]
    with pytest.raises(Conflict):
        calls.delete(client, CONFIGMAPS, "m", namespace=namespace, uid="another")
    calls.delete(
        client,
        CONFIGMAPS,
        "m",
        namespace=namespace,
        uid=uid,
        propagation="Foreground",
        grace_seconds=0,
    )

    def is_gone() -> bool:
        try:
            calls.delete(client, CONFIGMAPS, "m", namespace=namespace)
        except Gone:
            return True
        return False

    # One whose dependents go first stays until the garbage collector has looked for them.
    eventually(is_gone)


def test_a_collection_is_deleted_by_label(client: Client, namespace: str) -> None:
    calls.create(client, CONFIGMAPS, configmap("m"), namespace=namespace)
    calls.delete_collection(client, CONFIGMAPS, namespace=namespace, labels="app=other")
    assert calls.get(client, CONFIGMAPS, "m", namespace=namespace)
    calls.delete_collection(client, CONFIGMAPS, namespace=namespace, labels="app=a")
    assert calls.list_page(client, CONFIGMAPS, namespace=namespace, labels="app=a").items == []


def test_a_cluster_scoped_object_needs_no_namespace(client: Client) -> None:
    assert len(calls.list_page(client, NODES).items) == 1
    with pytest.raises(Rejected, match="in a namespace"):
        calls.get(client, PODS, "p")


def test_a_finished_log_is_read_whole_or_by_its_end(client: Client, namespace: str) -> None:
    calls.create(
        client,
        PODS,
        shell_pod("busybox:1.36", "for n in 1 2 3; do echo line $n; done"),
        namespace=namespace,
    )
    eventually(
        lambda: (
            calls.get(client, PODS, "pod", namespace=namespace)["status"].get("phase")
            == "Succeeded"
        )
    )
    assert b"".join(calls.open_log(client, namespace, "pod")) == b"line 1\nline 2\nline 3\n"
    assert b"".join(calls.open_log(client, namespace, "pod", tail=1, follow=True)) == b"line 3\n"
    stamp, line = (
        b"".join(calls.open_log(client, namespace, "pod", timestamps=True, tail=1))
        .decode()
        .split(" ", 1)
    )
    assert line == "line 3\n"
    assert b"".join(calls.open_log(client, namespace, "pod", since_time=stamp)).endswith(
        b"line 3\n"
    )
    with pytest.raises(Rejected):
        calls.open_log(client, namespace, "pod", previous=True)


def test_a_followed_log_comes_as_it_is_written_and_can_be_closed_from_another_thread(
    client: Client, namespace: str
) -> None:
    calls.create(
        client, PODS, shell_pod("busybox:1.36", "echo first; sleep 60"), namespace=namespace
    )
    eventually(
        lambda: (
            calls.get(client, PODS, "pod", namespace=namespace)["status"].get("phase") == "Running"
        )
    )
    stream = calls.open_log(client, namespace, "pod", follow=True)
    chunks = iter(stream)
    assert next(chunks) == b"first\n"
    closing = threading.Timer(0.2, stream.close)
    closing.start()
    assert list(chunks) == []
    closing.join()
    calls.delete(client, PODS, "pod", namespace=namespace, grace_seconds=0)


def test_a_log_that_has_not_begun_is_to_be_asked_for_later(client: Client, namespace: str) -> None:
    first = {"name": "first", "image": "busybox:1.36", "command": ["sleep", "60"]}
    calls.create(
        client, PODS, shell_pod("busybox:1.36", "true", initContainers=[first]), namespace=namespace
    )
    eventually(
        lambda: calls.get(client, PODS, "pod", namespace=namespace)["status"].get(
            "containerStatuses"
        )
    )
    with pytest.raises(ContainerNotStarted, match="waiting to start"):
        calls.open_log(client, namespace, "pod", container="main", follow=True)
    calls.delete(client, PODS, "pod", namespace=namespace, grace_seconds=0)


def test_the_cluster_says_what_it_is_serves_and_allows(client: Client, namespace: str) -> None:
    found = {served.resource: served for served in discovery.fetch_served_kinds(client)}
    assert found[PYTORCHJOBS].kind == "PyTorchJob"
    assert "watch" in found[PODS].verbs
    assert "log" in found[PODS].subresources
    assert not found[QUEUES].resource.namespaced
    assert (TFJOBS in found) is any(served.kind == "TFJob" for served in found.values())
    assert discovery.fetch_server_version(client).version.startswith("v1.")
    assert discovery.review_access(client, "create", PYTORCHJOBS, namespace=namespace)
