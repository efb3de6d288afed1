"""Every framework's objects: as the files in `data/golden` have them, as the real schemas take
them, on clusters of all kinds.

`python -m tests.workloads.golden` writes the files anew; look at what changed.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from clusters.capabilities import Capabilities, TrainingRuntime
from clusters.job_kinds import JOB_KINDS
from localkube.controllers.jax import Jax
from localkube.controllers.paddle import Paddle
from localkube.controllers.pytorch import PyTorch
from localkube.controllers.tensorflow import TensorFlow
from localkube.controllers.xgboost import XGBoost
from tests.workloads import crds, golden
from tests.workloads.spec_strategies import ANY_SPEC, MPI, TRAINJOBS
from tests.workloads.submissions import train1
from workloads.manifests import (
    CannotBuild,
    build_objects,
    choose_target,
    describe_unavailable,
    find_refusals,
)
from workloads.specs import (
    UNCHANGED,
    Compute,
    Configuration,
    ElasticSettings,
    EmptyDir,
    Environment,
    Framework,
    Git,
    Gpus,
    Lifecycle,
    MasterChanges,
    Setup,
    Spec,
    Variable,
    VolumeAccess,
    find_problems,
)

CRDS = Path(__file__).parents[3] / "shared" / "crds"

KAI = frozenset(("scheduling.run.ai/v2/queues", "scheduling.run.ai/v2alpha2/podgroups"))
TRAINER = Capabilities(
    served=KAI | {"batch/v1/jobs", "trainer.kubeflow.org/v1alpha1/trainjobs"},
    gpu_sharing=True,
    runtimes=tuple(
        TrainingRuntime(f"{name}-{scheduler or 'plain'}", name, scheduler)
        for name in ("torch", "jax", "xgboost", "mpi")
        for scheduler in ("", "kai-scheduler")
    ),
    trainjob_fields=frozenset(("runtimeRef", "trainer", "runtimePatches", "suspend")),
)
OPERATOR = Capabilities(
    served=KAI
    | {
        f"kubeflow.org/v1/{plural}"
        for plural in ("pytorchjobs", "tfjobs", "xgboostjobs", "jaxjobs", "mpijobs")
    },
    gpu_sharing=False,
)


@pytest.mark.parametrize("name", golden.CASES)
def test_the_objects_are_those_of_the_golden_file(name: str) -> None:
    assert golden.render_case(name) == golden.case_path(name).read_text()


@pytest.mark.parametrize("name", golden.CASES)
def test_the_real_schemas_take_the_golden_objects(name: str) -> None:
    assert find_problems(golden.CASES[name].spec) == ()
    for obj in golden.build_case_objects(name):
        assert crds.find_schema_problems(obj) == []


@settings(max_examples=80)
@given(ANY_SPEC)
def test_the_real_schemas_take_any_valid_spec(spec: Spec) -> None:
    assert find_problems(spec) == ()
    made = build_objects(spec, workload_id="w-1")
    assert [crds.find_schema_problems(obj) for obj in made] == [[]] * len(made)
    assert made[-1]["kind"] == choose_target(spec, Capabilities(known=False)).kind


@settings(max_examples=40)
@given(MPI)
def test_the_real_schemas_take_mpi_of_the_training_operator(spec: Spec) -> None:
    made = build_objects(spec, workload_id="w-1", capabilities=OPERATOR)
    assert made[-1]["apiVersion"] == "kubeflow.org/v1"
    assert [crds.find_schema_problems(obj) for obj in made] == [[]] * len(made)


@settings(max_examples=60)
@given(TRAINJOBS)
def test_the_real_schemas_take_a_trainjob_of_whatever_is_not_refused(spec: Spec) -> None:
    assert find_problems(spec) == ()
    assert find_refusals(spec, TRAINER) == ()
    made = build_objects(spec, workload_id="w-1", capabilities=TRAINER)
    assert made[-1]["kind"] == "TrainJob"
    assert made[-1]["spec"]["runtimeRef"]["name"].endswith("-kai-scheduler")
    assert [crds.find_schema_problems(obj) for obj in made] == [[]] * len(made)


@pytest.mark.skipif(not CRDS.exists(), reason="the upstream CRD files are not beside this checkout")
@pytest.mark.parametrize("kind", crds.OTHERS)
def test_the_carried_schemas_are_the_upstream_ones(kind: str) -> None:
    if not (CRDS / crds.OTHERS[kind]).exists():
        pytest.skip(f"{crds.OTHERS[kind]} is not there")
    carried = crds.load_schema(*kind.rsplit("/", 1)).root
    upstream = crds.load_stripped_schema(CRDS, kind)
    assert {**carried["properties"], "metadata": None} == {
        **upstream["properties"],
        "metadata": None,
    }


def test_a_schema_notices_what_is_wrong() -> None:
    (job,) = build_objects(train1(framework=Framework.MPI), workload_id="w-1")
    assert crds.find_schema_problems(job | {"spec": job["spec"] | {"slots": 1}}) != []
    assert crds.find_schema_problems(job | {"spec": {}}) != []


@pytest.mark.parametrize(
    ("framework", "served", "kind"),
    [
        (
            Framework.PYTORCH,
            {"kubeflow.org/v1/pytorchjobs", "trainer.kubeflow.org/v1alpha1/trainjobs"},
            "kubeflow.org/v1/PyTorchJob",
        ),
        (
            Framework.PYTORCH,
            {"trainer.kubeflow.org/v1alpha1/trainjobs"},
            "trainer.kubeflow.org/v1alpha1/TrainJob",
        ),
        (
            Framework.MPI,
            {"kubeflow.org/v1/mpijobs", "kubeflow.org/v2beta1/mpijobs"},
            "kubeflow.org/v2beta1/MPIJob",
        ),
        (Framework.MPI, {"kubeflow.org/v1/mpijobs"}, "kubeflow.org/v1/MPIJob"),
        (Framework.JAX, {"kubeflow.org/v1/jaxjobs"}, "kubeflow.org/v1/JAXJob"),
        (Framework.PADDLE, {"kubeflow.org/v1/paddlejobs"}, "kubeflow.org/v1/PaddleJob"),
    ],
)
def test_the_best_kind_that_is_served_is_taken(
    framework: Framework, served: set[str], kind: str
) -> None:
    assert (
        choose_target(train1(framework=framework), replace(TRAINER, served=KAI | served)).job_kind
        == kind
    )
    assert JOB_KINDS[kind].job_kind == kind


@pytest.mark.parametrize("framework", Framework)
def test_a_framework_that_a_cluster_cannot_run_is_refused_with_what_to_install(
    framework: Framework,
) -> None:
    bare = Capabilities(served=frozenset({"batch/v1/jobs"}))
    (problem,) = find_refusals(train1(framework=framework), bare)
    assert problem.field == "framework"
    assert problem.text == describe_unavailable(framework, bare)
    assert "Ask its administrator to install the" in problem.text


def test_a_trainer_without_a_runtime_of_the_framework_is_told_from_none() -> None:
    lacking = replace(TRAINER, runtimes=(TrainingRuntime("plain", "torch"),))
    assert "without a runtime for PyTorch that names the KAI scheduler" in describe_unavailable(
        Framework.PYTORCH, lacking
    )
    with pytest.raises(CannotBuild):
        build_objects(
            train1(),
            workload_id="w-1",
            capabilities=lacking,
            job_kind="trainer.kubeflow.org/v1alpha1/TrainJob",
        )


def test_a_kind_names_the_port_that_its_operator_gives_each_pod() -> None:
    operators = (PyTorch(), TensorFlow(), XGBoost(), Jax(), Paddle())
    ports = {each.resource.kind: each.port for each in operators}
    kinds = {each.kind: each.port for each in JOB_KINDS.values() if each.port}
    assert kinds == ports
    by_framework = {each: each.adapter.port for each in Framework if each.adapter.port}
    assert sorted(by_framework.values()) == sorted(ports.values())


def test_mpi_is_never_a_trainjob() -> None:
    assert "Ask its administrator to install the MPI operator" in describe_unavailable(
        Framework.MPI, TRAINER
    )


def test_an_old_trainer_is_refused() -> None:
    old = replace(TRAINER, trainjob_fields=frozenset({"podTemplateOverrides"}))
    (problem,) = find_refusals(train1(), old)
    assert "too old" in problem.text


UNSAYABLE = {
    "master": train1(master=MasterChanges(image="other")),
    "elastic": train1(elastic=ElasticSettings(1, 4)),
    "lifecycle.backoff_limit": train1(lifecycle=Lifecycle(backoff_limit=1)),
    "setup.environment.working_dir": train1(
        setup=replace(
            train1().setup, environment=replace(train1().setup.environment, working_dir="/a")
        )
    ),
    "setup.volumes.0.path": train1(
        setup=replace(train1().setup, volumes=(Git(path="/a", repository="https://x.example/a"),))
    ),
    "setup.volumes.0.access": train1(
        setup=replace(
            train1().setup, volumes=(EmptyDir(path="/a", access=VolumeAccess.RANK_0_WRITES),)
        )
    ),
    "name": train1(name="a" * 49),
    "setup.environment.variables.0.name": train1(
        framework=Framework.JAX,
        configuration=Configuration.WORKERS_ONLY,
        setup=Setup(Environment("train:1", variables=(Variable("JAX_PROCESS_ID", "0"),))),
    ),
}


@pytest.mark.parametrize("field", UNSAYABLE)
def test_what_a_trainjob_cannot_say_is_refused_by_field(field: str) -> None:
    assert [problem.field for problem in find_refusals(UNSAYABLE[field], TRAINER)] == [field]
    assert find_refusals(UNSAYABLE[field], Capabilities(known=False)) == ()


def test_a_variable_that_only_trainer_sets_can_be_chosen_elsewhere() -> None:
    environment = Environment("train:1", variables=(Variable("DMLC_TASK_ID", "0"),))
    spec = train1(framework=Framework.XGBOOST, setup=Setup(environment))
    assert find_problems(spec) == ()
    assert find_refusals(spec, OPERATOR) == ()
    (problem,) = find_refusals(spec, TRAINER)
    assert problem.text.startswith("The environment variable DMLC_TASK_ID is set by Kubeflow")
    assert find_refusals(spec, TRAINER, is_stored=True) == ()


SHARED = {"portion": Gpus(1, portion=Gpus(1).portion), "memory": Gpus(1, memory="2Gi")}


@pytest.mark.parametrize(
    ("capabilities", "why"),
    [
        (OPERATOR, "has GPU sharing switched off"),
        (replace(OPERATOR, served=OPERATOR.served - KAI), "only the KAI scheduler shares devices"),
    ],
)
def test_parts_of_gpus_are_refused_where_nobody_shares_them(
    capabilities: Capabilities, why: str
) -> None:
    (problem,) = find_refusals(train1(), capabilities)
    assert problem.field == "setup.compute.gpus.portion"
    assert why in problem.text
    assert "Ask for whole devices" in problem.text
    memory = train1(setup=Setup(train1().setup.environment, Compute(Gpus(1, memory="2Gi"))))
    assert find_refusals(memory, capabilities)[0].field == "setup.compute.gpus.memory"
    whole = train1(setup=Setup(train1().setup.environment, Compute(Gpus(1))))
    assert find_refusals(whole, capabilities) == ()
    assert (
        find_refusals(
            replace(whole, master=MasterChanges(gpus=Gpus(1, memory="2Gi"))), capabilities
        )[0].field
        == "master.compute.gpus.memory"
    )
    for known in (True, None):
        assert find_refusals(train1(), replace(OPERATOR, gpu_sharing=known)) == ()


@pytest.mark.parametrize("framework", [Framework.PYTORCH, Framework.TENSORFLOW])
def test_of_workers_alone_the_first_writes_where_only_rank_0_may(framework: Framework) -> None:
    volume = EmptyDir(path="/out", access=VolumeAccess.RANK_0_WRITES)
    spec = train1(
        framework=framework,
        configuration=Configuration.WORKERS_ONLY,
        setup=replace(train1().setup, volumes=(volume,)),
    )
    (job,) = build_objects(spec, workload_id="w-1")
    (replicas,) = [value for name, value in job["spec"].items() if name.endswith("ReplicaSpecs")]
    first, rest = replicas.values()
    assert (first["replicas"], rest["replicas"]) == (1, 1)
    assert "readOnly" not in first["template"]["spec"]["containers"][0]["volumeMounts"][0]
    assert rest["template"]["spec"]["containers"][0]["volumeMounts"][0]["readOnly"] is True
    (alone,) = build_objects(replace(spec, workers=1), workload_id="w-1")
    assert "Worker" not in json.dumps(
        [
            *alone["spec"][
                "pytorchReplicaSpecs" if framework is Framework.PYTORCH else "tfReplicaSpecs"
            ]
        ]
    )


RUN = Setup(Environment("train:1", command=("mpirun", "train"), args=("--fast",)))


@pytest.mark.parametrize(
    ("master", "worker"),
    [
        (UNCHANGED, {}),
        (MasterChanges(args=("--slow",)), {}),
        (
            MasterChanges(command=("mpirun", "lead")),
            {"command": ["mpirun", "train"], "args": ["--fast"]},
        ),
        (
            MasterChanges(command=("mpirun", "lead"), args=()),
            {"command": ["mpirun", "train"], "args": ["--fast"]},
        ),
    ],
)
def test_the_command_of_an_mpi_workload_is_its_launchers(
    master: MasterChanges, worker: dict[str, list[str]]
) -> None:
    (job,) = build_objects(
        train1(framework=Framework.MPI, setup=RUN, master=master), workload_id="w-1"
    )
    container = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert {name: container[name] for name in ("command", "args") if name in container} == worker


@pytest.mark.parametrize(
    ("master", "worker"),
    [
        (UNCHANGED, {}),
        (MasterChanges(command=("mpirun", "lead")), {}),
        (MasterChanges(args=("--slow",)), {"args": ["--fast"]}),
    ],
)
def test_arguments_without_a_command_are_the_launchers_too(
    master: MasterChanges, worker: dict[str, list[str]]
) -> None:
    setup = Setup(Environment("train:1", args=("--fast",)))
    (job,) = build_objects(
        train1(framework=Framework.MPI, setup=setup, master=master), workload_id="w-1"
    )
    container = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert {name: container[name] for name in ("command", "args") if name in container} == worker


def test_capabilities_come_back_as_they_were_stored() -> None:
    assert Capabilities.from_json(json.loads(json.dumps(TRAINER.to_json()))) == TRAINER
    assert not Capabilities.from_json({}).known
    assert Capabilities.from_json(Capabilities(known=False).to_json()) == Capabilities(known=False)
