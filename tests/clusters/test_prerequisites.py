"""A tick, or what exactly is missing and what brings it."""

from dataclasses import replace

import pytest

from clusters.capabilities import UNKNOWN, Capabilities, TrainingRuntime
from clusters.findings import Findings, StorageClass
from clusters.job_kinds import TRAINJOBS
from clusters.job_kinds.jax import JAXJOBS
from clusters.job_kinds.mpi import MPIJOBS, MPIJOBS_V2
from clusters.job_kinds.paddle import PADDLEJOBS
from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.job_kinds.tensorflow import TFJOBS
from clusters.job_kinds.xgboost import XGBOOSTJOBS
from clusters.kube.resources import (
    CLUSTERTRAININGRUNTIMES,
    NODE_METRICS,
    PODGROUPS,
    QUEUES,
    Resource,
)
from clusters.prerequisites import (
    Prerequisite,
    PrerequisiteState,
    is_missing_required,
    list_prerequisites,
)
from clusters.project_manifests import PRIORITY_CLASSES

OPERATOR = (PYTORCHJOBS, TFJOBS, XGBOOSTJOBS, JAXJOBS, PADDLEJOBS)
TRAINER = (TRAINJOBS, CLUSTERTRAININGRUNTIMES)


def can(*served: Resource, **more: object) -> Capabilities:
    return replace(Capabilities(served=frozenset(each.key for each in served)), **more)  # type: ignore[arg-type]


FULL = can(
    QUEUES,
    PODGROUPS,
    *OPERATOR,
    MPIJOBS_V2,
    *TRAINER,
    NODE_METRICS,
    gpu_sharing=True,
    has_scheduler=True,
    priority_classes=frozenset(PRIORITY_CLASSES),
    runtimes=(TrainingRuntime("torch-distributed", "torch"),),
)
STORAGE = Findings((StorageClass("fast", "csi.example.com", True),))


def find_prerequisite(
    title: str,
    capabilities: Capabilities,
    found: Findings = STORAGE,
    gpus: tuple[bool, ...] = (True,),
) -> Prerequisite:
    return next(
        each for each in list_prerequisites(capabilities, found, gpus) if title in each.title
    )


def test_a_cluster_with_everything_has_only_ticks() -> None:
    listed = list_prerequisites(FULL, STORAGE, [True, False])
    assert {each.state for each in listed} == {PrerequisiteState.HERE}
    assert not any(each.command for each in listed)
    assert not is_missing_required(FULL)


def test_of_a_cluster_that_was_never_asked_nothing_is_said() -> None:
    assert list_prerequisites(UNKNOWN, Findings()) == []
    assert not is_missing_required(UNKNOWN)


@pytest.mark.parametrize(
    ("title", "capabilities", "text", "command"),
    [
        (
            "KAI",
            can(*OPERATOR, QUEUES),
            "podgroups.scheduling.run.ai (v2alpha2)",
            "helm upgrade -i kai-scheduler",
        ),
        (
            "Training operator",
            can(PYTORCHJOBS, TFJOBS, PADDLEJOBS),
            "XGBoostJob (kubeflow.org/v1) and JAXJob (kubeflow.org/v1)",
            "kubectl apply",
        ),
        ("Training operator", can(), "no distributed workload can run", "standalone?ref=v1."),
        ("Training operator", can(MPIJOBS_V2), "Leave out its MPIJob (v1)", "standalone?ref=v1."),
        ("MPI", can(*OPERATOR), "MPIJob (kubeflow.org/v2beta1)", "mpi-operator"),
        ("Trainer v2", can(), "stand in for the training operator", "overlays/manager"),
        ("Trainer v2", can(*TRAINER), "no ClusterTrainingRuntime", "overlays/runtimes"),
        (
            "GPU sharing",
            can(QUEUES, PODGROUPS, gpu_sharing=False),
            "sharing is off",
            "global.gpuSharing=true",
        ),
        ("GPU sharing", can(), "Only the KAI scheduler", "helm upgrade -i"),
        ("Metrics", can(), "metrics.k8s.io/v1beta1", "metrics-server"),
    ],
)
def test_what_is_missing_is_named_with_what_brings_it(
    title: str, capabilities: Capabilities, text: str, command: str
) -> None:
    found = find_prerequisite(title, capabilities)
    assert found.state is PrerequisiteState.MISSING
    assert text in found.text
    assert command in found.command


def test_the_commands_for_priority_classes_make_those_that_are_missing() -> None:
    some = replace(FULL, priority_classes=frozenset(PRIORITY_CLASSES) - {"low", "high"})
    found = find_prerequisite("Priority", some)
    assert found.command.splitlines() == [
        "kubectl create priorityclass low --value=40",
        "kubectl create priorityclass high --value=125",
    ]


def test_mpi_by_the_training_operator_is_as_good() -> None:
    assert find_prerequisite("MPI", can(*OPERATOR, MPIJOBS)).state is PrerequisiteState.HERE


def test_no_trainer_beside_the_operator_is_no_lack() -> None:
    assert find_prerequisite("Trainer v2", can(*OPERATOR)).state is PrerequisiteState.UNNEEDED


def test_without_a_device_anywhere_only_cpu_work_runs() -> None:
    assert "None of 2 nodes" in find_prerequisite("GPU devices", FULL, gpus=(False, False)).text


@pytest.mark.parametrize(
    ("gpus", "words"),
    [((True,), "1 of 1 node offers"), ((True, False, True), "2 of 3 nodes offer")],
)
def test_how_many_nodes_have_devices(gpus: tuple[bool, ...], words: str) -> None:
    assert find_prerequisite("GPU devices", FULL, gpus=gpus).text == f"{words} nvidia.com/gpu."


def test_what_could_not_be_asked_is_neither_here_nor_missing() -> None:
    unanswered = Findings(
        unanswered={
            "gpu_sharing": "pods is forbidden",
            "priority_classes": "no",
            "storage_classes": "no",
        }
    )
    listed = list_prerequisites(replace(FULL, gpu_sharing=None), unanswered, [True])
    assert {each.title for each in listed if each.state is PrerequisiteState.UNKNOWN} == {
        "GPU sharing",
        "Priority classes",
        "Storage classes",
    }


@pytest.mark.parametrize(
    ("capabilities", "is_lacking"),
    [
        (can(*OPERATOR), True),
        (can(QUEUES, PODGROUPS), True),
        (can(QUEUES, PODGROUPS, TRAINJOBS), False),
        (FULL, False),
    ],
)
def test_without_queues_or_any_way_to_train_prerequisites_are_missing(
    capabilities: Capabilities, is_lacking: bool
) -> None:
    assert is_missing_required(capabilities) is is_lacking
