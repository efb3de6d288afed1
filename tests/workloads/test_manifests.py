"""A Spec becomes exactly these objects; `test_frameworks` says that the real schemas take them,
`test_manifests_run` that they run.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from clusters.capabilities import Capabilities
from clusters.job_kinds import ADAPTERS
from tests.workloads.submissions import EVERYTHING, one_pod, train1
from workloads.manifests import CannotBuild, build_objects, build_selector, dump_yaml
from workloads.specs import (
    S3,
    CleanPodPolicy,
    Compute,
    Configuration,
    ElasticSettings,
    Environment,
    ExtendedResource,
    Framework,
    Git,
    GitAccess,
    Gpus,
    Lifecycle,
    MasterChanges,
    Nfs,
    Preemptibility,
    Priority,
    RestartPolicy,
    Security,
    Setup,
    Spec,
    VolumeAccess,
    find_problems,
)

Object = dict[str, Any]

LABELS = {
    "app.kubernetes.io/managed-by": "muster",
    "muster.dev/workload": "w-1",
    "muster.dev/attempt": "2",
    "muster.dev/project": "team-a",
    "kai.scheduler/queue": "team-a",
    "kai.scheduler/preemptibility": "preemptible",
}
COMMON = {
    "schedulerName": "kai-scheduler",
    "automountServiceAccountToken": False,
    "enableServiceLinks": False,
}


def objects(spec: Spec) -> list[Object]:
    assert find_problems(spec) == ()
    return build_objects(spec, workload_id="w-1", attempt=2)


def test_the_workload_of_the_walk() -> None:
    container = {
        "name": "pytorch",
        "image": "kubeflow/pytorch-dist-mnist:latest",
        "resources": {"requests": {"cpu": "0.1", "memory": "100M"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    template = {
        "metadata": {"labels": LABELS, "annotations": {"gpu-fraction": "0.1"}},
        "spec": {"containers": [container], **COMMON},
    }
    assert objects(train1()) == [
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": "train1", "namespace": "team-a", "labels": LABELS},
            "spec": {
                "runPolicy": {"backoffLimit": 6, "cleanPodPolicy": "Running"},
                "pytorchReplicaSpecs": {
                    "Master": {"replicas": 1, "restartPolicy": "OnFailure", "template": template},
                    "Worker": {"replicas": 2, "restartPolicy": "OnFailure", "template": template},
                },
            },
        }
    ]


def test_a_standard_workload() -> None:
    container = {
        "name": "main",
        "image": "python:3.12",
        "command": ["python", "-c", "print('done')"],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    spec = {"containers": [container], **COMMON, "restartPolicy": "Never"}
    assert objects(one_pod(runs=3, parallelism=5)) == [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "solo", "namespace": "team-a", "labels": LABELS},
            "spec": {
                "completions": 3,
                "parallelism": 3,
                "backoffLimit": 6,
                "podFailurePolicy": {
                    "rules": [
                        {
                            "action": "Ignore",
                            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                        }
                    ]
                },
                "template": {"metadata": {"labels": LABELS}, "spec": spec},
            },
        }
    ]


def test_restarts_in_place_are_without_the_rule_that_forbids_them() -> None:
    lifecycle = Lifecycle(restart_policy=RestartPolicy.ON_FAILURE)
    (job,) = objects(one_pod(lifecycle=lifecycle))
    assert job["spec"].keys() == {"completions", "parallelism", "backoffLimit", "template"}


def test_everything_that_a_pod_can_be_asked_to_be() -> None:
    lifecycle = Lifecycle(
        Priority.HIGH,
        Preemptibility.NON_PREEMPTIBLE,
        3,
        RestartPolicy.NEVER,
        CleanPodPolicy.NONE,
        grace_seconds=60,
        auto_delete_seconds=0,
    )
    (job,) = objects(train1(setup=EVERYTHING, lifecycle=lifecycle))
    assert job["spec"]["runPolicy"] == {"backoffLimit": 3, "cleanPodPolicy": "None"}
    assert job["metadata"]["annotations"] == {"note": "hello"}
    worker = job["spec"]["pytorchReplicaSpecs"]["Worker"]
    assert (worker["restartPolicy"], worker["template"]["metadata"]["annotations"]) == (
        "Never",
        {"note": "hello"},
    )
    labels = LABELS | {
        "team": "vision",
        "priorityClassName": "high",
        "kai.scheduler/preemptibility": "non-preemptible",
    }
    assert worker["template"]["metadata"]["labels"] == job["metadata"]["labels"] == labels
    assert worker["template"]["spec"] == EVERY_POD


EVERY_POD = {
    **COMMON,
    "containers": [
        {
            "name": "pytorch",
            "image": "train:1",
            "imagePullPolicy": "Always",
            "command": ["python", "train.py"],
            "args": ["--epochs", "3"],
            "workingDir": "/src",
            "env": [
                {"name": "A", "value": "1"},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
                {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ],
            "resources": {
                "requests": {"cpu": "1", "memory": "1Gi"},
                "limits": {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "2", "rdma/hca": "1"},
            },
            "volumeMounts": [
                {"name": "volume-1", "mountPath": "/tmp/a"},
                {
                    "name": "volume-2",
                    "mountPath": "/b",
                    "readOnly": True,
                    "mountPropagation": "HostToContainer",
                },
                {"name": "volume-3", "mountPath": "/etc/c", "readOnly": True, "subPath": "c.ini"},
                {"name": "volume-4", "mountPath": "/d", "readOnly": True},
                {"name": "volume-5", "mountPath": "/e", "readOnly": True},
                {"name": "volume-6", "mountPath": "/f"},
                {"name": "shared-memory", "mountPath": "/dev/shm"},
            ],
            "securityContext": {
                "readOnlyRootFilesystem": True,
                "allowPrivilegeEscalation": False,
                "capabilities": {"add": ["IPC_LOCK"]},
            },
            "terminationMessagePolicy": "FallbackToLogsOnError",
        }
    ],
    "volumes": [
        {"name": "volume-1", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"name": "volume-2", "hostPath": {"path": "/mnt/b"}},
        {"name": "volume-3", "configMap": {"name": "c", "defaultMode": 0o400}},
        {"name": "volume-4", "secret": {"secretName": "d"}},
        {"name": "volume-5", "persistentVolumeClaim": {"claimName": "e"}},
        {"name": "volume-6", "nfs": {"server": "nfs.example.com", "path": "/f"}},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
    ],
    "nodeSelector": {"run.ai/type": "dgx"},
    "tolerations": [
        {
            "key": "a",
            "operator": "Equal",
            "value": "b",
            "effect": "NoExecute",
            "tolerationSeconds": 60,
        },
        {"operator": "Exists"},
    ],
    "imagePullSecrets": [{"name": "registry"}],
    "terminationGracePeriodSeconds": 60,
    "securityContext": {
        "runAsUser": 1000,
        "runAsGroup": 1001,
        "supplementalGroups": [5, 6],
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
    "hostIPC": True,
    "hostNetwork": True,
}

GPUS = [
    (Gpus(), {}, None),
    (Gpus(2), {}, "2"),
    (Gpus(0, Decimal(1)), {}, "1"),
    (Gpus(1, Decimal("0.50")), {"gpu-fraction": "0.5"}, None),
    (Gpus(2, Decimal("0.0001")), {"gpu-fraction": "0.0001", "gpu-fraction-num-devices": "2"}, None),
    (Gpus(0, memory="1.5G"), {"gpu-memory": "1431"}, None),
    (Gpus(3, memory="1Gi"), {"gpu-memory": "1024", "gpu-fraction-num-devices": "3"}, None),
]


@pytest.mark.parametrize(("gpus", "annotations", "devices"), GPUS, ids=range(len(GPUS)))
def test_gpus_are_whole_devices_or_the_scheduler_s_annotations(
    gpus: Gpus, annotations: Object, devices: str | None
) -> None:
    (job,) = objects(one_pod(setup=Setup(Environment("x"), Compute(gpus))))
    template = job["spec"]["template"]
    assert template["metadata"].get("annotations", {}) == annotations
    assert (
        template["spec"]["containers"][0]
        .get("resources", {})
        .get("limits", {})
        .get("nvidia.com/gpu")
        == devices
    )


def test_the_master_differs_in_what_is_changed_and_may_write_where_rank_0_may() -> None:
    shared = Setup(
        Environment("x", args=("a",)),
        volumes=(Nfs(path="/n", server="s", export="/e", access=VolumeAccess.RANK_0_WRITES),),
    )
    (job,) = objects(train1(setup=shared, master=MasterChanges(args=("b",), gpus=Gpus(1))))
    replicas = job["spec"]["pytorchReplicaSpecs"]
    master, worker = (
        replicas[role]["template"]["spec"]["containers"][0] for role in ("Master", "Worker")
    )
    assert (master["args"], worker["args"]) == (["b"], ["a"])
    assert (master["resources"]["limits"], worker.get("resources")) == (
        {"nvidia.com/gpu": "1"},
        None,
    )
    assert "readOnly" not in master["volumeMounts"][0]
    assert worker["volumeMounts"][0]["readOnly"] is True


@pytest.mark.parametrize(
    ("chosen", "sent"),
    [
        (None, "Running"),
        (CleanPodPolicy.RUNNING, "Running"),
        (CleanPodPolicy.NONE, "None"),
        (CleanPodPolicy.ALL, "Running"),
    ],
)
def test_finished_pods_are_never_left_to_the_operator_to_remove(
    chosen: CleanPodPolicy | None, sent: str
) -> None:
    (job,) = objects(train1(lifecycle=Lifecycle(clean_pod_policy=chosen)))
    assert job["spec"]["runPolicy"]["cleanPodPolicy"] == sent


def test_a_prefix_is_no_way_to_a_variable() -> None:
    """Kubernetes reads $(NAME) in arguments, and the keys of the bucket are among the variables."""
    volume = S3(
        path="/d", bucket="data", prefix="$(RCLONE_CONFIG_SOURCE_SECRET_ACCESS_KEY)", secret="keys"
    )
    (job,) = objects(train1(setup=replace(train1().setup, volumes=(volume,))))
    (fetcher,) = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["initContainers"]
    assert fetcher["args"] == [
        "copy",
        "source:data/$$(RCLONE_CONFIG_SOURCE_SECRET_ACCESS_KEY)",
        "/data",
    ]


@pytest.mark.parametrize(
    ("security", "user"),
    [
        (Security(non_root=True), {"runAsUser": 65534}),
        (Security(non_root=True, uid=1000), {}),
        (Security(), {}),
    ],
)
def test_a_bucket_is_fetched_by_no_root_where_root_is_forbidden(
    security: Security, user: Object
) -> None:
    setup = replace(train1().setup, volumes=(S3(path="/d", bucket="data"),), security=security)
    (job,) = objects(train1(setup=setup))
    (fetcher,) = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["initContainers"]
    assert fetcher["securityContext"] == {"allowPrivilegeEscalation": False, **user}


def test_workers_only_have_a_rendezvous() -> None:
    (job,) = objects(train1(configuration=Configuration.WORKERS_ONLY, workers=4))
    assert job["spec"]["pytorchReplicaSpecs"].keys() == {"Worker"}
    assert job["spec"]["runPolicy"]["cleanPodPolicy"] == "None"
    assert job["spec"]["elasticPolicy"] == {
        "minReplicas": 4,
        "maxReplicas": 4,
        "rdzvBackend": "c10d",
    }


def test_an_elastic_workload_starts_with_its_minimum_as_a_gang() -> None:
    (job,) = objects(train1(elastic=ElasticSettings(2, 6)))
    policy = job["spec"]["elasticPolicy"]
    assert (policy["minReplicas"], policy["maxReplicas"]) == (2, 6), "the master is among them"
    assert policy["rdzvHost"] == "train1-master-0", "a worker may go while the master stays"
    (alone,) = objects(
        train1(elastic=ElasticSettings(1, 5), configuration=Configuration.WORKERS_ONLY)
    )
    assert (
        alone["spec"]["elasticPolicy"]["minReplicas"],
        alone["spec"]["elasticPolicy"]["maxReplicas"],
    ) == (1, 5)
    assert "rdzvHost" not in alone["spec"]["elasticPolicy"], "they meet at the first worker"
    worker = job["spec"]["pytorchReplicaSpecs"]["Worker"]
    assert worker["replicas"] == 2
    assert worker["template"]["spec"]["containers"][0]["env"] == [
        {"name": "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "value": "1"}
    ]


def test_parameter_servers_take_no_parts_of_gpus_either() -> None:
    extended = (ExtendedResource("nvidia.com/mig-1g.5gb", "1"), ExtendedResource("rdma/hca", "1"))
    setup = replace(train1().setup, compute=Compute(cpu_request="2", extended=extended))
    (job,) = objects(train1(framework=Framework.TENSORFLOW, setup=setup, parameter_servers=1))
    replicas = job["spec"]["tfReplicaSpecs"]
    limits = {
        name: replica["template"]["spec"]["containers"][0]["resources"]["limits"]
        for name, replica in replicas.items()
    }
    whole = {"nvidia.com/mig-1g.5gb": "1", "rdma/hca": "1"}
    assert limits == {"Chief": whole, "Worker": whole, "PS": {"rdma/hca": "1"}}


def test_what_a_failure_of_jax_leaves_running_is_removed() -> None:
    (job,) = objects(train1(framework=Framework.JAX, configuration=Configuration.WORKERS_ONLY))
    assert job["spec"]["runPolicy"]["cleanPodPolicy"] == "Running"


def test_what_fetches_has_the_cpu_and_memory_of_what_it_fetches_for() -> None:
    git = Git(
        path="/src",
        repository="git@git.example.com:a/b.git",
        secret="key",
        credential=GitAccess.SSH_KEY,
    )
    compute = Compute(
        Gpus(2), "1", "2", "1Gi", "2Gi", extended=(ExtendedResource("rdma/hca", "1"),)
    )
    (job,) = objects(one_pod(setup=Setup(Environment("x"), compute, (git,))))
    (fetcher,) = job["spec"]["template"]["spec"]["initContainers"]
    assert fetcher["resources"] == {
        "requests": {"cpu": "1", "memory": "1Gi"},
        "limits": {"cpu": "2", "memory": "2Gi"},
    }
    assert {"name": "GITSYNC_ADD_USER", "value": "true"} in fetcher["env"]
    (bare,) = objects(one_pod(setup=Setup(Environment("x"), Compute(Gpus(2)), (git,))))
    assert "resources" not in bare["spec"]["template"]["spec"]["initContainers"][0]


def test_a_cluster_without_kai_keeps_its_own_scheduler() -> None:
    plain = Capabilities(served=frozenset({"batch/v1/jobs"}), priority_classes=frozenset({"high"}))
    (job,) = build_objects(
        one_pod(lifecycle=Lifecycle(Priority.HIGH)), workload_id="w-1", capabilities=plain
    )
    assert "schedulerName" not in job["spec"]["template"]["spec"]
    assert job["spec"]["template"]["spec"]["priorityClassName"] == "high"
    (job,) = build_objects(
        one_pod(lifecycle=Lifecycle(Priority.LOW)), workload_id="w-1", capabilities=plain
    )
    assert "priorityClassName" not in job["spec"]["template"]["spec"]


def test_the_projects_pull_secrets_come_after_the_environments_own() -> None:
    own = Setup(Environment("x", pull_secrets=("mine", "muster-pull-hub")))
    (job,) = build_objects(
        one_pod(setup=own), workload_id="w-1", pull_secrets=("muster-pull-corp", "muster-pull-hub")
    )
    named = [each["name"] for each in job["spec"]["template"]["spec"]["imagePullSecrets"]]
    assert named == ["mine", "muster-pull-hub", "muster-pull-corp"]


def test_there_is_a_builder_for_each_framework() -> None:
    assert ADAPTERS.keys() == set(Framework)
    with pytest.raises(CannotBuild):
        build_objects(train1(framework=None), workload_id="w-1")
    with pytest.raises(CannotBuild):
        build_objects(train1(), workload_id="w-1", job_kind="kubeflow.org/v1/PaddleJob")


def test_yaml_reads_like_written_by_hand() -> None:
    text = dump_yaml(
        objects(one_pod(setup=Setup(Environment("x", command=("sh", "-c", "one\ntwo\n")))))
    )
    assert text.startswith("apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: solo\n")
    assert (
        "command:\n            - sh\n            - -c\n            - |\n              one\n      "
        "        two\n" in text
    )
    assert "&id" not in dump_yaml(objects(train1()))


def test_the_selector_finds_ours_and_one_workload_s() -> None:
    assert build_selector() == "app.kubernetes.io/managed-by=muster"
    assert build_selector("w-1") == "app.kubernetes.io/managed-by=muster,muster.dev/workload=w-1"
