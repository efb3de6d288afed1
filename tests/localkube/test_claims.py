"""Claims for storage: bound to a directory at once, kept while they are used, and gone with what
they held when they are deleted.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from localkube.controllers.claims import ClaimController
from localkube.errors import ApiError
from localkube.metadata import Object
from localkube.resources import PERSISTENTVOLUMECLAIMS, PODS, STORAGECLASSES, build_local_class
from tests.localkube import kubelets
from tests.localkube.kubelets import machine, pod, shell
from tests.localkube.stage import Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(tmp_path / "state.db", monkeypatch, lambda objects: [ClaimController(objects)])
    made.objects.create(STORAGECLASSES, "", build_local_class())
    yield made
    made.close()


def claim(name: str = "data", **spec: object) -> Object:
    body: Object = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": body | spec}


def user(name: str = "p") -> Object:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "x"}], "volumes": volumes},
    }


def test_a_claim_is_bound_at_once(stage: Stage) -> None:
    made = stage.create(PERSISTENTVOLUMECLAIMS, claim())
    found = stage.get(PERSISTENTVOLUMECLAIMS, "data")
    assert found["status"] == {
        "phase": "Bound",
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "1Gi"},
    }
    assert (found["spec"]["storageClassName"], found["spec"]["volumeName"]) == (
        "local",
        f"pvc-{made['metadata']['uid']}",
    )
    assert stage.reasons("PersistentVolumeClaim") == ["ProvisioningSucceeded"]


@pytest.mark.parametrize(
    ("wanted", "reason", "text"),
    [
        ("fast", "ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found'),
        ("", "FailedBinding", "no storage class is set"),
        ("other", "ProvisioningFailed", "localkube has no provisioner 'example.com/disks'"),
    ],
)
def test_a_claim_that_no_class_can_meet_waits_and_says_why(
    stage: Stage, wanted: str, reason: str, text: str
) -> None:
    stage.create(
        STORAGECLASSES, {"metadata": {"name": "other"}, "provisioner": "example.com/disks"}
    )
    stage.create(PERSISTENTVOLUMECLAIMS, claim(storageClassName=wanted))
    assert stage.get(PERSISTENTVOLUMECLAIMS, "data")["status"] == {"phase": "Pending"}
    ((_, event_reason, message),) = stage.events("PersistentVolumeClaim")
    assert event_reason == reason
    assert text in message


def test_a_class_that_comes_later_meets_the_claims_that_wait_for_it(stage: Stage) -> None:
    stage.create(PERSISTENTVOLUMECLAIMS, claim(storageClassName="fast"))
    stage.create(
        STORAGECLASSES,
        {"metadata": {"name": "fast"}, "provisioner": build_local_class()["provisioner"]},
    )
    assert stage.get(PERSISTENTVOLUMECLAIMS, "data")["status"]["phase"] == "Bound"


def test_a_larger_request_enlarges_the_claim(stage: Stage) -> None:
    stage.create(PERSISTENTVOLUMECLAIMS, claim())
    stage.modify(
        PERSISTENTVOLUMECLAIMS,
        "data",
        lambda it: it["spec"]["resources"]["requests"].update(storage="2Gi"),
    )
    assert stage.get(PERSISTENTVOLUMECLAIMS, "data")["status"]["capacity"] == {"storage": "2Gi"}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"accessModes": []}, "at least 1 access mode is required"),
        ({"accessModes": ["Sometimes"]}, 'Unsupported value: "Sometimes"'),
        ({"resources": {}}, "spec.resources[storage]: Required value"),
        ({"resources": {"requests": {"storage": "0"}}}, "must be greater than zero"),
        ({"volumeMode": "Tape"}, 'Unsupported value: "Tape"'),
        ({"storageClassName": "No Name"}, "spec.storageClassName: Invalid value"),
    ],
)
def test_a_claim_that_makes_no_sense_is_refused(stage: Stage, spec: Object, text: str) -> None:
    with pytest.raises(ApiError) as refusal:
        stage.create(PERSISTENTVOLUMECLAIMS, claim(**spec))
    assert refusal.value.code == 422
    assert text in refusal.value.message


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"accessModes": ["ReadWriteOnce"]}, "spec is immutable"),
        ({"resources": {"requests": {"storage": "1Mi"}}}, "less than previous"),
    ],
)
def test_a_claim_does_not_change_nor_shrink(stage: Stage, change: Object, text: str) -> None:
    stage.create(PERSISTENTVOLUMECLAIMS, claim())
    with pytest.raises(ApiError, match=text):
        stage.modify(PERSISTENTVOLUMECLAIMS, "data", lambda it: it["spec"].update(change))


def test_a_claim_that_is_deleted_stays_until_its_last_pod_has_ended(stage: Stage) -> None:
    stage.create(PERSISTENTVOLUMECLAIMS, claim())
    stage.create(PODS, user("p"))
    stage.create(PODS, user("q"))
    stage.delete(PERSISTENTVOLUMECLAIMS, "data")
    stage.report("p", "Succeeded")
    assert stage.names(PERSISTENTVOLUMECLAIMS) == ["data"]
    stage.delete(PODS, "q", grace_seconds=0)
    assert stage.names(PERSISTENTVOLUMECLAIMS) == []


def test_what_one_pod_writes_the_next_reads_until_the_claim_is_deleted(tmp_path: Path) -> None:
    def uses(script: str, name: str) -> Object:
        mounted = shell(script, volumeMounts=[{"name": "v", "mountPath": "/data"}])
        return pod(
            mounted,
            name=name,
            volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        )

    async def scenario() -> None:
        async with machine(tmp_path / "m") as kubelet:
            made = kubelet.objects.create(PERSISTENTVOLUMECLAIMS, kubelets.TEAM, claim())
            bound = {
                "phase": "Bound",
                "accessModes": ["ReadWriteMany"],
                "capacity": {"storage": "1Gi"},
            }
            name, place = "data", tmp_path / "m" / "claims" / made["metadata"]["uid"]
            kubelet.objects.modify(
                PERSISTENTVOLUMECLAIMS,
                kubelets.TEAM,
                name,
                lambda it: it.update(status=bound),
                subresource="status",
            )
            for script, pod_name in (
                ("echo kept > /data/file", "writer"),
                ("cat /data/file", "reader"),
            ):
                kubelet.submit(uses(script, pod_name))
                assert (await kubelet.finished(pod_name))["phase"] == "Succeeded"
            assert await kubelet.log("reader") == "kept\n"
            assert place.is_dir()
            kubelet.objects.delete(PERSISTENTVOLUMECLAIMS, kubelets.TEAM, name)
            await kubelet.until(lambda: not place.exists())

    asyncio.run(scenario())


def test_a_claim_that_was_deleted_while_no_kubelet_looked_leaves_nothing(tmp_path: Path) -> None:
    stray = tmp_path / "m" / "claims" / "gone"

    async def scenario() -> None:
        stray.mkdir(parents=True)
        (stray / "file").write_text("left")
        async with machine(tmp_path / "m"):
            assert not stray.exists()

    asyncio.run(scenario())
