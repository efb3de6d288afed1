"""Namespaces on their way out: emptied in order, with conditions that say what is left; and what
each namespace is given.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from localkube.controllers.jobs import JobController
from localkube.controllers.namespaces import DELETIONS_PER_RECONCILE, NamespaceController
from localkube.controllers.ports import PortAllocator
from localkube.controllers.pytorch import PyTorch
from localkube.controllers.training import TrainingController
from localkube.errors import ApiError
from localkube.metadata import Object
from localkube.objects import Objects
from localkube.resources import (
    CONFIGMAPS,
    JOBS,
    LEASE_NAMESPACE,
    NAMESPACES,
    PODS,
    PYTORCHJOBS,
    SECRETS,
    SERVICEACCOUNTS,
)
from tests.localkube.stage import SPACE, Stage, pytorchjob, replica

RECORDED = Path(__file__).parents[3] / "shared" / "recorded" / "namespace" / "terminating.json"


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    def controllers(
        objects: Objects,
    ) -> list[NamespaceController | JobController | TrainingController]:
        return [
            NamespaceController(objects, "PEM"),
            JobController(objects),
            TrainingController(objects, PyTorch(), PortAllocator(objects)),
        ]

    made = Stage(tmp_path / "state.db", monkeypatch, controllers)
    made.settle()
    yield made
    made.close()


def conditions(stage: Stage) -> list[Object]:
    found: list[Object] = stage.get(NAMESPACES, SPACE)["status"]["conditions"]
    return found


def add_finalizer(stage: Stage, name: str) -> None:
    stage.modify(
        PYTORCHJOBS, name, lambda job: job["metadata"].update(finalizers=["example.com/hold"])
    )


def test_every_namespace_has_an_account_and_the_clusters_certificate(stage: Stage) -> None:
    assert stage.names(SERVICEACCOUNTS) == ["default"]
    assert stage.get(CONFIGMAPS, "kube-root-ca.crt")["data"] == {"ca.crt": "PEM"}
    stage.delete(CONFIGMAPS, "kube-root-ca.crt")
    stage.delete(SERVICEACCOUNTS, "default")
    assert (stage.names(SERVICEACCOUNTS), stage.names(CONFIGMAPS)) == (
        ["default"],
        ["kube-root-ca.crt"],
    )


def test_the_namespace_of_the_nodes_leases_comes_back(stage: Stage) -> None:
    made = stage.objects.create(NAMESPACES, "", {"metadata": {"name": LEASE_NAMESPACE}})
    stage.settle()
    stage.delete(NAMESPACES, LEASE_NAMESPACE)
    stage.settle()
    found = stage.objects.get(NAMESPACES, "", LEASE_NAMESPACE)
    assert (found["metadata"]["uid"] != made["metadata"]["uid"], found["status"]) == (
        True,
        {"phase": "Active"},
    )


def test_a_deleted_namespace_takes_everything_in_it_along(stage: Stage) -> None:
    stage.create(PYTORCHJOBS, pytorchjob("j", {"Master": replica()}))
    for index in range(DELETIONS_PER_RECONCILE + 3):
        stage.objects.create(SECRETS, SPACE, {"metadata": {"name": f"s{index}"}})
    stage.delete(NAMESPACES, SPACE)
    assert stage.objects.find(NAMESPACES, "", SPACE) is None
    assert all(
        stage.objects.list(kind, SPACE) == []
        for kind in (PODS, PYTORCHJOBS, SECRETS, SERVICEACCOUNTS, CONFIGMAPS)
    )


def test_pods_end_gracefully_before_the_rest_goes(stage: Stage) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    stage.create(JOBS, {"metadata": {"name": "b"}, "spec": {"template": template}})
    stage.create(PYTORCHJOBS, pytorchjob("j", {"Master": replica()}))
    for pod in stage.names(PODS):
        stage.report(pod, "Running")
    stage.delete(NAMESPACES, SPACE)
    assert (stage.names(PYTORCHJOBS), len(stage.names(PODS))) == (["j"], 2)
    remaining = conditions(stage)[3]
    assert remaining["reason"] == "SomeResourcesRemain"
    assert (
        "pods. has 2 resource instances, pytorchjobs.kubeflow.org has 1 resource instances"
        in remaining["message"]
    )
    stage.confirm_deletions()
    assert stage.objects.find(NAMESPACES, "", SPACE) is None


def test_nothing_new_can_be_made_meanwhile(stage: Stage) -> None:
    stage.create(PYTORCHJOBS, pytorchjob("j", {"Master": replica()}))
    add_finalizer(stage, "j")
    stage.delete(NAMESPACES, SPACE)
    with pytest.raises(ApiError) as refused:
        stage.objects.create(SECRETS, SPACE, {"metadata": {"name": "late"}})
    assert refused.value.code == 403


def test_conditions_say_what_is_left_as_a_real_server_does(stage: Stage) -> None:
    if not RECORDED.exists():
        pytest.skip(f"the recorded answers are not here ({RECORDED.name})")
    stage.create(PYTORCHJOBS, pytorchjob("j", {"Master": replica()}))
    add_finalizer(stage, "j")
    stage.delete(NAMESPACES, SPACE)
    recorded = json.loads(RECORDED.read_text())["response"]["body"]["status"]
    assert [{**each, "lastTransitionTime": ""} for each in conditions(stage)] == [
        {**each, "lastTransitionTime": ""} for each in recorded["conditions"]
    ]
    assert stage.get(NAMESPACES, SPACE)["status"]["phase"] == recorded["phase"]
    stage.modify(PYTORCHJOBS, "j", lambda job: job["metadata"].update(finalizers=[]))
    assert stage.objects.find(NAMESPACES, "", SPACE) is None


def test_a_namespace_goes_on_going_after_a_restart(stage: Stage) -> None:
    stage.objects.delete(NAMESPACES, "", SPACE)
    stage.close()
    stage.open()
    stage.settle()
    assert stage.objects.find(NAMESPACES, "", SPACE) is None
