"""What a cluster is asked of a submission: its objects, and a pod of each kind that they make.
Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from workloads.kube_objects import Object, nested_dict

POD = "Pod"
MOST_QUESTIONS = 20
"""Objects of one submission that a cluster is asked about."""
DEEPEST = 8
"""How deep in an object a template of pods lies at most."""
LONGEST_BASE = 57
"""Characters of a name to which a dash and five characters of the API server's own come."""


@dataclass(frozen=True, slots=True)
class Question:
    """An object that the cluster is asked to take, and how it is called to a person."""

    kind: str
    name: str
    manifest: Object | None
    """None of what cannot be asked about: pods of which only the operator knows the template."""


def list_questions(objects: Sequence[Object]) -> list[Question]:
    """Return what to ask about the objects of a submission, the job and the pods first.

    The operator's own additions to a pod are not among them.
    """
    wanted = [Question(each["kind"], each["metadata"]["name"], each) for each in objects]
    pods = [
        _build_pod_question(each, role, template)
        for each in objects
        for role, template in _find_templates(each.get("spec"), "", DEEPEST)
    ]
    if not pods:
        pods = [Question(POD, each["metadata"]["name"], None) for each in objects[-1:]]
    return [*wanted[-1:], *pods[: MOST_QUESTIONS - 1], *wanted[:-1]]


def _find_templates(value: Any, role: str, depth: int) -> Iterator[tuple[str, Object]]:
    """Yield the templates of pods within a value, each with the key of its replicas."""
    if not isinstance(value, dict) or depth == 0:
        return
    for key, inner in value.items():
        if key == "template" and nested_dict(inner, "spec").get("containers"):
            yield role, inner
        else:
            yield from _find_templates(inner, key, depth - 1)


def _build_pod_question(owner: Object, role: str, template: Object) -> Question:
    name, namespace = owner["metadata"]["name"], owner["metadata"].get("namespace")
    metadata: Object = {"generateName": f"{name[:LONGEST_BASE]}-", "namespace": namespace}
    for key in ("labels", "annotations"):
        if entries := nested_dict(template, "metadata", key):
            metadata[key] = entries
    pod = {"apiVersion": "v1", "kind": POD, "metadata": metadata, "spec": template["spec"]}
    return Question(POD, f"{name} ({role.lower()})" if role else name, pod)
