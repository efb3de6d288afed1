"""The podFailurePolicy of a Job: what it may say, and what it must not be."""

from typing import Any

import pytest

from localkube import resources, schemas
from localkube.resources import JOBS

IN_42 = {"operator": "In", "values": [42]}
DISRUPTED = {"type": "DisruptionTarget"}


def job(*rules: Any, restart: str = "Never", **spec: Any) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": restart, "containers": [{"name": "main", "image": "x"}]}}
    spec = {"template": template, "podFailurePolicy": {"rules": list(rules)}} | spec
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "uid": "1-2-3"},
        "spec": spec,
    }


def find_refusals(obj: dict[str, Any]) -> list[str]:
    schemas.load_schema(JOBS.schema).prune(obj)
    JOBS.set_defaults(obj)
    return [f"{cause.field}: {cause.message}" for cause in resources.check_object(JOBS, obj, None)]


def test_a_condition_is_looked_for_as_true_unless_said_otherwise() -> None:
    obj = job(
        {"action": "FailJob", "onExitCodes": IN_42},
        {"action": "Ignore", "onPodConditions": [DISRUPTED]},
    )
    assert find_refusals(obj) == []
    assert obj["spec"]["podFailurePolicy"]["rules"][1]["onPodConditions"] == [
        {"type": "DisruptionTarget", "status": "True"}
    ]


@pytest.mark.parametrize(
    ("rule", "field", "message"),
    [
        ({}, "", "Invalid value: specifying one of OnExitCodes and OnPodConditions is required"),
        (None, "", "Invalid value: specifying one of OnExitCodes and OnPodConditions is required"),
        (
            {"onPodConditions": [DISRUPTED]},
            "",
            "Invalid value: specifying both OnExitCodes and OnPodConditions is not supported",
        ),
        (
            {"action": "Retry"},
            ".action",
            (
                'Unsupported value: "Retry": supported values: "Count", "FailIndex", "FailJob", '
                '"Ignore"'
            ),
        ),
        (
            {"action": "FailIndex"},
            ".action",
            ('Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set'),
        ),
        (
            {"onExitCodes": {"values": [1]}},
            ".onExitCodes.operator",
            'Required value: valid values: ["In" "NotIn"]',
        ),
        (
            {"onExitCodes": {"operator": "In"}},
            ".onExitCodes.values",
            "Invalid value: []: at least one value is required",
        ),
        (
            {"onExitCodes": IN_42 | {"values": [0]}},
            ".onExitCodes.values[0]",
            "Invalid value: 0: must not be 0 for the In operator",
        ),
        (
            {"onExitCodes": IN_42 | {"values": [1, 1]}},
            ".onExitCodes.values[1]",
            "Duplicate value: 1",
        ),
        (
            {"onExitCodes": IN_42 | {"values": [2, 1]}},
            ".onExitCodes.values",
            "Invalid value: [2, 1]: must be ordered",
        ),
        (
            {"onExitCodes": IN_42 | {"containerName": "b"}},
            ".onExitCodes.containerName",
            'Invalid value: "b": must be one of the container',
        ),
    ],
)
def test_a_senseless_rule_is_refused(rule: dict[str, Any] | None, field: str, message: str) -> None:
    whole = {"action": "FailJob", "onExitCodes": IN_42} | rule if rule else rule
    found = find_refusals(job(whole))
    assert any(
        text.startswith(f"spec.podFailurePolicy.rules[0]{field}: {message}") for text in found
    ), found


def test_only_pods_that_are_not_restarted_can_be_judged() -> None:
    text = (
        'spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported '
        "when podFailurePolicy is specified"
    )
    assert find_refusals(job({"action": "FailJob", "onExitCodes": IN_42}, restart="OnFailure")) == [
        text
    ]


@pytest.mark.parametrize(
    "rule", [{"onExitCodes": [1]}, {"onPodConditions": "x"}, {"onExitCodes": {"values": ["a"]}}, 1]
)
def test_a_rule_of_another_type_does_not_decode(rule: Any) -> None:
    assert "json: cannot unmarshal" in (resources.find_decode_error(JOBS, job(rule)) or "")
