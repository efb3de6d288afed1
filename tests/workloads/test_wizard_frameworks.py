"""The wizard for each framework, and for clusters that cannot do everything."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.capabilities import PODGROUPS, QUEUES, Capabilities, TrainingRuntime
from clusters.models import Cluster
from environments.models import FRAMEWORKS
from projects.models import Project
from tests.cast import Cast
from tests.workloads.wizarding import Walk, key_of
from workloads.models import Draft, Workload
from workloads.specs import (
    Configuration,
    ElasticSettings,
    Framework,
    LauncherCreation,
    MasterChanges,
    MpiSettings,
    Spec,
    decode_spec,
)

pytestmark = pytest.mark.django_db

PYTORCH = "kubeflow.org/v1/pytorchjobs"
KAI = frozenset((QUEUES, PODGROUPS))


def can(cluster: Cluster, *served: str, **more: Any) -> None:
    """From now on this is what the cluster is known to do."""
    cluster.capabilities = Capabilities(served=frozenset(served), **more).to_json()
    cluster.save()


def submit_wizard(
    cast: Cast,
    framework: Framework,
    setup: Mapping[str, str],
    master: Mapping[str, Any] | None = None,
    **start: str,
) -> Spec:
    """What is submitted when somebody walks through with these answers."""
    walk = Walk(cast).send_start(framework=framework.value, **start)
    assert walk.step == "setup", walk.text
    walk.send_setup(environment_choice="custom", image="team/train", **setup)
    if walk.step == "master":
        walk.send(**(master or {}))
    assert walk.step == "review", walk.text
    walk.send()
    return decode_spec(Workload.objects.get().spec)


def test_tensorflow_has_a_chief_and_parameter_servers(cast: Cast) -> None:
    spec = submit_wizard(
        cast,
        Framework.TENSORFLOW,
        {"parameter_servers": "2"},
        {"differs": ["cpu_request"], "cpu_request": "2"},
    )
    assert (spec.framework, spec.parameter_servers, spec.pod_count) == (Framework.TENSORFLOW, 2, 5)
    assert spec.master == MasterChanges(cpu_request="2")


def test_mpi_has_its_own_fields_and_always_a_launcher(cast: Cast) -> None:
    typed = {"slots": "4", "launcher": "WaitForWorkersReady", "ssh_path": "/home/mpi/.ssh"}
    spec = submit_wizard(cast, Framework.MPI, typed, configuration="workers-only")
    assert spec.mpi == MpiSettings(4, LauncherCreation.WAIT_FOR_WORKERS, "/home/mpi/.ssh")
    assert spec.has_master


@pytest.mark.parametrize(("framework", "pods"), [(Framework.JAX, 2), (Framework.XGBOOST, 3)])
def test_a_framework_of_one_configuration_has_that_whatever_the_hidden_card_says(
    cast: Cast, framework: Framework, pods: int
) -> None:
    other = next(each for each in Configuration if each is not framework.configurations[0])
    assert submit_wizard(cast, framework, {}, configuration=other.value).pod_count == pods


def test_elastic_pytorch_may_bound_its_restarts(cast: Cast) -> None:
    assert submit_wizard(
        cast, Framework.PYTORCH, {"min_pods": "1", "max_restarts": "7"}
    ).elastic == ElasticSettings(1, 3, 7)


def test_the_master_may_be_on_other_nodes(cast: Cast) -> None:
    master = {
        "differs": ["node_pools", "topology"],
        "node_pools": "cheap",
        "topology_key": "",
        "topology_required": "",
    }
    typed = {"node_pools": "fast, slow", "topology_key": "rack", "topology_required": "required"}
    spec = submit_wizard(cast, Framework.PYTORCH, typed, master)
    assert spec.setup.node_pools == ("fast", "slow")
    assert spec.master == MasterChanges(node_pools=("cheap",), topology=None)


@pytest.mark.parametrize(
    ("framework", "word"),
    [(Framework.PYTORCH, "Master"), (Framework.TENSORFLOW, "Chief"), (Framework.MPI, "Launcher")],
)
def test_the_master_is_called_as_the_framework_calls_it(
    cast: Cast, framework: Framework, word: str
) -> None:
    walk = Walk(cast).send_start(framework=framework.value)
    assert re.search(rf"steps__number[^<]*>3</span>{word}", walk.text)
    walk.send_setup(environment_choice="custom", image="x")
    assert f"The {word.lower()} has the workers' setup." in walk.text
    walk.send()
    assert f"<dt>{word}</dt>" in walk.text
    assert f"Workers &amp; {word.lower()}" in walk.text


def test_paddle_says_that_its_pods_are_no_gang(cast: Cast) -> None:
    assert re.search(r'mw-of--Paddle">[^<]*one by one and not as a gang', Walk(cast).text)


def test_typed_values_wait_for_the_framework_to_be_chosen_again(cast: Cast) -> None:
    walk = Walk(cast).send_start(framework="MPI").send(slots="8", workers="5")
    walk.see("start").send(framework="TF").send_setup(workers="5").see("start").send(
        framework="MPI"
    )
    assert re.search(r'name="slots"[^>]* value="8"|value="8"[^>]* name="slots"', walk.text)
    walk.see("start").send(architecture="Standard").send(go="here").see("start").send(
        architecture="Distributed"
    )
    assert re.search(r'name="workers" value="5"', walk.text)


def test_each_framework_has_an_environment_to_try(cast: Cast) -> None:
    walk = Walk(cast)
    for framework, name in {
        "TF": "tensorflow-workers",
        "XGBoost": "xgboost-collective",
        "JAX": "jax-psum",
        "MPI": "mpi-allreduce",
    }.items():
        text = walk.see("start").send_start(framework=framework).text
        assert name in text
        assert "pytorch-ddp" not in text


def test_assets_know_the_frameworks_of_workloads() -> None:
    assert {each.value: each.label for each in Framework} == FRAMEWORKS


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ({"framework": "TF"}, "With “Writable by rank 0 only” the chief writes"),
        (
            {"framework": "PyTorch", "configuration": "workers-only"},
            "With “Writable by rank 0 only” the first worker writes",
        ),
        ({"framework": "JAX"}, "cannot be had with JAX"),
        ({"framework": "MPI"}, "cannot be had with MPI"),
    ],
)
def test_the_step_says_who_writes_where_only_rank_0_may(
    cast: Cast, start: dict[str, str], words: str
) -> None:
    assert words in Walk(cast).send_start(**start).text


def test_the_cards_have_every_clusters_answer(cast: Cast) -> None:
    other = Cluster.objects.create(name="there", server="https://127.0.0.1:2")
    Project.objects.create(
        name="team-c", department=cast.research, cluster=other, namespace="c", queue="c"
    )
    can(cast.cluster, PYTORCH)
    can(other, "kubeflow.org/v2beta1/mpijobs")
    text = Walk(cast, "alice").text
    why = (
        "The cluster does not serve MPIJob objects. Ask its administrator to install the MPI "
        "operator (v2beta1)."
    )
    assert f'<span data-why-on="{cast.cluster.pk}">{why}</span>' in text
    assert re.search(rf'data-why-on="{other.pk}" hidden>[^<]* PyTorchJob', text)
    both = f"{cast.cluster.pk} {other.pk}"
    assert re.search(rf'data-why-on="{both}">The cluster does not serve TFJob', text)
    assert re.search(r'name="framework" value="TF"[^>]* disabled', text)
    assert not re.search(r'name="framework" value="PyTorch"[^>]* disabled', text)


def test_without_scripts_a_button_shows_what_the_chosen_cluster_runs(cast: Cast) -> None:
    other = Cluster.objects.create(name="there", server="https://127.0.0.1:2")
    project = Project.objects.create(
        name="team-c", department=cast.research, cluster=other, namespace="c", queue="c"
    )
    can(other, PYTORCH)
    walk = Walk(cast, "alice").send(
        cluster=str(other.pk), project=str(project.pk), framework="JAX", name="kept", go="here"
    )
    assert walk.step == "start"
    assert 'value="kept"' in walk.text
    assert re.search(r'name="framework" value="TF"[^>]* disabled', walk.text)
    assert re.search(r'name="framework" value="JAX"[^>]* checked', walk.text), (
        "what was chosen is not lost"
    )


def test_a_framework_that_the_cluster_does_not_run_is_refused_beside_its_cards(cast: Cast) -> None:
    can(cast.cluster, PYTORCH)
    walk = Walk(cast).send_start(framework="JAX")
    assert walk.page.status_code == 422
    assert re.search(r'id="framework_error">.*does not serve JAXJob objects', walk.text)


def test_a_runtime_of_trainer_v2_is_as_good(cast: Cast) -> None:
    trainer = TrainingRuntime("torch-distributed", "torch")
    can(
        cast.cluster,
        "trainer.kubeflow.org/v1alpha1/trainjobs",
        runtimes=(trainer,),
        trainjob_fields=frozenset(("runtimePatches",)),
    )
    walk = (
        Walk(cast)
        .send_start()
        .send(
            environment_choice="custom",
            image="x",
            compute_choice="custom",
            gpu_devices="1",
            workers="2",
        )
        .send()
    )
    assert "It becomes one <strong>TrainJob</strong> (trainer.kubeflow.org/v1alpha1)" in walk.text
    assert "kind: TrainJob" in walk.text


def test_what_a_trainjob_cannot_say_is_refused_at_its_step(cast: Cast) -> None:
    trainer = TrainingRuntime("torch-distributed", "torch")
    can(
        cast.cluster,
        "trainer.kubeflow.org/v1alpha1/trainjobs",
        runtimes=(trainer,),
        trainjob_fields=frozenset(("runtimePatches",)),
    )
    walk = (
        Walk(cast)
        .send_start()
        .send(
            environment_choice="custom", image="x", compute_choice="custom", restart_policy="Never"
        )
    )
    assert re.search(r'id="id_restart_policy_error">.*cannot be said of a TrainJob', walk.text)


@pytest.mark.parametrize(
    ("served", "sharing", "why"),
    [
        ((PYTORCH,), None, "the cluster does not have it"),
        ((PYTORCH, *KAI), False, "has GPU sharing switched off"),
    ],
)
def test_a_part_of_a_gpu_is_refused_where_it_cannot_be_had(
    cast: Cast, served: tuple[str, ...], sharing: bool | None, why: str
) -> None:
    can(cast.cluster, *served, gpu_sharing=sharing)
    walk = Walk(cast).send_start().send_setup()
    assert walk.page.status_code == 422
    assert re.search(rf'id="compute_choice_error">.*{why}', walk.text)
    own = {
        "compute_choice": "custom",
        "gpu_devices": "1",
        "gpu_share": "memory",
        "gpu_memory": "8Gi",
    }
    walk.send_setup(**own)
    assert re.search(rf'id="id_gpu_memory_error">.*{why}', walk.text)
    walk.send_setup(**own | {"gpu_share": "whole"})
    assert walk.step == "master"
    walk.send(differs=["gpus"], gpu_devices="1", gpu_share="portion", gpu_percent="10")
    assert re.search(rf'id="id_gpu_percent_error">.*{why}', walk.text)
    assert not Workload.objects.exists()


def test_the_review_tells_what_the_cluster_has_stopped_doing(cast: Cast) -> None:
    walk = Walk(cast).send_start().send_setup().send()
    can(cast.cluster, PYTORCH)
    walk.see("review")
    assert walk.step == "review"
    assert "The cluster cannot run this as it is." in walk.text
    assert "only the KAI scheduler shares devices" in walk.text
    walk.send()
    assert walk.page.status_code == 422
    assert re.search(r'id="compute_choice_error">.*only the KAI', walk.text)


def test_a_framework_that_went_away_leaves_no_objects_to_show(cast: Cast) -> None:
    walk = Walk(cast).send_start().send_setup().send()
    can(cast.cluster, "trainer.kubeflow.org/v1alpha1/trainjobs")
    walk.see("review")
    assert "without a runtime for PyTorch" in walk.text
    assert walk.send().page.status_code == 422


def test_the_review_says_as_what_it_runs_and_what_is_not_checked(cast: Cast) -> None:
    walk = (
        Walk(cast)
        .send_start(framework="TF")
        .send_setup(environment_choice=key_of("tensorflow-workers"), parameter_servers="1")
        .send()
    )
    assert "It becomes one <strong>TFJob</strong> (kubeflow.org/v1)" in walk.text
    assert "<strong>4 pods</strong>" in walk.text
    assert "<dt>Parameter servers</dt>" in walk.text
    assert "is not checked: it has not told yet what it can do" in walk.text
    can(cast.cluster, PYTORCH, "kubeflow.org/v1/tfjobs", *KAI, gpu_sharing=True)
    assert "is not checked" not in walk.see("review").text.replace("The nodes are not checked", "")


def test_the_review_has_all_objects_with_the_job_last(cast: Cast) -> None:
    walk = (
        Walk(cast)
        .send_start()
        .send_setup(volumes__0__kind="newPvc", volumes__0__path="/out", volumes__0__size="1Gi")
        .send()
    )
    assert walk.text.index("kind: PersistentVolumeClaim") < walk.text.index("kind: PyTorchJob")


def test_a_disabled_cluster_says_so_and_cannot_be_chosen(cast: Cast) -> None:
    other = Cluster.objects.create(name="there", server="https://127.0.0.1:2")
    project = Project.objects.create(
        name="team-c", department=cast.research, cluster=other, namespace="c", queue="c"
    )
    Cluster.objects.filter(pk=cast.cluster.pk).update(is_enabled=False)
    walk = Walk(cast, "alice")
    assert f'<option value="{cast.cluster.pk}" disabled>here (disabled)</option>' in walk.text
    assert f'<option value="{cast.team_a.pk}" disabled>' in walk.text
    assert f'<option value="{project.pk}" selected>' in walk.text
    walk.send_start(cluster=str(cast.cluster.pk), project=str(cast.team_a.pk))
    assert walk.page.status_code == 422
    assert re.search(
        r'id="id_cluster_error">.*The cluster here is disabled: nothing is launched there',
        walk.text,
    )


def test_a_cluster_disabled_meanwhile_opens_the_first_step(cast: Cast) -> None:
    walk = Walk(cast).send_start().send_setup().send()
    Cluster.objects.update(is_enabled=False)
    walk.send()
    assert walk.page.status_code == 422
    assert "is disabled: nothing is launched there" in walk.text
    assert not Workload.objects.exists()


def test_the_first_step_asks_as_much_with_many_clusters(cast: Cast) -> None:
    walk, counts = Walk(cast, "alice"), []
    for number in range(2):
        with CaptureQueriesContext(connection) as captured:
            walk.see("start")
        counts.append(len(captured))
        for each in range(20):
            name = f"c{number}-{each}"
            cluster = Cluster.objects.create(name=name, server="https://127.0.0.1:2")
            Project.objects.create(
                name=name, department=cast.research, cluster=cluster, namespace=name, queue=name
            )
    assert counts[0] == counts[1]


def test_a_draft_of_the_last_release_still_opens_and_is_launched(cast: Cast) -> None:
    walk = Walk(cast)
    start = {
        "cluster": cast.cluster.pk,
        "project": cast.team_a.pk,
        "architecture": "Distributed",
        "framework": "PyTorch",
    }
    start |= {"configuration": "workers-and-master", "template": "scratch", "name": "older"}
    setup = {
        "environment_choice": "custom",
        "image": "team/x",
        "compute_choice": "custom",
        "gpu_devices": "0",
        "gpu_share": "whole",
    }
    setup |= {
        "workers": "2",
        "min_pods": "1",
        "max_pods": "",
        "preemptibility": "preemptible",
        "backoff_limit": "6",
    }
    setup |= {
        "volumes-0-kind": "nfs",
        "volumes-0-server": "nfs",
        "volumes-0-source": "/x",
        "volumes-0-path": "/data",
    }
    data: dict[str, dict[str, Any]] = {
        "start": start,
        "setup": setup,
        "master": {"differs": "node_type", "node_type": "cpu"},
    }
    Draft.objects.update(
        data={
            step: {name: [str(value)] for name, value in typed.items()}
            for step, typed in data.items()
        }
    )
    walk.see("review")
    assert walk.step == "review"
    walk.send()
    spec = decode_spec(Workload.objects.get().spec)
    assert (spec.name, spec.elastic, spec.master) == (
        "older",
        ElasticSettings(1, 3),
        MasterChanges(node_type="cpu"),
    )
    assert spec.setup.volumes[0].path == "/data"
