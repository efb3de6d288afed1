"""PyTorchJobs: the pods and services they get, and what is in them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localkube.controllers.ports import PortAllocator
from localkube.controllers.pytorch import PyTorch
from localkube.controllers.training import TrainingController
from localkube.metadata import Object
from localkube.options import ADDRESS_ANNOTATION
from localkube.resources import PODS, PYTORCHJOBS, SERVICES
from tests.localkube.stage import SPACE, Stage, pytorchjob, replica


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(
        tmp_path / "state.db",
        monkeypatch,
        lambda objects: [TrainingController(objects, PyTorch(), PortAllocator(objects))],
    )
    yield made
    made.close()


def submit(stage: Stage, replicas: Object, policy: Object | None = None, **spec: object) -> Object:
    return stage.create(PYTORCHJOBS, pytorchjob("j", replicas, policy, **spec))


def variables(stage: Stage, pod: str) -> dict[str, str]:
    return {
        each["name"]: each["value"] for each in stage.get(PODS, pod)["spec"]["containers"][0]["env"]
    }


def port(stage: Stage, service: str) -> str:
    found: str = stage.get(SERVICES, service)["metadata"]["annotations"][
        ADDRESS_ANNOTATION
    ].rpartition(":")[2]
    return found


def test_each_replica_gets_a_pod_and_a_headless_service(stage: Stage) -> None:
    job = submit(stage, {"Worker": replica(2), "Master": replica()})
    assert stage.names(PODS) == stage.names(SERVICES) == ["j-master-0", "j-worker-0", "j-worker-1"]
    service = stage.get(SERVICES, "j-worker-1")
    assert service["spec"]["clusterIP"] == "None"
    assert (
        service["spec"]["ports"][0] | {"name": "pytorchjob-port", "port": 23456}
        == service["spec"]["ports"][0]
    )
    for owned in (service, stage.get(PODS, "j-worker-1")):
        assert owned["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": "PyTorchJob",
                "name": "j",
                "uid": job["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]


def test_pods_carry_the_operators_labels_over_the_templates_own(stage: Stage) -> None:
    worker = replica()
    worker["template"]["metadata"] = {
        "labels": {"team": "a", "training.kubeflow.org/job-name": "mine"},
        "annotations": {"note": "kept"},
        "name": "ignored",
    }
    submit(stage, {"Master": replica(), "Worker": worker})
    metadata = stage.get(PODS, "j-worker-0")["metadata"]
    assert metadata["labels"] == {
        "team": "a",
        "training.kubeflow.org/job-name": "j",
        "training.kubeflow.org/operator-name": "pytorchjob-controller",
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": "0",
    }
    assert metadata["annotations"] == {"note": "kept"}
    assert (
        stage.get(PODS, "j-master-0")["metadata"]["labels"]["training.kubeflow.org/job-role"]
        == "master"
    )


def test_without_a_master_worker_0_has_its_role(stage: Stage) -> None:
    submit(stage, {"Worker": replica(2)})
    roles = [
        pod["metadata"]["labels"].get("training.kubeflow.org/job-role")
        for pod in stage.objects.list(PODS, SPACE)
    ]
    assert roles == ["master", None]


def test_variables_of_a_job_with_a_master(stage: Stage) -> None:
    submit(stage, {"Master": replica(), "Worker": replica(2)}, nprocPerNode="2")
    given = variables(stage, "j-worker-1")
    master = port(stage, "j-master-0")
    assert given == {
        "PYTHONUNBUFFERED": "1",
        "MASTER_ADDR": "127.0.0.1",
        "PET_MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": master,
        "PET_MASTER_PORT": master,
        "WORLD_SIZE": "6",
        "RANK": "2",
        "PET_NODE_RANK": "2",
        "PET_NPROC_PER_NODE": "2",
        "PET_NNODES": "3",
        "PET_LOCAL_ADDR": "127.0.0.1",
        "GLOO_SOCKET_IFNAME": "lo",
        "TP_SOCKET_IFNAME": "lo",
    }
    assert variables(stage, "j-master-0")["RANK"] == "0"


def test_with_auto_the_world_is_as_large_as_there_are_pods(stage: Stage) -> None:
    submit(stage, {"Master": replica(), "Worker": replica(2)})
    given = variables(stage, "j-worker-0")
    assert (given["WORLD_SIZE"], given["PET_NPROC_PER_NODE"]) == ("3", "auto")


def test_the_operators_variables_come_last_and_the_machines_only_where_the_user_has_none(
    stage: Stage,
) -> None:
    master = replica()
    master["template"]["spec"]["containers"][0]["env"] = [
        {"name": "RANK", "value": "9"},
        {"name": "GLOO_SOCKET_IFNAME", "value": "eth0"},
    ]
    submit(stage, {"Master": master})
    env = stage.get(PODS, "j-master-0")["spec"]["containers"][0]["env"]
    assert [each["value"] for each in env if each["name"] == "RANK"] == ["9", "0"]
    assert [each["value"] for each in env if each["name"] == "GLOO_SOCKET_IFNAME"] == ["eth0"]


def test_workers_alone_get_no_master(stage: Stage) -> None:
    submit(stage, {"Worker": replica(2)})
    given = variables(stage, "j-worker-1")
    assert not {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "PET_NODE_RANK"} & set(given)
    assert given["PET_NNODES"] == "2"


def test_an_elastic_job_meets_at_worker_0_which_hosts_the_store(stage: Stage) -> None:
    policy = {
        "minReplicas": 2,
        "maxReplicas": 4,
        "maxRestarts": 7,
        "rdzvId": "id",
        "rdzvConf": [{"key": "last_call_timeout", "value": "2"}],
    }
    submit(stage, {"Worker": replica(3)}, elasticPolicy=policy)
    host, other = variables(stage, "j-worker-0"), variables(stage, "j-worker-2")
    assert other["PET_RDZV_ENDPOINT"] == f"127.0.0.1:{port(stage, 'j-worker-0')}"
    assert (
        other["PET_RDZV_BACKEND"],
        other["PET_NNODES"],
        other["PET_MAX_RESTARTS"],
        other["PET_RDZV_ID"],
    ) == ("c10d", "2:4", "7", "id")
    assert (host["PET_RDZV_CONF"], other["PET_RDZV_CONF"]) == (
        "last_call_timeout=2,is_host=1",
        "last_call_timeout=2,is_host=0",
    )


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({}, {"PET_NNODES": "3:3"}),
        ({"minReplicas": 2}, {"PET_NNODES": "2:2"}),
        ({"maxReplicas": 5}, {"PET_NNODES": "5:5"}),
        ({"standalone": True}, {"PET_STANDALONE": "1"}),
        ({"nProcPerNode": 4}, {"PET_NPROC_PER_NODE": "4"}),
        (
            {"rdzvBackend": "etcd", "rdzvHost": "etcd.example", "rdzvPort": 2379},
            {"PET_RDZV_ENDPOINT": "etcd.example:2379"},
        ),
        ({"rdzvConf": [{"key": "is_host", "value": "true"}]}, {"PET_RDZV_CONF": "is_host=true"}),
    ],
)
def test_elastic_policies(stage: Stage, policy: Object, expected: dict[str, str]) -> None:
    submit(stage, {"Worker": replica(3)}, elasticPolicy=policy)
    given = variables(stage, "j-worker-1")
    assert given | expected == given


def test_a_rendezvous_host_named_as_one_of_the_jobs_pods_is_that_pods_address(stage: Stage) -> None:
    submit(
        stage, {"Worker": replica(2)}, elasticPolicy={"rdzvHost": "j-worker-1", "rdzvPort": 29400}
    )
    given = variables(stage, "j-worker-1")
    assert given["PET_RDZV_ENDPOINT"] == f"127.0.0.1:{port(stage, 'j-worker-1')}"
    assert given["PET_RDZV_CONF"] == "is_host=1"


def test_the_named_container_gets_the_port_unless_it_has_one(stage: Stage) -> None:
    own = replica()
    own["template"]["spec"]["containers"][0]["ports"] = [
        {"name": "pytorchjob-port", "containerPort": 9}
    ]
    submit(stage, {"Master": replica(), "Worker": own})
    ports = [
        stage.get(PODS, name)["spec"]["containers"][0]["ports"]
        for name in ("j-master-0", "j-worker-0")
    ]
    assert [[port["containerPort"] for port in each] for each in ports] == [[23456], [9]]


def test_a_restart_policy_in_the_template_is_overwritten_and_told(stage: Stage) -> None:
    submit(
        stage,
        {
            "Master": replica(restart="ExitCode"),
            "Worker": replica(restart="OnFailure", restartPolicy="Always"),
        },
    )
    assert [
        stage.get(PODS, name)["spec"]["restartPolicy"] for name in ("j-master-0", "j-worker-0")
    ] == ["Never", "OnFailure"]
    assert stage.reasons("PyTorchJob").count("SetPodTemplateRestartPolicy") == 1


def test_every_replica_of_every_job_has_a_port_of_its_own(stage: Stage) -> None:
    for name in ("a", "b"):
        stage.create(PYTORCHJOBS, pytorchjob(name, {"Master": replica(), "Worker": replica(2)}))
    addresses = [
        service["metadata"]["annotations"][ADDRESS_ANNOTATION]
        for service in stage.objects.list(SERVICES, SPACE)
    ]
    assert len(set(addresses)) == 6


def test_a_second_run_has_another_port(stage: Stage) -> None:
    submit(stage, {"Master": replica()})
    first = port(stage, "j-master-0")
    stage.objects.delete(SERVICES, SPACE, "j-master-0")
    stage.objects.delete(PODS, SPACE, "j-master-0")
    stage.settle()
    assert port(stage, "j-master-0") != first
    assert variables(stage, "j-master-0")["MASTER_PORT"] == port(stage, "j-master-0")
