"""The rules for where a pod may go, changed while it has scheduling gates: only narrowed.

They are those of core/validation: `validateNodeSelectorMutation`, `validateNodeAffinityMutation`.
"""

from typing import Any

from localkube.errors import MAX_CAUSES, Cause
from localkube.resources.affinity_rules import REQUIRED
from localkube.resources.causes import invalid_value_cause

TERM_PARTS = ("matchExpressions", "matchFields")

Spec = dict[str, Any]


def check_placement_changes(new: Spec, old: Spec) -> list[Cause]:
    """Return the problems of a gated pod's new node selector and node affinity.

    Ends soon after MAX_CAUSES.
    """
    causes: list[Cause] = []
    selector, old_selector = new.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if not old_selector.items() <= selector.items():
        text = "only additions to spec.nodeSelector are allowed (no deletions or mutations)"
        causes.append(invalid_value_cause("spec.nodeSelector", selector, text))
    terms, old_terms = _get_required_terms(new), _get_required_terms(old)
    field = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    if old_terms and len(terms) != len(old_terms):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [*causes, invalid_value_cause(field, terms, text)]
    for index, old_term in enumerate(old_terms):
        if len(causes) > MAX_CAUSES:
            break
        if not _only_adds(terms[index], old_term):
            text = "only additions are allowed (no mutations or deletions)"
            causes.append(invalid_value_cause(f"{field}[{index}]", terms[index], text))
    return causes


def restore_placement(spec: Spec, old: Spec) -> None:
    """Give a pod's spec the node selector and node affinity of the old one, in place."""
    _put_field(spec, "nodeSelector", old.get("nodeSelector"))
    old_affinity = old.get("affinity")
    affinity = {**(spec.get("affinity") or {})}
    _put_field(affinity, "nodeAffinity", (old_affinity or {}).get("nodeAffinity"))
    # An empty affinity counts as none, unless the old one is empty as well.
    _put_field(spec, "affinity", affinity if affinity or old_affinity == {} else None)


def _get_required_terms(spec: Spec) -> list[dict[str, Any]]:
    node_affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms: list[dict[str, Any]] = (node_affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    return terms


def _only_adds(term: dict[str, Any], old_term: dict[str, Any]) -> bool:
    """Return whether a term has all requirements of the old one, and those first.

    A term without any matches no node, so one more would widen it.
    """
    requirements, old_requirements = (
        [each.get(part) or [] for part in TERM_PARTS] for each in (term, old_term)
    )
    if not any(old_requirements):
        return not any(requirements)
    return all(
        items[: len(old_items)] == old_items
        for items, old_items in zip(requirements, old_requirements, strict=True)
    )


def _put_field(spec: Spec, field: str, value: Any) -> None:
    if value is None:
        spec.pop(field, None)
    else:
        spec[field] = value
