"""Random histories of writes: whoever lists and then watches from the list's version ends with
exactly the list's state.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.cluster import LocalKube
from tests.conformance.api import Api, Object, Stream
from tests.conformance.samples import LEASES, NAMESPACES, lease

NAMES = ["a", "b", "c"]
FINALIZER = "example.com/hold"

Step = tuple[str, str, str]
"""What is done, to which name, with which label value."""

steps = st.lists(
    st.tuples(
        st.sampled_from(["create", "patch", "spec", "hold", "release", "delete"]),
        st.sampled_from(NAMES),
        st.sampled_from("xyz"),
    ),
    max_size=25,
)
numbers = itertools.count()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with LocalKube(tmp_path_factory.mktemp("histories") / "data") as server:
        opened = Api.from_kubeconfig(Path(server.kubeconfig))
        yield opened
        opened.close()


def perform(client: Api, path: str, step: Step) -> None:
    """Do one step; a refusal is an answer like any other, but never the server's fault."""
    what, name, value = step
    one = f"{path}/{name}"
    patches: dict[str, Object] = {
        "patch": {"metadata": {"labels": {"k": value}}},
        "spec": {"spec": {"holderIdentity": value}},
        "hold": {"metadata": {"finalizers": [FINALIZER]}},
        "release": {"metadata": {"finalizers": None}},
    }
    if what == "create":
        answer = client.post(path, lease(name, labels={"k": value}))
    elif what == "delete":
        answer = client.delete(one)
    else:
        answer = client.patch(one, patches[what])
    assert answer.status < 500, answer.text


def state(listing: Object) -> dict[str, Object]:
    return {
        item["metadata"]["name"]: item | {"apiVersion": LEASES.api_version, "kind": "Lease"}
        for item in listing["items"]
    }


def follow(watch: Stream, known: dict[str, Object], last: str) -> dict[str, Object]:
    """Apply the frames up to the object named `last`, and check that each fits what was known
    before it.
    """
    for frame in watch:
        name = frame["object"]["metadata"]["name"]
        if name == last:
            return known
        assert (frame["type"] == "ADDED") == (name not in known), frame
        if frame["type"] == "DELETED":
            del known[name]
        else:
            known[name] = frame["object"]
    raise AssertionError(f"the watch ended after {watch.frames}")


@pytest.mark.parametrize("selector", [None, "k=x"], ids=["all", "selected"])
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    database=None,
)
@given(before=steps, after=steps)
def test_a_list_and_its_watch_end_with_the_state(
    client: Api, selector: str | None, before: list[Step], after: list[Step]
) -> None:
    namespace = f"history-{next(numbers)}"
    client.post(NAMESPACES.path(), {"metadata": {"name": namespace}}).ok(201)
    path = LEASES.path(namespace)
    for step in before:
        perform(client, path, step)
    listing = client.get(path, labelSelector=selector).ok()
    with client.watch(
        path, resourceVersion=listing["metadata"]["resourceVersion"], labelSelector=selector
    ) as watch:
        for step in after:
            perform(client, path, step)
        final = client.get(path, labelSelector=selector).ok()
        client.post(path, lease("the-end", labels={"k": "x"})).ok(201)
        assert follow(watch, state(listing), "the-end") == state(final)
    for name in NAMES:
        client.patch(f"{path}/{name}", {"metadata": {"finalizers": None}})
    client.delete(NAMESPACES.path(name=namespace)).ok()
