"""The body of the tutorial, and how a body is read or refused."""

from typing import Any

import pytest
from hypothesis import strategies as st

from console.errors import Invalid
from projects.models import Project
from workloads.rest.reading import Submission, parse_submission
from workloads.rest.writing import build_rest_body
from workloads.specs import Architecture, Spec

HERE = Project(name="team-a", namespace="team-a", queue="team-a")
IDS = {"projectId": "1", "clusterId": "9a6a3a54-56f6-4f37-9ba7-4cbb5d4d4f7e"}

TUTORIAL: dict[str, Any] = IDS | {
    "name": "dist-train1",
    "spec": {
        "compute": {
            "cpuCoreRequest": 0.1,
            "gpuRequestType": "portion",
            "cpuMemoryRequest": "100M",
            "gpuDevicesRequest": 1,
            "gpuPortionRequest": 0.1,
        },
        "image": "/kubeflow/pytorch-dist-mnist:latest",
        "numWorkers": 2,
        "distributedFramework": "PyTorch",
    },
}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=10,
)


def parse_distributed(**changes: Any) -> Submission:
    """The tutorial's body with changes to its spec."""
    return parse_submission(
        TUTORIAL | {"spec": TUTORIAL["spec"] | changes}, Architecture.DISTRIBUTED
    )


def refusal(body: object, architecture: Architecture = Architecture.DISTRIBUTED) -> dict[str, str]:
    """What is wrong with a body, by its fields."""
    with pytest.raises(Invalid) as refused:
        parse_submission(body, architecture)
    return dict(refused.value.problems)


def body_of(spec: Spec) -> dict[str, Any]:
    """The body that asks for a spec, without the names of its volumes, which only count them."""
    body = build_rest_body(spec, project_id="1", cluster_id="c")
    for each in (body["spec"], body.get("masterSpec", {})):
        for entry in (entry for entries in each.get("storage", {}).values() for entry in entries):
            del entry["name"]
    return body
