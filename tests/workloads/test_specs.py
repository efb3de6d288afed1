"""A Spec counts what it asks for, and comes back from a database row as it went in."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings

from tests.workloads.spec_strategies import ANY_SPEC
from tests.workloads.submissions import SMALL_FRACTION, one_pod, train1
from workloads import specs
from workloads.specs import (
    Compute,
    Configuration,
    DataDelivery,
    ElasticSettings,
    Environment,
    Gpus,
    InvalidCommandLine,
    Lifecycle,
    MasterChanges,
    Preemptibility,
    Priority,
    Setup,
    Spec,
    UnreadableSpec,
    find_problems,
)
from workloads.specs.command_lines import MAX_LINE
from workloads.specs.problem_reports import MAX_LIST_ITEMS


def test_the_walk_asks_for_three_pods_and_three_tenths_of_a_gpu() -> None:
    assert train1().totals == specs.Totals(
        3, Decimal("0.3"), 0, Decimal("0.3"), Decimal(300_000_000)
    )


@pytest.mark.parametrize(
    ("spec", "pods", "gpus", "memory"),
    [
        (one_pod(), 1, 0, 0),
        (one_pod(runs=10, parallelism=4), 4, 0, 0),
        (one_pod(runs=2, parallelism=4), 2, 0, 0),
        (train1(configuration=Configuration.WORKERS_ONLY), 2, Decimal("0.2"), 0),
        (train1(master=MasterChanges(gpus=Gpus(2))), 3, Decimal("2.2"), 0),
        (train1(setup=Setup(Environment("x"), Compute(Gpus(2, memory="1.5Gi")))), 3, 0, 9216),
        (train1(setup=Setup(Environment("x"), Compute(Gpus(0, portion=Decimal(1))))), 3, 3, 0),
    ],
)
def test_totals_follow_the_configuration(spec: Spec, pods: int, gpus: Decimal, memory: int) -> None:
    totals = spec.totals
    assert (totals.pods, totals.gpus, totals.gpu_memory) == (pods, gpus, memory)


def test_the_master_is_set_up_as_the_workers_but_for_what_is_changed() -> None:
    spec = train1(master=MasterChanges(image="other", args=(), large_shm=True, node_type="big"))
    expected = replace(spec.setup, node_type="big")
    expected = replace(
        expected,
        environment=replace(spec.setup.environment, image="other"),
        compute=replace(SMALL_FRACTION, large_shm=True),
    )
    assert spec.master_setup == expected
    assert train1().master_setup == train1().setup


@pytest.mark.parametrize(
    ("lifecycle", "preemptible"),
    [
        (Lifecycle(), True),
        (Lifecycle(Priority.LOW), True),
        (Lifecycle(Priority.HIGH), False),
        (Lifecycle(Priority.HIGH, Preemptibility.PREEMPTIBLE), True),
        (Lifecycle(preemptibility=Preemptibility.NON_PREEMPTIBLE), False),
    ],
)
def test_preemptibility_is_as_said_or_else_by_priority(
    lifecycle: Lifecycle, preemptible: bool
) -> None:
    assert train1(lifecycle=lifecycle).is_preemptible is preemptible


@settings(max_examples=100)
@given(ANY_SPEC)
def test_any_spec_comes_back_from_its_row_as_it_went_in(spec: Spec) -> None:
    assert find_problems(spec) == ()
    assert specs.decode_spec(json.loads(json.dumps(specs.encode_spec(spec)))) == spec


def test_data_delivery_comes_back_from_its_row_as_it_went_in() -> None:
    spec = train1(
        data_delivery=DataDelivery(4, 20_480, Compute(cpu_request="2", memory_limit="8Gi"), "other")
    )
    stored = json.loads(json.dumps(specs.encode_spec(spec)))
    assert stored["data_delivery"] == {
        "workers": 4,
        "units": 20_480,
        "compute": {"cpu_request": "2", "memory_limit": "8Gi"},
        "image": "other",
    }
    assert specs.decode_spec(stored) == spec


def test_what_is_default_is_not_stored() -> None:
    stored = specs.encode_spec(one_pod())
    assert stored["version"] == 2
    assert stored.keys() == {"version", "name", "project", "namespace", "queue", "setup"}


@pytest.mark.parametrize(
    ("configuration", "master"),
    [(Configuration.WORKERS_AND_MASTER, 1), (Configuration.WORKERS_ONLY, 0)],
)
def test_the_first_version_counted_elastic_workers(
    configuration: Configuration, master: int
) -> None:
    spec = train1(configuration=configuration, elastic=ElasticSettings(2 + master, 4 + master, 9))
    stored = specs.encode_spec(spec) | {
        "version": 1,
        "elastic": {"min_workers": 2, "max_workers": 4, "max_restarts": 9},
    }
    assert specs.decode_spec(stored) == spec


def broken(**changes: Any) -> dict[str, Any]:
    return specs.encode_spec(train1()) | changes


BROKEN = [
    broken(version=3),
    broken(framework="Caffe"),
    broken(workers="2"),
    broken(workers=True),
    broken(colour="red"),
    broken(setup=[]),
    broken(setup={"environment": {}}),
    broken(setup={"environment": {"image": "x"}, "volumes": [{"kind": "tape", "path": "/a"}]}),
    broken(setup={"environment": {"image": "x"}, "volumes": [{"kind": [], "path": "/a"}]}),
    broken(setup={"environment": {"image": "x", "args": "a b"}}),
    broken(setup={"environment": {"image": "x"}, "compute": {"gpus": {"portion": "half"}}}),
    broken(master={"image": None}),
    {},
]


@pytest.mark.parametrize("data", BROKEN, ids=range(len(BROKEN)))
def test_a_row_that_cannot_be_read_is_refused_with_its_place(data: dict[str, Any]) -> None:
    with pytest.raises(UnreadableSpec, match="spec"):
        specs.decode_spec(data)


def test_a_line_becomes_words_and_words_a_line() -> None:
    assert specs.split_command_line("""--name 'two words' --x="1 2" """) == (
        "--name",
        "two words",
        "--x=1 2",
    )
    assert specs.split_command_line(specs.join_command_line(("a b", "", "'"))) == ("a b", "", "'")
    with pytest.raises(InvalidCommandLine):
        specs.split_command_line("'open")


def test_a_line_is_split_no_further_than_is_judged() -> None:
    assert len(specs.split_command_line("a " * 100_000)) == MAX_LIST_ITEMS + 1
    longest = "a" * MAX_LINE
    assert specs.split_command_line(longest) == (longest,)
    with pytest.raises(InvalidCommandLine, match="must have at most 262,144 characters"):
        specs.split_command_line(f"{longest}a")
