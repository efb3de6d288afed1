"""The subresource scale of jobs: how many workers there shall be, and how many there are."""

import pytest

from tests.conformance.api import JSON_PATCH, Api, Object
from tests.conformance.samples import (
    JAXJOBS,
    PADDLEJOBS,
    PYTORCHJOBS,
    Kind,
    create,
    pytorchjob,
    scalable_job,
)

KINDS = pytest.mark.parametrize("kind", [PYTORCHJOBS, JAXJOBS, PADDLEJOBS], ids=lambda k: k.kind)


def get_workers(kind: Kind, job: Object) -> int:
    framework = kind.kind.removesuffix("Job").lower()
    count: int = job["spec"][f"{framework}ReplicaSpecs"]["Worker"]["replicas"]
    return count


@KINDS
def test_the_scale_says_what_is_wanted_and_what_is_there(
    api: Api, namespace: str, kind: Kind
) -> None:
    made = create(api, kind, namespace, scalable_job(kind))
    path = kind.path(namespace, "job")
    scale = api.get(f"{path}/scale").ok()
    assert (scale["apiVersion"], scale["kind"]) == ("autoscaling/v1", "Scale")
    for part in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp"):
        assert scale["metadata"][part] == made["metadata"][part]
    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 0})
    worker = {"active": 2, "selector": "training.kubeflow.org/job-name=job"}
    api.patch(f"{path}/status", {"status": {"replicaStatuses": {"Worker": worker}}}).ok()
    assert api.get(f"{path}/scale").ok()["status"] == {
        "replicas": 2,
        "selector": "training.kubeflow.org/job-name=job",
    }


@KINDS
def test_a_patch_of_the_scale_changes_the_workers(api: Api, namespace: str, kind: Kind) -> None:
    made = create(api, kind, namespace, scalable_job(kind))
    path = kind.path(namespace, "job")
    scale = api.patch(f"{path}/scale", {"spec": {"replicas": 5}}).ok()
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 5})
    job = api.get(path).ok()
    assert get_workers(kind, job) == 5
    assert job["metadata"]["generation"] == made["metadata"]["generation"] + 1
    change = [{"op": "replace", "path": "/spec/replicas", "value": 4}]
    api.patch(f"{path}/scale", change, JSON_PATCH).ok()
    assert get_workers(kind, api.get(path).ok()) == 4


@KINDS
def test_a_scale_is_replaced_at_the_version_that_was_read(
    api: Api, namespace: str, kind: Kind
) -> None:
    create(api, kind, namespace, scalable_job(kind))
    path = kind.path(namespace, "job", "scale")
    scale = api.get(path).ok()
    scale["spec"]["replicas"] = 1
    assert api.put(path, scale).ok()["spec"] == {"replicas": 1}
    scale["spec"]["replicas"] = 2
    api.put(path, scale).expect_refusal(409, "Conflict")
    assert api.get(path).ok()["spec"] == {"replicas": 1}


def test_scaling_leaves_the_rest_of_a_job_alone(api: Api, namespace: str) -> None:
    made = create(api, PYTORCHJOBS, namespace, pytorchjob())
    path = PYTORCHJOBS.path(namespace, "job")
    api.patch(f"{path}/scale", {"spec": {"replicas": 7}}).ok()
    spec = api.get(path).ok()["spec"]
    made["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 7
    assert spec == made["spec"]


def test_a_dry_run_scales_nothing(api: Api, namespace: str) -> None:
    made = create(api, PYTORCHJOBS, namespace, pytorchjob())
    path = PYTORCHJOBS.path(namespace, "job")
    answer = api.patch(f"{path}/scale", {"spec": {"replicas": 7}}, dryRun="All").ok()
    assert answer["spec"] == {"replicas": 7}
    assert api.get(path).ok() == made


def test_fewer_than_no_workers_are_refused(api: Api, namespace: str) -> None:
    create(api, PYTORCHJOBS, namespace, pytorchjob())
    path = PYTORCHJOBS.path(namespace, "job", "scale")
    api.patch(path, {"spec": {"replicas": -1}}).expect_refusal(422, "Invalid")
    assert api.get(path).ok()["spec"] == {"replicas": 3}


@pytest.mark.parametrize("replicas", ["5", 2**31], ids=["text", "too-many"])
def test_what_is_no_number_of_workers_is_refused_as_such(
    api: Api, namespace: str, replicas: object
) -> None:
    create(api, PYTORCHJOBS, namespace, pytorchjob())
    path = PYTORCHJOBS.path(namespace, "job", "scale")
    refusal = api.patch(path, {"spec": {"replicas": replicas}}).expect_refusal(400, "BadRequest")
    assert "int32" in refusal["message"]


def test_the_scale_of_what_is_not_there(api: Api, namespace: str) -> None:
    path = PYTORCHJOBS.path(namespace, "none", "scale")
    for answer in (api.get(path), api.patch(path, {"spec": {"replicas": 1}})):
        answer.expect_refusal(404, "NotFound")
