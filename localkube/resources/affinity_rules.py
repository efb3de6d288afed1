"""The affinity of a pod spec: the rules of core/validation for node affinity, and that a term about
other pods names a topology.
"""

from typing import Any

from localkube.errors import Cause, frozen, required
from localkube.resources import names
from localkube.resources.causes import invalid

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
BAD_OPERATOR = "not a valid selector operator"


def check_affinity(affinity: dict[str, Any] | None, field: str) -> list[Cause]:
    """What is wrong with `spec.affinity`, which is at `field`."""
    node = (affinity or {}).get("nodeAffinity") or {}
    causes = []
    if node.get(REQUIRED) is not None:
        terms, at = (
            node[REQUIRED].get("nodeSelectorTerms") or [],
            f"{field}.nodeAffinity.{REQUIRED}.nodeSelectorTerms",
        )
        if not terms:
            causes.append(required(at, "must have at least one node selector term"))
        for index, term in enumerate(terms):
            causes += _check_term(term, f"{at}[{index}]")
    for index, choice in enumerate(node.get(PREFERRED) or ()):
        at, weight = f"{field}.nodeAffinity.{PREFERRED}[{index}]", choice.get("weight") or 0
        if not 1 <= weight <= 100:
            causes.append(invalid(f"{at}.weight", weight, "must be in the range 1-100"))
        causes += _check_term(choice.get("preference") or {}, f"{at}.preference")
    for kind in ("podAffinity", "podAntiAffinity"):
        causes += _check_nearness((affinity or {}).get(kind) or {}, f"{field}.{kind}")
    return causes


def _check_nearness(given: dict[str, Any], field: str) -> list[Cause]:
    causes = []
    terms = [
        (term, f"{field}.{REQUIRED}[{index}]")
        for index, term in enumerate(given.get(REQUIRED) or ())
    ]
    for index, choice in enumerate(given.get(PREFERRED) or ()):
        at, weight = f"{field}.{PREFERRED}[{index}]", choice.get("weight") or 0
        if not 1 <= weight <= 100:
            causes.append(invalid(f"{at}.weight", weight, "must be in the range 1-100"))
        terms.append((choice.get("podAffinityTerm") or {}, f"{at}.podAffinityTerm"))
    for term, at in terms:
        key = term.get("topologyKey") or ""
        if not key:
            causes.append(required(f"{at}.topologyKey", "can not be empty"))
        else:
            causes += [invalid(f"{at}.topologyKey", key, text) for text in names.qualified(key)]
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
                required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
            )
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            causes.append(
                frozen(
                    f"{field}.values",
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                )
            )
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            causes.append(
                required(
                    f"{field}.values",
                    "must be specified single value when `operator` is 'Lt' or 'Gt'",
                )
            )
    else:
        causes.append(invalid(f"{field}.operator", operator, BAD_OPERATOR))
    causes += [invalid(f"{field}.key", key, text) for text in names.qualified(key)]
    for index, value in enumerate(values):
        causes += [
            invalid(f"{field}.values[{index}]", value, text) for text in names.label_value(value)
        ]
    return causes


def _check_field(expression: dict[str, Any], field: str) -> list[Cause]:
    """An expression about the node's own fields: its name is the only one."""
    key, operator, values = (
        expression.get("key") or "",
        expression.get("operator") or "",
        expression.get("values") or [],
    )
    causes = []
    if operator not in ("In", "NotIn"):
        causes.append(invalid(f"{field}.operator", operator, BAD_OPERATOR))
    elif len(values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        causes.append(required(f"{field}.values", text))
    if key != "metadata.name":
        causes.append(invalid(f"{field}.key", key, "not a valid field selector key"))
    return causes
