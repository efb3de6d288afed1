"""The verbs: what they keep, refuse and count, for every kind alike."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from localkube.errors import ApiError
from localkube.lifecycle import DeleteOptions
from localkube.metadata import Object
from localkube.objects import Objects, WriteRequest
from localkube.resources import CONFIGMAPS, JOBS, NAMESPACES, PODS, PRIORITYCLASSES, PYTORCHJOBS
from localkube.store import Record, Store


class CountedStore(Store):
    """A store that counts the priority classes that are read."""

    class_reads = 0

    def find(self, key: str, namespace: str, name: str) -> Record | None:
        self.class_reads += key == PRIORITYCLASSES.key
        return super().find(key, namespace, name)

    def list(self, key: str, namespace: str | None = None) -> Sequence[Record]:
        records = super().list(key, namespace)
        self.class_reads += len(records) if key == PRIORITYCLASSES.key else 0
        return records


@pytest.fixture
def objects(tmp_path: Path) -> Iterator[Objects]:
    store = CountedStore(tmp_path / "state.db", lambda key, obj: {})
    verbs = Objects(store)
    verbs.create(NAMESPACES, "", {"metadata": {"name": "a"}})
    yield verbs
    store.close()


def pod(name: str = "p", **spec: object) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def training(name: str = "j", workers: int = 1) -> Object:
    template = {"spec": {"containers": [{"name": "pytorch", "image": "i"}]}}
    return {
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": workers, "template": template}}},
    }


def get_code_and_reason(error: pytest.ExceptionInfo[ApiError]) -> tuple[int, str]:
    return error.value.code, error.value.reason


def test_a_new_object_gets_what_only_the_server_may_set(objects: Objects) -> None:
    sent = pod()
    sent["metadata"] |= {
        "uid": "mine",
        "generation": 9,
        "creationTimestamp": "2001-01-01T00:00:00Z",
    }
    made = objects.create(PODS, "a", sent)["metadata"]
    assert made["uid"] != "mine"
    assert (made["generation"], made["namespace"], made["resourceVersion"]) == (
        1,
        "a",
        str(objects.store.rv),
    )
    assert not made["creationTimestamp"].startswith("2001")


def test_what_was_sent_is_not_touched(objects: Objects) -> None:
    sent = pod()
    objects.create(PODS, "a", sent)
    assert sent == pod()


def test_a_name_is_generated_from_its_base(objects: Objects) -> None:
    made = objects.create(CONFIGMAPS, "a", {"metadata": {"generateName": "x" * 70}})
    assert len(made["metadata"]["name"]) == 63
    assert made["metadata"]["name"].startswith("x" * 58)


def test_a_taken_name_is_refused(objects: Objects) -> None:
    objects.create(PODS, "a", pod())
    with pytest.raises(ApiError) as error:
        objects.create(PODS, "a", pod())
    assert get_code_and_reason(error) == (409, "AlreadyExists")


def test_an_unknown_namespace_is_named(objects: Objects) -> None:
    with pytest.raises(ApiError, match='namespaces "nowhere" not found') as error:
        objects.create(PODS, "nowhere", pod())
    assert error.value.code == 404


def test_a_dry_run_stores_nothing(objects: Objects) -> None:
    before = objects.store.rv
    made = objects.create(PODS, "a", pod(), WriteRequest(dry_run=True))
    assert "uid" in made["metadata"]
    assert (objects.find(PODS, "a", "p"), objects.store.rv) == (None, before)


def test_an_update_that_changes_nothing_writes_nothing(objects: Objects) -> None:
    made = objects.create(PODS, "a", pod())
    before = objects.store.rv
    assert objects.update(PODS, "a", "p", made) == made
    assert objects.store.rv == before


def test_a_stale_version_is_a_conflict(objects: Objects) -> None:
    made = objects.create(PODS, "a", pod())
    objects.modify(PODS, "a", "p", lambda obj: obj["metadata"].update(labels={"x": "y"}))
    with pytest.raises(ApiError, match="the object has been modified") as error:
        objects.update(PODS, "a", "p", made)
    assert get_code_and_reason(error) == (409, "Conflict")


def test_a_custom_kind_must_say_which_version_it_replaces(objects: Objects) -> None:
    made = objects.create(PYTORCHJOBS, "a", training())
    del made["metadata"]["resourceVersion"]
    with pytest.raises(ApiError, match="must be specified for an update") as error:
        objects.update(PYTORCHJOBS, "a", "j", made)
    assert error.value.code == 422


def test_only_a_change_of_the_spec_raises_the_generation(objects: Objects) -> None:
    objects.create(PYTORCHJOBS, "a", training())
    objects.modify(PYTORCHJOBS, "a", "j", lambda obj: obj["metadata"].update(labels={"x": "y"}))
    objects.modify(
        PYTORCHJOBS,
        "a",
        "j",
        lambda obj: obj.update(status={"startTime": "2026-01-01T00:00:00Z"}),
        subresource="status",
    )
    assert objects.get(PYTORCHJOBS, "a", "j")["metadata"]["generation"] == 1
    objects.modify(
        PYTORCHJOBS, "a", "j", lambda obj: obj["spec"].update(training(workers=2)["spec"])
    )
    assert objects.get(PYTORCHJOBS, "a", "j")["metadata"]["generation"] == 2


def test_status_and_spec_are_written_apart(objects: Objects) -> None:
    objects.create(PYTORCHJOBS, "a", training())

    def change_both(obj: Object) -> None:
        obj["spec"]["runPolicy"] = {"suspend": True}
        obj["status"] = {"startTime": "2026-01-01T00:00:00Z"}

    assert "status" not in objects.modify(PYTORCHJOBS, "a", "j", change_both)
    assert objects.modify(PYTORCHJOBS, "a", "j", change_both, subresource="status")["status"] == {
        "startTime": "2026-01-01T00:00:00Z"
    }


def test_a_finalizer_holds_what_is_deleted_until_it_is_taken_off(objects: Objects) -> None:
    pod_object = pod()
    pod_object["metadata"]["finalizers"] = ["example.com/hold"]
    objects.create(PODS, "a", pod_object)
    assert not objects.delete(PODS, "a", "p").is_removed
    with pytest.raises(ApiError, match="object is being deleted"):
        objects.create(PODS, "a", pod())
    objects.modify(PODS, "a", "p", lambda obj: obj["metadata"].update(finalizers=[]))
    assert objects.find(PODS, "a", "p") is None


def test_a_running_pod_gets_its_grace_and_no_more(objects: Objects) -> None:
    objects.create(PODS, "a", pod(nodeName="n", terminationGracePeriodSeconds=7))
    first = objects.delete(PODS, "a", "p")
    assert (first.is_removed, first.object["metadata"]["deletionGracePeriodSeconds"]) == (False, 7)
    again = objects.delete(PODS, "a", "p", DeleteOptions(grace_seconds=60))
    assert again.object["metadata"] == first.object["metadata"]
    assert objects.delete(PODS, "a", "p", DeleteOptions(grace_seconds=0)).is_removed


@pytest.mark.parametrize("spec", [{}, {"nodeName": "n"}])
def test_a_pod_that_does_not_run_goes_at_once(objects: Objects, spec: Object) -> None:
    objects.create(PODS, "a", pod(**spec))
    if spec:
        objects.modify(
            PODS,
            "a",
            "p",
            lambda obj: obj["status"].update(phase="Succeeded"),
            subresource="status",
        )
    assert objects.delete(PODS, "a", "p").is_removed


def test_a_precondition_spares_a_namesake(objects: Objects) -> None:
    objects.create(PODS, "a", pod())
    with pytest.raises(ApiError, match="does not match the UID in record") as error:
        objects.delete(PODS, "a", "p", DeleteOptions(uid="another"))
    assert get_code_and_reason(error) == (409, "Conflict")


def test_a_collection_that_is_deleted_in_parts_spares_a_later_namesake(objects: Objects) -> None:
    old = objects.create(PYTORCHJOBS, "a", training("old"))
    objects.create(PYTORCHJOBS, "a", training("other"))
    records = objects.store.list(PYTORCHJOBS.key, "a")
    objects.delete(PYTORCHJOBS, "a", "old")
    new = objects.create(PYTORCHJOBS, "a", training("old"))
    deleted = objects.delete_all(PYTORCHJOBS, records, DeleteOptions())
    assert [obj["metadata"]["name"] for obj in deleted] == ["other"]
    left = objects.get(PYTORCHJOBS, "a", "old")
    assert left["metadata"]["uid"] == new["metadata"]["uid"] != old["metadata"]["uid"]


def test_a_job_leaves_its_pods_behind_unless_told_otherwise(objects: Objects) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    objects.create(JOBS, "a", {"metadata": {"name": "j"}, "spec": {"template": template}})
    request = WriteRequest()
    assert objects.delete(JOBS, "a", "j", request=request).object["metadata"]["finalizers"] == [
        "orphan"
    ]
    assert "child pods are preserved" in request.warnings[0]


def test_nothing_new_may_enter_a_namespace_that_goes(objects: Objects) -> None:
    assert objects.delete(NAMESPACES, "", "a").object["status"]["phase"] == "Terminating"
    with pytest.raises(ApiError, match="because it is being terminated") as error:
        objects.create(PODS, "a", pod())
    assert error.value.details is not None
    assert error.value.details["causes"][0]["reason"] == "NamespaceTerminating"


def test_a_priority_class_gives_its_value(objects: Objects) -> None:
    objects.create(PRIORITYCLASSES, "", {"metadata": {"name": "train"}, "value": 50})
    assert objects.create(PODS, "a", pod(priorityClassName="train"))["spec"]["priority"] == 50
    with pytest.raises(ApiError, match="no PriorityClass with name nothing was found") as error:
        objects.create(PODS, "a", pod("q", priorityClassName="nothing"))
    assert error.value.code == 403


def test_the_default_priority_class_is_that_of_pods_that_name_none(objects: Objects) -> None:
    before = objects.create(PODS, "a", pod("before"))["spec"]
    assert (before["priority"], before["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    default = {
        "metadata": {"name": "usual"},
        "value": 20,
        "globalDefault": True,
        "preemptionPolicy": "Never",
    }
    objects.create(PRIORITYCLASSES, "", default)
    created = objects.create(PODS, "a", pod(), WriteRequest(field_manager="somebody"))
    spec = created["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 20)
    assert spec["preemptionPolicy"] == "Never"
    # Admission wrote it, and not the client.
    assert "f:priority" not in str(created["metadata"]["managedFields"])


def test_the_default_priority_class_is_kept_in_mind(objects: Objects) -> None:
    store = objects.store
    assert isinstance(store, CountedStore)

    def create_pods(verbs: Objects, name: str) -> list[str]:
        made = [verbs.create(PODS, "a", pod(f"{name}-{number}")) for number in range(3)]
        return [each["spec"].get("priorityClassName", "") for each in made]

    for number in range(10):
        made = {"metadata": {"name": f"c{number}"}, "value": 7}
        objects.create(PRIORITYCLASSES, "", made)
    store.class_reads = 0
    assert set(create_pods(objects, "before")) == {""}
    assert store.class_reads == 0
    objects.create(
        PRIORITYCLASSES, "", {"metadata": {"name": "usual"}, "value": 1, "globalDefault": True}
    )
    store.class_reads = 0
    assert set(create_pods(objects, "usual")) == {"usual"}
    assert store.class_reads == 3
    objects.modify(PRIORITYCLASSES, "", "c9", lambda obj: obj.update(description="other"))
    again = Objects(objects.store)
    assert set(create_pods(again, "again")) == {"usual"}
    objects.modify(PRIORITYCLASSES, "", "usual", lambda obj: obj.pop("globalDefault"))
    assert set(create_pods(objects, "none")) == {""}
    objects.modify(PRIORITYCLASSES, "", "c9", lambda obj: obj.update(globalDefault=True))
    assert set(create_pods(again, "ninth")) == {"c9"}
    objects.delete(PRIORITYCLASSES, "", "c9")
    assert set(create_pods(objects, "gone")) == {""}


def test_there_is_one_default_priority_class(objects: Objects) -> None:
    first, second = (
        {"metadata": {"name": name}, "value": 1, "globalDefault": True} for name in "xy"
    )
    objects.create(PRIORITYCLASSES, "", first)
    with pytest.raises(ApiError, match="PriorityClass x is already marked as default") as error:
        objects.create(PRIORITYCLASSES, "", second)
    assert get_code_and_reason(error) == (403, "Forbidden")
    objects.create(PRIORITYCLASSES, "", second | {"globalDefault": False})
    with pytest.raises(ApiError, match="Only one default can exist"):
        objects.modify(PRIORITYCLASSES, "", "y", lambda obj: obj.update(globalDefault=True))
    objects.modify(PRIORITYCLASSES, "", "x", lambda obj: obj.update(description="still"))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"priority": 5}, r"integer value of priority \(5\) .* computed 0 from"),
        ({"preemptionPolicy": "Never"}, r"string value of PreemptionPolicy \(Never\) must not"),
        ({"priority": 5, "priorityClassName": "train"}, r"computed 50 from"),
    ],
)
def test_a_pod_says_no_priority_but_that_of_its_class(
    objects: Objects, given: dict[str, Any], text: str
) -> None:
    objects.create(PRIORITYCLASSES, "", {"metadata": {"name": "train"}, "value": 50})
    with pytest.raises(ApiError, match=text) as error:
        objects.create(PODS, "a", pod(**given))
    assert get_code_and_reason(error) == (403, "Forbidden")
    objects.create(PODS, "a", pod(priority=50, priorityClassName="train"))


def test_unknown_fields_are_reported_or_refused_as_asked(objects: Objects) -> None:
    sent = training() | {"sepc": 1}
    warned, strict = WriteRequest(), WriteRequest(field_validation="Strict")
    assert "sepc" not in objects.create(PYTORCHJOBS, "a", sent, warned)
    assert warned.warnings == ['unknown field "sepc"']
    with pytest.raises(ApiError, match='strict decoding error: unknown field "sepc"') as error:
        objects.create(PYTORCHJOBS, "a", sent, strict)
    assert error.value.code == 400


def test_a_written_field_belongs_to_its_manager(objects: Objects) -> None:
    made = objects.create(PODS, "a", pod(), WriteRequest(field_manager="somebody"))
    assert [entry["manager"] for entry in made["metadata"]["managedFields"]] == ["somebody"]


@pytest.mark.parametrize(
    "garbage",
    [[], "text", None, 7, {"metadata": []}, {"metadata": {"name": 7}}, {"kind": "Secret"}],
)
def test_what_is_no_such_object_is_refused(objects: Objects, garbage: object) -> None:
    with pytest.raises(ApiError) as error:
        objects.create(CONFIGMAPS, "a", garbage)  # type: ignore[arg-type]
    assert error.value.code in (400, 422)
