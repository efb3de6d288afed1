"""Data workers, from what is typed or sent to what is checked, copied and described."""

import shlex
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from environments.models import Policy
from tests.api.submission_bodies import HERE, TUTORIAL, parse_distributed, refusal
from tests.cast import Cast, a_spec
from tests.workloads.policies import merge_policies_of, policy
from tests.workloads.submissions import one_pod, train1
from tests.workloads.templated import (
    fill_wizard,
    save_template,
    start_from_template,
    submit_and_decode,
)
from tests.workloads.wizarding import Walk, form_of
from workloads import actions, workload_manifests
from workloads.fit.demand import WorkloadDemand
from workloads.manifests import HIDDEN_KEY
from workloads.models import Workload
from workloads.policing import complete_spec, find_issues
from workloads.rest.submit_command import build_submit_command
from workloads.rest.writing import build_rest_body
from workloads.specs import (
    ClaimAccess,
    Compute,
    DataDelivery,
    EmptyDir,
    ExtendedResource,
    Framework,
    Gpus,
    NewClaim,
    Spec,
    decode_spec,
    find_problems,
)
from workloads.views.describing import describe_spec

SMALL = Compute(cpu_request="2", memory_request="4Gi")
FOUR = DataDelivery(4, 20_480, SMALL, "team/loader:1")
BODY: dict[str, Any] = {
    "workers": 4,
    "units": 20_480,
    "compute": {"cpuCoreRequest": 2.0, "cpuMemoryRequest": "4Gi"},
    "image": "team/loader:1",
}
TYPED = {
    "data_workers": "4",
    "data_units": "20480",
    "data_cpu_request": "2",
    "data_memory_request": "4Gi",
    "data_image": "team/loader:1",
}


def find_fields(spec: Spec) -> list[str]:
    return [problem.field for problem in find_problems(spec)]


@pytest.mark.parametrize(
    ("delivery", "field"),
    [
        (DataDelivery(0, 1), "data_delivery.workers"),
        (DataDelivery(9, 1), "data_delivery.workers"),
        (DataDelivery(1, -1), "data_delivery.units"),
        (DataDelivery(1, 1_000_000_001), "data_delivery.units"),
        (DataDelivery(1, 0, image="Not An Image"), "data_delivery.image"),
        (DataDelivery(1, 0, Compute(Gpus(1))), "data_delivery.compute"),
        (
            DataDelivery(1, 0, Compute(extended=(ExtendedResource("rdma/hca", "1"),))),
            "data_delivery.compute",
        ),
        (DataDelivery(1, 0, Compute(cpu_request="many")), "data_delivery.compute.cpu_request"),
        (
            DataDelivery(1, 0, Compute(memory_request="2Gi", memory_limit="1Gi")),
            "data_delivery.compute.memory_limit",
        ),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(delivery: DataDelivery, field: str) -> None:
    assert find_fields(train1(data_delivery=delivery)) == [field]


@pytest.mark.parametrize("units", [0, 1_000_000_000])
@pytest.mark.parametrize("workers", [1, 8])
def test_what_can_be_is_not_refused(workers: int, units: int) -> None:
    assert find_fields(train1(data_delivery=DataDelivery(workers, units))) == []


@pytest.mark.parametrize("framework", Framework)
def test_frameworks_whose_ranks_are_not_known_have_none(framework: Framework) -> None:
    spec = train1(
        framework=framework, configuration=framework.configurations[-1], data_delivery=FOUR
    )
    has_ranks = framework in (Framework.PYTORCH, Framework.XGBOOST, Framework.MPI)
    assert find_fields(spec) == ([] if has_ranks else ["data_delivery"])


def test_several_runs_are_not_one_training() -> None:
    assert find_fields(one_pod(data_delivery=FOUR)) == []
    assert find_fields(one_pod(data_delivery=FOUR, runs=2)) == ["data_delivery"]


def test_no_volume_hides_what_is_prepared() -> None:
    volumes = (EmptyDir(path="/./muster-delivery/"),)
    spec = train1(setup=replace(train1().setup, volumes=volumes))
    assert find_fields(spec) == []
    assert find_fields(replace(spec, data_delivery=FOUR)) == ["setup.volumes"]


def test_a_new_claim_of_one_node_would_keep_the_training_waiting() -> None:
    claims = (
        NewClaim(path="/a", size="1Gi"),
        NewClaim(path="/b", size="1Gi", modes=(ClaimAccess.MANY_WRITE,)),
        NewClaim(path="/c", size="1Gi", ephemeral=True),
    )
    spec = train1(setup=replace(train1().setup, volumes=claims))
    assert find_fields(spec) == []
    assert find_fields(replace(spec, data_delivery=FOUR)) == ["setup.volumes.0.modes"]


def test_the_longest_name_leaves_room_for_the_names_of_data_workers() -> None:
    spec = train1(name="a" * 50, data_delivery=DataDelivery(8, 1))
    assert find_fields(spec) == []
    assert len(f"{spec.name}-data-7-abcde") <= 63


def test_it_is_sent_and_read_back() -> None:
    spec = parse_distributed(dataDelivery=BODY).build_spec(HERE)
    assert spec.data_delivery == FOUR
    assert build_rest_body(spec, project_id="1", cluster_id="c")["spec"]["dataDelivery"] == BODY


def test_units_may_be_left_out() -> None:
    spec = parse_distributed(dataDelivery={"workers": 1}).build_spec(HERE)
    assert spec.data_delivery == DataDelivery(1, 0)
    body = build_rest_body(spec, project_id="1", cluster_id="c")
    assert body["spec"]["dataDelivery"] == {"workers": 1}
    assert parse_distributed(dataDelivery={}).build_spec(HERE).data_delivery is None


@pytest.mark.parametrize(
    ("sent", "place"),
    [
        ({"units": 5}, "spec.dataDelivery.workers"),
        ({"workers": "two"}, "spec.dataDelivery.workers"),
        ({"workers": 1, "gpus": 1}, "spec.dataDelivery.gpus"),
        (
            {"workers": 1, "compute": {"gpuDevicesRequest": 1}},
            "spec.dataDelivery.compute.gpuDevicesRequest",
        ),
    ],
)
def test_a_body_is_refused_at_its_place(sent: dict[str, Any], place: str) -> None:
    body = TUTORIAL | {"spec": TUTORIAL["spec"] | {"dataDelivery": sent}}
    assert list(refusal(body)) == [place]


def test_problems_are_found_in_the_body() -> None:
    places = parse_distributed(dataDelivery=BODY).places
    assert places.find_place("data_delivery") == "spec.dataDelivery"
    assert (
        places.find_place("data_delivery.compute.cpu_request")
        == "spec.dataDelivery.compute.cpuCoreRequest"
    )


def test_the_command_line_says_it_with_flags() -> None:
    words = shlex.split(build_submit_command(train1(data_delivery=FOUR), "team-a"))
    flags = dict(pairwise(words))
    assert flags["--data-workers"] == "4"
    assert flags["--data-units"] == "20480"
    assert flags["--data-cpu"] == "2"
    assert flags["--data-memory"] == "4Gi"
    assert flags["--data-image"] == "team/loader:1"
    assert "-f" not in flags


def test_details_describe_it_apart_from_the_training() -> None:
    sections = describe_spec(train1(data_delivery=FOUR))
    facts = {part.title: {each.name: each.values for each in part.facts} for part in sections}
    assert facts["Data workers"] == {
        "Data workers": ("4",),
        "Units prepared before GPUs are taken": ("20480",),
        "CPU of each": ("2 cores requested",),
        "Memory of each": ("4Gi requested",),
        "Their image": ("team/loader:1",),
    }
    assert facts["Workload"]["Data workers in total"] == ("8 CPU cores, 16 GiB of memory",)
    assert facts["Workload"]["In total"] == ("3 pods: 0.3 GPUs, 0.3 CPU cores, 286 MiB of memory",)
    assert "Data workers" not in {part.title for part in describe_spec(train1())}


def test_their_cpu_and_memory_must_fit_and_no_gpus() -> None:
    demand = WorkloadDemand.from_spec(train1(data_delivery=FOUR))
    without = WorkloadDemand.from_spec(train1())
    assert demand.pods == without.pods + 4
    assert demand.total.gpus == without.total.gpus
    assert demand.total.cpu == without.total.cpu + 8
    assert demand.total.memory == without.total.memory + 16 * 1024**3
    assert train1(data_delivery=FOUR).totals == train1().totals
    assert train1(data_delivery=FOUR).overall_totals.cpu == Decimal("8.3")


@pytest.mark.parametrize(
    ("rules", "field", "rule"),
    [
        ({"data_delivery__workers": {"max": 3}}, "data_delivery.workers", "max"),
        ({"data_delivery__units": {"max": 100}}, "data_delivery.units", "max"),
        ({"data_delivery__units": {"min": 30_000}}, "data_delivery.units", "min"),
        ({"cpu_request": {"max": "1"}}, "data_delivery.compute.cpu_request", "max"),
        ({"memory_request": {"max": "1Gi"}}, "data_delivery.compute.memory_request", "max"),
        ({"cpu_limit": {"max": "1"}}, "data_delivery.compute.cpu_limit", "required"),
        ({"image": {"options": ["kubeflow/*", "/kubeflow/*"]}}, "data_delivery.image", "options"),
    ],
)
def test_policies_rule_them(rules: dict[str, Any], field: str, rule: str) -> None:
    merged = merge_policies_of(policy("p", **rules))
    issues = find_issues(train1(data_delivery=FOUR), merged)
    mine = [each for each in issues if each.field == field]
    assert [each.rule.rpartition(".")[2] for each in mine] == [rule]
    assert field not in {each.field for each in find_issues(train1(), merged)}


def test_policies_complete_what_they_have_not() -> None:
    merged = merge_policies_of(
        policy("p", cpu_limit={"default": "4"}, memory_request={"default": "1Gi"})
    )
    completed = complete_spec(train1(data_delivery=DataDelivery(1, 0, SMALL)), merged)
    assert completed.data_delivery is not None
    assert completed.data_delivery.compute == replace(SMALL, cpu_limit="4")
    assert complete_spec(train1(), merged).data_delivery is None


@pytest.mark.django_db
def test_it_is_typed_shown_and_copied(cast: Cast) -> None:
    walk = fill_wizard(cast, "bob", **TYPED)
    assert "<dt>Data workers</dt><dd>4, 2 CPU, 4Gi memory each, of the image" in walk.text
    assert "20,480 units prepared before GPUs are taken" in walk.text
    assert "<strong>4 data workers</strong> without GPUs, 8 CPU" in walk.text
    assert "name: train1-data" in walk.text
    spec = submit_and_decode(walk)
    assert spec.data_delivery == FOUR
    copied = Walk(cast, query=f"?copy={Workload.objects.get().pk}").see("setup")
    assert {name: form_of(copied.page)[name] for name in TYPED} == {
        name: [value] for name, value in TYPED.items()
    }


@pytest.mark.django_db
def test_there_are_none_where_nothing_is_typed(cast: Cast) -> None:
    assert submit_and_decode(fill_wizard(cast, "bob")).data_delivery is None


@pytest.mark.django_db
def test_the_number_must_be_typed_with_the_rest(cast: Cast) -> None:
    walk = Walk(cast).send_start().send_setup(image="team/mine", data_units="5")
    assert walk.page.status_code == 422
    assert "Say how many data workers there are" in walk.text


@pytest.mark.django_db
def test_a_problem_is_shown_at_its_field(cast: Cast) -> None:
    walk = (
        Walk(cast)
        .send_start()
        .send_setup(image="team/mine", data_workers="9", data_cpu_request="x")
    )
    assert walk.page.status_code == 422
    assert "The number of data workers must be a whole number from 1 to 8." in walk.text
    assert "For the data workers: the CPU request must be a number" in walk.text


@pytest.mark.django_db
def test_a_policy_is_told_at_the_field(cast: Cast) -> None:
    Policy.objects.create(
        name="few",
        project=cast.team_a,
        rules={"data_delivery.workers": {"max": 2}, "cpu_request": {"max": "1"}},
    )
    walk = (
        Walk(cast, "alice")
        .send_start(project=str(cast.team_a.pk))
        .send_setup(image="team/mine", **TYPED)
    )
    assert walk.page.status_code == 422
    assert "Number of data workers must be at most 2" in walk.text
    assert "For the data workers: CPU request must be at most 1" in walk.text


@pytest.mark.django_db
def test_a_template_can_lock_them(cast: Cast) -> None:
    template = save_template(cast, "data_delivery", **TYPED)
    walk = start_from_template(cast, template)
    assert "Set by the template mine." in walk.text
    assert submit_and_decode(walk.send(data_workers="1")).data_delivery == FOUR


@pytest.mark.django_db
def test_only_the_launch_has_the_key_and_each_attempt_its_own(cast: Cast) -> None:
    spec = a_spec(cast.team_a, data_delivery=FOUR)
    workload = actions.submit(spec, project=cast.team_a, user=cast.bob)

    def read_key(objects: list[dict[str, Any]]) -> str:
        [secret] = [each for each in objects if each["kind"] == "Secret"]
        return str(secret["stringData"]["key"])

    first = read_key(workload_manifests.build_for_launch(workload))
    assert len(bytes.fromhex(first)) == 32
    assert read_key(workload_manifests.build_for_launch(workload)) == first
    assert read_key(workload_manifests.build_for_workload(workload)) == HIDDEN_KEY
    workload.attempt = 2
    assert read_key(workload_manifests.build_for_launch(workload)) != first
    assert decode_spec(workload.spec).data_delivery == FOUR
    assert workload.cpu_requested == spec.overall_totals.cpu
