"""GPUs in all, asked for on the page, over REST and in templates: the machines are worked out."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.models import Node, NodePool
from console.errors import Invalid, Noncompliant
from environments.models import ComputeResource, Policy
from tests.api.calling import Caller, a_body
from tests.cast import Cast, a_spec
from tests.workloads.test_policies_wizard import error_of
from tests.workloads.wizarding import Walk
from workloads import actions
from workloads.judgement import judge_submission
from workloads.models import Draft, Workload
from workloads.placement_rules import load_pools
from workloads.rest.submit_command import build_submit_command
from workloads.specs import (
    Compute,
    ElasticSettings,
    Environment,
    Framework,
    Gpus,
    MasterChanges,
    Setup,
    Spec,
    decode_spec,
    gpu_totals,
)
from workloads.workload_manifests import build_for_spec

pytestmark = pytest.mark.django_db
GI = 1 << 30
REST = "/workloads/distributed"


def add_nodes(cast: Cast, count: int = 2, gpus: int = 8, **more: Any) -> None:
    fields = {"cluster": cast.cluster, "is_ready": True, "gpus": gpus, "cpu": 64}
    fields |= {"memory": 64 * GI} | more
    for number in range(count):
        Node.objects.create(name=f"g{gpus}-{number}", **fields)


def asking(cast: Cast, total: int, gpus: Gpus | None = None, **more: Any) -> Spec:
    setup = Setup(Environment("x"), Compute(gpus or Gpus(), cpu_request="1", memory_request="1Gi"))
    return a_spec(cast.team_a, setup=setup, workers=1, total_gpus=total, **more)


def find_problems(spec: Spec, cast: Cast) -> list[tuple[str, str]]:
    judged = judge_submission(spec, cast.team_a)
    with pytest.raises(Invalid) as refused:
        judged.require_acceptable()
    return list(refused.value.problems)


def test_the_compute_resource_says_how_large_a_machine_is(cast: Cast) -> None:
    with CaptureQueriesContext(connection) as queries:
        judged = judge_submission(asking(cast, 16, Gpus(4)), cast.team_a)
    assert not any('clusters_node"' in each["sql"] for each in queries)
    assert (judged.spec.workers, judged.spec.setup.compute.gpus, judged.spec.machine_gpus) == (
        3,
        Gpus(4),
        None,
    )


def test_without_gpus_in_the_compute_resource_whole_nodes_count(cast: Cast) -> None:
    add_nodes(cast)
    judged = judge_submission(asking(cast, 16), cast.team_a)
    judged.require_acceptable()
    assert (judged.spec.workers, judged.spec.setup.compute.gpus) == (1, Gpus(8))
    assert judged.spec.totals.gpus == 16
    assert judged.fit.nodes.verdict == "success"


def test_only_nodes_that_may_take_the_pods_count(cast: Cast) -> None:
    add_nodes(cast, gpus=8, labels={"pool": "large"})
    add_nodes(cast, count=8, gpus=2, labels={"pool": "small"})
    NodePool.objects.create(
        cluster=cast.cluster, name="small", label_key="pool", label_value="small"
    )
    setup = Setup(Environment("x"), Compute(cpu_request="1"), node_pools=("small",))
    spec = a_spec(cast.team_a, setup=setup, workers=1, total_gpus=16)
    assert judge_submission(spec, cast.team_a).spec.workers == 7


def test_a_total_that_is_not_whole_is_refused_with_the_nearest_two(cast: Cast) -> None:
    add_nodes(cast)
    assert find_problems(asking(cast, 20), cast) == [
        (
            "total_gpus",
            "20 GPUs cannot be made of whole machines of 8 GPUs, a master and any number of "
            "workers. The nearest that can: 16 or 24.",
        )
    ]


def test_a_total_that_is_no_number_of_gpus_is_refused_once(cast: Cast) -> None:
    assert find_problems(asking(cast, 0, Gpus(1)), cast) == [
        ("total_gpus", "The number of GPUs in all must be a whole number from 1 to 1,000,000.")
    ]


def test_a_single_machine_is_the_masters(cast: Cast) -> None:
    add_nodes(cast)
    judged = judge_submission(asking(cast, 8), cast.team_a)
    judged.require_acceptable()
    assert (judged.spec.workers, judged.spec.master_setup.compute.gpus) == (0, Gpus(8))
    assert gpu_totals.describe_machines(judged.spec) == "8 GPUs = 1 machine × 8: one master"
    job = build_for_spec(judged.spec, cast.team_a, load_pools(cast.team_a))[-1]
    assert list(job["spec"]["pytorchReplicaSpecs"]) == ["Master"]


def test_where_a_master_needs_workers_it_says_how_to_do_without(cast: Cast) -> None:
    add_nodes(cast)
    lead = asking(cast, 8, framework=Framework.XGBOOST)
    ((_, text),) = find_problems(lead, cast)
    assert "a master and at least one worker" in text
    assert text.endswith("can: 16.")


def test_without_any_gpu_it_says_what_to_do(cast: Cast) -> None:
    ((field, text),) = find_problems(asking(cast, 8), cast)
    assert field == "total_gpus"
    assert "no node of cluster" in text
    assert "Choose a compute resource" in text


@pytest.mark.parametrize("total", [0, -1, 1_000_001, 10**15])
def test_absurd_totals_are_refused(cast: Cast, total: int) -> None:
    problems = find_problems(asking(cast, total, Gpus(1)), cast)
    assert ("total_gpus", "must be a whole number from 1 to 1,000,000.") in [
        (field, text.removeprefix("The number of GPUs in all ")) for field, text in problems
    ]


def test_memory_of_gpus_makes_no_total(cast: Cast) -> None:
    ((_, text),) = find_problems(asking(cast, 8, Gpus(1, memory="4Gi")), cast)
    assert "asked for by their memory" in text


def test_a_policy_bounds_the_total_however_it_is_asked_for(cast: Cast) -> None:
    Policy.objects.create(
        name="p", department=cast.research, rules={"total_gpus": {"max": 12, "min": 2}}
    )
    counted = a_spec(cast.team_a, setup=asking(cast, 1, Gpus(8)).setup, workers=1)
    for spec in (asking(cast, 16, Gpus(8)), counted):
        with pytest.raises(Noncompliant) as refused:
            judge_submission(spec, cast.team_a).require_acceptable()
        ((field, text, rule),) = refused.value.issues
        assert (field, rule) == ("total_gpus", "total_gpus.max")
        assert text.startswith("GPUs in all must be at most 12")
    judge_submission(asking(cast, 8, Gpus(4)), cast.team_a).require_acceptable()


def test_a_policy_bounds_what_an_elastic_workload_grows_to(cast: Cast) -> None:
    Policy.objects.create(name="p", department=cast.research, rules={"total_gpus": {"max": 24}})
    spec = asking(cast, 16, Gpus(8), elastic=ElasticSettings(1, 4))
    with pytest.raises(Noncompliant) as refused:
        judge_submission(spec, cast.team_a).require_acceptable()
    ((field, text, rule),) = refused.value.issues
    assert (field, rule) == ("elastic.max_pods", "total_gpus.max")
    assert text.startswith("Maximum of pods lets it grow to 32 GPUs, and there must be at most 24")
    fewer = asking(cast, 16, Gpus(8), elastic=ElasticSettings(1, 3))
    judge_submission(fewer, cast.team_a).require_acceptable()


def test_over_rest_the_workers_are_answered(cast: Cast) -> None:
    bob = Caller(cast.bob)
    body = a_body(cast, totalGpus=16, compute={"gpuDevicesRequest": 8})
    del body["spec"]["numWorkers"]
    answer = bob("POST", REST, body, 202)
    assert (answer["spec"]["totalGpus"], answer["spec"]["numWorkers"]) == (16, 1)
    workload = bob("GET", f"{REST}/{answer['workloadId']}")
    assert (workload["spec"]["totalGpus"], workload["spec"]["numWorkers"]) == (16, 1)


def test_over_rest_a_total_and_a_number_of_workers_exclude_each_other(cast: Cast) -> None:
    bob = Caller(cast.bob)
    answer = bob("POST", REST, a_body(cast, totalGpus=16), 400)
    assert "spec.totalGpus" in str(answer)
    assert "numWorkers" in str(answer)
    body = a_body(cast, totalGpus=16, minReplicas=2, compute={"gpuDevicesRequest": 8})
    del body["spec"]["numWorkers"]
    assert "maxReplicas" in str(bob("POST", REST, body, 400))


def test_over_rest_a_template_gives_way_to_the_other_count(cast: Cast) -> None:
    bob = Caller(cast.bob)
    spec = {
        "image": "team/mine:1",
        "distributedFramework": "PyTorch",
        "totalGpus": 16,
        "compute": {"gpuDevicesRequest": 8},
    }
    meta = {"name": "t", "description": "", "scope": "project", "projectId": cast.team_a.pk}
    made = bob("POST", "/workload-templates", {"meta": meta, "spec": spec}, 202)
    assert made["spec"]["totalGpus"] == 16
    assert "numWorkers" not in made["spec"]
    start = a_body(cast) | {"templateId": made["meta"]["id"]}
    for given, workers in (({}, 1), ({"numWorkers": 4}, 4), ({"totalGpus": 24}, 2)):
        name = f"w{workers}"
        answer = bob("POST", REST, start | {"name": name, "spec": given}, 202)
        assert answer["spec"]["numWorkers"] == workers
        assert answer["spec"].get("totalGpus") == (
            None if "numWorkers" in given else given.get("totalGpus", 16)
        )


def test_the_command_line_has_a_flag(cast: Cast) -> None:
    spec = judge_submission(asking(cast, 16, Gpus(8)), cast.team_a).spec
    command = build_submit_command(spec, "team-a")
    assert "--total-gpus 16" in command
    assert "--workers" not in command


def test_the_master_counts_with_its_own_gpus(cast: Cast) -> None:
    add_nodes(cast)
    spec = asking(cast, 17, master=MasterChanges(gpus=Gpus(1)))
    judged = judge_submission(spec, cast.team_a)
    judged.require_acceptable()
    assert (judged.spec.workers, judged.spec.totals.gpus) == (2, 17)


def test_an_elastic_workload_keeps_its_bounds(cast: Cast) -> None:
    spec = asking(cast, 16, Gpus(8), elastic=ElasticSettings(1, 4))
    judge_submission(spec, cast.team_a).require_acceptable()
    ((field, _),) = find_problems(asking(cast, 48, Gpus(8), elastic=ElasticSettings(1, 4)), cast)
    assert field == "elastic.max_pods"


def own_size(gpus: int) -> str:
    return str(ComputeResource.objects.create(name=f"g{gpus}", gpu_devices=gpus).pk)


def test_on_the_page_the_machines_are_drawn_and_submitted(cast: Cast) -> None:
    add_nodes(cast)
    walk = Walk(cast).send_start()
    assert 'name="total_gpus"' in walk.text
    walk.send_setup(compute_choice=own_size(8), total_gpus="20", workers="3")
    assert walk.page.status_code == 422
    assert error_of(walk.text, "total_gpus").endswith("The nearest that can: 16 or 24.")
    walk.send(total_gpus="16", go="here")
    assert "16 GPUs = 2 machines × 8: one master, one worker" in walk.text
    assert "The nodes have room for its 2 pods now." in walk.text
    assert len(re.findall('class="mg-machine"', walk.text)) == 2
    assert len(re.findall('class="mg-gpu"', walk.text)) == 16
    assert walk.send().step == "master"
    assert walk.send().step == "review"
    assert "16 GPUs = 2 machines × 8: one master, one worker" in walk.text
    walk.send()
    workload = Workload.objects.get()
    spec = decode_spec(workload.spec)
    assert (spec.workers, spec.total_gpus) == (1, 16)
    details = walk.client.get(f"/workloads/{workload.pk}/details").content.decode()
    assert "<dd>16 GPUs = 2 machines × 8: one master, one worker</dd>" in details


def test_on_the_page_the_picture_is_drawn_of_what_was_stored(cast: Cast) -> None:
    walk = Walk(cast).send_start()
    address = f"/workloads/new/{walk.draft.pk}/machines"
    assert walk.client.get(address).content.strip() == b""
    walk.send_setup(compute_choice=own_size(2), total_gpus="7", workers="", go="here")
    text = walk.client.get(address).content.decode()
    assert "7 GPUs cannot be made of whole pods of 2 GPUs" in text
    assert "6 or 8" in text


def test_a_copy_keeps_the_total_and_works_it_out_anew(cast: Cast) -> None:
    add_nodes(cast)
    key_none = str(ComputeResource.objects.create(name="no-gpu", gpu_devices=0).pk)
    walk = Walk(cast).send_start().send_setup(compute_choice=key_none, total_gpus="16")
    walk.send().send()
    workload = Workload.objects.get()
    assert decode_spec(workload.spec).machine_gpus == 8
    copy = Walk(cast, query=f"?copy={workload.pk}")
    Node.objects.all().delete()
    add_nodes(cast, count=4, gpus=4)
    copy.see("setup")
    draft = Draft.objects.get(pk=copy.draft.pk).data["setup"]
    assert (draft["total_gpus"], draft["compute_choice"]) == (["16"], [key_none])
    while copy.step != "review":
        copy.send()
    copy.send()
    again = decode_spec(Workload.objects.exclude(pk=workload.pk).get().spec)
    assert (again.total_gpus, again.workers, again.machine_gpus) == (16, 3, 4)
    assert gpu_totals.describe_machines(again).startswith("16 GPUs = 4 machines × 4")


def test_a_run_again_keeps_what_was_worked_out(cast: Cast) -> None:
    add_nodes(cast)
    workload = actions.submit(asking(cast, 16), project=cast.team_a, user=cast.bob)
    spec = decode_spec(workload.spec)
    assert (spec.total_gpus, spec.workers, spec.machine_gpus) == (16, 1, 8)
