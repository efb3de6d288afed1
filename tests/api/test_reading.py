"""Bodies of the REST API as Specs, and what is wrong with them."""

import contextlib
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.errors import Invalid
from projects.models import Project
from tests.workloads.submissions import ANY_SPEC, SMALL_FRACTION, one_pod, train1
from workloads.api.submission_bodies import Submission, parse_submission
from workloads.manifests.rest_body import build_rest_body
from workloads.specs import (
    INHERITED,
    S3,
    Architecture,
    ClaimAccess,
    Configuration,
    ElasticSettings,
    EmptyDir,
    Environment,
    Framework,
    Git,
    GitAccess,
    Gpus,
    LauncherCreation,
    Lifecycle,
    MasterChanges,
    MpiSettings,
    NewClaim,
    Priority,
    RestartPolicy,
    Setup,
    Spec,
    Topology,
    VolumeAccess,
    find_problems,
)

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


def test_the_curl_of_the_tutorial_asks_for_a_master_and_two_workers() -> None:
    spec = parse_submission(TUTORIAL, Architecture.DISTRIBUTED).build_spec(HERE)
    assert spec == train1(name="dist-train1")
    assert (spec.pod_count, spec.totals.gpus, find_problems(spec)) == (3, Decimal("0.3"), ())
    assert spec.setup.environment.image_reference == "kubeflow/pytorch-dist-mnist:latest"


EVERYWHERE = Setup(
    Environment("team/train"),
    node_pools=("fast", "slow"),
    topology=Topology("rack", required=True),
    volumes=(
        NewClaim(
            path="/out",
            size="1Gi",
            storage_class="fast",
            modes=tuple(ClaimAccess),
            access=VolumeAccess.RANK_0_WRITES,
        ),
        NewClaim(path="/scratch", size="1Ti", ephemeral=True),
        Git(
            path="/code",
            repository="git@git.example.com:a/b",
            revision="v1",
            secret="key",
            credential=GitAccess.SSH_KEY,
        ),
        Git(
            path="/more",
            repository="https://git.example.com/a/b",
            branch="main",
            access=VolumeAccess.READ_ONLY,
        ),
        S3(
            path="/data",
            bucket="images",
            prefix="train",
            url="https://s3.example.com",
            secret="keys",
        ),
    ),
)
MASTER_OF_ITS_OWN = MasterChanges(
    image="muster/allreduce", gpus=Gpus(2), args=("--lead", "two words"), memory_request=""
)
TABLE = [
    train1(),
    train1(configuration=Configuration.WORKERS_ONLY),
    train1(master=MASTER_OF_ITS_OWN),
    one_pod(),
    one_pod(runs=8, parallelism=2),
    train1(framework=Framework.TENSORFLOW, parameter_servers=2),
    train1(framework=Framework.XGBOOST),
    train1(framework=Framework.JAX, configuration=Configuration.WORKERS_ONLY),
    train1(
        framework=Framework.MPI,
        mpi=MpiSettings(4, LauncherCreation.WAIT_FOR_WORKERS, "/home/mpi/.ssh"),
    ),
    train1(
        elastic=ElasticSettings(1, 8, 20),
        lifecycle=Lifecycle(restart_policy=RestartPolicy.EXIT_CODE),
    ),
    train1(setup=EVERYWHERE, master=MasterChanges(node_pools=(), topology=None)),
]


@pytest.mark.parametrize("spec", TABLE, ids=range(len(TABLE)))
def test_what_is_written_is_read_back(spec: Spec) -> None:
    body = build_rest_body(spec, project_id="1", cluster_id="c")
    assert parse_submission(body, spec.architecture).build_spec(HERE) == spec


def body_of(spec: Spec) -> dict[str, Any]:
    """The body that asks for a spec, without the names of its volumes, which only count them."""
    body = build_rest_body(spec, project_id="1", cluster_id="c")
    for each in (body["spec"], body.get("masterSpec", {})):
        for entry in (entry for entries in each.get("storage", {}).values() for entry in entries):
            del entry["name"]
    return body


@given(ANY_SPEC)
@settings(max_examples=100, deadline=None)
def test_any_spec_is_read_back_as_what_asks_for_the_same(spec: Spec) -> None:
    found = parse_submission(
        build_rest_body(spec, project_id="1", cluster_id="c"), spec.architecture
    ).build_spec(HERE)
    assert body_of(replace(found, master=spec.master)) == body_of(spec)
    masters = [replace(one_pod(), setup=each.master_setup) for each in (found, spec)]
    assert body_of(masters[0]) == body_of(masters[1])
    assert find_problems(found) == ()


def test_the_master_is_as_the_workers_unless_it_is_described() -> None:
    spec = parse_submission(
        TUTORIAL | {"masterSpec": {"image": "muster/allreduce"}}, Architecture.DISTRIBUTED
    ).spec
    assert spec.master_setup.environment == Environment("muster/allreduce")
    assert spec.master_setup.compute.gpus == Gpus()
    assert spec.master.command is INHERITED
    assert parse_distributed().spec.master_setup.compute == SMALL_FRACTION


def test_null_is_as_good_as_missing() -> None:
    nothing = dict.fromkeys(
        (
            "command",
            "args",
            "storage",
            "tolerations",
            "security",
            "ports",
            "minReplicas",
            "priorityClass",
        )
    )
    assert parse_distributed(**nothing).spec == parse_distributed().spec


def test_a_name_that_is_a_prefix_gets_a_random_end() -> None:
    asked = parse_submission(TUTORIAL | {"useGivenNameAsPrefix": True}, Architecture.DISTRIBUTED)
    names = {asked.build_spec(HERE).name for _ in range(5)}
    assert len(names) == 5
    assert all(
        name.startswith("dist-train1-") and len(name) == len("dist-train1-") + 6 for name in names
    )


def test_excluded_entries_are_left_out_and_places_still_right() -> None:
    variables = [
        None,
        {"name": "A", "value": "1", "exclude": True},
        {"name": "B", "value": "2"},
        {"name": "", "value": "3"},
    ]
    asked = parse_distributed(environmentVariables=variables)
    assert [variable.name for variable in asked.spec.setup.environment.variables] == ["B", ""]
    assert (
        asked.report.get_body_path("setup.environment.variables.1.name")
        == "spec.environmentVariables.3.name"
    )


def test_problems_are_told_with_the_names_of_the_body() -> None:
    asked = parse_distributed(
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
    found = find_problems(asked.build_spec(HERE))
    translated = asked.translate_problems(
        Invalid([(problem.field, problem.text) for problem in found])
    )
    assert {field for field, _ in translated.problems} == {
        "spec.numWorkers",
        "spec.backoffLimit",
        "spec.compute.gpuPortionRequest",
        "spec.storage.nfs.0.path",
        "spec.environmentVariables.0.secret.name",
    }


def test_what_the_api_defaults_to_asks_for_nothing() -> None:
    defaults = {
        "slotsPerWorker": 1,
        "sshAuthMountPath": "/root/.ssh",
        "stdin": False,
        "nodePools": ["default"],
        "category": "Training",
    }
    assert parse_distributed(**defaults).spec == parse_distributed().spec


def test_volumes_are_read_only_where_the_api_says_so_by_default() -> None:
    storage = {
        "hostPath": [{"path": "/data", "mountPath": "/a"}],
        "pvc": [{"claimName": "c", "existingPvc": True, "path": "/b"}],
        "emptyDirVolume": [{"path": "/c", "medium": "Memory", "writableByRank0Only": True}],
    }
    found = {
        volume.path: volume.access.value
        for volume in parse_distributed(storage=storage).spec.setup.volumes
    }
    assert found == {"/a": "read-only", "/b": "read-write", "/c": "rank-0-writes"}
    assert any(
        isinstance(volume, EmptyDir) and volume.memory
        for volume in parse_distributed(storage=storage).spec.setup.volumes
    )


FRAMEWORKS = [
    (Framework.PYTORCH, Configuration.WORKERS_AND_MASTER),
    (Framework.TENSORFLOW, Configuration.WORKERS_AND_MASTER),
    (Framework.XGBOOST, Configuration.WORKERS_AND_MASTER),
    (Framework.JAX, Configuration.WORKERS_ONLY),
    (Framework.MPI, Configuration.WORKERS_AND_MASTER),
]


@pytest.mark.parametrize(("framework", "configuration"), FRAMEWORKS)
@pytest.mark.parametrize("master", [{}, {"masterSpecSameAsWorker": True}])
def test_without_a_word_of_the_master_every_framework_works(
    framework: Framework, configuration: Configuration, master: dict[str, Any]
) -> None:
    body = (
        TUTORIAL | {"spec": TUTORIAL["spec"] | {"distributedFramework": framework.value}} | master
    )
    spec = parse_submission(body, Architecture.DISTRIBUTED).build_spec(HERE)
    assert (spec.configuration, find_problems(spec)) == (configuration, ())


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
    asked = parse_submission(
        TUTORIAL | {"spec": TUTORIAL["spec"] | spec} | top, Architecture.DISTRIBUTED
    )
    found = Invalid([(each.field, each.text) for each in find_problems(asked.build_spec(HERE))])
    assert {field for field, _ in asked.translate_problems(found).problems} == {place}


def test_the_default_pool_alone_asks_for_nothing() -> None:
    assert parse_distributed(nodePools=["default"]).spec == parse_distributed().spec
    assert parse_distributed(nodePools=["fast", "slow"]).spec.setup.node_pools == ("fast", "slow")


def test_choices_are_read() -> None:
    spec = parse_distributed(
        priorityClass="very-high", minReplicas=1, maxReplicas=4, distributedFramework="JAX"
    ).spec
    assert (spec.lifecycle.priority, spec.elastic and spec.elastic.max_workers, spec.framework) == (
        Priority.VERY_HIGH,
        4,
        Framework.JAX,
    )


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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=10,
)
FIELDS = st.sampled_from(sorted(UNSUPPORTED))


@given(
    st.dictionaries(FIELDS, JSON, max_size=6),
    st.dictionaries(FIELDS, JSON, max_size=4),
    st.sampled_from(Architecture),
)
@settings(max_examples=100, deadline=None)
def test_whatever_comes_is_understood_or_refused(
    spec: dict[str, Any], master: dict[str, Any], architecture: Architecture
) -> None:
    with contextlib.suppress(Invalid):
        find_problems(
            parse_submission(
                IDS | {"name": "x", "spec": spec, "masterSpec": master}, architecture
            ).build_spec(HERE)
        )
