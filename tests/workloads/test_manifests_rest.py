"""A Spec as the call over REST that submits it."""

import json

import yaml
from hypothesis import given, settings

from tests.workloads.spec_strategies import ANY_SPEC
from tests.workloads.submissions import EVERYTHING, train1
from workloads.manifests import build_objects, dump_yaml
from workloads.rest.writing import build_rest_body, get_rest_path
from workloads.specs import (
    Configuration,
    MasterChanges,
    Spec,
)


def test_the_walk_as_a_rest_call() -> None:
    assert get_rest_path(train1()) == "/api/v1/workloads/distributed"
    assert build_rest_body(train1(), project_id="7", cluster_id="c-1") == {
        "name": "train1",
        "projectId": "7",
        "clusterId": "c-1",
        "spec": {
            "distributedFramework": "PyTorch",
            "numWorkers": 2,
            "image": "/kubeflow/pytorch-dist-mnist:latest",
            "compute": {
                "gpuDevicesRequest": 1,
                "gpuRequestType": "portion",
                "gpuPortionRequest": 0.1,
                "cpuCoreRequest": 0.1,
                "cpuMemoryRequest": "100M",
            },
            "backoffLimit": 6,
        },
        "masterSpecSameAsWorker": True,
    }


def test_a_changed_master_is_sent_whole() -> None:
    body = build_rest_body(
        train1(master=MasterChanges(args=("a b",))), project_id="7", cluster_id="c-1"
    )
    assert body["masterSpecSameAsWorker"] is False
    assert (body["masterSpec"]["image"], body["masterSpec"]["args"]) == (
        body["spec"]["image"],
        "'a b'",
    )
    assert (
        body["masterSpec"]
        .keys()
        .isdisjoint({"numWorkers", "distributedFramework", "cleanPodPolicy"})
    )


def test_everything_as_a_rest_call() -> None:
    body = build_rest_body(
        train1(setup=EVERYTHING, configuration=Configuration.WORKERS_ONLY),
        project_id="7",
        cluster_id="c-1",
    )
    assert body["noMaster"] is True
    spec = body["spec"]
    assert spec["environmentVariables"][1:] == [
        {"name": "B", "secret": {"name": "s", "key": "k"}},
        {"name": "C", "configMap": {"name": "c", "key": "k"}},
        {"name": "D", "podFieldRef": {"path": "metadata.name"}},
    ]
    assert spec["storage"]["pvc"] == [
        {"name": "volume-5", "claimName": "e", "existingPvc": True, "path": "/e", "readOnly": True}
    ]
    assert spec["storage"]["configMapVolume"][0]["defaultMode"] == "0400"
    assert spec["security"]["supplementalGroups"] == "5,6"
    assert (spec["command"], spec["args"]) == ("python train.py", "--epochs 3")


@settings(max_examples=60)
@given(ANY_SPEC)
def test_any_valid_spec_is_a_call_and_a_file(spec: Spec) -> None:
    made = build_objects(spec, workload_id="w-1")
    assert list(yaml.safe_load_all(dump_yaml(made))) == made
    json.dumps(build_rest_body(spec, project_id="1", cluster_id="c"))
