"""Creation and deletion of the objects that an operator owns, with the real controllers' events."""

from localkube.errors import ApiError
from localkube.event_recorder import EventRecorder
from localkube.lifecycle import DeleteOptions
from localkube.metadata import Object, build_owner_reference, name_of, namespace_of, uid_of
from localkube.objects import Objects
from localkube.resources.resource import Resource

RETRY_AFTER = 5.0
"""Seconds after which a refused creation is tried again.

What refused it, such as a quota or an object of the same name, may be gone by then.
"""


class Children:
    """Create and delete the objects that one operator owns, and record events on the owner.

    With `kind_in_reason` the event reasons name the kind: SuccessfulCreatePod instead of
    SuccessfulCreate.
    """

    def __init__(self, objects: Objects, recorder: EventRecorder, *, kind_in_reason: bool) -> None:
        self._objects = objects
        self._recorder = recorder
        self._kind_in_reason = kind_in_reason

    def create(self, owner: Object, resource: Resource, child: Object) -> Object | None:
        """Create `child` in the owner's namespace with the owner as its controller.

        Returns None when the API refuses it, and records the refusal as an event. A refusal because
        the namespace is being deleted gets no event.
        """
        child["metadata"]["ownerReferences"] = [build_owner_reference(owner)]
        try:
            created = self._objects.create(resource, namespace_of(owner), child)
        except ApiError as refusal:
            causes = (refusal.details or {}).get("causes") or ()
            if not any(cause.get("reason") == "NamespaceTerminating" for cause in causes):
                self._recorder.record_event(
                    owner,
                    "Warning",
                    self._event_reason("FailedCreate", resource),
                    f"Error creating: {refusal.message}",
                )
            return None
        self._recorder.record_event(
            owner,
            "Normal",
            self._event_reason("SuccessfulCreate", resource),
            f"Created {_kind_name(resource)}: {name_of(created)}",
        )
        return created

    def delete(self, owner: Object, resource: Resource, child: Object) -> None:
        """Start the deletion of `child`; do nothing when it is already gone."""
        if self._objects.find(resource, namespace_of(owner), name_of(child)) is None:
            return
        # The uid keeps an object of the same name that was created meanwhile from being deleted.
        self._objects.delete(
            resource,
            namespace_of(owner),
            name_of(child),
            DeleteOptions(propagation_policy="Background", uid=uid_of(child)),
        )
        self._recorder.record_event(
            owner,
            "Normal",
            self._event_reason("SuccessfulDelete", resource),
            f"Deleted {_kind_name(resource)}: {name_of(child)}",
        )

    def _event_reason(self, stem: str, resource: Resource) -> str:
        return stem + (resource.kind if self._kind_in_reason else "")


def _kind_name(resource: Resource) -> str:
    return resource.kind.lower()
