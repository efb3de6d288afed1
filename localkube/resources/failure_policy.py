"""The podFailurePolicy of a batch/v1 Job.

The rules are those of batch/validation `validatePodFailurePolicy`.
"""

from typing import Any

from localkube.errors import Cause, required_cause, unsupported_cause
from localkube.resources import name_rules
from localkube.resources.causes import (
    duplicate_cause,
    invalid_value_cause,
    quote_value,
    too_many_cause,
)

ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
OPERATORS = ("In", "NotIn")
STATUSES = ("False", "True", "Unknown")

MAX_RULES = 20
MAX_ITEMS = 255
"""Most exit codes of a rule. Conditions of a rule are bounded by MAX_RULES, too."""


def set_policy_defaults(policy: dict[str, Any]) -> None:
    for rule in policy.get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern.setdefault("status", "True")


def check_policy(spec: dict[str, Any], field: str) -> list[Cause]:
    """Return the problems of the policy in a Job's spec; `field` is where the spec is."""
    policy = spec.get("podFailurePolicy")
    if policy is None:
        return []
    pod = spec["template"]["spec"]
    causes = []
    if pod.get("restartPolicy") != "Never":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        causes.append(
            invalid_value_cause(
                f"{field}.template.spec.restartPolicy", pod.get("restartPolicy"), text
            )
        )
    if spec.get("podReplacementPolicy") == "TerminatingOrFailed":
        causes.append(
            unsupported_cause(f"{field}.podReplacementPolicy", "TerminatingOrFailed", ("Failed",))
        )
    containers = {
        container.get("name")
        for part in ("containers", "initContainers")
        for container in pod.get(part) or ()
    }
    rules = policy.get("rules") or []
    at = f"{field}.podFailurePolicy.rules"
    causes += _check_max_items(rules, MAX_RULES, at)
    for index, rule in enumerate(rules):
        causes += _check_rule(
            rule,
            f"{at}[{index}]",
            containers,
            per_index=spec.get("backoffLimitPerIndex") is not None,
        )
    return causes


def _check_rule(
    rule: dict[str, Any], field: str, containers: set[Any], *, per_index: bool
) -> list[Cause]:
    codes, conditions, action = (
        rule.get("onExitCodes"),
        rule.get("onPodConditions") or [],
        rule.get("action") or "",
    )
    causes = _check_choice(action, ACTIONS, f"{field}.action")
    if action == "FailIndex" and not per_index:
        causes.append(
            invalid_value_cause(
                f"{field}.action", action, "requires the backoffLimitPerIndex to be set"
            )
        )
    if codes is not None:
        causes += _check_codes(codes, f"{field}.onExitCodes", containers)
    causes += _check_max_items(conditions, MAX_RULES, f"{field}.onPodConditions")
    for index, pattern in enumerate(conditions):
        at = f"{field}.onPodConditions[{index}]"
        causes += [
            invalid_value_cause(f"{at}.type", pattern.get("type") or "", text)
            for text in name_rules.check_qualified_name(pattern.get("type") or "")
        ]
        causes += _check_choice(pattern.get("status") or "", STATUSES, f"{at}.status")
    if codes is not None and conditions:
        causes.append(
            _build_rule_cause(
                field, "specifying both OnExitCodes and OnPodConditions is not supported"
            )
        )
    if codes is None and not conditions:
        causes.append(
            _build_rule_cause(
                field, "specifying one of OnExitCodes and OnPodConditions is required"
            )
        )
    return causes


def _check_codes(requirement: dict[str, Any], field: str, containers: set[Any]) -> list[Cause]:
    operator, values, name = (
        requirement.get("operator") or "",
        requirement.get("values") or [],
        requirement.get("containerName"),
    )
    causes = _check_choice(operator, OPERATORS, f"{field}.operator")
    if name is not None and name not in containers:
        text = "must be one of the container or initContainer names in the pod template"
        causes.append(invalid_value_cause(f"{field}.containerName", name, text))
    if not values:
        causes.append(
            invalid_value_cause(f"{field}.values", values, "at least one value is required")
        )
    causes += _check_max_items(values, MAX_ITEMS, f"{field}.values")
    for index, value in enumerate(values):
        at = f"{field}.values[{index}]"
        if value in values[:index]:
            causes.append(duplicate_cause(at, value))
        if operator == "In" and value == 0:
            causes.append(invalid_value_cause(at, value, "must not be 0 for the In operator"))
    if values != sorted(values):
        causes.append(invalid_value_cause(f"{field}.values", values, "must be ordered"))
    return causes


def _check_choice(value: str, allowed: tuple[str, ...], field: str) -> list[Cause]:
    if not value:
        return [required_cause(field, f"valid values: [{' '.join(map(quote_value, allowed))}]")]
    return [] if value in allowed else [unsupported_cause(field, value, allowed)]


def _check_max_items(items: list[Any], most: int, field: str) -> list[Cause]:
    return [too_many_cause(field, len(items), most)] if len(items) > most else []


def _build_rule_cause(field: str, text: str) -> Cause:
    """Build a cause about a rule as a whole, whose value is not repeated."""
    return Cause("FieldValueInvalid", f"Invalid value: {text}", field)
