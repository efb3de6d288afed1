"""The rules for a pod's affinity, from core/validation.

Node affinity is checked whole; of a term about other pods, only that it names a topology.
"""

from typing import Any

from localkube.errors import Cause, forbidden_cause, required_cause
from localkube.resources import name_rules
from localkube.resources.causes import invalid_value_cause

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
BAD_OPERATOR = "not a valid selector operator"


def check_affinity(affinity: dict[str, Any] | None, field: str) -> list[Cause]:
    """Return the problems of `spec.affinity`, which is at `field`."""
    node = (affinity or {}).get("nodeAffinity") or {}
    causes = []
    if node.get(REQUIRED) is not None:
        terms, at = (
            node[REQUIRED].get("nodeSelectorTerms") or [],
            f"{field}.nodeAffinity.{REQUIRED}.nodeSelectorTerms",
        )
        if not terms:
            causes.append(required_cause(at, "must have at least one node selector term"))
        for index, term in enumerate(terms):
            causes += _check_term(term, f"{at}[{index}]")
    for index, choice in enumerate(node.get(PREFERRED) or ()):
        at, weight = f"{field}.nodeAffinity.{PREFERRED}[{index}]", choice.get("weight") or 0
        if not 1 <= weight <= 100:
            causes.append(invalid_value_cause(f"{at}.weight", weight, "must be in the range 1-100"))
        causes += _check_term(choice.get("preference") or {}, f"{at}.preference")
    for kind in ("podAffinity", "podAntiAffinity"):
        causes += _check_pod_affinity((affinity or {}).get(kind) or {}, f"{field}.{kind}")
    return causes


def _check_pod_affinity(affinity: dict[str, Any], field: str) -> list[Cause]:
    causes = []
    terms = [
        (term, f"{field}.{REQUIRED}[{index}]")
        for index, term in enumerate(affinity.get(REQUIRED) or ())
    ]
    for index, choice in enumerate(affinity.get(PREFERRED) or ()):
        at, weight = f"{field}.{PREFERRED}[{index}]", choice.get("weight") or 0
        if not 1 <= weight <= 100:
            causes.append(invalid_value_cause(f"{at}.weight", weight, "must be in the range 1-100"))
        terms.append((choice.get("podAffinityTerm") or {}, f"{at}.podAffinityTerm"))
    for term, at in terms:
        key = term.get("topologyKey") or ""
        if not key:
            causes.append(required_cause(f"{at}.topologyKey", "can not be empty"))
        else:
            causes += [
                invalid_value_cause(f"{at}.topologyKey", key, text)
                for text in name_rules.check_qualified_name(key)
            ]
    return causes


def _check_term(term: dict[str, Any], field: str) -> list[Cause]:
    causes = []
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        causes += _check_expression(expression, f"{field}.matchExpressions[{index}]")
    for index, expression in enumerate(term.get("matchFields") or ()):
        causes += _check_field(expression, f"{field}.matchFields[{index}]")
    return causes


def _check_expression(expression: dict[str, Any], field: str) -> list[Cause]:
    key, operator, values = (
        expression.get("key") or "",
        expression.get("operator") or "",
        expression.get("values") or [],
    )
    causes = []
    if operator in ("In", "NotIn"):
        if not values:
            causes.append(
                required_cause(
                    f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'"
                )
            )
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            causes.append(
                forbidden_cause(
                    f"{field}.values",
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                )
            )
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            causes.append(
                required_cause(
                    f"{field}.values",
                    "must be specified single value when `operator` is 'Lt' or 'Gt'",
                )
            )
    else:
        causes.append(invalid_value_cause(f"{field}.operator", operator, BAD_OPERATOR))
    causes += [
        invalid_value_cause(f"{field}.key", key, text)
        for text in name_rules.check_qualified_name(key)
    ]
    for index, value in enumerate(values):
        causes += [
            invalid_value_cause(f"{field}.values[{index}]", value, text)
            for text in name_rules.check_label_value(value)
        ]
    return causes


def _check_field(expression: dict[str, Any], field: str) -> list[Cause]:
    """Check an expression about the node's own fields: its name is the only one."""
    key, operator, values = (
        expression.get("key") or "",
        expression.get("operator") or "",
        expression.get("values") or [],
    )
    causes = []
    if operator not in ("In", "NotIn"):
        causes.append(invalid_value_cause(f"{field}.operator", operator, BAD_OPERATOR))
    elif len(values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        causes.append(required_cause(f"{field}.values", text))
    if key != "metadata.name":
        causes.append(invalid_value_cause(f"{field}.key", key, "not a valid field selector key"))
    return causes
