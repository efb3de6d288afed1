"""Probes and lifecycle hooks are not run here: who writes a pod or a job with them is warned."""

from typing import Any

import pytest

from localkube import resources
from localkube.metadata import Object
from localkube.resources import JOBS, PODS, PYTORCHJOBS
from localkube.resources.resource import Resource
from tests.localkube.api_server import ApiServer
from tests.localkube.resource_objects import build_object, pod

PATH = "/api/v1/namespaces/team-a/pods"
HOOK = {"preStop": {"exec": {"command": ["true"]}}}
PROBE = {"exec": {"command": ["true"]}}
WHY = "localkube runs no probes and no lifecycle hooks"


def build_holder(resource: Resource, **fields: Any) -> tuple[str, Object]:
    """Return where a kind has its containers, and an object with such a one."""
    spec = pod(containers=[{"name": "pytorch", "image": "i"} | fields], restartPolicy="Never")[
        "spec"
    ]
    if resource is PODS:
        return "spec", build_object(PODS, spec=spec)
    template = {"template": {"spec": spec}}
    if resource is JOBS:
        return "spec.template.spec", build_object(JOBS, spec=template)
    specs = {"pytorchReplicaSpecs": {"Worker": template}}
    return "spec.pytorchReplicaSpecs.Worker.template.spec", build_object(PYTORCHJOBS, spec=specs)


@pytest.mark.parametrize("resource", [PODS, JOBS, PYTORCHJOBS], ids=lambda kind: kind.plural)
def test_the_first_part_without_effect_is_named(resource: Resource) -> None:
    path, obj = build_holder(resource, lifecycle=HOOK)
    assert resource.find_warnings(obj) == [f"{path}.containers[0].lifecycle: {WHY}"]
    path, obj = build_holder(resource, readinessProbe=PROBE, lifecycle=HOOK)
    assert resource.find_warnings(obj) == [
        f"{path}.containers[0].readinessProbe (and 1 more): {WHY}"
    ]


@pytest.mark.parametrize("resource", resources.list_served(), ids=lambda kind: kind.key)
def test_nobody_is_warned_of_nothing(resource: Resource) -> None:
    assert not resource.find_warnings(build_object(resource))
    assert not resource.find_warnings(build_object(resource, spec=pod()["spec"]))


def test_writers_are_warned_when_the_spec_changes(api: ApiServer) -> None:
    body = pod(initContainers=[{"name": "first", "image": "i", "lifecycle": HOOK}])
    answer = api.ask("POST", PATH, body)
    assert answer.status == 201
    warning = f'299 - "spec.initContainers[0].lifecycle: {WHY}"'
    assert answer.headers.get_all("warning") == [warning]

    def patch(change: Object) -> list[str] | None:
        media = "application/merge-patch+json"
        changed = api.ask("PATCH", f"{PATH}/p", change, content_type=media)
        assert changed.status == 200
        return changed.headers.get_all("warning")

    assert patch({"metadata": {"labels": {"a": "b"}}}) is None
    assert patch({"spec": {"activeDeadlineSeconds": 60}}) == [warning]
