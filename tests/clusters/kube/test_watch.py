"""Following the embedded cluster: listings, changes, restarts."""

import shutil
import threading
import time
from pathlib import Path

import msgspec

from clusters.kube import calls, watch
from clusters.kube.access import parse_kubeconfig
from clusters.kube.client import Client
from clusters.kube.frames import Object
from clusters.kube.resources import CONFIGMAPS
from clusters.kube.watch import Bookmark, Listing, ObjectChange
from tests.cluster import LocalKube
from tests.clusters.kube.following import Following

LABELS = "app=a"


def apply_configmap(
    client: Client, name: str, value: str = "1", namespace: str = "default"
) -> None:
    obj: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": "a"}},
        "data": {"k": value},
    }
    calls.apply(client, CONFIGMAPS, name, obj, namespace=namespace)


def test_a_listing_comes_first_and_then_every_change(client: Client, namespace: str) -> None:
    apply_configmap(client, "a", namespace=namespace)
    with Following(client, CONFIGMAPS, namespace=namespace, labels=LABELS) as following:
        following.wait_for(
            lambda follower: any(isinstance(item, Bookmark) for item in follower.items)
        )
        apply_configmap(client, "b", namespace=namespace)
        apply_configmap(client, "a", "2", namespace=namespace)
        calls.delete(client, CONFIGMAPS, "b", namespace=namespace)
        following.wait_for(lambda follower: "-b" in follower.summary)
        assert [entry for entry in following.summary if not entry.startswith("@")] == [
            "[a]",
            "+b",
            "~a",
            "-b",
        ]


def test_objects_come_as_the_callers_struct(client: Client, namespace: str) -> None:
    class Map(msgspec.Struct):
        data: dict[str, str]

    apply_configmap(client, "a", namespace=namespace)
    stop = threading.Event()
    items = watch.follow(
        client,
        CONFIGMAPS,
        namespace=namespace,
        labels=LABELS,
        stop=stop,
        decoder=msgspec.json.Decoder(Map),
    )
    first = next(items)
    assert isinstance(first, Listing)
    assert first.items == [Map({"k": "1"})]
    assert isinstance(next(items), Bookmark)
    apply_configmap(client, "a", "2", namespace=namespace)
    change = next(items)
    assert isinstance(change, ObjectChange)
    assert change.object == Map({"k": "2"})
    stop.set()
    assert list(items) == []


def test_a_listing_takes_as_many_pages_as_it_needs(client: Client, namespace: str) -> None:
    for n in range(5):
        apply_configmap(client, f"m{n}", namespace=namespace)
    with Following(client, CONFIGMAPS, namespace=namespace, labels=LABELS, page=2) as following:
        following.wait_for(lambda follower: follower.summary[:1] == ["[m0 m1 m2 m3 m4]"])


def test_a_watch_that_ends_in_silence_goes_on_without_a_new_listing(
    client: Client, namespace: str
) -> None:
    with Following(client, CONFIGMAPS, namespace=namespace, labels=LABELS) as following:
        following.wait_for(
            lambda follower: sum(isinstance(item, Bookmark) for item in follower.items) >= 3
        )
        apply_configmap(client, "a", namespace=namespace)
        following.wait_for(lambda follower: "+a" in follower.summary)
        assert [entry for entry in following.summary if not entry.startswith("@")] == ["[]", "+a"]


def test_it_stops_at_once_and_leaves_no_thread_behind(client: Client, namespace: str) -> None:
    before = threading.active_count()
    with Following(
        client, CONFIGMAPS, namespace=namespace, patience=watch.WatchTimings()
    ) as following:
        following.wait_for(lambda follower: len(follower.items) >= 2)
    assert following.stopped_in < 1.0
    assert threading.active_count() == before


def test_what_happens_while_the_server_is_away_is_made_up_for(tmp_path: Path) -> None:
    with (
        LocalKube(tmp_path / "data") as cluster,
        Client(parse_kubeconfig(cluster.kubeconfig.read_text())) as client,
    ):
        apply_configmap(client, "a")
        apply_configmap(client, "b")
        with Following(client, CONFIGMAPS, namespace="default", labels=LABELS) as following:
            following.wait_for(lambda follower: "[a b]" in follower.summary)
            before = time.time()
            cluster.kill()
            lost = following.wait_for(lambda follower: follower.failures)
            assert abs(lost[0].since.timestamp() - before) < 5
            cluster.start()
            with Client(client.access) as other:
                calls.delete(other, CONFIGMAPS, "a", namespace="default")
                apply_configmap(other, "c")
            following.wait_for(
                lambda follower: "+c" in follower.summary or "[b c]" in follower.summary
            )
            assert "-a" in following.summary or "[b c]" in following.summary


def test_a_server_that_came_back_from_an_older_state_is_listed_again(tmp_path: Path) -> None:
    old, new = LocalKube(tmp_path / "old"), LocalKube(tmp_path / "new")
    with new, Client(parse_kubeconfig(new.kubeconfig.read_text())) as client:
        for n in range(60):
            apply_configmap(client, "a", str(n))
        with Following(client, CONFIGMAPS, namespace="default", labels=LABELS) as following:
            following.wait_for(lambda follower: "[a]" in follower.summary)
            new.stop()
            old.port = new.port
            # The same cluster as its clients see it, with the data of another time.
            shutil.copytree(new.data / "pki", old.data / "pki")
            with old:
                following.wait_for(lambda follower: "[]" in follower.summary)
                apply_configmap(client, "z")
                following.wait_for(
                    lambda follower: "+z" in follower.summary or "[z]" in follower.summary
                )
