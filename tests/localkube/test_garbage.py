"""Owner references: background, foreground and orphaning deletion, and owners that vanished while
nobody looked.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from localkube.controllers.garbage import ORPHANS_PER_RECONCILE, GarbageCollector
from localkube.metadata import Object, build_owner_reference
from localkube.resources import CONFIGMAPS, JOBS, NODES, PODS, SECRETS
from tests.localkube.stage import SPACE, Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(tmp_path / "state.db", monkeypatch, lambda objects: [GarbageCollector(objects)])
    yield made
    made.close()


def owner(stage: Stage, name: str) -> Object:
    return stage.create(SECRETS, {"metadata": {"name": name}})


def create_owned(stage: Stage, name: str, *owners: Object, **reference: Any) -> Object:
    references = [
        build_owner_reference(each) | {"controller": False} | reference for each in owners
    ]
    return stage.create(CONFIGMAPS, {"metadata": {"name": name, "ownerReferences": references}})


def add_owner(obj: Object, reference: Object) -> None:
    obj["metadata"]["ownerReferences"] = [reference]


def test_what_a_deleted_owner_leaves_goes_with_all_that_hangs_on_it(stage: Stage) -> None:
    top = owner(stage, "top")
    middle = create_owned(stage, "middle", top)
    create_owned(stage, "leaf", middle)
    create_owned(stage, "other", owner(stage, "another"))
    stage.delete(SECRETS, "top")
    assert stage.names(CONFIGMAPS) == ["other"]


def test_an_object_with_another_owner_stays_and_forgets_the_lost_one(stage: Stage) -> None:
    one, two = owner(stage, "one"), owner(stage, "two")
    create_owned(stage, "shared", one, two)
    stage.delete(SECRETS, "one")
    references = stage.get(CONFIGMAPS, "shared")["metadata"]["ownerReferences"]
    assert [each["name"] for each in references] == ["two"]
    stage.delete(SECRETS, "two")
    assert stage.names(CONFIGMAPS) == []


def test_an_owner_is_known_by_its_uid_not_its_name(stage: Stage) -> None:
    first = owner(stage, "same")
    stage.objects.delete(SECRETS, SPACE, "same")
    owner(stage, "same")
    create_owned(stage, "lost", first)
    assert stage.names(CONFIGMAPS) == []


def test_owners_that_vanished_while_nobody_watched_are_found_at_the_start(stage: Stage) -> None:
    old_owner = owner(stage, "gone")
    create_owned(stage, "left", old_owner)
    stage.loop.stop()
    stage.objects.delete(SECRETS, SPACE, "gone")
    stage.store.close()
    stage.open()
    stage.settle()
    assert stage.names(CONFIGMAPS) == []


def test_an_owner_of_a_kind_that_is_not_served_is_no_reason_to_delete(stage: Stage) -> None:
    create_owned(stage, "kept", owner(stage, "x"), apiVersion="apps/v1", kind="ReplicaSet")
    assert stage.names(CONFIGMAPS) == ["kept"]


def test_a_cluster_scoped_owner_counts(stage: Stage) -> None:
    node = stage.objects.create(NODES, "", {"metadata": {"name": "n"}})
    create_owned(stage, "of-node", node)
    assert stage.names(CONFIGMAPS) == ["of-node"]
    stage.delete(NODES, "n")
    assert stage.names(CONFIGMAPS) == []


def test_foreground_waits_for_those_that_block(stage: Stage) -> None:
    top = owner(stage, "top")
    create_owned(stage, "blocks", top)
    create_owned(stage, "does-not", top, blockOwnerDeletion=False)
    for name in ("blocks", "does-not"):
        stage.modify(
            CONFIGMAPS, name, lambda obj: obj["metadata"].update(finalizers=["example.com/hold"])
        )
    stage.delete(SECRETS, "top", propagation_policy="Foreground")
    assert stage.get(SECRETS, "top")["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert stage.get(CONFIGMAPS, "blocks")["metadata"]["deletionTimestamp"]
    stage.modify(CONFIGMAPS, "blocks", lambda obj: obj["metadata"].update(finalizers=[]))
    assert (stage.names(SECRETS), stage.names(CONFIGMAPS)) == ([], ["does-not"])


def test_foreground_reaches_through_every_level(stage: Stage) -> None:
    top = owner(stage, "top")
    create_owned(stage, "leaf", create_owned(stage, "middle", top))
    stage.delete(SECRETS, "top", propagation_policy="Foreground")
    assert (stage.names(SECRETS), stage.names(CONFIGMAPS)) == ([], [])


def test_foreground_of_a_running_pod_waits_for_its_end(stage: Stage) -> None:
    top = owner(stage, "top")
    references = [build_owner_reference(top)]
    pod = {
        "metadata": {"name": "p", "ownerReferences": references},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }
    stage.create(PODS, pod)
    stage.report("p", "Running")
    stage.delete(SECRETS, "top", propagation_policy="Foreground")
    assert (stage.names(SECRETS), stage.names(PODS)) == (["top"], ["p"])
    stage.confirm_deletions()
    assert (stage.names(SECRETS), stage.names(PODS)) == ([], [])


@pytest.mark.parametrize("names", [["a"], ["a", "b"], ["a", "b", "c"]])
def test_objects_that_own_each_other_in_a_circle_go_with_the_first(
    stage: Stage, names: list[str]
) -> None:
    made = [stage.create(CONFIGMAPS, {"metadata": {"name": name}}) for name in names]
    for name, owner_of_it in zip([*names[1:], names[0]], made, strict=True):
        reference = build_owner_reference(owner_of_it)
        stage.objects.modify(CONFIGMAPS, SPACE, name, partial(add_owner, reference=reference))
    stage.settle()
    stage.delete(CONFIGMAPS, "a", propagation_policy="Foreground")
    assert stage.names(CONFIGMAPS) == []


def test_orphaning_leaves_the_dependents_without_an_owner(stage: Stage) -> None:
    top = owner(stage, "top")
    for index in range(ORPHANS_PER_RECONCILE + 5):
        stage.objects.create(
            CONFIGMAPS,
            SPACE,
            {"metadata": {"name": f"o{index}", "ownerReferences": [build_owner_reference(top)]}},
        )
    stage.delete(SECRETS, "top", propagation_policy="Orphan")
    assert stage.names(SECRETS) == []
    assert len(stage.names(CONFIGMAPS)) == ORPHANS_PER_RECONCILE + 5
    assert not any(
        obj["metadata"].get("ownerReferences") for obj in stage.objects.list(CONFIGMAPS, SPACE)
    )


def test_a_job_deleted_without_a_policy_leaves_its_pods(stage: Stage) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    job = stage.create(JOBS, {"metadata": {"name": "j"}, "spec": {"template": template}})
    create_owned(stage, "stays", job)
    stage.delete(JOBS, "j")
    assert (stage.names(JOBS), stage.names(CONFIGMAPS)) == ([], ["stays"])
