"""A job that Muster makes suspended has no pods, and has them once it is let go on: of each kind.

Of a given cluster the operators have to run (MUSTER_TEST_OPERATORS=1), save for batch Jobs.
"""

import os
import uuid

import pytest

from clusters.job_kinds import JOB_KINDS
from tests.conformance.api import MERGE, Api, Object, eventually
from tests.conformance.conftest import GIVEN
from workloads.kube_objects import find_true_condition
from workloads.manifests import build_objects, build_selector
from workloads.specs import (
    Architecture,
    Compute,
    Configuration,
    DataDelivery,
    Environment,
    Framework,
    Setup,
    Spec,
)
from workloads.tasks.preparing import build_resumption

PODS = "/api/v1/namespaces/{}/pods"
JOBS = ("", *Framework)


def build_held_job(namespace: str, framework: str, image: str, workload: str) -> Object:
    """Build the job of a workload of two pods at most, which waits for its data."""
    is_led = not framework or bool(Framework(framework).adapter.leader)
    spec = Spec(
        name="held",
        project="p",
        namespace=namespace,
        queue="p",
        setup=Setup(
            Environment(image, command=("sleep", "600")),
            Compute(cpu_request="0.05", memory_request="20M"),
        ),
        architecture=Architecture.DISTRIBUTED if framework else Architecture.STANDARD,
        framework=Framework(framework) if framework else None,
        configuration=Configuration.WORKERS_AND_MASTER if is_led else Configuration.WORKERS_ONLY,
        workers=1,
        data_delivery=DataDelivery(1, 10),
    )
    return build_objects(spec, workload_id=workload)[-1]


@pytest.mark.controllers
@pytest.mark.parametrize("framework", JOBS, ids=lambda name: name or "batch")
def test_a_held_job_makes_pods_only_when_it_is_let_go_on(
    api: Api, namespace: str, image: str, framework: str
) -> None:
    if framework and GIVEN and os.environ.get("MUSTER_TEST_OPERATORS") != "1":
        pytest.skip("the given cluster runs no operators (MUSTER_TEST_OPERATORS=1 says it does)")
    workload = str(uuid.uuid4())
    job = build_held_job(namespace, framework, image, workload)
    kind = JOB_KINDS[f"{job['apiVersion']}/{job['kind']}"]
    if api.get(kind.path(namespace)).status == 404:
        pytest.skip(f"the cluster does not serve {kind.plural}")
    path = kind.path(namespace, "held")

    def count_pods() -> int:
        selector = build_selector(workload)
        return len(api.get(PODS.format(namespace), labelSelector=selector).ok()["items"])

    made = api.post(kind.path(namespace), job).ok(201)
    eventually(lambda: find_true_condition(api.get(path).ok(), "Suspended"), within=180)
    assert count_pods() == 0
    api.patch(path, build_resumption(made), MERGE).expect_refusal(409, "Conflict")
    assert count_pods() == 0

    def resume() -> bool:
        # Its controller may write to it between the two: then it is read again.
        return api.patch(path, build_resumption(api.get(path).ok()), MERGE).status == 200

    eventually(resume, within=180)
    eventually(lambda: count_pods() > 0, within=180)
    eventually(lambda: not find_true_condition(api.get(path).ok(), "Suspended"), within=180)
    metadata = api.get(path).ok()["metadata"]
    assert metadata["annotations"]["muster.dev/waits-for-data"] == "false"
