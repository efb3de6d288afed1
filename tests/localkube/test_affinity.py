"""The affinity of a pod: what it must not be."""

from typing import Any

import pytest

from localkube import resources
from localkube.resources import PODS

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
FIRST = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"


def refusals(**node_affinity: Any) -> list[str]:
    spec = {
        "containers": [{"name": "main", "image": "x"}],
        "affinity": {"nodeAffinity": node_affinity},
    }
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    PODS.set_defaults(obj)
    return [f"{cause.field}: {cause.message}" for cause in resources.check_object(PODS, obj, None)]


def test_what_can_be_asked_of_a_node_is_accepted() -> None:
    expressions = [
        {"key": "zone", "operator": "In", "values": ["a", "b"]},
        {"key": "gpu", "operator": "Exists"},
    ]
    term = {
        "matchExpressions": expressions,
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["localkube"]}],
    }
    wanted = {
        REQUIRED: {"nodeSelectorTerms": [term]},
        PREFERRED: [{"weight": 1, "preference": term}],
    }
    assert refusals(**wanted) == []


@pytest.mark.parametrize(
    ("expression", "field", "message"),
    [
        ({"operator": "Exists"}, "key", 'Invalid value: "": name part must be non-empty'),
        (
            {"key": "a", "operator": "Is"},
            "operator",
            'Invalid value: "Is": not a valid selector operator',
        ),
        ({"key": "a"}, "operator", 'Invalid value: "": not a valid selector operator'),
        (
            {"key": "a", "operator": "In"},
            "values",
            "Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            {"key": "a", "operator": "Exists", "values": ["b"]},
            "values",
            "Forbidden: may not be specified when `operator` is 'Exists' or",
        ),
        (
            {"key": "a", "operator": "Gt", "values": ["1", "2"]},
            "values",
            "Required value: must be specified single value when",
        ),
    ],
)
def test_an_expression_about_labels_that_means_nothing_is_refused(
    expression: dict[str, Any], field: str, message: str
) -> None:
    (refusal, *_) = refusals(
        **{REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    )
    assert refusal.startswith(f"{FIRST}.matchExpressions[0].{field}: {message}")


def test_of_the_node_s_fields_only_its_name_can_be_asked() -> None:
    expression = {"key": "spec.unschedulable", "operator": "Exists"}
    assert refusals(**{REQUIRED: {"nodeSelectorTerms": [{"matchFields": [expression]}]}}) == [
        f'{FIRST}.matchFields[0].operator: Invalid value: "Exists": not a valid selector operator',
        (
            f'{FIRST}.matchFields[0].key: Invalid value: "spec.unschedulable": not a valid field '
            "selector key"
        ),
    ]


def test_a_requirement_has_terms_and_a_preference_a_weight() -> None:
    terms = (
        f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms: Required value: must have at "
        "least one node selector term"
    )
    assert refusals(**{REQUIRED: {}}) == [terms]
    weight = (
        f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight: Invalid value: 0: must be in the range "
        "1-100"
    )
    assert refusals(**{PREFERRED: [{"preference": {}}]}) == [weight]


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_a_term_about_other_pods_names_a_topology(kind: str) -> None:
    term = {"labelSelector": {"matchLabels": {"a": "b"}}}
    spec = {
        "containers": [{"name": "main", "image": "x"}],
        "affinity": {kind: {REQUIRED: [term], PREFERRED: [{"podAffinityTerm": term}]}},
    }
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    PODS.set_defaults(obj)
    assert [
        f"{cause.field}: {cause.message}" for cause in resources.check_object(PODS, obj, None)
    ] == [
        f"spec.affinity.{kind}.{PREFERRED}[0].weight: Invalid value: 0: must be in the range 1-100",
        f"spec.affinity.{kind}.{REQUIRED}[0].topologyKey: Required value: can not be empty",
        (
            f"spec.affinity.{kind}.{PREFERRED}[0].podAffinityTerm.topologyKey: Required value: "
            "can not be empty"
        ),
    ]
