"""A submission against policies: every field of the catalogue is judged on what comes of what was
said, for the workers and the master.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.workloads.policies import (
    merge_policies_of,
    policy,
    spec,
    spec_with_environment,
    spec_with_lifecycle,
    spec_with_setup,
)
from workloads.policing import (
    complete_spec,
    find_compute_issues,
    find_environment_issues,
    find_issues,
    list_set_values,
    list_setting_policy_ids,
)
from workloads.specs import (
    Architecture,
    Claim,
    Compute,
    Configuration,
    ElasticSettings,
    Environment,
    Framework,
    Gpus,
    HostPath,
    MasterChanges,
    Pair,
    Preemptibility,
    Priority,
    PullPolicy,
    Radar,
    RestartPolicy,
    Security,
    Spec,
    Variable,
    VariableSource,
    VolumeAccess,
)

HOST_PATH = HostPath(path="/d", source="/d")

CASES: list[tuple[str, dict[str, Any], Spec, str, Spec]] = [
    # field, rule, a submission that it forbids, where that is told, one that it allows
    (
        "architecture",
        {"options": ["Standard"]},
        spec(),
        "architecture",
        spec(architecture=Architecture.STANDARD),
    ),
    ("framework", {"options": ["MPI"]}, spec(), "framework", spec(framework=Framework.MPI)),
    ("workers", {"step": 4}, spec(workers=6), "workers", spec(workers=8)),
    (
        "workers",
        {"max": 4},
        spec(workers=2, elastic=ElasticSettings(2, 9)),
        "elastic.max_pods",
        spec(workers=2, elastic=ElasticSettings(2, 5)),
    ),
    (
        "workers",
        {"default": 2, "locked": True},
        spec(workers=2, elastic=ElasticSettings(2, 9)),
        "elastic.max_pods",
        spec(workers=2, elastic=ElasticSettings(2, 3)),
    ),
    (
        "elastic.max_pods",
        {"max": 4},
        spec(elastic=ElasticSettings(1, 8)),
        "elastic.max_pods",
        spec(),
    ),
    ("parameter_servers", {"max": 0}, spec(parameter_servers=1), "parameter_servers", spec()),
    (
        "image",
        {"options": ["registry.example.com/*"]},
        spec_with_environment(),
        "setup.environment.image",
        spec_with_environment(image="registry.example.com/a"),
    ),
    (
        "pull_policy",
        {"options": ["Always"]},
        spec_with_environment(),
        "setup.environment.pull_policy",
        spec_with_environment(image="python"),
    ),
    (
        "pull_policy",
        {"options": ["IfNotPresent"]},
        spec_with_environment(image="a:latest"),
        "setup.environment.pull_policy",
        spec_with_environment(image="a@sha256:0"),
    ),
    (
        "command",
        {"locked": True},
        spec_with_environment(command=("sh",)),
        "setup.environment.command",
        spec_with_environment(),
    ),
    (
        "args",
        {"default": "--safe", "locked": True},
        spec_with_environment(args=("--fast",)),
        "setup.environment.args",
        spec_with_environment(args=("--safe",)),
    ),
    (
        "working_dir",
        {"options": ["/work/*"]},
        spec_with_environment(working_dir="/"),
        "setup.environment.working_dir",
        spec_with_environment(working_dir="/work/a"),
    ),
    (
        "variables",
        {"required": ["TEAM"]},
        spec_with_environment(),
        "setup.environment.variables",
        spec_with_environment(
            variables=(Variable("TEAM", source=VariableSource.SECRET, object_name="s", key="k"),)
        ),
    ),
    (
        "variables",
        {"default": {"A": "1"}, "locked": True},
        spec_with_environment(variables=(Variable("B", "2"), Variable("A", "2"))),
        "setup.environment.variables.1.value",
        spec_with_environment(variables=(Variable("A", "1"),)),
    ),
    (
        "gpus.devices",
        {"min": 1},
        spec_with_setup(),
        "setup.compute.gpus.devices",
        spec_with_setup(compute=Compute(Gpus(1))),
    ),
    (
        "gpus.devices",
        {"max": 1},
        spec_with_setup(compute=Compute(Gpus(2))),
        "setup.compute.gpus.devices",
        spec_with_setup(compute=Compute(Gpus(0, Decimal("0.5")))),
    ),
    (
        "gpus.portion",
        {"max": "0.5"},
        spec_with_setup(compute=Compute(Gpus(1))),
        "setup.compute.gpus.portion",
        spec_with_setup(compute=Compute(Gpus(1, Decimal("0.5")))),
    ),
    (
        "gpus.memory",
        {"max": "8Gi"},
        spec_with_setup(compute=Compute(Gpus(1, None, "9Gi"))),
        "setup.compute.gpus.memory",
        spec_with_setup(compute=Compute(Gpus(1, None, "8192Mi"))),
    ),
    (
        "cpu_request",
        {"min": "1"},
        spec_with_setup(),
        "setup.compute.cpu_request",
        spec_with_setup(compute=Compute(cpu_limit="2")),
    ),
    (
        "cpu_limit",
        {"max": "2"},
        spec_with_setup(),
        "setup.compute.cpu_limit",
        spec_with_setup(compute=Compute(cpu_limit="1500m")),
    ),
    (
        "memory_request",
        {"max": "1Gi"},
        spec_with_setup(compute=Compute(memory_request="1.5Gi")),
        "setup.compute.memory_request",
        spec_with_setup(),
    ),
    (
        "memory_limit",
        {"required": True},
        spec_with_setup(),
        "setup.compute.memory_limit",
        spec_with_setup(compute=Compute(memory_limit="1Gi")),
    ),
    (
        "large_shm",
        {"default": False, "locked": True},
        spec_with_setup(compute=Compute(large_shm=True)),
        "setup.compute.large_shm",
        spec_with_setup(),
    ),
    (
        "node_type",
        {"options": ["dgx*"]},
        spec_with_setup(),
        "setup.node_type",
        spec_with_setup(node_type="dgx-2"),
    ),
    (
        "node_pools",
        {"options": ["a", "b"]},
        spec_with_setup(node_pools=("a", "c")),
        "setup.node_pools",
        spec_with_setup(node_pools=("b", "a")),
    ),
    (
        "volumes",
        {"options": ["pvc"]},
        spec_with_setup(volumes=(Claim(path="/c", claim="c"), HOST_PATH)),
        "setup.volumes.1.kind",
        spec_with_setup(volumes=(Claim(path="/c", claim="c", access=VolumeAccess.READ_ONLY),)),
    ),
    (
        "labels",
        {"required": ["team"]},
        spec_with_setup(),
        "setup.labels",
        spec_with_setup(labels=(Pair("team", "x"),)),
    ),
    (
        "annotations",
        {"default": {"a": "1"}, "locked": True},
        spec_with_setup(annotations=(Pair("a", "2"),)),
        "setup.annotations.0.value",
        spec_with_setup(annotations=(Pair("a", "1"),)),
    ),
    (
        "priority",
        {"options": ["low"]},
        spec_with_lifecycle(priority=Priority.HIGH),
        "lifecycle.priority",
        spec_with_lifecycle(priority=Priority.LOW),
    ),
    (
        "preemptibility",
        {"options": ["preemptible"]},
        spec_with_lifecycle(priority=Priority.HIGH),
        "lifecycle.preemptibility",
        spec_with_lifecycle(priority=Priority.HIGH, preemptibility=Preemptibility.PREEMPTIBLE),
    ),
    (
        "backoff_limit",
        {"max": 3},
        spec_with_lifecycle(),
        "lifecycle.backoff_limit",
        spec_with_lifecycle(backoff_limit=3),
    ),
    (
        "grace_seconds",
        {"max": 60},
        spec_with_lifecycle(grace_seconds=90),
        "lifecycle.grace_seconds",
        spec_with_lifecycle(),
    ),
    (
        "auto_delete_seconds",
        {"max": 60},
        spec_with_lifecycle(),
        "lifecycle.auto_delete_seconds",
        spec_with_lifecycle(auto_delete_seconds=0),
    ),
    (
        "restart_policy",
        {"options": ["Never"]},
        spec_with_lifecycle(restart_policy=RestartPolicy.ALWAYS),
        "lifecycle.restart_policy",
        spec_with_lifecycle(),
    ),
    (
        "radar.is_on",
        {"default": True, "locked": True},
        spec(radar=Radar(is_on=False)),
        "radar.is_on",
        spec(),
    ),
    (
        "radar.hang_seconds",
        {"max": 600},
        spec(radar=Radar(hang_seconds=601)),
        "radar.hang_seconds",
        spec(),
    ),
    (
        "radar.straggler_percent",
        {"min": 120},
        spec(radar=Radar(straggler_percent=110)),
        "radar.straggler_percent",
        spec(),
    ),
    (
        "radar.stop_after_hang_seconds",
        {"max": 3600},
        spec(),
        "radar.stop_after_hang_seconds",
        spec(radar=Radar(stop_after_hang_seconds=3600)),
    ),
    (
        "radar.restarts_without_faulty_node",
        {"default": False, "locked": True},
        spec(radar=Radar(restarts_without_faulty_node=True)),
        "radar.restarts_without_faulty_node",
        spec(),
    ),
    (
        "uid",
        {"min": 1000},
        spec_with_setup(),
        "setup.security.uid",
        spec_with_setup(security=Security(uid=1000)),
    ),
    (
        "non_root",
        {"default": True, "locked": True},
        spec_with_setup(security=Security(non_root=False)),
        "setup.security.non_root",
        spec_with_setup(security=Security(non_root=True)),
    ),
    (
        "host_network",
        {"default": False, "locked": True},
        spec_with_setup(security=Security(host_network=True)),
        "setup.security.host_network",
        spec_with_setup(),
    ),
    (
        "host_ipc",
        {"default": False, "locked": True},
        spec_with_setup(security=Security(host_ipc=True)),
        "setup.security.host_ipc",
        spec_with_setup(),
    ),
    (
        "privilege_escalation",
        {"default": False, "locked": True},
        spec_with_setup(),
        "setup.security.privilege_escalation",
        spec_with_setup(security=Security(privilege_escalation=False)),
    ),
    (
        "capabilities",
        {"options": ["SYS_PTRACE"]},
        spec_with_setup(security=Security(capabilities=("SYS_ADMIN",))),
        "setup.security.capabilities",
        spec_with_setup(),
    ),
    (
        "capabilities",
        {"locked": True},
        spec_with_setup(security=Security(capabilities=("SYS_ADMIN",))),
        "setup.security.capabilities",
        spec_with_setup(),
    ),
]


@pytest.mark.parametrize(
    ("field", "rule", "forbidden", "at", "allowed"),
    CASES,
    ids=[f"{case[0]}-{'-'.join(case[1])}" for case in CASES],
)
def test_a_rule_forbids_and_allows(
    field: str, rule: dict[str, Any], forbidden: Spec, at: str, allowed: Spec
) -> None:
    found = merge_policies_of(policy("small-teams", 2, **{field.replace(".", "__"): rule}))
    [issue] = find_issues(forbidden, found)
    assert issue.field == at
    assert issue.text.endswith("(policy small-teams of department research).")
    assert not find_issues(allowed, found)


def test_the_master_is_judged_where_it_differs() -> None:
    found = merge_policies_of(
        policy("p", cpu_request={"max": "2"}, image={"options": ["python:*"]})
    )
    submitted = replace(spec_with_setup(), master=MasterChanges(cpu_request="4"))
    assert [(issue.field, issue.text) for issue in find_issues(submitted, found)] == [
        (
            "master.compute.cpu_request",
            "For the master: CPU request must be at most 2 (policy p of everybody).",
        )
    ]
    without = replace(submitted, configuration=Configuration.WORKERS_ONLY, master=MasterChanges())
    assert not find_issues(without, found)


def test_what_nobody_has_said_is_set_for_the_workers_and_a_master_of_its_own() -> None:
    found = merge_policies_of(
        policy("p", pull_policy={"default": "Always"}, working_dir={"default": "/work"})
    )
    submitted = replace(
        spec_with_environment(working_dir="/home"), master=MasterChanges(working_dir="")
    )
    done = complete_spec(submitted, found)
    assert done.setup.environment.pull_policy is PullPolicy.ALWAYS
    assert (done.setup.environment.working_dir, done.master_setup.environment.working_dir) == (
        "/home",
        "/work",
    )
    assert done.master == MasterChanges(working_dir="/work")


def test_names_that_are_missing_are_added_and_those_that_are_there_stay() -> None:
    found = merge_policies_of(
        policy("p", variables={"default": {"A": "1", "B": "2"}}, labels={"default": {"team": "x"}})
    )
    done = complete_spec(spec_with_environment(variables=(Variable("B", "mine"),)), found)
    assert done.setup.environment.variables == (Variable("B", "mine"), Variable("A", "1"))
    assert done.setup.labels == (Pair("team", "x"),)


def test_what_a_form_always_says_is_not_set_anew() -> None:
    found = merge_policies_of(policy("p", workers={"default": 4}, backoff_limit={"default": 1}))
    assert complete_spec(spec(workers=2), found) == spec(workers=2)


def test_who_set_what_is_told() -> None:
    found = merge_policies_of(
        policy("p", 2, backoff_limit={"default": 1}), policy("q", priority={"default": "low"})
    )
    done = complete_spec(spec(), found, given_fields=())
    assert list(list_set_values(done, found)) == [
        ("Priority", "Low", "policy q of everybody"),
        ("Backoff limit", "1", "policy p of department research"),
    ]
    assert list(list_setting_policy_ids(done, found)) == ["q", "p"]
    assert not list_set_values(spec_with_lifecycle(backoff_limit=3, priority=Priority.HIGH), found)


def test_a_card_answers_only_for_what_it_says() -> None:
    found = merge_policies_of(
        policy(
            "p",
            image={"options": ["a/*"]},
            command={"default": "train", "locked": True},
            cpu_limit={"max": "2"},
            node_type={"options": ["x"]},
        )
    )
    assert [each.text for each in find_environment_issues(Environment("b/c"), found)] == [
        "Image must be a/* (policy p of everybody)."
    ]
    assert [each.text for each in find_environment_issues(Environment("a/c"), found)] == []
    assert [
        each.text for each in find_environment_issues(Environment("a/c", command=("sh",)), found)
    ] == ["Command must be train, which is locked (policy p of everybody)."]
    assert [each.text for each in find_compute_issues(Compute(), found)] == []
    assert [each.text for each in find_compute_issues(Compute(cpu_limit="3"), found)] == [
        "CPU limit must be at most 2 (policy p of everybody)."
    ]


def test_what_is_no_quantity_is_for_others_to_tell() -> None:
    assert not find_issues(
        spec_with_setup(compute=Compute(cpu_limit="much")),
        merge_policies_of(policy("p", cpu_limit={"max": "2"})),
    )


def test_a_standard_workload_has_no_rules_of_distributed_ones() -> None:
    standard = spec(architecture=Architecture.STANDARD, framework=None, runs=3)
    found = merge_policies_of(policy("p", workers={"min": 2}, runs={"max": 2}))
    assert [issue.field for issue in find_issues(standard, found)] == ["runs"]
