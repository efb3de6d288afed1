"""The preemption delay, from what is typed or sent to what KAI reads."""

from dataclasses import replace

import pytest

from tests.api.submission_bodies import HERE, parse_distributed
from tests.cast import Cast
from tests.workloads.submissions import one_pod, train1
from tests.workloads.wizarding import Walk
from workloads.manifests import build_objects
from workloads.models import Workload
from workloads.rest.writing import build_rest_body
from workloads.specs import Lifecycle, Pair, Spec, decode_spec, find_problems
from workloads.views.describing import describe_spec

DELAY = "kai.scheduler/preemption-delay"


@pytest.mark.parametrize("spec", [train1(), one_pod()], ids=["distributed", "standard"])
def test_it_is_an_annotation_of_the_job_and_its_pods(spec: Spec) -> None:
    setup = replace(spec.setup, annotations=(Pair("note", "hello"),))
    spec = replace(spec, setup=setup, lifecycle=Lifecycle(preemption_delay=90))
    assert find_problems(spec) == ()
    job = build_objects(spec, workload_id="w")[-1]
    assert job["metadata"]["annotations"] == {"note": "hello", DELAY: "90s"}
    replicas = job["spec"].get("pytorchReplicaSpecs", {"": job["spec"]}).values()
    for replica in replicas:
        assert replica["template"]["metadata"]["annotations"][DELAY] == "90s"


def test_without_one_nothing_is_written() -> None:
    assert "annotations" not in build_objects(train1(), workload_id="w")[-1]["metadata"]


@pytest.mark.parametrize("seconds", [-1, 7 * 24 * 3600 + 1])
def test_a_delay_out_of_bounds_is_refused(seconds: int) -> None:
    spec = train1(lifecycle=Lifecycle(preemption_delay=seconds))
    assert [problem.field for problem in find_problems(spec)] == ["lifecycle.preemption_delay"]


def test_no_annotation_says_it_instead() -> None:
    annotation = (Pair(DELAY, "9999h"),)
    spec = train1(setup=replace(train1().setup, annotations=annotation))
    assert [problem.field for problem in find_problems(spec)] == ["setup.annotations.0.key"]


def test_it_is_sent_read_back_and_described() -> None:
    spec = parse_distributed(preemptionDelaySeconds=0).build_spec(HERE)
    assert spec.lifecycle.preemption_delay == 0
    body = build_rest_body(spec, project_id="1", cluster_id="c")
    assert body["spec"]["preemptionDelaySeconds"] == 0
    facts = {fact.name: fact.values for part in describe_spec(spec) for fact in part.facts}
    assert facts["Waits before others are evicted"] == ("0 s",)


@pytest.mark.django_db
def test_it_is_typed_under_general(cast: Cast) -> None:
    walk = Walk(cast).send_start().send_setup(image="team/mine", preemption_delay="60")
    walk.send()
    walk.send()
    assert decode_spec(Workload.objects.get().spec).lifecycle.preemption_delay == 60
