"""The node selector, from what is typed or sent to the pod and back."""

from dataclasses import replace

import pytest

from clusters.models import Node
from environments.models import Policy
from tests.api.submission_bodies import HERE, parse_distributed
from tests.cast import Cast, a_spec
from tests.workloads.submissions import train1
from tests.workloads.templated import fill_wizard
from tests.workloads.wizarding import Walk, form_of
from workloads.fit import Verdict
from workloads.judgement import judge_submission
from workloads.manifests import build_objects
from workloads.models import Workload
from workloads.rest.writing import build_rest_body
from workloads.specs import MasterChanges, Pair, decode_spec, find_problems
from workloads.views.describing import describe_spec

pytestmark = pytest.mark.django_db

DISK = (Pair("disk", "ssd"),)


def test_it_is_the_node_selector_of_the_pods_beside_the_node_type() -> None:
    setup = replace(train1().setup, node_selector=DISK, node_type="dgx")
    spec = train1(setup=setup, master=MasterChanges(node_selector=()))
    assert find_problems(spec) == ()
    replicas = build_objects(spec, workload_id="w")[-1]["spec"]["pytorchReplicaSpecs"]
    pods = {role: replica["template"]["spec"] for role, replica in replicas.items()}
    assert pods["Worker"]["nodeSelector"] == {"disk": "ssd", "run.ai/type": "dgx"}
    assert pods["Master"]["nodeSelector"] == {"run.ai/type": "dgx"}


@pytest.mark.parametrize("key", ["gpu-memory", "job-name", "kubernetes.io/hostname"])
def test_any_other_label_of_nodes_can_be_asked_for(key: str) -> None:
    spec = train1(setup=replace(train1().setup, node_selector=(Pair(key, "x"),)))
    assert find_problems(spec) == ()


@pytest.mark.parametrize("key", ["run.ai/type", "kai.scheduler/node-pool", "two words", ""])
def test_keys_with_a_field_of_their_own_and_wrong_ones_are_refused(key: str) -> None:
    spec = train1(setup=replace(train1().setup, node_selector=(Pair(key, "x"),)))
    assert [problem.field for problem in find_problems(spec)] == ["setup.node_selector.0.key"]


def test_it_is_sent_read_back_and_described() -> None:
    submission = parse_distributed(nodeSelector=[{"name": "disk", "value": "ssd"}])
    spec = submission.build_spec(HERE)
    assert spec.setup.node_selector == DISK
    body = build_rest_body(spec, project_id="1", cluster_id="c")
    assert body["spec"]["nodeSelector"] == [{"name": "disk", "value": "ssd"}]
    wrong = parse_distributed(nodeSelector=[{"name": "disk", "value": "a b"}]).places
    assert wrong.find_place("setup.node_selector.0.value") == "spec.nodeSelector.0.value"
    facts = {fact.name: fact.values for part in describe_spec(spec) for fact in part.facts}
    assert facts["Node selector"] == ("disk=ssd",)


def test_it_is_typed_copied_and_changed_for_the_master(cast: Cast) -> None:
    walk = Walk(cast).send_start()
    walk.send_setup(
        image="team/mine", **{"node_selector-0-key": "disk", "node_selector-0-value": "ssd"}
    )
    walk.send(differs=["node_selector"], **{"node_selector-0-value": "hdd"})
    assert walk.step == "review", walk.text
    assert "<dt>Node selector</dt><dd>disk=ssd</dd>" in walk.text
    walk.send()
    spec = decode_spec(Workload.objects.get().spec)
    assert spec.setup.node_selector == DISK
    assert spec.master == MasterChanges(node_selector=(Pair("disk", "hdd"),))
    copied = Walk(cast, query=f"?copy={Workload.objects.get().pk}").see("setup")
    assert form_of(copied.page)["node_selector-0-key"] == ["disk"]


def test_a_wrong_one_is_shown_in_its_row(cast: Cast) -> None:
    walk = fill_wizard(cast, **{"node_selector-0-key": "run.ai/type"})
    assert walk.step == "setup"
    assert "The name of node label 1 has a field of its own: the node type" in walk.text


def test_policies_preset_and_require_it(cast: Cast) -> None:
    Policy.objects.create(name="ssd", rules={"node_selector": {"default": {"disk": "ssd"}}})
    judged = judge_submission(a_spec(cast.team_a), cast.team_a)
    assert judged.spec.setup.node_selector == DISK


def test_the_fit_counts_nodes_with_the_labels_only(cast: Cast) -> None:
    node = {"cluster": cast.cluster, "is_ready": True, "gpus": 8, "cpu": 64, "memory": 1 << 40}
    Node.objects.create(name="n1", labels={"disk": "hdd"}, **node)
    spec = a_spec(cast.team_a)
    spec = replace(spec, setup=replace(spec.setup, node_selector=DISK))
    assert judge_submission(spec, cast.team_a).fit.nodes.verdict is Verdict.WARNS
    Node.objects.create(name="n2", labels={"disk": "ssd"}, **node)
    assert judge_submission(spec, cast.team_a).fit.nodes.verdict is Verdict.FITS
