"""Makes and removes the objects that an operator owns, and tells of it on the owner, with the
reasons of the real controllers.
"""

from localkube.errors import ApiError
from localkube.event_recorder import EventRecorder
from localkube.lifecycle import DeleteOptions
from localkube.metadata import Object, build_owner_reference, name_of, namespace_of, uid_of
from localkube.objects import Objects
from localkube.resources.resource import Resource

RETRY_AFTER = 5.0
"""Seconds after which a refused creation is tried again: what refused it (quota, a namesake) may be
gone by then.
"""


class Children:
    """The objects of one operator. `kind_in_reason` makes the reasons SuccessfulCreatePod and so
    on; else SuccessfulCreate.
    """

    def __init__(self, objects: Objects, recorder: EventRecorder, *, kind_in_reason: bool) -> None:
        self._objects = objects
        self._recorder = recorder
        self._kind_in_reason = kind_in_reason

    def create(self, owner: Object, resource: Resource, child: Object) -> Object | None:
        """Create `child` in the owner's namespace, controlled by the owner; None when that is
        refused, which an event then tells.

        A refusal because the namespace is going away is nobody's news.
        """
        child["metadata"]["ownerReferences"] = [build_owner_reference(owner)]
        try:
            made = self._objects.create(resource, namespace_of(owner), child)
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
            f"Created {_kind_name(resource)}: {name_of(made)}",
        )
        return made

    def delete(self, owner: Object, resource: Resource, child: Object) -> None:
        """Start the deletion of `child`; nothing happens when it is gone already."""
        if self._objects.find(resource, namespace_of(owner), name_of(child)) is None:
            return
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
