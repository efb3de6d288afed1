"""What Muster does in a cluster, what its role lets it do, and what it says that it needs are the
same, verb by verb.
"""

import json
import os
import secrets
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from clusters import connections, tasks
from clusters.capabilities import TrainingRuntime
from clusters.job_kinds import JOB_KINDS, TRAINJOBS
from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.kube import calls
from clusters.kube.access import parse_kubeconfig
from clusters.kube.client import Client
from clusters.kube.resources import NAMESPACES
from clusters.models import Cluster
from clusters.permission_review import PermissionReview
from clusters.permissions import NEEDED
from projects.models import Project
from scripts.cluster_role import DOCUMENT, document
from tests.cast import Cast, a_spec, make_cast
from tests.cluster import LocalKube
from tests.clusters.provisioning import provision_now, remove_now
from tests.conformance.api import eventually
from tests.credentials import a_registry
from tests.deploy.documented import blocks
from tests.deploy.recording import Recorder, Right, build_right
from tests.deploy.rendering import KUSTOMIZE, needs_kubectl, of_kind, render_kustomization
from tests.workloads.acting import QUICK, SLEEP, Acting
from tests.workloads.conftest import requested_steps
from tests.workloads.table_rows import a_pod, a_workload
from workloads import journal, logbook
from workloads import tasks as steps
from workloads.following import Follower
from workloads.models import DataPreparation, Log, Workload
from workloads.specs import (
    CleanPodPolicy,
    Configuration,
    DataDelivery,
    ElasticSettings,
    Environment,
    Framework,
    Lifecycle,
    NewClaim,
    Setup,
    list_options,
)
from workloads.states import Status
from workloads.tasks.measuring import measure

__all__ = ["requested_steps"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]

GIVEN = os.environ.get("MUSTER_TEST_KUBECONFIG", "")
SAID = {build_right(need.resource, need.verb, need.subresource) for need in NEEDED}


def test_the_role_is_made_from_what_is_said_to_be_needed() -> None:
    assert DOCUMENT.read_text() == document(), "run: python scripts/cluster_role.py"


@needs_kubectl
@pytest.mark.parametrize("place", ["cluster", "overlays/example", "overlays/remote-cluster"])
def test_the_role_grants_what_is_said_to_be_needed_and_nothing_else(place: str) -> None:
    objects = render_kustomization(place)
    [role] = of_kind(objects, "ClusterRole").values()
    rules = role["rules"]
    assert {key for rule in rules for key in rule} == {"apiGroups", "resources", "verbs"}
    granted = [
        Right(*each)
        for rule in rules
        for each in product(rule["apiGroups"], rule["resources"], rule["verbs"])
    ]
    assert len(granted) == len(set(granted))
    assert set(granted) == SAID
    assert not [right for right in granted if "*" in right]


@needs_kubectl
def test_the_role_is_given_to_the_account_that_the_pods_run_as_and_to_nobody_else() -> None:
    objects = render_kustomization("overlays/example")
    [binding] = of_kind(objects, "ClusterRoleBinding").values()
    assert binding["roleRef"]["name"] in of_kind(objects, "ClusterRole")
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "muster", "namespace": "muster"}
    ]
    assert of_kind(objects, "ServiceAccount").keys() == {"muster"}
    assert not of_kind(objects, "Role") | of_kind(objects, "RoleBinding")


@pytest.fixture
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    """A new cluster on which nothing was made yet."""
    server = LocalKube(tmp_path_factory.mktemp("rights") / "kube", "--gpus", "8")
    with server, Recorder(parse_kubeconfig(server.kubeconfig.read_text())) as recorder:
        yield recorder
        connections.close_all()


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Recorder]:
    """The cluster of MUSTER_TEST_KUBECONFIG as the service account reaches it that
    docs/production.md makes there.
    """
    environment = {**os.environ, "KUBECONFIG": GIVEN}
    if (
        subprocess.run(
            ["kubectl", "get", "namespace", "muster"], env=environment, capture_output=True
        ).returncode
        == 0
    ):
        pytest.skip(
            "the cluster has a namespace muster already, which is not this test's to remove"
        )
    overlay = str(KUSTOMIZE / "overlays" / "remote-cluster")
    subprocess.run(
        ["kubectl", "apply", "-k", overlay], env=environment, check=True, capture_output=True
    )
    waiting = [
        "kubectl",
        "-n",
        "muster",
        "wait",
        "--for=jsonpath={.data.token}",
        "--timeout=60s",
        "secret/muster-token",
    ]
    subprocess.run(waiting, env=environment, check=True, capture_output=True)
    [making] = [each for each in blocks("## Adding a cluster") if "muster.kubeconfig <<EOF" in each]
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", making], cwd=tmp_path, env=environment, check=True
    )
    with Recorder(
        parse_kubeconfig((tmp_path / "muster.kubeconfig").read_text()), trainer=False
    ) as recorder:
        yield recorder
        connections.close_all()
    # The priority classes stay: others may use them by now.
    objects = ["clusterrolebinding/muster", "clusterrole/muster", "namespace/muster"]
    subprocess.run(
        ["kubectl", "delete", "--timeout=90s", *objects],
        env=environment,
        check=True,
        capture_output=True,
    )


@pytest.mark.skipif(not GIVEN, reason="no real cluster is given")
def test_the_role_is_enough_on_a_real_cluster(
    real: Recorder, requested_steps: list[tuple[str, str]]
) -> None:
    cast = make_recorded_cast(real)
    for project in (cast.team_a, cast.team_b):
        project.namespace = f"{project.namespace}-{secrets.token_hex(3)}"
        project.queue = project.namespace
        project.save()
    acting = Acting(cast, connections.get_client(cast.cluster))
    tasks.check(str(cast.cluster.pk))
    with Client(parse_kubeconfig(Path(GIVEN).read_text())) as somebody:
        a_projects_life(acting, somebody)
    tasks.check(str(cast.cluster.pk))
    tasks.heartbeat(str(cast.cluster.pk))
    measure_a_pod(cast)
    acting.project.refresh_from_db()
    for framework in Framework:
        a_workloads_life(acting, framework)
    acting.poll()
    for project in (cast.team_a, cast.team_b):
        the_end_of_a_project(project)
    assert real.refused == []
    assert real.used <= SAID
    cluster = Cluster.objects.get(pk=cast.cluster.pk)
    assert [
        f"{need.verb} {need.kind}"
        for need in PermissionReview.from_json(cluster.permissions).refused_needs
    ] == []


def make_recorded_cast(recorder: Recorder) -> Cast:
    """The cast, on the cluster that is recorded."""
    cast = make_cast(recorder.kubeconfig())
    cast.cluster.is_local = True
    cast.cluster.save()
    return cast


@pytest.fixture
def acting(recorder: Recorder, requested_steps: list[tuple[str, str]]) -> Acting:
    """The worker's steps, seen by the recorder."""
    cast = make_recorded_cast(recorder)
    return Acting(cast, connections.get_client(cast.cluster))


def test_everything_that_is_said_to_be_needed_is_used_and_nothing_else(
    recorder: Recorder, acting: Acting, settings: Any
) -> None:
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"grow_after_seconds": 0})
    cast, cluster = acting.cast, str(acting.cast.cluster.pk)
    tasks.check(cluster)
    with Client(recorder.upstream) as somebody:
        a_projects_life(acting, somebody)
    tasks.check(cluster)
    tasks.heartbeat(cluster)
    measure_a_pod(cast)
    stop = threading.Event()
    processes = [
        threading.Thread(target=each.run, args=(stop,))
        for each in (Follower("rights"), logbook.Capturer("rights"))
    ]
    for process in processes:
        process.start()
    try:
        for framework in Framework:
            a_workloads_life(acting, framework)
        a_workload_that_tidies_up(acting)
        a_workload_without_its_job(acting)
        a_workload_that_grows(acting)
        for framework in (None, *Framework):
            if "data_delivery" in list_options(framework):
                a_workload_that_waits_for_data(acting, framework)
        followed = {right for right in SAID if right.verb == "watch"}
        eventually(lambda: not followed - recorder.used)
    finally:
        stop.set()
        for process in processes:
            process.join()
    a_trainjobs_life(acting)
    for project in (cast.team_a, cast.team_b):
        the_end_of_a_project(project)
    assert recorder.used - SAID == set(), "not in clusters/permissions.py"
    assert SAID - recorder.used == set(), "in clusters/permissions.py, and never asked for here"


def measure_a_pod(cast: Cast) -> None:
    """Measure while a pod runs: without any, those of the cluster are not asked for."""
    workload = a_workload(cast.team_a, "measured")
    a_pod(workload)
    measure(str(cast.cluster.pk))
    workload.delete()


def a_projects_life(acting: Acting, somebody: Client) -> None:
    """Made, then given a password for a registry, which changes, as its quota does, and somebody
    meddles with it.
    """
    cast = acting.cast
    team = provision_now(cast.team_b)
    registry = a_registry(team)
    provision_now(team)
    registry.secret = json.dumps({"password": "another"})
    registry.save()
    team.gpu_quota = 3
    team.save()
    calls.patch(
        somebody,
        NAMESPACES,
        team.namespace,
        {"metadata": {"labels": {"muster.dev/installation": None}}},
        manager="somebody",
    )
    provision_now(team)
    registry.delete()
    provision_now(team)
    provision_now(cast.team_a)


def a_workloads_life(acting: Acting, framework: Framework) -> None:
    """Launched with a volume of its own, launched once more by a step that comes late, looked at,
    and deleted.
    """
    only = {"configuration": Configuration.WORKERS_ONLY} if framework is Framework.JAX else {}
    setup = Setup(
        environment=Environment(image="any", command=SLEEP),
        volumes=(NewClaim(path="/data", size="1Gi"),),
    )
    spec = a_spec(
        acting.project,
        f"of-{framework.value.lower()}",
        framework=framework,
        setup=setup,
        workers=1,
        **only,
    )
    launched_twice_and_deleted(
        acting, journal.create_workload(spec, project=acting.project, user=acting.cast.bob)
    )


def a_workload_that_waits_for_data(acting: Acting, framework: Framework | None) -> None:
    """Launched with data workers, launched once more, resumed when they are ready, deleted."""
    name = "of-standard" if framework is None else f"of-{framework.value.lower()}"
    options: dict[str, Any] = {"data_delivery": DataDelivery(1, 10)}
    workload = (
        acting.submit(f"{name}-data", **options)
        if framework is None
        else acting.submit_distributed(f"{name}-data", framework=framework, **options)
    )
    launched_twice_and_deleted(acting, workload, is_resumed=True)


def a_trainjobs_life(acting: Acting) -> None:
    cluster = Cluster.objects.get(pk=acting.cast.cluster.pk)
    can = replace(
        cluster.can,
        served=frozenset(
            each for each in cluster.can.served if not each.startswith("kubeflow.org/")
        ),
    )
    fields = frozenset(("runtimeRef", "trainer", "runtimePatches"))
    can = replace(
        can,
        runtimes=(TrainingRuntime("torch-distributed", "torch", "kai-scheduler"),),
        trainjob_fields=fields,
    )
    cluster.capabilities = can.to_json()
    cluster.save()
    acting.project.refresh_from_db()
    workload = acting.submit_distributed("of-trainer", data_delivery=DataDelivery(1, 10))
    assert JOB_KINDS[workload.job_kind] == TRAINJOBS
    launched_twice_and_deleted(acting, workload, is_resumed=True)


def launched_twice_and_deleted(
    acting: Acting, workload: Workload, *, is_resumed: bool = False
) -> None:
    steps.launch(str(workload.pk))
    workload.refresh_from_db()
    assert workload.job_uid, workload.reason
    steps.reconcile(str(workload.pk))
    Workload.objects.filter(pk=workload.pk).update(job=None, job_uid="", status=Status.CREATING)
    steps.launch(str(workload.pk))
    if is_resumed:
        steps.reconcile(str(workload.pk))
        preparations = DataPreparation.objects.filter(workload=workload)
        assert preparations.update(ready_at=timezone.now()) == 1
        steps.resume(str(workload.pk))
        assert preparations.get().resumed_at is not None
    delete_workload(acting, workload)


def delete_workload(acting: Acting, workload: Workload) -> None:
    journal.request_deletion(workload.pk, None)
    acting.repeat(steps.remove, workload, lambda: workload.released_at)


def a_workload_that_tidies_up(acting: Acting) -> None:
    workload = acting.submit(
        "tidies", command=QUICK, lifecycle=Lifecycle(clean_pod_policy=CleanPodPolicy.ALL)
    )
    steps.launch(str(workload.pk))
    steps.reconcile(str(workload.pk))
    acting.until(workload, Status.COMPLETED)
    # Read to its end before the pod goes.
    eventually(
        lambda: Log.objects.filter(pod__workload=workload, state=Log.State.COMPLETE).exists()
    )
    acting.logs_are_kept(workload)
    steps.tidy(str(workload.pk))
    delete_workload(acting, workload)


def a_workload_without_its_job(acting: Acting) -> None:
    """Its pods are left: a cluster with many removes them one by one after their job."""
    workload = acting.submit_distributed("left", command=SLEEP)
    steps.launch(str(workload.pk))
    acting.until(workload, Status.RUNNING)
    calls.delete(
        acting.client,
        PYTORCHJOBS,
        workload.name,
        namespace=acting.project.namespace,
        propagation="Orphan",
    )
    delete_workload(acting, workload)


def a_workload_that_grows(acting: Acting) -> None:
    workload = acting.submit_distributed(
        "grows",
        command=SLEEP,
        configuration=Configuration.WORKERS_ONLY,
        elastic=ElasticSettings(1, 2),
    )
    steps.launch(str(workload.pk))
    acting.until(workload, Status.RUNNING)
    cluster = str(acting.cast.cluster.pk)

    def has_grown() -> bool:
        tasks.heartbeat(cluster)
        steps.scale(cluster)
        workload.refresh_from_db()
        return workload.requested_pods == 2

    eventually(has_grown)
    delete_workload(acting, workload)


def the_end_of_a_project(project: Project) -> None:
    Project.objects.filter(pk=project.pk).update(deleted_at=timezone.now())
    assert remove_now(project).removed_at is not None
