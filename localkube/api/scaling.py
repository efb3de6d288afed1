"""The scale subresource: an object's replicas as an autoscaling/v1 Scale.

The kind's definition names the paths.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from localkube import errors, resources
from localkube.api import bodies
from localkube.api.http_messages import ApiCall, Response, json_response
from localkube.api.writing import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    apply_patch,
    decode_patch,
    get_patch_type,
    parse_write_request,
)
from localkube.metadata import Object
from localkube.objects import Objects
from localkube.resources.resource import Resource

MAX_REPLICAS = 2**31 - 1


class ScaleHandler:
    """Answers get, update and patch of scale."""

    def __init__(self, objects: Objects, reader: bodies.BodyReader) -> None:
        self._objects = objects
        self._body_reader = reader

    async def answer(
        self, call: ApiCall, resource: Resource, namespace: str, name: str, verb: str
    ) -> Response:
        """Answer with the scale, after the change that the verb asks for.

        Raises ApiError: 400, 404, 409 for a stale version, 415 for an apply, 422 for fewer than no
        replicas.
        """
        if verb == "get":
            return json_response(
                build_scale(resource, self._objects.get(resource, namespace, name))
            )
        is_patch = verb == "patch"
        request = parse_write_request(call, "PatchOptions" if is_patch else "UpdateOptions")
        media = get_patch_type(call, resource) if is_patch else bodies.get_media_type(call)
        if media == APPLY_PATCH:
            raise errors.unsupported_media_type_error((JSON_PATCH, MERGE_PATCH))
        raw = await self._body_reader.read_body(call)
        # The object is read after the last await: nobody writes between that and the update.
        if is_patch:
            change = await decode_patch(raw, media, resource)
            obj = self._objects.get(resource, namespace, name)
            scale = apply_patch(resource, build_scale(resource, obj), change, media)
        else:
            scale = await bodies.decode_body(raw, media, "Scale")
            obj = self._objects.get(resource, namespace, name)
        _check_scale(scale, name)
        _set_replicas(resource, obj, scale)
        return json_response(
            build_scale(
                resource, self._objects.update(resource, namespace, name, obj, request=request)
            )
        )


def build_scale(resource: Resource, obj: Object) -> Object:
    """Build the Scale of an object; absent numbers are 0 (recorded `pytorchjob/scale-get`)."""
    paths = resources.get_scale_paths(resource)
    metadata = {
        key: obj["metadata"][key]
        for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    }
    status = {"replicas": _find_value(obj, _split_path(paths, "statusReplicasPath")) or 0}
    selector = _find_value(obj, _split_path(paths, "labelSelectorPath"))
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": _find_value(obj, _split_path(paths, "specReplicasPath")) or 0},
        "status": status,
    }


def _set_replicas(resource: Resource, obj: Object, scale: Object) -> None:
    """Set the wanted number, and the version it was decided on, in the object.

    Raises ApiError 422 where there is no place for it.
    """
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        obj["metadata"]["resourceVersion"] = version
    *path, last = _split_path(resources.get_scale_paths(resource), "specReplicasPath")
    holder = _find_value(obj, path)
    if not isinstance(holder, dict):
        cause = errors.invalid_cause(
            "spec.replicas", "null", f".{'.'.join(path)} does not exist: there is nothing to scale"
        )
        raise errors.invalid_error(resource.group, resource.kind, obj["metadata"]["name"], [cause])
    holder[last] = scale["spec"].get("replicas", 0)


def _split_path(paths: Mapping[str, str], name: str) -> list[str]:
    return [step for step in paths.get(name, "").split(".") if step]


def _find_value(obj: Object, path: Sequence[str]) -> Any:
    value: Any = obj if path else None
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _check_scale(scale: Any, name: str) -> None:
    if (
        not isinstance(scale, dict)
        or not isinstance(scale.get("spec"), dict)
        or not isinstance(scale.get("metadata") or {}, dict)
    ):
        raise errors.bad_request_error(
            "the object provided is unrecognized (must be of type Scale): it has no spec"
        )
    if scale.get("kind", "Scale") != "Scale":
        raise errors.bad_request_error(f"{scale['kind']} cannot be handled as a Scale")
    replicas = scale["spec"].get("replicas", 0)
    if type(replicas) is not int or abs(replicas) > MAX_REPLICAS:
        raise errors.bad_request_error(
            'Scale in version "v1" cannot be handled as a Scale: spec.replicas is '
            f"{json.dumps(replicas)[:64]}, which is no number of type int32"
        )
    if replicas < 0:
        cause = errors.invalid_cause(
            "spec.replicas", f"{replicas}", "must be greater than or equal to 0"
        )
        raise errors.invalid_error("autoscaling", "Scale", name, [cause])
