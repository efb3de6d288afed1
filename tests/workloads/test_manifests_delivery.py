"""The objects of data workers, and what ranks are told of them."""

from dataclasses import replace
from typing import Any

import pytest

from tests.workloads.golden import OPERATOR, PLAIN, TRAINER, WORKLOAD
from tests.workloads.submissions import EVERYTHING, one_pod, train1
from workloads.manifests import HIDDEN_KEY, build_objects, dump_yaml
from workloads.specs import (
    Compute,
    Configuration,
    DataDelivery,
    Environment,
    Framework,
    MasterChanges,
    MpiSettings,
    Setup,
    Spec,
    Variable,
    find_problems,
)

Object = dict[str, Any]

KEY = "ab" * 32
TWO = DataDelivery(2, 1_000)


def build(spec: Spec, **more: Any) -> list[Object]:
    assert find_problems(spec) == ()
    return build_objects(spec, workload_id=WORKLOAD, delivery_key=KEY, **more)


def read_variables(template: Object) -> dict[str, Any]:
    variables = template["spec"]["containers"][0]["env"]
    values = {each["name"]: each.get("value", each.get("valueFrom")) for each in variables}
    assert len(values) == len(variables)
    return values


def get_data_template(objects: list[Object]) -> Object:
    template: Object = objects[-2]["spec"]["template"]
    return template


def test_a_workload_without_data_workers_has_nothing_of_them() -> None:
    [job] = build(train1())
    assert "suspend" not in job["spec"]["runPolicy"]
    assert "MUSTER_DELIVERY" not in dump_yaml([job])


def test_secret_service_and_job_come_before_the_training() -> None:
    objects = build(train1(data_delivery=TWO))
    assert [(each["kind"], each["metadata"]["name"]) for each in objects] == [
        ("Secret", "train1-data"),
        ("Service", "train1-data"),
        ("Job", "train1-data"),
        ("PyTorchJob", "train1"),
    ]
    assert {each["metadata"]["labels"].get("muster.dev/role") for each in objects[:3]} == {
        "data-worker"
    }
    assert "muster.dev/role" not in objects[3]["metadata"]["labels"]


def test_the_key_is_in_the_secret_alone() -> None:
    secret, *others = build(train1(data_delivery=TWO))
    assert secret["stringData"] == {"key": KEY}
    assert KEY not in dump_yaml(others)


def test_objects_that_are_only_shown_lack_the_key() -> None:
    secret, *_ = build_objects(train1(data_delivery=TWO), workload_id=WORKLOAD)
    assert secret["stringData"] == {"key": HIDDEN_KEY}


def test_the_service_selects_the_data_workers_of_its_attempt() -> None:
    _, service, job, _ = build(train1(data_delivery=TWO), attempt=3)
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert service["spec"]["selector"]["muster.dev/attempt"] == "3"
    assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]


def test_ranks_and_data_workers_are_told_of_each_other() -> None:
    objects = build(train1(data_delivery=TWO), attempt=3)
    replicas = objects[-1]["spec"]["pytorchReplicaSpecs"]
    common = {
        "MUSTER_DELIVERY_WORKERS": "train1-data-0.train1-data:7077,train1-data-1.train1-data:7077",
        "MUSTER_DELIVERY_UNITS": "1000",
        "MUSTER_DELIVERY_WORLD": "3",
        "MUSTER_DELIVERY_ATTEMPT": "3",
        "MUSTER_DELIVERY_KEY": {"secretKeyRef": {"name": "train1-data", "key": "key"}},
    }
    rank = common | {"MUSTER_DELIVERY_ROLE": "rank"}
    for role in ("Master", "Worker"):
        assert read_variables(replicas[role]["template"]) == rank
    worker = read_variables(get_data_template(objects))
    assert worker.items() >= common.items()
    assert worker["MUSTER_DELIVERY_ROLE"] == "worker"
    assert worker["MUSTER_DELIVERY_SPILL"] == "/muster-delivery"


def test_a_data_worker_is_a_process_group_of_its_own() -> None:
    worker = read_variables(get_data_template(build(train1(data_delivery=TWO))))
    assert (worker["RANK"], worker["WORLD_SIZE"], worker["MASTER_ADDR"]) == ("0", "1", "127.0.0.1")


def test_a_variable_of_the_person_does_not_replace_one_of_the_delivery() -> None:
    variables = (Variable("MUSTER_DELIVERY_UNITS", "7"), Variable("EPOCHS", "3"))
    spec = train1(setup=Setup(Environment("x", variables=variables)), data_delivery=TWO)
    pod_variables = read_variables(
        build(spec)[-1]["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    )
    assert (pod_variables["MUSTER_DELIVERY_UNITS"], pod_variables["EPOCHS"]) == ("1000", "3")


def test_a_data_worker_has_neither_gpus_nor_the_choice_of_nodes_for_them() -> None:
    spec = train1(
        setup=EVERYTHING, data_delivery=DataDelivery(1, 5, Compute(cpu_request="2"), "loader:1")
    )
    template = get_data_template(build(spec))
    [container], pod = template["spec"]["containers"], template["spec"]
    assert container["image"] == "loader:1"
    assert container["resources"] == {"requests": {"cpu": "2"}}
    assert "nodeSelector" not in pod
    assert "hostNetwork" not in pod
    assert list(pod["affinity"]) == ["nodeAffinity"]
    [wish] = pod["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert wish["weight"] == 100
    assert pod["tolerations"]


def test_only_what_is_its_own_may_be_written_by_a_data_worker() -> None:
    template = get_data_template(build(train1(setup=EVERYTHING, data_delivery=TWO)))
    mounts = template["spec"]["containers"][0]["volumeMounts"]
    assert [each["mountPath"] for each in mounts if not each.get("readOnly")] == [
        "/tmp/a",
        "/dev/shm",
        "/muster-delivery",
    ]


def test_ranks_on_the_network_of_their_node_find_the_names_of_data_workers() -> None:
    job = build(train1(setup=EVERYTHING, data_delivery=TWO))[-1]
    pod = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")


@pytest.mark.parametrize(
    ("spec", "capabilities", "place"),
    [
        (train1(), PLAIN, ("spec", "runPolicy")),
        (train1(framework=Framework.MPI), OPERATOR, ("spec", "runPolicy")),
        (train1(), TRAINER, ("spec",)),
        (one_pod(), PLAIN, ("spec",)),
    ],
)
def test_a_training_that_waits_for_its_data_is_suspended(
    spec: Spec, capabilities: Any, place: tuple[str, ...]
) -> None:
    changed = {"data_delivery": TWO}
    job = build(replace_spec(spec, changed), capabilities=capabilities)[-1]
    assert job["metadata"]["annotations"]["muster.dev/waits-for-data"] == "true"
    assert get_part(job, place)["suspend"] is True
    at_once = {"data_delivery": DataDelivery(2, 0)}
    job = build(replace_spec(spec, at_once), capabilities=capabilities)[-1]
    assert "muster.dev/waits-for-data" not in job["metadata"].get("annotations", {})
    assert "suspend" not in get_part(job, place)


def get_part(obj: Object, place: tuple[str, ...]) -> Object:
    for name in place:
        obj = obj[name]
    return obj


def replace_spec(spec: Spec, changes: dict[str, Any]) -> Spec:
    return replace(spec, **changes)


@pytest.mark.parametrize(
    ("spec", "world"),
    [
        (train1(workers=4), 5),
        (train1(workers=4, configuration=Configuration.WORKERS_ONLY), 4),
        (train1(workers=4, framework=Framework.MPI, mpi=MpiSettings(2)), 8),
        (one_pod(), 1),
    ],
)
def test_the_processes_of_the_training_are_counted(spec: Spec, world: int) -> None:
    worker = read_variables(get_data_template(build(replace_spec(spec, {"data_delivery": TWO}))))
    assert worker["MUSTER_DELIVERY_WORLD"] == str(world)


def test_the_launcher_of_mpi_hands_the_variables_on_to_its_ranks() -> None:
    spec = train1(
        framework=Framework.MPI,
        setup=Setup(Environment("x", command=("/usr/sbin/sshd", "-De"))),
        master=MasterChanges(command=("mpirun", "python", "train.py")),
        data_delivery=TWO,
    )
    objects = build(spec)
    replicas = objects[-1]["spec"]["mpiReplicaSpecs"]
    variables = read_variables(replicas["Launcher"]["template"])
    handed_on = variables["OMPI_MCA_mca_base_env_list"].split(";")
    assert set(handed_on) == {each for each in variables if each.startswith("MUSTER_DELIVERY_")}
    assert "MUSTER_DELIVERY_KEY" in handed_on
    worker = get_data_template(objects)["spec"]["containers"][0]
    assert worker["command"] == ["mpirun", "python", "train.py"]
