"""What is kept of an object; and that from its bytes the same is made as from the object."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.workloads import objects
from workloads.kube_objects import clean_text
from workloads.pod_views import build_pod_view
from workloads.slimming import EVENT_DECODER, MOST_TEXT, SLIMMING_DECODER, slim_object
from workloads.status_rules import count_requested_pods

TEXT = st.text(max_size=6) | st.sampled_from(["a\x00b", "x" * 4097, "\U0001f600", "\u202e"])
NUMBERS = (
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([2**53, -(2**53), 1 - 2**53, 10**20])
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXT | st.sampled_from(["name", "uid", "replicas"]), inner, max_size=3)
    ),
    max_leaves=12,
)


def optional_fields(*names: str, value: Any = JSON) -> Any:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, value))


def likely_or_any(likely: Any) -> Any:
    """What is there in a cluster, or anything at all."""
    return likely | JSON


OWNERS = st.lists(
    likely_or_any(optional_fields("kind", "name", "uid", "controller", "blockOwnerDeletion")),
    max_size=9,
)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(
            ("name", "uid", "resourceVersion", "generation", "labels", "managedFields"), JSON
        ),
        "annotations": likely_or_any(optional_fields("gpu-fraction", "gpu-memory", "last-applied")),
        "ownerReferences": likely_or_any(OWNERS),
    },
)
CONTAINERS = st.lists(
    likely_or_any(optional_fields("name", "image", "resources", "env")), max_size=3
)
REPLICAS = st.dictionaries(
    st.sampled_from(["Master", "Worker"]),
    likely_or_any(optional_fields("replicas", "restartPolicy", "template")),
    max_size=2,
)
SPEC = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("nodeName", "suspend", "tolerations", "runPolicy", "volumes"), JSON),
        **dict.fromkeys(("containers", "initContainers"), likely_or_any(CONTAINERS)),
        **dict.fromkeys(("pytorchReplicaSpecs", "mpiReplicaSpecs"), likely_or_any(REPLICAS)),
        "trainer": likely_or_any(optional_fields("numNodes", "image")),
    },
)
ITEMS = st.lists(
    likely_or_any(optional_fields("type", "name", "state", "lastProbeTime")), max_size=3
)
STATUS = st.fixed_dictionaries(
    {},
    optional={"phase": JSON, "replicaStatuses": JSON, "hostIP": JSON}
    | dict.fromkeys(("conditions", "containerStatuses"), likely_or_any(ITEMS)),
)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "kind": JSON,
        "apiVersion": JSON,
        "metadata": likely_or_any(METADATA),
        "spec": likely_or_any(SPEC),
        "status": likely_or_any(STATUS),
    },
)


def nested_value(levels: int) -> Any:
    return "the end" if levels == 0 else {"in": nested_value(levels - 1)}


@given(OBJECTS, st.booleans())
@example({"status": {"replicaStatuses": nested_value(8)}}, False)
@example({"status": {"replicaStatuses": nested_value(9)}}, False)
@example({"status": {"conditions": [{"type": str(number)} for number in range(65)]}}, False)
@example({"status": {"jobsStatus": list(range(65))}}, False)
@example({"metadata": {"labels": {str(number): number for number in range(65)}}}, False)
@example(
    {
        "metadata": {"annotations": {}, "ownerReferences": []},
        "spec": {"containers": [], "trainer": {}},
    },
    False,
)
@example({"metadata": {"labels": {"a": "x" * 4096, "b": "x" * 4097}}}, False)
@example({"status": {"message": "x" * MOST_TEXT}}, False)
@settings(max_examples=400)
def test_from_its_bytes_the_same_is_made_as_from_the_object(obj: Any, escaped: bool) -> None:
    raw = json.dumps(obj, ensure_ascii=escaped).encode()
    assert SLIMMING_DECODER.decode(raw) == slim_object(msgspec.json.decode(raw, type=dict))


@pytest.mark.parametrize("raw", [b"[]", b"7", b'"x"', b"{", b'{"status": }', b'{"status": "\xff"}'])
def test_what_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises((msgspec.MsgspecError, UnicodeDecodeError)):
        SLIMMING_DECODER.decode(raw)


@pytest.mark.parametrize("spelt", [r"\u0000", r"\ud800", r"\uDFFF", r"\ud83d\ude00"])
def test_what_is_no_text_does_not_slip_through(spelt: str) -> None:
    raw = f'{{"status": {{"message": "a{spelt}b", "{spelt}": 1}}}}'.encode()
    try:
        kept = SLIMMING_DECODER.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return
    text = json.dumps(kept, ensure_ascii=False)
    assert "\\u0000" not in text
    text.encode()


@given(st.text(max_size=60), st.integers(1, 40))
def test_text_that_is_plain_already_is_as_text_that_has_to_be_made_so(
    text: str, longest: int
) -> None:
    # What is longer is cut before it is cleaned, and the null counts.
    read = text[: 4 * longest - 1]
    assert clean_text(read, longest) == clean_text(f"\x00{read}", longest)


def test_a_pod_that_nobody_changes_is_read_once() -> None:
    kept, other = slim_object(objects.pod("worker", 1)), objects.pod("worker", 1)
    assert build_pod_view(kept) is build_pod_view(kept)
    assert build_pod_view(other) is not build_pod_view(other)
    assert build_pod_view(kept) == build_pod_view(other)


def test_all_that_a_view_needs_is_kept() -> None:
    pod = objects.ended_pod(
        "worker", 1, code=1, end={"message": "Traceback"}, annotations={"gpu-fraction": "0.5"}
    )
    assert build_pod_view(SLIMMING_DECODER.decode(json.dumps(pod).encode())) == build_pod_view(pod)


@pytest.mark.parametrize(
    "labels",
    [
        {"training.kubeflow.org/job-role": "launcher"},
        {"training.kubeflow.org/job-role": "worker", "training.kubeflow.org/replica-index": "2"},
        {
            "jobset.sigs.k8s.io/replicatedjob-name": "node",
            "batch.kubernetes.io/job-completion-index": "1",
        },
    ],
)
def test_the_labels_that_tell_a_pods_place_are_kept(labels: dict[str, str]) -> None:
    pod = objects.pod()
    pod["metadata"]["labels"] = labels
    assert slim_object(pod)["metadata"]["labels"] == labels


@pytest.mark.parametrize("field", ["pytorch", "tf", "xgb", "jax", "mpi"])
def test_how_many_pods_a_job_wants_is_kept(field: str) -> None:
    replicas = {"Worker": {"replicas": 3, "template": {"spec": {}}}, "Master": {"replicas": 1}}
    job = {"kind": "AnyJob", "spec": {f"{field}ReplicaSpecs": replicas}}
    assert count_requested_pods(slim_object(job)) == 4
    assert "template" not in json.dumps(slim_object(job))


def test_of_a_trainjob_the_nodes_and_how_its_jobs_stand_are_kept() -> None:
    status = {
        "conditions": [objects.condition("Complete")],
        "jobsStatus": [{"name": "node", "succeeded": 1}],
    }
    job = {
        "kind": "TrainJob",
        "spec": {
            "trainer": {"numNodes": 4, "image": "train:1", "env": [{}]},
            "runtimeRef": {"name": "torch"},
        },
    }
    kept = slim_object(job | {"status": status})
    assert count_requested_pods(kept) == 4
    assert kept["status"] == status
    assert kept["spec"] == {"trainer": {"numNodes": 4}, "runtimeRef": {"name": "torch"}}


def test_an_event_of_any_size_keeps_what_is_read_within_bounds() -> None:
    event: dict[str, Any] = {
        "metadata": {
            "name": "e",
            "namespace": "team",
            "uid": "u",
            "annotations": {"evictor-action-type": "preempt", "more": "x" * 200_000},
        },
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "team", "uid": "v"},
        "reason": "Evict",
        "message": "m" * 1_000_000,
        "count": 3,
        "unread": "x" * 300_000,
    }
    kept = EVENT_DECODER.decode(json.dumps(event).encode())
    assert len(json.dumps(kept)) < 2 * MOST_TEXT
    assert kept["metadata"]["annotations"] == {"evictor-action-type": "preempt"}
    assert (kept["involvedObject"], kept["count"]) == (event["involvedObject"], 3)
    assert event["message"].startswith(kept["message"])
    short = event | {"message": "m", "unread": "x"}
    short["metadata"] = event["metadata"] | {"annotations": {}}
    assert EVENT_DECODER.decode(json.dumps(short).encode()) == short
