"""What is typed becomes a Spec, and a Spec becomes what would have been typed."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from console.typed_forms import TypedValues
from environments.models import ComputeResource
from environments.models import Environment as Asset
from workloads.forms.pod_form import build_setup_values
from workloads.forms.setup_form import CUSTOM, SetupForm, build_setup_defaults
from workloads.forms.typed_fields import list_form_names
from workloads.forms.workload_form import KIND_SPECIFIC_NAMES
from workloads.specs import (
    S3,
    Claim,
    ClaimAccess,
    Compute,
    ConfigMap,
    ElasticSettings,
    EmptyDir,
    Environment,
    ExtendedResource,
    Framework,
    Git,
    GitAccess,
    Gpus,
    HostPath,
    NewClaim,
    Nfs,
    Pair,
    Preemptibility,
    Priority,
    PullPolicy,
    RestartPolicy,
    SeccompProfile,
    Secret,
    Security,
    Setup,
    Toleration,
    TolerationEffect,
    TolerationOperator,
    Topology,
    Variable,
    VariableSource,
    VolumeAccess,
)
from workloads.specs.fields.delivery import DELIVERY_FIELDS

IMAGE = Environment("team/train:1")
SETUPS = {
    "bare": Setup(IMAGE),
    "environment": Setup(
        Environment(
            "team/train:1",
            PullPolicy.NEVER,
            ("pull", "other"),
            ("sh", "-c", "echo 'a  b'\necho \"c\""),
            ("--name", ""),
            (
                Variable("A", " two  lines\nhere "),
                Variable("B", source=VariableSource.SECRET, object_name="token", key="key"),
                Variable("C", source=VariableSource.CONFIG_MAP, object_name="map", key="key"),
                Variable("D", source=VariableSource.POD_FIELD, key="status.podIP"),
            ),
            "/work",
        )
    ),
    "portion": Setup(
        IMAGE,
        Compute(
            Gpus(1, Decimal("0.3333")),
            "500m",
            "1",
            "1Gi",
            "2Gi",
            True,
            (ExtendedResource("rdma/hca", "1"),),
        ),
    ),
    "memory": Setup(IMAGE, Compute(Gpus(2, memory="500M"))),
    "volumes": Setup(
        IMAGE,
        volumes=(
            Claim(claim="data", path="/data", access=VolumeAccess.RANK_0_WRITES),
            Nfs(server="nfs.example.com", export="/x", path="/nfs", access=VolumeAccess.READ_ONLY),
            HostPath(source="/mnt", path="/host", propagate=True),
            ConfigMap(name="settings", path="/etc/x", sub_path="a.conf", mode=0o640),
            Secret(name="keys", path="/keys", mode=0o400),
            EmptyDir(path="/tmp/x", memory=True, size="1Gi"),
        ),
    ),
    "new claims": Setup(
        IMAGE,
        volumes=(
            NewClaim(
                path="/out",
                size="10Gi",
                modes=(ClaimAccess.ONE_NODE, ClaimAccess.MANY_WRITE),
                access=VolumeAccess.RANK_0_WRITES,
            ),
            NewClaim(path="/scratch", size="1Ti", storage_class="fast", ephemeral=True),
        ),
    ),
    "fetched": Setup(
        IMAGE,
        volumes=(
            Git(
                path="/code",
                repository="https://git.example.com/a/b.git",
                branch="main",
                access=VolumeAccess.READ_ONLY,
            ),
            Git(
                path="/x",
                repository="git@git.example.com:a/b.git",
                revision="v1",
                secret="key",
                credential=GitAccess.SSH_KEY,
            ),
            S3(
                path="/data",
                bucket="images",
                prefix="train/a",
                url="https://s3.example.com",
                secret="keys",
            ),
        ),
    ),
    "placement": Setup(
        IMAGE,
        tolerations=(
            Toleration("gpu", TolerationOperator.EQUAL, "a100", TolerationEffect.NO_EXECUTE, 60),
            Toleration(operator=TolerationOperator.EXISTS),
        ),
        node_type="a100",
        node_pools=("fast", "slow"),
        topology=Topology("topology.kubernetes.io/zone", required=True),
        annotations=(Pair("example.com/note", " two words\nof two lines "),),
        labels=(Pair("team", "vision"),),
    ),
    "security": Setup(
        IMAGE,
        security=Security(
            1000,
            0,
            (5, 6),
            True,
            True,
            False,
            ("SYS_PTRACE", "IPC_LOCK"),
            True,
            True,
            SeccompProfile.UNCONFINED,
        ),
    ),
}


def form_of(typed: TypedValues, **more: Any) -> SetupForm:
    given: dict[str, Any] = {"environments": [], "resources": [], "framework": Framework.PYTORCH}
    return SetupForm(typed, **(given | more))


@pytest.mark.parametrize("name", SETUPS)
def test_a_setup_survives_being_typed(name: str) -> None:
    own: TypedValues = {"environment_choice": [CUSTOM], "compute_choice": [CUSTOM]}
    form = form_of(build_setup_defaults() | build_setup_values(SETUPS[name]) | own)
    assert not form.has_field_or_row_errors
    assert form.setup == SETUPS[name]


@pytest.mark.parametrize(
    ("typed", "elastic"),
    [
        ({}, None),
        ({"min_pods": "1", "max_pods": "8"}, ElasticSettings(1, 8)),
        ({"min_pods": "1"}, ElasticSettings(1, 5)),
        ({"max_pods": "8"}, ElasticSettings(5, 8)),
        ({"max_pods": "8", "max_restarts": "0"}, ElasticSettings(5, 8, 0)),
    ],
)
def test_either_bound_makes_it_elastic(
    typed: Mapping[str, str], elastic: ElasticSettings | None
) -> None:
    assert (
        form_of(
            build_setup_defaults()
            | {"workers": ["4"]}
            | {name: [value] for name, value in typed.items()}
        ).workload_values.get("elastic")
        == elastic
    )


def test_what_happens_around_the_pods_is_as_typed() -> None:
    typed = {
        "priority": "high",
        "backoff_limit": "0",
        "grace_seconds": "0",
        "auto_delete_seconds": "60",
        "restart_policy": "Never",
    }
    values = form_of(
        build_setup_defaults() | {name: [value] for name, value in typed.items()}
    ).workload_values
    assert values == {
        "workers": 1,
        "lifecycle.priority": Priority.HIGH,
        "lifecycle.preemptibility": Preemptibility.PREEMPTIBLE,
        "lifecycle.backoff_limit": 0,
        "lifecycle.restart_policy": RestartPolicy.NEVER,
        "lifecycle.grace_seconds": 0,
        "lifecycle.auto_delete_seconds": 60,
    }


def test_an_environment_gives_what_is_not_typed() -> None:
    asset = Asset(
        name="base",
        image="team/base",
        command="run it",
        variables=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    )
    typed: TypedValues = {
        "environment_choice": [str(asset.pk)],
        "args": ["--fast"],
        "variables-0-name": ["B"],
        "variables-0-value": ["3"],
    }
    chosen = form_of(build_setup_defaults() | typed, environments=[asset]).setup.environment
    assert chosen == Environment(
        "team/base",
        command=("run", "it"),
        args=("--fast",),
        variables=(Variable("B", "3"), Variable("A", "1")),
    )


def test_what_was_typed_for_own_values_does_not_matter_while_a_card_is_chosen() -> None:
    size = ComputeResource(name="one", gpu_devices=1)
    typed: TypedValues = {
        "environment_choice": [CUSTOM],
        "compute_choice": [str(size.pk)],
        "gpu_devices": ["no number"],
        "gpu_share": ["memory"],
    }
    form = form_of(build_setup_defaults() | typed, resources=[size])
    assert not form.has_errors
    assert form.setup.compute == Compute(Gpus(1), cpu_request="0.1", memory_request="100M")


def test_blank_rows_count_for_nothing() -> None:
    typed: TypedValues = {
        "variables-3-source": ["custom"],
        "variables-7-name": ["A"],
        "tolerations-0-effect": ["Any"],
    }
    setup = form_of(build_setup_defaults() | typed).setup
    assert (setup.environment.variables, setup.tolerations) == ((Variable("A"),), ())


def test_a_new_claim_that_says_nothing_of_access_is_for_one_node() -> None:
    typed: TypedValues = {
        "volumes-0-kind": ["newPvc"],
        "volumes-0-path": ["/out"],
        "volumes-0-size": ["1Gi"],
    }
    assert form_of(build_setup_defaults() | typed).setup.volumes == (
        NewClaim(path="/out", size="1Gi"),
    )


def test_the_storage_classes_of_the_cluster_are_offered() -> None:
    assert form_of(build_setup_defaults(), storage_classes=["fast"]).storage_classes == ["fast"]


OF_DATA_WORKERS = set(list_form_names(DELIVERY_FIELDS).fields)


@pytest.mark.parametrize(
    ("framework", "fields"),
    [
        (None, {"runs", "parallelism"} | OF_DATA_WORKERS),
        (
            Framework.PYTORCH,
            {"workers", "total_gpus", "clean_pod_policy", "min_pods", "max_pods", "max_restarts"}
            | OF_DATA_WORKERS,
        ),
        (Framework.TENSORFLOW, {"workers", "total_gpus", "clean_pod_policy", "parameter_servers"}),
        (Framework.XGBOOST, {"workers", "total_gpus", "clean_pod_policy"} | OF_DATA_WORKERS),
        (Framework.JAX, {"workers", "total_gpus", "clean_pod_policy"}),
        (Framework.PADDLE, {"workers", "total_gpus", "clean_pod_policy"}),
        (
            Framework.MPI,
            {"workers", "total_gpus", "clean_pod_policy", "slots", "launcher", "ssh_path"}
            | OF_DATA_WORKERS,
        ),
    ],
)
def test_each_kind_of_workload_has_its_own_fields(
    framework: Framework | None, fields: set[str]
) -> None:
    form = form_of(build_setup_defaults(), framework=framework)
    assert {name for name in form.fields if name in KIND_SPECIFIC_NAMES} == fields


@pytest.mark.parametrize("framework", [None, *Framework])
def test_every_field_of_the_catalogue_has_its_place_on_the_page(
    framework: Framework | None,
) -> None:
    form = form_of(build_setup_defaults(), framework=framework)
    placed = {
        name
        for place in form.places.values()
        for name in (
            *(bound.name for _, block in place.blocks for bound in block),
            *(rows.name for _, rows in place.rows),
        )
    }
    hand_made = {"environment_choice", "compute_choice", "data_sources"}
    assert placed == form.fields.keys() - hand_made | form.rows.keys()
