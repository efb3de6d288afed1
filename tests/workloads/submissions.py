"""Specs for tests: the one of the walk, a single pod, and one that says everything."""

from decimal import Decimal
from typing import Any

from workloads.specs import (
    Architecture,
    Claim,
    Compute,
    ConfigMap,
    EmptyDir,
    Environment,
    ExtendedResource,
    Framework,
    Gpus,
    HostPath,
    Nfs,
    Pair,
    PullPolicy,
    SeccompProfile,
    Secret,
    Security,
    Setup,
    Spec,
    Toleration,
    TolerationEffect,
    TolerationOperator,
    Variable,
    VariableSource,
    VolumeAccess,
)

SMALL_FRACTION = Compute(Gpus(1, portion=Decimal("0.1")), cpu_request="0.1", memory_request="100M")


def train1(**changes: Any) -> Spec:
    """The workload of the walk: a master and two workers with small fractions of GPUs."""
    given: dict[str, Any] = {
        "name": "train1",
        "project": "team-a",
        "namespace": "team-a",
        "queue": "team-a",
        "architecture": Architecture.DISTRIBUTED,
        "framework": Framework.PYTORCH,
        "workers": 2,
        "setup": Setup(Environment("/kubeflow/pytorch-dist-mnist:latest"), SMALL_FRACTION),
    }
    return Spec(**given | changes)


def one_pod(**changes: Any) -> Spec:
    """A standard workload."""
    setup = Setup(Environment("python:3.12", command=("python", "-c", "print('done')")))
    return train1(
        **{
            "name": "solo",
            "architecture": Architecture.STANDARD,
            "framework": None,
            "workers": 1,
            "setup": setup,
        }
        | changes
    )


EVERYTHING = Setup(
    Environment(
        "train:1",
        PullPolicy.ALWAYS,
        ("registry",),
        ("python", "train.py"),
        ("--epochs", "3"),
        (
            Variable("A", "1"),
            Variable("B", source=VariableSource.SECRET, object_name="s", key="k"),
            Variable("C", source=VariableSource.CONFIG_MAP, object_name="c", key="k"),
            Variable("D", source=VariableSource.POD_FIELD, key="metadata.name"),
        ),
        "/src",
    ),
    Compute(
        Gpus(2),
        "1",
        "2",
        "1Gi",
        "2Gi",
        large_shm=True,
        extended=(ExtendedResource("rdma/hca", "1"),),
    ),
    (
        EmptyDir(path="/tmp/a", memory=True, size="1Gi"),
        HostPath(path="/b", source="/mnt/b", propagate=True, access=VolumeAccess.RANK_0_WRITES),
        ConfigMap(path="/etc/c", name="c", sub_path="c.ini", mode=0o400),
        Secret(path="/d", name="d"),
        Claim(path="/e", claim="e", access=VolumeAccess.READ_ONLY),
        Nfs(path="/f", server="nfs.example.com", export="/f"),
    ),
    (
        Toleration("a", TolerationOperator.EQUAL, "b", TolerationEffect.NO_EXECUTE, 60),
        Toleration("", TolerationOperator.EXISTS),
    ),
    "dgx",
    (Pair("note", "hello"),),
    (Pair("team", "vision"),),
    Security(
        1000,
        1001,
        (5, 6),
        True,
        True,
        False,
        ("IPC_LOCK",),
        True,
        True,
        SeccompProfile.RUNTIME_DEFAULT,
    ),
)
"""A setup in which everything is asked for that a pod can be asked to be."""
