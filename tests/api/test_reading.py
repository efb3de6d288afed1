"""Bodies of the REST API as Specs."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings

from tests.api.submission_bodies import HERE, TUTORIAL, body_of, parse_distributed
from tests.workloads.spec_strategies import ANY_SPEC
from tests.workloads.submissions import SMALL_FRACTION, one_pod, train1
from workloads.rest.reading import parse_submission
from workloads.rest.writing import build_rest_body
from workloads.specs import (
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
    train1(framework=Framework.PADDLE),
    train1(framework=Framework.PADDLE, configuration=Configuration.WORKERS_ONLY),
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


@given(ANY_SPEC)
@settings(max_examples=100)
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
    assert "command" not in spec.master.changes
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
    submission = parse_submission(
        TUTORIAL | {"useGivenNameAsPrefix": True}, Architecture.DISTRIBUTED
    )
    names = {submission.build_spec(HERE).name for _ in range(5)}
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
    submission = parse_distributed(environmentVariables=variables)
    assert [variable.name for variable in submission.spec.setup.environment.variables] == ["B", ""]
    assert (
        submission.places.find_place("setup.environment.variables.1.name")
        == "spec.environmentVariables.3.name"
    )


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
    (Framework.PADDLE, Configuration.WORKERS_AND_MASTER),
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


def test_the_default_pool_alone_asks_for_nothing() -> None:
    assert parse_distributed(nodePools=["default"]).spec == parse_distributed().spec
    assert parse_distributed(nodePools=["fast", "slow"]).spec.setup.node_pools == ("fast", "slow")


def test_choices_are_read() -> None:
    spec = parse_distributed(
        priorityClass="very-high", minReplicas=1, maxReplicas=4, distributedFramework="JAX"
    ).spec
    assert (spec.lifecycle.priority, spec.elastic and spec.elastic.max_pods, spec.framework) == (
        Priority.VERY_HIGH,
        4,
        Framework.JAX,
    )
