"""What a real server says, with a 400, of a value whose type does not fit a built-in kind: the
words of Go's JSON decoder.

Custom kinds are checked here for their metadata alone; their own types are the schema's to refuse,
with a 422.
"""

import base64
import binascii
from typing import Any

from localkube import clock, quantities, schemas
from localkube.metadata import Object
from localkube.resources.resource import Resource
from localkube.schemas.compiled import Node

_WORDS = {
    bool: "bool",
    int: "number",
    float: "number",
    str: "string",
    dict: "object",
    list: "array",
}
_GO_TYPES = {
    "Spec": "PodSpec",
    "Containers": "Container",
    "InitContainers": "Container",
    "Volumes": "Volume",
    "Env": "EnvVar",
    "EnvFrom": "EnvFromSource",
    "ValueFrom": "EnvVarSource",
    "Ports": "ContainerPort",
    "Resources": "ResourceRequirements",
    "VolumeMounts": "VolumeMount",
    "Tolerations": "Toleration",
    "ImagePullSecrets": "LocalObjectReference",
}
"""Go types inside a pod's spec whose names are not that of their field; the upstream schema does
not name them.
"""
_BOUNDS = {"int32": 2**31, "int64": 2**63}


class _Misfit(Exception):
    """The first value that does not fit; its text is the decoder's."""


def decode_error(resource: Resource, obj: Object) -> str | None:
    """The message of the 400 for an object of wrong types, bad quantities, times or base64; None
    when it decodes.

    Raises nothing, whatever the object holds.
    """
    if not resource.schema:
        return None
    node = schemas.load(resource.schema).node
    try:
        if resource.custom:
            _check(node.props["metadata"], obj.get("metadata"), "metadata", node)
        else:
            _check_fields(node, obj, "", node)
    except _Misfit as misfit:
        return (
            f'{resource.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: {misfit}"
        )
    return None


def _check_fields(node: Node, value: dict[str, Any], path: str, owner: Node) -> None:
    props, values = node.props, node.values
    for key, item in value.items():
        part = props.get(key)
        if part is None:
            if values is None:
                continue
            # The elements of a map have no path of their own in Go's texts.
            _check(values, item, path, owner)
        elif item is not None:
            if type(item) is str and part.type == "string" and not part.format:
                continue
            _check(part, item, f"{path}.{key}" if path else key, node)


def _check(node: Node, value: Any, path: str, owner: Node) -> None:
    if value is None:
        return
    if node.quantity:
        _check_quantity(value)
    elif node.accepts is not None and type(value) not in node.accepts:
        raise _Misfit(_cannot(node, value, path, owner))
    elif type(value) is dict:
        _check_fields(node, value, path, owner)
    elif type(value) is list:
        if node.items is not None:
            for item in value:
                _check(node.items, item, path, owner)
    elif type(value) is int:
        if not -_BOUNDS.get(node.format, 2**63) <= value < _BOUNDS.get(node.format, 2**63):
            raise _Misfit(_cannot(node, value, path, owner))
    elif node.format == "date-time":
        _check_time(value)
    elif node.format == "byte":
        _check_base64(value)


def _check_quantity(value: Any) -> None:
    try:
        quantities.parse(value)
    except ValueError as error:
        raise _Misfit(str(error)) from None


def _check_time(value: str) -> None:
    try:
        clock.parse(value)
    except ValueError:
        raise _Misfit(
            f'parsing time "{value[:80]}" as "2006-01-02T15:04:05Z07:00": cannot parse '
            f'"{value[:80]}" as "2006"'
        ) from None


def _check_base64(value: str) -> None:
    text = value.replace("\n", "").replace("\r", "")
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        at = next(
            (index for index, character in enumerate(text) if character not in alphabet), len(text)
        )
        raise _Misfit(f"illegal base64 data at input byte {at}") from None


def _cannot(node: Node, value: Any, path: str, owner: Node) -> str:
    word = _WORDS.get(type(value), "object")
    if node.type == "integer" and type(value) in (int, float):
        word = f"number {value}"
    if node.type == "integer,string":
        return f"json: cannot unmarshal {word} into Go value of type int32"
    return (
        f"json: cannot unmarshal {word} into Go struct field "
        f"{_GO_TYPES.get(owner.go, owner.go)}.{path} of type {_go_type(node)}"
    )


def _go_type(node: Node) -> str:
    if node.type == "integer":
        return node.format or "int64"
    if node.type == "boolean":
        return "bool"
    if node.type == "number":
        return "float64"
    if node.type == "array":
        return f"[]{_go_type(node.items)}" if node.items else "[]interface {}"
    if node.type == "object":
        return (
            f"map[string]{_go_type(node.values)}"
            if node.values
            else f"v1.{_GO_TYPES.get(node.go, node.go)}"
        )
    return "string" if node.format != "date-time" else "time.Time"
