"""Run:ai's own client against our server: the package as it is on PyPI, a real server process, no
cluster behind it.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.their_client import RunaiClient, models, runai
from tests.console_server import WebServer

ROWS = """
import json
from projects import actions
from tests.cast import make_cast
cast = make_cast()
account, secret = actions.create_service_account(cast.team_a, "ci", by=cast.alice)
print(json.dumps([account.client_id, secret, str(cast.team_a.pk), str(cast.cluster.pk)]))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WebServer, list[str]]]:
    """The server, and client id, secret, project and cluster of a service account of team-a."""
    with WebServer(tmp_path_factory.mktemp("web")) as web:
        yield web, json.loads(web.python(ROWS))


@pytest.fixture(scope="module")
def client(server: tuple[WebServer, list[str]]) -> Iterator[Any]:
    web, (client_id, secret, *_) = server
    configuration = runai.Configuration(
        client_id=client_id, client_secret=secret, runai_base_url=web.url
    )
    with runai.ApiClient(configuration) as api_client:
        yield RunaiClient(api_client)


@pytest.fixture
def workload(client: Any, request: pytest.FixtureRequest) -> dict[str, Any]:
    """What create answers, for a workload named after the test."""
    (project,) = client.organizations.projects.get_projects(filter_by=["name==team-a"]).data[
        "projects"
    ]
    creation_request = models.DistributedCreationRequest(
        name=request.node.name.replace("_", "-")[:50].strip("-"),
        projectId=project["id"],
        clusterId=project["clusterId"],
        spec=models.DistributedSpecSpec(
            image="/kubeflow/pytorch-dist-mnist:latest",
            numWorkers=2,
            distributedFramework="PyTorch",
            environmentVariables=[models.EnvironmentVariable(name="A", value="b c")],
            compute=models.SupersetSpecAllOfCompute(
                cpuCoreRequest=0.1,
                gpuRequestType="portion",
                cpuMemoryRequest="100M",
                gpuDevicesRequest=1,
                gpuPortionRequest=0.1,
            ),
        ),
    )
    answer = client.workloads.distributed.create_distributed(creation_request)
    assert answer.status_code == 202
    return dict(answer.data)


def test_projects_and_clusters(client: Any, server: tuple[WebServer, list[str]]) -> None:
    *_, project, cluster = server[1]
    found = client.organizations.projects.get_projects(filter_by=["name==team-a"]).data
    assert [(each["id"], each["clusterId"]) for each in found["projects"]] == [(project, cluster)]
    assert (
        client.organizations.projects.get_projects(filter_by=["name==team-b"]).data["projects"]
        == []
    )
    assert [each["uuid"] for each in client.organizations.clusters.get_clusters().data] == [cluster]


def test_create_and_get(client: Any, workload: dict[str, Any]) -> None:
    made = models.DistributedWorkload.from_dict(workload)
    fetched_workload = models.DistributedWorkload.from_dict(
        client.workloads.distributed.get_distributed(made.workload_id).data
    )
    assert fetched_workload == made
    assert (
        fetched_workload.created_by,
        fetched_workload.actual_phase,
        fetched_workload.spec.num_workers,
        fetched_workload.spec.compute.gpu_portion_request,
    ) == (
        "team-a/ci",
        "Creating",
        2,
        0.1,
    )


def test_every_framework_and_what_is_new_of_storage(
    client: Any, server: tuple[WebServer, list[str]]
) -> None:
    *_, project, cluster = server[1]
    modes = models.PvcAccessModes(readWriteOnce=True, readWriteMany=True)
    storage = models.SupersetSpecAllOfStorage(
        pvc=[
            models.PvcInstance(
                path="/out",
                existingPvc=False,
                claimInfo=models.ClaimInfo(size="1G", accessModes=modes),
            )
        ],
        git=[
            models.GitInstance(
                repository="https://git.example.com/a/b",
                branch="main",
                path="/code",
                secretRef=models.GitSecretRef(name="login", authenticationMethod="password"),
            )
        ],
        s3=[
            models.S3Instance(
                bucket="images", path="/data", url="https://s3.example.com", accessKeySecret="keys"
            )
        ],
    )
    for framework in ("PyTorch", "TF", "XGBoost", "JAX", "MPI"):
        mpi = (
            {"slotsPerWorker": 2, "mpiLauncherCreationPolicy": "WaitForWorkersReady"}
            if framework == "MPI"
            else {}
        )
        spec = models.DistributedSpecSpec(
            image="a",
            numWorkers=2,
            distributedFramework=framework,
            storage=storage,
            nodePools=["fast", "slow"],
            podAffinity=models.PodAffinity(type="Required", key="rack"),
            **mpi,
        )
        ids = {"name": f"of-{framework.lower()}", "projectId": project, "clusterId": cluster}
        made = client.workloads.distributed.create_distributed(
            models.DistributedCreationRequest(**ids, spec=spec)
        ).data
        fetched_workload = models.DistributedWorkload.from_dict(
            client.workloads.distributed.get_distributed(made["workloadId"]).data
        )
        assert fetched_workload.spec.distributed_framework == framework
        assert (fetched_workload.spec.node_pools, fetched_workload.spec.pod_affinity) == (
            spec.node_pools,
            spec.pod_affinity,
        )
        assert fetched_workload.spec.storage.git[0].secret_ref.authentication_method == "password"
        assert fetched_workload.spec.storage.pvc[0].claim_info.access_modes.read_write_many
        assert fetched_workload.spec.storage.s3[0].access_key_secret == "keys"
        assert fetched_workload.spec.slots_per_worker == (2 if mpi else 1)


def test_lists(client: Any, workload: dict[str, Any]) -> None:
    found = client.workloads.workloads.get_workloads(
        filter_by=[f"name=={workload['name']}", "phase!=Failed"], deleted=False, limit=5
    ).data
    (listed,) = [models.Workload.from_dict(each) for each in found["workloads"]]
    assert (listed.id, listed.requested_pods.number, listed.submitted_by) == (
        workload["workloadId"],
        3,
        "team-a/ci",
    )
    assert (
        models.Workload.from_dict(client.workloads.workloads.get_workload(listed.id).data).name
        == workload["name"]
    )


def test_suspend_resume_and_delete(
    client: Any, workload: dict[str, Any], server: tuple[WebServer, list[str]]
) -> None:
    key, one = workload["workloadId"], client.workloads.distributed
    assert one.suspend_distributed(key).data["code"] == 202
    assert one.get_distributed(key).data["actualPhase"] == "Stopping"
    # What the cluster would say, if there was one.
    server[0].python(
        "from workloads.models import Workload; "
        f"Workload.objects.filter(pk='{key}').update(status='Stopped')"
    )
    assert one.resume_distributed(key).status_code == 202
    assert one.get_distributed(key).data["actualPhase"] == "Resuming"
    assert one.delete_distributed(key).status_code == 202
    assert one.get_distributed(key).data["desiredPhase"] == "Deleted"


def test_pods_events_and_history(
    client: Any, workload: dict[str, Any], server: tuple[WebServer, list[str]]
) -> None:
    key = workload["workloadId"]
    server[0].python(
        "from django.utils.timezone import now; from workloads.models import Pod; "
        f"Pod.objects.create(workload_id='{key}', attempt=1, uid='u', rank=0, name='p-master-0'); "
        f"Pod.objects.create(workload_id='{key}', attempt=1, uid='v', rank=1, name='p-worker-0', "
        "vanished_at=now())"
    )
    listed = client.workloads.pods.get_workload_pods(key).data["pods"]
    assert [(pod.name, pod.workload_id) for pod in map(models.Pod1.from_dict, listed)] == [
        ("p-master-0", key),
        ("p-worker-0", key),
    ]
    deleted_pods = client.workloads.pods.get_workload_pods(key, deleted=True).data["pods"]
    assert [each["name"] for each in deleted_pods] == ["p-worker-0"]
    everywhere = client.workloads.pods.list_pods(
        verbosity=models.PodVerbosity.FULL, filter_by=[f"workloadId=={key}"]
    ).data["pods"]
    assert [each["workloadName"] for each in everywhere] == [workload["name"]]
    events = [
        models.Event1.from_dict(each)
        for each in client.workloads.events.get_workload_events(key, sort_order="asc").data[
            "events"
        ]
    ]
    assert [event.reason for event in events] == ["Submitted"]
    records = client.workloads.events.get_workload_history(key).data["records"]
    assert [models.HistoryRecord1.from_dict(each).spec.phase_update.phase for each in records] == [
        "Creating"
    ]


def test_a_batch_of_workloads(client: Any, workload: dict[str, Any]) -> None:
    missing = "9a6a3a54-56f6-4f37-9ba7-4cbb5d4d4f7e"
    batch = models.WorkloadBatch(ids=[workload["workloadId"], missing], action="suspend")
    answer = client.workloads.workloads_batch.batch_workloads(batch)
    response = models.BatchResponse.from_dict(answer.data)
    assert response.succeeded == [workload["workloadId"]]
    assert [(each.id, each.code) for each in response.failed] == [(missing, 404)]


def test_telemetry(client: Any, workload: dict[str, Any]) -> None:
    telemetry = client.workloads.workloads.get_workloads_telemetry(
        models.WorkloadTelemetryType.WORKLOADS_COUNT, group_by=["ProjectId", "Phase"]
    ).data
    [value] = [
        each
        for each in models.TelemetryResponse.from_dict(telemetry).values
        if each.groups[1].value == "Creating"
    ]
    assert (value.groups[0].value, int(value.value) > 0) == (workload["projectId"], True)
    telemetry = client.organizations.nodes.get_node_telemetry(
        models.NodeTelemetryType.TOTAL_GPUS
    ).data
    assert models.TelemetryResponse.from_dict(telemetry).values[0].value == "0"


def test_refusals_are_told_and_not_repeated(
    client: Any, workload: dict[str, Any], server: tuple[WebServer, list[str]]
) -> None:
    again = {
        "name": workload["name"],
        "projectId": workload["projectId"],
        "clusterId": workload["clusterId"],
    }
    taken = models.DistributedCreationRequest(
        **again, spec=models.DistributedSpecSpec(image="a", distributedFramework="PyTorch")
    )
    with pytest.raises(runai.exceptions.ApiException) as refused:
        client.workloads.distributed.create_distributed(taken)
    assert "is free" in str(refused.value)
    with pytest.raises(runai.exceptions.ApiException) as refused:
        client.workloads.distributed.get_distributed("9a6a3a54-56f6-4f37-9ba7-4cbb5d4d4f7e")
    assert "no such workload" in str(refused.value)
    with pytest.raises(ValueError, match="credentials are not right"):
        runai.ApiClient(
            runai.Configuration(
                client_id=server[1][0], client_secret="wrong", runai_base_url=server[0].url
            )
        )
