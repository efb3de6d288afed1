"""Everything that Muster writes is taken by a server that checks strictly: each job as it is, and
the pods of its templates, too.

A server knows a custom kind by its schema only, which says little of a pod; an operator would learn
the rest when it makes one.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.conformance.api import Api, Object
from tests.workloads import golden
from tests.workloads.spec_strategies import ANY_SPEC
from workloads.manifests import build_objects
from workloads.specs import Spec
from workloads.tasks.objects import resource_of_manifest

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PODS = "/api/v1/namespaces/{}/pods"
SHARING_ANNOTATIONS = ("gpu-fraction", "gpu-memory", "gpu-fraction-num-devices")


@pytest.fixture
def classes(api: Api) -> Iterator[None]:
    """The PriorityClass that one of the golden pods names, which a cluster without KAI would
    have.
    """
    made = api.post(CLASSES, {"metadata": {"name": "high"}, "value": 125})
    assert made.status in (201, 409), made.text
    yield
    if made.status == 201:
        api.delete(f"{CLASSES}/high")


def collection(obj: Object, namespace: str) -> str:
    """The path to create an object at."""
    return resource_of_manifest(obj).path(namespace)


def check_created(api: Api, path: str, obj: Object, namespace: str) -> None:
    """Fails unless the server would take the object just as it is."""
    body = obj | {"metadata": obj["metadata"] | {"namespace": namespace}}
    answer = api.post(path, body, dryRun="All", fieldValidation="Strict")
    assert answer.status == 201, answer.text[:2000]
    assert [
        text for text in answer.warnings if "deprecated" not in text and "capabilities" not in text
    ] == []


def pods(obj: Any) -> Iterator[Object]:
    """A pod of each template in an object, as an operator would make it."""
    if isinstance(obj, dict):
        template = obj.get("template")
        if (
            isinstance(template, dict)
            and "containers" in (template.get("spec") or {})
            and "image" in template["spec"]["containers"][0]
        ):
            spec = template["spec"] | {"restartPolicy": "Never"}
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": template["metadata"] | {"name": "probe"},
                "spec": spec,
            }
        for each in obj.values():
            yield from pods(each)


def check_all(api: Api, made: list[Object], namespace: str) -> None:
    """Fails unless the server takes all of it; of a kind that it does not serve only the pods are
    shown to it.
    """
    for obj in made:
        path = collection(obj, namespace)
        if api.get(path, limit="1").status == 200:
            check_created(api, path, obj, namespace)
        for pod in pods(obj):
            check_created(api, PODS.format(namespace), pod, namespace)


@pytest.mark.usefixtures("classes")
@pytest.mark.parametrize("name", golden.CASES)
def test_the_golden_objects_are_taken(api: Api, pods_namespace: str, name: str) -> None:
    check_all(api, golden.build_case_objects(name), pods_namespace)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(ANY_SPEC)
def test_whatever_a_valid_spec_becomes_is_taken(api: Api, pods_namespace: str, spec: Spec) -> None:
    check_all(
        api, build_objects(spec, workload_id="3f1c6f0e-5d0a-4c39-9a53-0f6a9f1f8a11"), pods_namespace
    )
