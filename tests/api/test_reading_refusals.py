"""What is wrong with a body of a submission is refused, by its path."""

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.errors import Invalid
from tests.api.submission_bodies import HERE, IDS, JSON, TUTORIAL, parse_distributed, refusal
from workloads.rest.reading import parse_submission
from workloads.specs import Architecture, find_problems


def test_problems_are_told_with_the_names_of_the_body() -> None:
    submission = parse_distributed(
        storage={
            "emptyDirVolume": [{"path": "/a"}],
            "nfs": [{"server": "s", "path": "e", "mountPath": "/b"}],
        },
        compute={"gpuDevicesRequest": 1, "gpuPortionRequest": 3},
        priorityClass="low",
        backoffLimit=-1,
        numWorkers=0,
        environmentVariables=[{"name": "K", "secret": {"name": "UPPER", "key": "k"}}],
    )
    found = find_problems(submission.build_spec(HERE))
    translated = submission.translate_problems(
        Invalid([(problem.field, problem.text) for problem in found])
    )
    assert {field for field, _ in translated.problems} == {
        "spec.numWorkers",
        "spec.backoffLimit",
        "spec.compute.gpuPortionRequest",
        "spec.storage.nfs.0.path",
        "spec.environmentVariables.0.secret.name",
    }


@pytest.mark.parametrize(
    ("spec", "top", "place"),
    [
        ({"distributedFramework": "JAX"}, {"masterSpec": {"image": "a"}}, "masterSpec"),
        ({"distributedFramework": "MPI"}, {"noMaster": True}, "noMaster"),
        ({"distributedFramework": "XGBoost"}, {"noMaster": True}, "noMaster"),
        ({"sshAuthMountPath": "/x"}, {}, "spec.sshAuthMountPath"),
        ({"distributedFramework": "MPI", "slotsPerWorker": 0}, {}, "spec.slotsPerWorker"),
        ({"parameterServers": 1}, {}, "spec.parameterServers"),
        ({"distributedFramework": "TF", "maxReplicas": 9}, {}, "spec.maxReplicas"),
        ({"minReplicas": 1, "maxRestarts": -1}, {}, "spec.maxRestarts"),
        ({"podAffinity": {"type": "Required"}}, {}, "spec.podAffinity.key"),
        ({"nodePools": ["fast", "default"]}, {}, "spec.nodePools"),
        ({"storage": {"pvc": [{"path": "/a"}]}}, {}, "spec.storage.pvc.0.claimInfo.size"),
        (
            {"storage": {"git": [{"path": "/a", "repository": "x"}]}},
            {},
            "spec.storage.git.0.repository",
        ),
        (
            {
                "storage": {
                    "git": [{"path": "/a", "repository": "https://h/x", "secretRef": {"name": "s"}}]
                }
            },
            {},
            "spec.storage.git.0.secretRef.name",
        ),
        ({"storage": {"s3": [{"path": "/a", "bucket": "B"}]}}, {}, "spec.storage.s3.0.bucket"),
    ],
)
def test_what_cannot_be_is_told_at_the_field_that_said_it(
    spec: dict[str, Any], top: dict[str, Any], place: str
) -> None:
    submission = parse_submission(
        TUTORIAL | {"spec": TUTORIAL["spec"] | spec} | top, Architecture.DISTRIBUTED
    )
    found = Invalid(
        [(each.field, each.text) for each in find_problems(submission.build_spec(HERE))]
    )
    assert {field for field, _ in submission.translate_problems(found).problems} == {place}


UNSUPPORTED: dict[str, Any] = {
    "annotations": 5,
    "args": "'",
    "autoDeletionTimeAfterCompletionSeconds": "1",
    "backoffLimit": 1.5,
    "category": "Build",
    "cleanPodPolicy": "Some",
    "command": ["a"],
    "compute": [],
    "createHomeDir": True,
    "distributedFramework": "Torch",
    "environmentVariables": {"A": 1},
    "exposedUrls": [{"container": 1}],
    "image": 5,
    "imagePullPolicy": "Sometimes",
    "imagePullSecrets": [5],
    "labels": [["a"]],
    "maxReplicas": True,
    "minReplicas": 10**30,
    "maxRestarts": 3,
    "mpiLauncherCreationPolicy": "Now",
    "nodeAffinityRequired": {"nodeSelectorTerms": []},
    "nodePools": "fast",
    "nodeType": {},
    "numWorkers": "2",
    "parameterServers": "2",
    "podAffinity": {"type": "Never"},
    "ports": [{"container": 80}],
    "preemptibility": "maybe",
    "priorityClass": "train",
    "probes": {"readiness": {}},
    "relatedUrls": [{"url": "u"}],
    "restartPolicy": "never",
    "security": {"uidGidSource": "fromIdpToken"},
    "slotsPerWorker": "2",
    "sshAuthMountPath": 5,
    "stdin": True,
    "storage": {"dataVolume": [{"id": "r"}]},
    "terminateAfterPreemption": True,
    "terminationGracePeriodSeconds": [],
    "tolerations": "all",
    "tty": 1,
    "workingDir": 1,
    "misspelled": 1,
}


@pytest.mark.parametrize("field", UNSUPPORTED)
def test_what_cannot_be_heeded_is_refused_by_name(field: str) -> None:
    found = refusal(TUTORIAL | {"spec": TUTORIAL["spec"] | {field: UNSUPPORTED[field]}})
    assert any(place.startswith(f"spec.{field}") for place in found), found


NESTED: list[tuple[str, dict[str, Any]]] = [
    ("spec.compute.gpuPortionLimit", {"compute": {"gpuPortionRequest": 0.5, "gpuPortionLimit": 1}}),
    (
        "spec.compute.gpuMemoryLimit",
        {"compute": {"gpuMemoryRequest": "1Gi", "gpuMemoryLimit": "2Gi"}},
    ),
    ("spec.compute.gpuPortionRequest", {"compute": {"gpuRequestType": "portion"}}),
    ("spec.compute.gpuMemoryRequest", {"compute": {"gpuRequestType": "memory"}}),
    ("spec.compute.cpuCoreRequest", {"compute": {"cpuCoreRequest": "1"}}),
    ("spec.compute.cpuCoreLimit", {"compute": {"cpuCoreLimit": 1e300}}),
    ("spec.compute.gpus", {"compute": {"gpus": 1}}),
    (
        "spec.compute.extendedResources.0.amount",
        {"compute": {"extendedResources": [{"amount": "1"}]}},
    ),
    (
        "spec.imagePullSecrets.0.userCredential",
        {"imagePullSecrets": [{"name": "a", "userCredential": True}]},
    ),
    (
        "spec.environmentVariables.0.secret",
        {"environmentVariables": [{"name": "A", "value": "", "secret": {}}]},
    ),
    (
        "spec.environmentVariables.0.userCredential",
        {"environmentVariables": [{"name": "A", "userCredential": {"name": "x"}}]},
    ),
    ("spec.storage.pvc.0.claimName", {"storage": {"pvc": [{"path": "/a", "claimName": "a"}]}}),
    (
        "spec.storage.pvc.0.claimInfo.volumeMode",
        {"storage": {"pvc": [{"claimInfo": {"size": "1G", "volumeMode": "Block"}}]}},
    ),
    (
        "spec.storage.pvc.0.claimInfo.accessModes",
        {"storage": {"pvc": [{"claimInfo": {"accessModes": ["ReadWriteOnce"]}}]}},
    ),
    (
        "spec.storage.pvc.0.ephemeral",
        {"storage": {"pvc": [{"existingPvc": True, "ephemeral": True}]}},
    ),
    ("spec.storage.pvc.0.dataSharing", {"storage": {"pvc": [{"dataSharing": True}]}}),
    ("spec.storage.git.0.passwordSecret", {"storage": {"git": [{"passwordSecret": "x"}]}}),
    (
        "spec.storage.git.0.secretRef.authenticationMethod",
        {"storage": {"git": [{"secretRef": {"authenticationMethod": "token"}}]}},
    ),
    (
        "spec.storage.git.0.secretRef.secretKeyOfUser",
        {"storage": {"git": [{"secretRef": {"secretKeyOfUser": "User"}}]}},
    ),
    (
        "spec.storage.s3.0.secretKeyOfSecretKey",
        {"storage": {"s3": [{"secretKeyOfSecretKey": "other"}]}},
    ),
    ("spec.storage.s3.0.readOnly", {"storage": {"s3": [{"readOnly": False}]}}),
    (
        "spec.storage.pvc.0.claimInfo",
        {"storage": {"pvc": [{"existingPvc": True, "claimInfo": {"size": "1G"}}]}},
    ),
    ("spec.storage.emptyDirVolume.0.medium", {"storage": {"emptyDirVolume": [{"medium": "Disk"}]}}),
    (
        "spec.storage.nfs.0.readOnly",
        {"storage": {"nfs": [{"readOnly": True, "writableByRank0Only": True}]}},
    ),
    (
        "spec.storage.hostPath.0.mountPropagation",
        {"storage": {"hostPath": [{"mountPropagation": "Both"}]}},
    ),
    (
        "spec.storage.secretVolume.0.defaultMode",
        {"storage": {"secretVolume": [{"defaultMode": "0888"}]}},
    ),
    (
        "spec.storage.secretVolume.0.defaultMode",
        {"storage": {"secretVolume": [{"defaultMode": "\n"}]}},
    ),
    (
        "spec.storage.configMapVolume.0.defaultMode",
        {"storage": {"configMapVolume": [{"defaultMode": "0644\n"}]}},
    ),
    ("spec.security.runAsUid", {"security": {"uidGidSource": "fromTheImage", "runAsUid": 1}}),
    ("spec.security.seccompProfileType", {"security": {"seccompProfileType": "Localhost"}}),
    ("spec.security.supplementalGroups", {"security": {"supplementalGroups": "1,x"}}),
    ("spec.security.capabilities", {"security": {"capabilities": ["KILL", 1]}}),
]


@pytest.mark.parametrize(("field", "changes"), NESTED, ids=[field for field, _ in NESTED])
def test_what_is_wrong_inside_is_refused_by_its_path(field: str, changes: dict[str, Any]) -> None:
    assert field in refusal(TUTORIAL | {"spec": TUTORIAL["spec"] | changes})


TOP: list[tuple[str, dict[str, Any]]] = [
    ("projectId", {"projectId": None}),
    ("clusterId", {"clusterId": 5}),
    ("templateId", {"templateId": "x"}),
    ("masterSpec", {"masterSpec": {"image": "a"}, "masterSpecSameAsWorker": True}),
    ("masterSpec", {"masterSpecSameAsWorker": False}),
    ("masterSpec.numWorkers", {"masterSpec": {"image": "a", "numWorkers": 1}}),
    ("masterSpec.priorityClass", {"masterSpec": {"image": "a", "priorityClass": "low"}}),
    ("noMaster", {"noMaster": True, "masterSpec": {"image": "a"}}),
    ("useGivenNameAsPrefix", {"useGivenNameAsPrefix": "yes"}),
    ("spec", {"spec": "all"}),
]


@pytest.mark.parametrize(
    ("field", "changes"), TOP, ids=[f"{field}-{number}" for number, (field, _) in enumerate(TOP)]
)
def test_what_is_wrong_above_the_spec_is_refused(field: str, changes: dict[str, Any]) -> None:
    assert field in refusal(TUTORIAL | changes)


@pytest.mark.parametrize("body", [None, [], "x", 5, True, {}])
def test_a_body_that_is_no_submission_is_refused(body: object) -> None:
    assert refusal(body)


def test_a_standard_workload_has_no_fields_of_distributed_ones() -> None:
    assert refusal(TUTORIAL, Architecture.STANDARD).keys() == {
        "spec.distributedFramework",
        "spec.numWorkers",
    }


FIELDS = st.sampled_from(sorted(UNSUPPORTED))


@given(
    st.dictionaries(FIELDS, JSON, max_size=6),
    st.dictionaries(FIELDS, JSON, max_size=4),
    st.sampled_from(Architecture),
)
@settings(max_examples=100)
def test_whatever_comes_is_understood_or_refused(
    spec: dict[str, Any], master: dict[str, Any], architecture: Architecture
) -> None:
    with contextlib.suppress(Invalid):
        find_problems(
            parse_submission(
                IDS | {"name": "x", "spec": spec, "masterSpec": master}, architecture
            ).build_spec(HERE)
        )
