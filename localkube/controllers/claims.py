"""The controller of PersistentVolumeClaims: binds each to a directory, protects those in use."""

from collections.abc import Iterator, Mapping

from localkube.controllers.loop import Key, Trigger
from localkube.event_recorder import EventRecorder
from localkube.metadata import (
    FINISHED_PHASES,
    Object,
    is_terminating,
    name_of,
    namespace_of,
    uid_of,
)
from localkube.objects import Objects
from localkube.resources import PERSISTENTVOLUMECLAIMS, PODS, STORAGECLASSES
from localkube.resources.resource import Resource
from localkube.resources.storage import PROVISIONER
from localkube.store import Change

PROTECTION = "kubernetes.io/pvc-protection"
"""The finalizer that keeps a deleted claim until the pods that use it have ended."""

CLAIM_FIELD = b'"persistentVolumeClaim"'
"""The text that the JSON of every pod with a claim contains."""


class ClaimController:
    """Bind claims at once and protect those that running pods use.

    The kubelet makes a claim's directory when a pod first needs it.
    """

    name = "persistentvolume-controller"

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._recorder = EventRecorder(objects, self.name)

    def triggers(self) -> Mapping[Resource, Trigger]:
        return {
            PERSISTENTVOLUMECLAIMS: self._claim_changed,
            PODS: self._pod_changed,
            STORAGECLASSES: self._class_changed,
        }

    def reconcile(self, key: Key) -> float | None:
        claim = self._objects.find(PERSISTENTVOLUMECLAIMS, *key)
        if claim is None:
            return None
        protected = PROTECTION in (claim["metadata"].get("finalizers") or ())
        if is_terminating(claim):
            if protected and not self._is_used(claim):
                self._objects.modify(PERSISTENTVOLUMECLAIMS, *key, _remove_finalizer)
            return None
        if not protected:
            self._objects.modify(PERSISTENTVOLUMECLAIMS, *key, _add_finalizer)
        self._bind_claim(claim)
        return None

    def _bind_claim(self, claim: Object) -> None:
        spec, class_name = claim["spec"], str(claim["spec"].get("storageClassName") or "")
        storage = self._objects.find(STORAGECLASSES, "", class_name) if class_name else None
        if storage is None:
            if class_name:
                self._recorder.record_event(
                    claim,
                    "Warning",
                    "ProvisioningFailed",
                    f'storageclass.storage.k8s.io "{class_name}" not found',
                )
            else:
                text = "no persistent volumes available for this claim and no storage class is set"
                self._recorder.record_event(claim, "Normal", "FailedBinding", text)
            return
        if storage.get("provisioner") != PROVISIONER:
            text = (
                f"localkube has no provisioner {storage.get('provisioner')!r}, only {PROVISIONER}: "
                "use a storage class of that one"
            )
            self._recorder.record_event(claim, "Warning", "ProvisioningFailed", text)
            return
        namespace, name = namespace_of(claim), name_of(claim)
        if not spec.get("volumeName"):
            volume = f"pvc-{uid_of(claim)}"
            self._objects.modify(
                PERSISTENTVOLUMECLAIMS,
                namespace,
                name,
                lambda obj: obj["spec"].update(volumeName=volume),
            )
            text = f"Successfully provisioned volume {volume}"
            self._recorder.record_event(claim, "Normal", "ProvisioningSucceeded", text)
        amount = spec["resources"]["requests"]["storage"]
        bound = {
            "phase": "Bound",
            "accessModes": spec["accessModes"],
            "capacity": {"storage": amount},
        }
        if claim.get("status") != bound:
            self._objects.modify(
                PERSISTENTVOLUMECLAIMS,
                namespace,
                name,
                lambda obj: obj.update(status=bound),
                subresource="status",
            )

    def _is_used(self, claim: Object) -> bool:
        """Return whether an unfinished pod mounts the claim."""
        records = self._objects.store.list(PODS.key, namespace_of(claim))
        busy = (
            record
            for record in records
            if CLAIM_FIELD in record.raw
            and record.fields.get("status.phase") not in FINISHED_PHASES
        )
        return any(name_of(claim) in list_claim_names(record.decode()) for record in busy)

    def _claim_changed(self, change: Change) -> Iterator[Key]:
        if change.type != "DELETED":
            yield change.record.namespace, change.record.name

    def _pod_changed(self, change: Change) -> Iterator[Key]:
        """Yield the claims of a pod that has ended: a deleted claim may have waited for it."""
        record = change.record
        if CLAIM_FIELD in record.raw and (
            change.type == "DELETED" or record.fields.get("status.phase") in FINISHED_PHASES
        ):
            yield from ((record.namespace, name) for name in list_claim_names(record.decode()))

    def _class_changed(self, change: Change) -> Iterator[Key]:
        if change.type == "ADDED":
            yield from (
                (record.namespace, record.name)
                for record in self._objects.store.list(PERSISTENTVOLUMECLAIMS.key)
            )


def list_claim_names(pod: Object) -> set[str]:
    """Return the names of the claims that a pod mounts."""
    volumes = pod["spec"].get("volumes") or ()
    return {
        str(volume["persistentVolumeClaim"].get("claimName"))
        for volume in volumes
        if volume.get("persistentVolumeClaim")
    }


def _add_finalizer(claim: Object) -> None:
    claim["metadata"]["finalizers"] = [*(claim["metadata"].get("finalizers") or ()), PROTECTION]


def _remove_finalizer(claim: Object) -> None:
    remaining = [name for name in claim["metadata"].pop("finalizers") if name != PROTECTION]
    if remaining:
        claim["metadata"]["finalizers"] = remaining
