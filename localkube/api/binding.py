"""The binding subresource of pods: how another scheduler puts a pod on a node."""

from localkube import clock, errors
from localkube.api import bodies
from localkube.api.http_messages import ApiCall, Response, created_response
from localkube.api.writing import parse_write_request
from localkube.metadata import Object, set_condition
from localkube.objects import Objects, WriteRequest
from localkube.resources import PODS


class BindingHandler:
    """Answers the POST of a Binding."""

    def __init__(self, objects: Objects, reader: bodies.BodyReader) -> None:
        self._objects = objects
        self._body_reader = reader

    async def bind(self, call: ApiCall, namespace: str, name: str) -> Response:
        """Put a pod on the node that the body names; whether there is such a node is not asked.

        Raises ApiError: 400, 404, 409 for a pod that has a node or waits at a gate or is being
        deleted, 422 for a target that is no node.
        """
        request = parse_write_request(call, "CreateOptions")
        raw = await self._body_reader.read_body(call)
        body = await bodies.decode_body(raw, bodies.get_media_type(call), "Binding")
        node = _parse_target(body, name)
        pod = self._objects.get(PODS, namespace, name)
        _check_bindable(pod, name)
        with self._objects.store.transaction():
            self._assign_node(namespace, name, node, body["metadata"], request)
        return created_response()

    def _assign_node(
        self, namespace: str, name: str, node: str, metadata: Object, request: WriteRequest
    ) -> None:
        """Set the node, and the labels and annotations that come with it."""

        def place(pod: Object) -> None:
            pod["spec"]["nodeName"] = node
            for part in ("annotations", "labels"):
                if metadata.get(part):
                    pod["metadata"][part] = (pod["metadata"].get(part) or {}) | metadata[part]

        self._objects.modify(PODS, namespace, name, place, request=request)
        if not request.dry_run:
            self._objects.modify(PODS, namespace, name, _set_scheduled, subresource="status")


def _parse_target(body: Object, name: str) -> str:
    """Return the node that a Binding names. Raises ApiError 400, 422."""
    metadata, target = (
        (body.get("metadata"), body.get("target")) if isinstance(body, dict) else (None, None)
    )
    if not isinstance(metadata, dict) or not isinstance(target, dict):
        raise errors.bad_request_error(
            "the object provided is unrecognized (must be of type Binding): it needs metadata and "
            "a target"
        )
    if metadata.get("name") != name:
        raise errors.bad_request_error("name in URL does not match name in Binding object")
    causes = []
    if target.get("kind") not in (None, "", "Node"):
        causes.append(
            errors.unsupported_cause(
                "target.kind", str(target["kind"])[:64], ("Node", "<empty string>")
            )
        )
    if not isinstance(target.get("name"), str) or not target["name"]:
        causes.append(errors.required_cause("target.name", ""))
    if causes:
        raise errors.invalid_error("", "Binding", name, causes)
    return str(target["name"])


def _check_bindable(pod: Object, name: str) -> None:
    """Check that a pod may get a node. Raises ApiError 409."""
    node = pod["spec"].get("nodeName")
    if pod["metadata"].get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif node:
        why = f'pod {name} is already assigned to node "{node}"'
    elif pod["spec"].get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    else:
        return
    raise errors.conflict_error("", "pods/binding", name, why)


def _set_scheduled(pod: Object) -> None:
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    condition: Object = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": clock.format_time(),
    }
    set_condition(conditions, condition)
