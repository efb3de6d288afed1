"""The main manifests as files: what each workload becomes, for a person to read.

Run this module to write them anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from clusters.capabilities import UNKNOWN, Capabilities, TrainingRuntime
from tests.workloads.submissions import one_pod, train1
from workloads.manifests import build_objects, dump_yaml
from workloads.specs import (
    S3,
    Claim,
    ClaimAccess,
    CleanPodPolicy,
    Compute,
    ConfigMap,
    Configuration,
    DataDelivery,
    ElasticSettings,
    EmptyDir,
    Environment,
    ExtendedResource,
    Framework,
    Git,
    GitAccess,
    Gpus,
    HostPath,
    LauncherCreation,
    Lifecycle,
    MasterChanges,
    MpiSettings,
    NewClaim,
    Nfs,
    Pair,
    Preemptibility,
    Priority,
    Secret,
    Security,
    Setup,
    Spec,
    Toleration,
    TolerationEffect,
    TolerationOperator,
    Topology,
    Variable,
    VolumeAccess,
)

DIRECTORY = Path(__file__).parent / "data" / "golden"
WORKLOAD = "3f1c6f0e-5d0a-4c39-9a53-0f6a9f1f8a11"

KAI = frozenset(("scheduling.run.ai/v2/queues", "scheduling.run.ai/v2alpha2/podgroups"))
TRAINER = Capabilities(
    served=KAI | {"trainer.kubeflow.org/v1alpha1/trainjobs"},
    runtimes=(TrainingRuntime("torch-distributed-kai", "torch", "kai-scheduler"),),
    trainjob_fields=frozenset({"runtimePatches"}),
)
PLAIN = Capabilities(
    served=frozenset({"kubeflow.org/v1/pytorchjobs"}), priority_classes=frozenset({"high"})
)
OPERATOR = Capabilities(served=KAI | {"kubeflow.org/v1/mpijobs"})


@dataclass(frozen=True, slots=True)
class GoldenCase:
    spec: Spec
    capabilities: Capabilities = UNKNOWN


def _with_setup(*command: str, **changes: Any) -> Setup:
    return Setup(
        Environment("registry.example.com/team/train:1.2", command=command),
        Compute(Gpus(1)),
        **changes,
    )


EVERY_VOLUME = (
    Git(path="/src", repository="https://git.example.com/team/code.git", branch="main"),
    Git(
        path="/lib",
        repository="git@git.example.com:team/lib.git",
        revision="v1.4",
        secret="deploy-key",
        credential=GitAccess.SSH_KEY,
    ),
    Git(
        path="/etc/recipes",
        repository="https://git.example.com/r.git",
        secret="reader",
        credential=GitAccess.PASSWORD,
    ),
    S3(
        path="/data/images",
        bucket="datasets",
        prefix="images/2026",
        url="https://s3.example.com",
        secret="s3-reader",
    ),
    NewClaim(
        path="/scratch",
        size="100Gi",
        storage_class="fast",
        modes=(ClaimAccess.MANY_WRITE,),
        access=VolumeAccess.RANK_0_WRITES,
    ),
    NewClaim(path="/cache", size="10Gi", ephemeral=True),
    Claim(path="/checkpoints", claim="checkpoints", access=VolumeAccess.RANK_0_WRITES),
    Nfs(
        path="/shared",
        server="nfs.example.com",
        export="/exports/team",
        access=VolumeAccess.READ_ONLY,
    ),
    HostPath(path="/mnt/ssd", source="/mnt/ssd", access=VolumeAccess.RANK_0_WRITES),
    ConfigMap(path="/etc/train", name="recipe", mode=0o444),
    Secret(path="/etc/keys", name="wandb"),
    EmptyDir(path="/tmp/work", size="5Gi"),
)
EVERYTHING = Setup(
    Environment(
        "registry.example.com/team/train:1.2",
        command=("python", "train.py"),
        variables=(Variable("EPOCHS", "3"),),
    ),
    Compute(
        Gpus(8),
        "16",
        "32",
        "128Gi",
        "256Gi",
        large_shm=True,
        extended=(ExtendedResource("rdma/hca", "1"),),
    ),
    volumes=EVERY_VOLUME,
    tolerations=(
        Toleration("dedicated", TolerationOperator.EQUAL, "training", TolerationEffect.NO_SCHEDULE),
    ),
    node_type="dgx",
    annotations=(Pair("team.example.com/ticket", "ML-1"),),
    labels=(Pair("team", "vision"),),
    security=Security(1000, 1000, (2000,), True, True, False, ("IPC_LOCK",)),
    node_pools=("reserved", "spot"),
    topology=Topology("topology.kubernetes.io/zone", required=True),
)

CASES: Mapping[str, GoldenCase] = {
    "standard": GoldenCase(one_pod(runs=4, parallelism=2)),
    "pytorch": GoldenCase(train1()),
    "pytorch-workers-only": GoldenCase(train1(configuration=Configuration.WORKERS_ONLY, workers=4)),
    "pytorch-elastic": GoldenCase(
        train1(
            setup=_with_setup("torchrun", "/src/train.py"),
            configuration=Configuration.WORKERS_ONLY,
            workers=4,
            elastic=ElasticSettings(2, 8, 50),
            lifecycle=Lifecycle(clean_pod_policy=CleanPodPolicy.RUNNING),
        )
    ),
    "pytorch-everything": GoldenCase(
        train1(
            setup=EVERYTHING,
            master=MasterChanges(
                image="registry.example.com/team/lead:1.2",
                args=("--lead",),
                variables=(Variable("ROLE", "lead"),),
                gpus=Gpus(0),
                memory_limit="512Gi",
                volumes=EVERY_VOLUME[:5],
            ),
            lifecycle=Lifecycle(
                Priority.HIGH,
                Preemptibility.NON_PREEMPTIBLE,
                3,
                None,
                CleanPodPolicy.ALL,
                120,
                3600,
            ),
        )
    ),
    "pytorch-without-kai": GoldenCase(
        train1(setup=_with_setup("torchrun", "train.py"), lifecycle=Lifecycle(Priority.HIGH)), PLAIN
    ),
    "pytorch-trainer-v2": GoldenCase(
        train1(setup=replace(EVERYTHING, volumes=EVERY_VOLUME[5:6] + EVERY_VOLUME[7:8])), TRAINER
    ),
    "pytorch-gpu-memory": GoldenCase(
        train1(setup=replace(_with_setup(), compute=Compute(Gpus(2, memory="4Gi"))))
    ),
    "tensorflow": GoldenCase(
        train1(
            framework=Framework.TENSORFLOW,
            setup=_with_setup("python", "train.py"),
            parameter_servers=2,
        )
    ),
    "tensorflow-workers-only": GoldenCase(
        train1(
            framework=Framework.TENSORFLOW,
            setup=_with_setup("python", "train.py"),
            configuration=Configuration.WORKERS_ONLY,
        )
    ),
    "xgboost": GoldenCase(
        train1(
            framework=Framework.XGBOOST,
            setup=replace(_with_setup("python", "train.py"), compute=Compute(cpu_request="2")),
        )
    ),
    "jax": GoldenCase(
        train1(
            framework=Framework.JAX,
            setup=_with_setup("python", "train.py"),
            configuration=Configuration.WORKERS_ONLY,
            workers=4,
        )
    ),
    "paddle": GoldenCase(
        train1(
            framework=Framework.PADDLE,
            setup=_with_setup("python", "-m", "paddle.distributed.launch", "train.py"),
            configuration=Configuration.WORKERS_ONLY,
            workers=4,
        )
    ),
    "paddle-parameter-server": GoldenCase(
        train1(
            framework=Framework.PADDLE,
            setup=_with_setup("python", "-m", "paddle.distributed.launch", "train.py"),
            master=MasterChanges(gpus=Gpus(0)),
        )
    ),
    "mpi": GoldenCase(
        train1(
            framework=Framework.MPI,
            setup=_with_setup("mpirun", "-np", "4", "python", "train.py"),
            master=MasterChanges(gpus=Gpus(0)),
            mpi=MpiSettings(2, LauncherCreation.WAIT_FOR_WORKERS, "/home/mpi/.ssh"),
        )
    ),
    "mpi-training-operator": GoldenCase(
        train1(
            framework=Framework.MPI,
            setup=_with_setup("mpirun", "-np", "2", "python", "train.py"),
            master=MasterChanges(gpus=Gpus(0)),
        ),
        OPERATOR,
    ),
    "pytorch-data-workers": GoldenCase(
        train1(
            setup=EVERYTHING,
            data_delivery=DataDelivery(
                2, 20_480, Compute(cpu_request="4", memory_request="8Gi"), "team/loader:1"
            ),
        )
    ),
    "pytorch-data-workers-at-once": GoldenCase(
        train1(
            setup=_with_setup("torchrun", "train.py"),
            configuration=Configuration.WORKERS_ONLY,
            data_delivery=DataDelivery(1, 0),
        ),
        PLAIN,
    ),
    "pytorch-trainer-v2-data-workers": GoldenCase(
        train1(
            setup=_with_setup("torchrun", "train.py"),
            data_delivery=DataDelivery(2, 1_000),
        ),
        TRAINER,
    ),
    "mpi-data-workers": GoldenCase(
        train1(
            framework=Framework.MPI,
            setup=_with_setup("mpirun", "-np", "4", "python", "train.py"),
            master=MasterChanges(gpus=Gpus(0)),
            mpi=MpiSettings(2),
            data_delivery=DataDelivery(2, 1_000),
        )
    ),
    "mpi-training-operator-data-workers": GoldenCase(
        train1(
            framework=Framework.MPI,
            setup=_with_setup("mpirun", "-np", "2", "python", "train.py"),
            data_delivery=DataDelivery(2, 1_000),
        ),
        OPERATOR,
    ),
    "standard-data-workers": GoldenCase(one_pod(data_delivery=DataDelivery(8, 1_000))),
    "half-a-gpu": GoldenCase(
        one_pod(
            setup=replace(
                _with_setup("python", "train.py"), compute=Compute(Gpus(1, portion=Decimal("0.5")))
            )
        )
    ),
}


def build_case_objects(name: str) -> list[dict[str, Any]]:
    case = CASES[name]
    return build_objects(case.spec, workload_id=WORKLOAD, capabilities=case.capabilities)


def render_case(name: str) -> str:
    return dump_yaml(build_case_objects(name))


def case_path(name: str) -> Path:
    return DIRECTORY / f"{name}.yaml"


if __name__ == "__main__":
    for each in CASES:
        case_path(each).write_text(render_case(each))
