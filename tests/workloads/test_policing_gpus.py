"""Policies about GPUs: all ways to ask for them are one, by another name too."""

from decimal import Decimal
from typing import Any

import pytest

from tests.workloads.policies import merge_policies_of, policy, spec, spec_with_setup
from workloads.policing import complete_spec, find_issues
from workloads.specs import Compute, ExtendedResource, Gpus, MasterChanges


def test_of_gpus_all_ways_to_ask_for_them_are_one() -> None:
    found = merge_policies_of(policy("p", gpus__portion={"default": "0.5"}))
    assert complete_spec(spec_with_setup(), found, given_fields=()).setup.compute.gpus == Gpus(
        1, Decimal("0.5")
    )
    assert complete_spec(
        spec_with_setup(compute=Compute(Gpus(2))),
        found,
        given_fields={"setup.compute.gpus.devices"},
    ).setup.compute.gpus == Gpus(2)


GPU_NAMES = [
    "nvidia.com/gpu.shared",
    "nvidia.com/mig-7g.80gb",
    "amd.com/gpu",
    "gpu.intel.com/i915",
    "habana.ai/gaudi",
    "aliyun.com/GPU-mem",
]

GPU_RULES: list[tuple[str, dict[str, Any], str]] = [
    ("gpus__devices", {"max": 0}, "max"),
    ("gpus__devices", {"min": 1}, "min"),
    ("gpus__devices", {"options": [0, 1]}, "options"),
    ("gpus__devices", {"default": 1, "locked": True}, "locked"),
    ("gpus__portion", {"max": "0.5"}, "max"),
    ("gpus__memory", {"max": "1Gi"}, "max"),
]


def extended_compute(*resources: str) -> Compute:
    return Compute(
        Gpus(1), extended=tuple(ExtendedResource(resource, "8") for resource in resources)
    )


@pytest.mark.parametrize("resource", GPU_NAMES)
def test_gpus_by_another_name_are_refused_where_gpus_are_ruled(resource: str) -> None:
    [issue] = find_issues(
        spec_with_setup(compute=extended_compute("rdma/hca", resource)),
        merge_policies_of(policy("small", 2, gpus__devices={"max": 1})),
    )
    assert (issue.field, issue.rule) == ("setup.compute.extended.1.resource", "gpus.devices.max")
    assert issue.text == (
        f"{resource} cannot be asked for here: it stands for GPUs, and what is ruled of GPUs "
        "cannot be held against its quantity "
        "(policy small of department research). Ask for GPU devices instead, or ask who set the "
        "policy."
    )


@pytest.mark.parametrize(("field", "rule", "attribute"), GPU_RULES)
def test_every_rule_of_gpus_refuses_them(field: str, rule: dict[str, Any], attribute: str) -> None:
    rules: dict[str, Any] = {field: rule}
    found = find_issues(
        spec_with_setup(compute=extended_compute("amd.com/gpu")),
        merge_policies_of(policy("p", **rules)),
    )
    assert f"{field.replace('__', '.')}.{attribute}" in [
        each.rule for each in found if each.field == "setup.compute.extended.0.resource"
    ]


def test_those_of_a_master_of_its_own_are_refused_there() -> None:
    master = MasterChanges(extended=(ExtendedResource("amd.com/gpu", "1"),))
    [issue] = find_issues(
        spec(master=master), merge_policies_of(policy("p", gpus__devices={"max": 1}))
    )
    assert issue.field == "master.compute.extended.0.resource"
    assert issue.text.startswith("For the master: amd.com/gpu cannot be asked for here")


def test_other_resources_and_those_where_no_gpus_are_ruled_are_let_through() -> None:
    assert not find_issues(
        spec_with_setup(compute=extended_compute("rdma/hca", "example.com/fpga")),
        merge_policies_of(policy("p", gpus__devices={"max": 1})),
    )
    assert not find_issues(
        spec_with_setup(compute=extended_compute(*GPU_NAMES)),
        merge_policies_of(policy("p", gpus__devices={"default": 1}, cpu_limit={"default": "1"})),
    )
